"""Figures of the linear family: what they simulate, and verdicts that follow the measurements."""

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.experiments import Figure, Simulation, figure_named
from dpbandits.experiments.figure import Scale, Verdict
from dpbandits.experiments.linear_leaderboard import BUDGETS, INSTANCES, PRINTED, true_budget
from dpbandits.experiments.reproduce import reproduce
from dpbandits.experiments.shariff_2018.lower_bounds import _least_cost, lower_bound_claims
from dpbandits.policies import policy_kinds
from dpbandits.problems.linear import LinearProblem
from dpbandits.reports.figures import save_figure
from dpbandits.simulation import Trace
from dpbandits.simulation.replicate import thin_grid

Final = Callable[[Simulation, str], float]


def made_up(
    figure: Figure,
    final: Final,
    scale: Scale = Scale.quick,
    settled: float = 0.3,
    runs_differ: float = 0.01,
) -> dict[str, Trace]:
    """Traces whose regret grows to `final` until a part of the rounds; runs differ by that share."""
    traces = {}
    for name, simulation in figure.simulations(scale).items():
        grid = thin_grid(simulation.rounds, simulation.points)
        shape = np.minimum(1.0, grid / (settled * simulation.rounds))
        spread = 1.0 + runs_differ * (np.arange(simulation.runs) - (simulation.runs - 1) / 2)
        curves = {
            label: np.repeat((final(simulation, label) * spread)[:, None, None] * shape[:, None], 3, 2)
            for label in simulation.policies
        }
        traces[name] = Trace({}, grid, curves, {})
    return traces


def verdicts(
    figure: Figure, final: Final, settled: float = 0.3, runs_differ: float = 0.01
) -> list[bool | None]:
    traces = made_up(figure, final, settled=settled, runs_differ=runs_differ)
    claims = figure.claims(traces, Scale.quick)
    assert all(claim.criterion for claim in claims) or not figure.is_of_a_paper
    json.dumps([claim.to_dict() for claim in claims])  # as it is written: no numbers of NumPy's
    return [claim.holds for claim in claims]


def world_of(simulation: Simulation) -> dpb.worlds.SphereContexts:
    world = simulation.environment
    assert isinstance(world, dpb.worlds.SphereContexts)
    return world


def noisier(simulation: Simulation) -> float:
    return 1.3 if world_of(simulation).rewards == "gaussian" else 1.0


def test_the_dimension_claims_follow_the_curves() -> None:
    """Each fails on curves that contradict it, and where runs differ too much to say."""
    fig2, fig3 = figure_named("shariff-fig2"), figure_named("shariff-fig3")
    assert verdicts(fig2, lambda s, _: noisier(s) * world_of(s).dim ** 2) == [True, True]
    assert verdicts(fig2, lambda s, _: world_of(s).dim ** 2 / noisier(s)) == [True, False]
    assert verdicts(fig2, lambda s, _: noisier(s) / world_of(s).dim) == [False, True]
    assert verdicts(fig2, lambda s, _: noisier(s) ** 4 * world_of(s).dim ** 2) == [True, False]  # by far
    assert verdicts(fig3, lambda s, _: world_of(s).dim ** 2) == [True]
    for other in (1.0, 1.4, 2.6):
        assert verdicts(fig3, lambda s, _, power=other: world_of(s).dim ** power) == [False]  # type: ignore[misc]
    assert verdicts(fig3, lambda s, _: world_of(s).dim ** 2, runs_differ=0.9) == [None]  # undecided


def test_the_variants_claims_follow_the_curves() -> None:
    """All hold on curves as the paper draws them; each fails on a change that contradicts it."""
    figure = figure_named("shariff-fig4")
    as_drawn = {"Gaussian": 3.0, "Wishart": 5.0, "NonPrivate": 0.01}

    def drawn(simulation: Simulation, label: str, other: dict[str, float] | None = None) -> float:
        gap = world_of(simulation).gap
        values = {**as_drawn, "WishartUnshifted": 5.0 if gap else 8.0} | (other or {})
        return 1000.0 * values.get(label, 1.0)

    assert verdicts(figure, drawn) == [True] * 10
    for index, change in enumerate(
        ({"Gaussian": 6.0}, {"Wishart": 9.0}, {"WishartUnshifted": 6.5}, {"NonPrivate": 1.0})
    ):
        found = verdicts(figure, partial(drawn, other=change))
        assert not found[index], change
    assert not verdicts(figure, partial(drawn, other={"Gaussian": 4.9}), runs_differ=0.2)[0]
    # Alike, not alike, and too few runs to tell.
    for other, differ, holds in ((5.0, 0.01, True), (6.5, 0.01, False), (6.5, 0.2, None)):
        curves = partial(drawn, other={"WishartUnshifted": other})
        claims = figure.claims(made_up(figure, curves, Scale.paper, runs_differ=differ), Scale.paper)
        assert claims[2].holds is holds, claims[2]
    assert not verdicts(figure, drawn, settled=1.0)[4]
    # The same at both gaps: no change, or none to be told.
    same = partial(drawn, other={"WishartUnshifted": 8.0})
    assert verdicts(figure, same)[5] is False and verdicts(figure, same, runs_differ=0.3)[5] is None
    assert not verdicts(figure, lambda s, x: 1e9)[6]


def test_bounds_that_say_nothing_yet_are_called_so() -> None:
    figure = figure_named("shariff-fig4")
    claims = figure.claims(made_up(figure, lambda s, x: 1000.0, Scale.paper), Scale.paper)
    theorems, everybody, pulls, regret = claims[6:]
    for claim in (theorems, pulls, regret):
        assert claim.verdict is Verdict.not_reached and "n ≈ 10^" in claim.speaks_from, claim
    assert {claim.scale for claim in (everybody, pulls, regret)} == {"formula"}
    assert everybody.verdict is Verdict.holds
    # The controls are budgets so large that less than ¼ a round suffices.
    assert _least_cost(math.log(2.0), 0.25) == pytest.approx(0.5, abs=2e-3)
    assert _least_cost(10.0, 0.25) < 0.25 and _least_cost(0.1, 0.9) < 0.25
    assert all(claim.speaks_from == "" for claim in lower_bound_claims(10**9))


def test_the_shift_claims_follow_the_curves() -> None:
    figure = figure_named("shariff-fig5")

    def shift(label: str) -> float:
        return float(label.split()[1])

    def helpful(simulation: Simulation, label: str) -> float:
        return 1000.0 + (0.0 if world_of(simulation).gap else shift(label))

    assert verdicts(figure, helpful) == [True] * 4
    assert verdicts(figure, lambda s, x: 1000.0 + world_of(s).gap * shift(x)) == [False] * 4
    # As much with a gap as without: the shift matters, but not only there.
    assert verdicts(figure, lambda s, x: 1000.0 + 1e7 / shift(x)) == [False, True] * 2
    assert verdicts(figure, lambda s, x: 1000.0 + 1e7 / shift(x), runs_differ=0.3)[1::2] == [True] * 2


def test_paper_scale_is_the_papers() -> None:
    for simulation in figure_named("shariff-fig2").simulations(Scale.paper).values():
        world = world_of(simulation)
        assert simulation.rounds == 100_000 and world.gap == 0.1
        assert 4 <= world.dim <= 64 and world.actions == world.dim**2
    for name in ("shariff-fig4", "shariff-fig5"):
        for simulation in figure_named(name).simulations(Scale.paper).values():
            world = world_of(simulation)
            assert simulation.rounds == 50_000_000 and (world.dim, world.actions) == (5, 25)
            for policy in simulation.policies.values():
                assert policy.privacy in (dpb.ApproxDP(1.0, 0.1), dpb.NonPrivate())


def test_two_figures_share_their_traces(tmp_path: Path) -> None:
    """What one figure simulated, the other does not simulate again; other numbers are not taken."""

    def small(name: str, rounds: int) -> Figure:
        figure = figure_named(name)
        changed = {
            "_DIMS": {Scale.quick: (2, 3)},
            "_ROUNDS": {Scale.quick: rounds},
            "_RUNS": 2,
        }
        made: Figure = type("Small", (type(figure),), changed)()
        return made

    def units(name: str, rounds: int) -> set[Path]:
        figure = small(name, rounds)
        reproduce(figure, Scale.quick, tmp_path / name, sweep=tmp_path / "sweep", progress=False)
        return set((tmp_path / "sweep" / "units").iterdir())

    two = units("shariff-fig2", 300)
    three = units("shariff-fig3", 300)
    four = units("shariff-fig3", 200)
    assert two <= three and len(three - two) < len(four - three)


def test_every_linear_policy_is_on_the_leaderboard() -> None:
    figure = figure_named("linear-leaderboard")
    names, budgets = set(), set()
    for simulation in figure.simulations(Scale.paper).values():
        for label, policy in simulation.policies.items():
            names.add(type(policy))
            budgets.add(label.split(" · ")[1])
    linear = {kind for kind in policy_kinds().values() if issubclass(kind.problem_kind, LinearProblem)}
    assert names == linear
    assert {str(budget) for budget in BUDGETS} < budgets
    # What the printed noise guarantees, which the issue of separating accounting rests on.
    assert true_budget(50_000_000).mu == pytest.approx(0.0665, abs=1e-4)


def test_the_leaderboards_claims_follow_the_curves() -> None:
    """Low regret everywhere but for the printed tree holds all of them; ten times as much holds none."""
    figure = figure_named("linear-leaderboard")

    def good(simulation: Simulation, label: str) -> float:
        if label.startswith(PRINTED):
            return 4600.0 if getattr(simulation.environment, "gap", 0.0) else 5800.0
        return 1000.0 if "GDP" in label else 100.0

    everywhere = figure.claims(made_up(figure, good, Scale.paper), Scale.paper)
    assert len(everywhere) == 17 and all(claim.holds for claim in everywhere)
    json.dumps([claim.to_dict() for claim in everywhere])
    bad = figure.claims(made_up(figure, lambda s, x: 10.0 * good(s, x) + 1e5, Scale.paper), Scale.paper)
    assert not any(claim.holds for claim in bad)


@pytest.mark.parametrize(
    "name", ["shariff-fig2", "shariff-fig3", "shariff-fig4", "shariff-fig5", "linear-leaderboard"]
)
def test_both_scales_can_be_drawn(name: str, tmp_path: Path) -> None:
    figure = figure_named(name)
    for scale in Scale:
        traces = made_up(figure, lambda s, x: 100.0, scale)
        drawn = save_figure(figure.draw(traces, scale), tmp_path / f"{name}-{scale}.svg")
        assert drawn.stat().st_size > 10_000
        assert figure.describe_scale(scale)
    rows = figure.rows(traces, Scale.paper)
    if name == "linear-leaderboard":
        assert set(INSTANCES) < set(rows[0]) and len(rows) > 30
