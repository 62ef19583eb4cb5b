"""The kernel figures at quick scale, and controls that their claims can fail."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from made_up_traces import made_up

from dpbandits import ApproxDP, Trace
from dpbandits.experiments import Verdict, figure_named
from dpbandits.experiments.capri.bound import (
    begins_shown,
    delivered,
    delivered_to_a_stranger,
    regret_bound,
)
from dpbandits.experiments.capri.setting import PLAYED, as_played, dialled, information_gain, printed
from dpbandits.experiments.figure import Scale
from dpbandits.experiments.reproduce import reproduce
from dpbandits.policies.kernel import Capri
from dpbandits.policies.kernel.capri import EliminatingPolicy
from dpbandits.privacy.calibration import gaussian_scale
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import LinearKernel, Matern, SquaredExponential
from dpbandits.worlds import KernelWorld

pytestmark = pytest.mark.slow
_AT_ONE = ApproxDP(1.0, 1e-5)


def test_the_leaderboard_at_quick_scale(tmp_path: Path) -> None:
    figure = figure_named("kernel-leaderboard")
    result = reproduce(figure, Scale.quick, tmp_path, progress=False)
    assert all(claim.holds for claim in result.claims), result.claims
    traces = {one: Trace.load(tmp_path / f"{one}.parquet") for one in figure.simulations(Scale.quick)}
    # A control: curves that are all alike show no order.
    alike = {
        one: dataclasses.replace(trace, curves={x: np.ones_like(y) for x, y in trace.curves.items()})
        for one, trace in traces.items()
    }
    assert not all(claim.holds for claim in figure.claims(alike, Scale.quick))


def judged(name: str, size: Callable[[str, str, np.ndarray], np.ndarray]) -> list[bool | None]:
    """What claims say of curves `size(simulation, policy, rounds)` that are 1 % off from each other."""
    figure, chance, traces = figure_named(name), np.random.default_rng(4), {}
    for one, simulation in figure.simulations(Scale.paper).items():
        trace = made_up(simulation)
        curves = {
            policy: np.tile(size(one, policy, trace.rounds)[:, None], (1, 1, 3))
            * chance.uniform(0.99, 1.01, (1, 1, 3))
            for policy in simulation.policies
        }
        traces[one] = dataclasses.replace(trace, curves=curves)
    claims = figure.claims(traces, Scale.paper)
    # What is played is not as printed, so nothing of it is a verdict on the paper.
    words = {claim.verdict for claim in claims if not claim.ours}
    assert words <= {Verdict.other_set_up, Verdict.not_reached}
    # What is ours says so, and is a yes or a no unless the runs are too few.
    assert all(claim.ours == claim.paper.startswith("(ours)") for claim in claims)
    for claim in claims:
        if claim.ours:
            sure = claim.verdict in (Verdict.holds, Verdict.fails)
            assert sure if claim.holds is not None else "cannot tell" in claim.in_words
    return [claim.holds for claim in claims]


def test_regret_is_judged_on_capri() -> None:
    def as_said(one: str, policy: str, rounds: np.ndarray) -> np.ndarray:
        if policy in ("printed", "not private"):
            return 0.9 * rounds
        kind, trust, epsilon = policy.split()
        size = (2.0 if trust == "local" else 1.0) * (0.5 if kind == "thompson" else 1.0)
        return size * np.sqrt(rounds / float(epsilon))

    def linear(one: str, policy: str, rounds: np.ndarray) -> np.ndarray:
        if not policy.startswith("capri"):
            return as_said(one, policy, rounds)
        _, trust, epsilon = policy.split()
        return np.asarray((0.05 if trust == "local" else 0.1) * float(epsilon) ** 0.1 * rounds)

    def alike(one: str, policy: str, rounds: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(rounds))

    def apart(kernel: str, one: str, policy: str, rounds: np.ndarray) -> np.ndarray:
        """Local regret grows faster with one kernel; with the others it is uniform play's."""
        if "local" not in policy:
            return np.asarray(np.sqrt(rounds))
        return np.asarray(0.05 * rounds**0.9 if one.startswith(kernel) else 10.0 * rounds)

    def between(one: str, policy: str, rounds: np.ndarray) -> np.ndarray:
        """Faster than γ_T √T with every kernel, and than Theorem 6.7 with the linear one only."""
        return np.asarray(rounds ** (0.8 if "local" in policy else 0.5))

    def uneven(one: str, policy: str, rounds: np.ndarray) -> np.ndarray:
        """Local regret grows like T^0.3 on two functions, on the others like T^1.1."""
        faster = 0.3 + 0.8 * (int(one[-1]) % 2) if "capri local" in policy else 0.5
        return np.asarray(0.01 * rounds**faster)

    assert judged("capri-regret", as_said) == [*[True] * 8, False, True]
    # Controls: nothing that is said of CAPRI, whatever KernelThompson does.
    assert judged("capri-regret", linear)[:7] == [False] * 7
    assert judged("capri-regret", partial(apart, "linear"))[7] is False
    assert judged("capri-regret", partial(apart, "no kernel"))[7] is None
    same = judged("capri-regret", alike)
    assert [*same[:2], same[9]] == [None] * 3
    assert judged("capri-regret", between)[3:7] == [True, True, True, False]
    # Intervals with the limit inside them do not tell.
    assert judged("capri-regret", uneven)[3:8] == [None] * 5


def test_growth_is_judged_on_capri() -> None:
    def grown(
        power: float, local: float, all_of: float, one: str, policy: str, rounds: np.ndarray
    ) -> np.ndarray:
        line, epsilon = policy.rsplit(" ", 1)
        if one.startswith("length"):
            kernel = SquaredExponential(float(one.split()[1].rstrip(",")))
            size = information_gain(kernel, float(rounds[-1])) ** power
        else:
            size = float(epsilon) ** -power
        return np.asarray(all_of * (local if "local" in line else 1.0) * size * np.sqrt(rounds))

    assert judged("capri-scaling", partial(grown, 0.5, 3.0, 0.1)) == [True] * 5
    assert judged("capri-scaling", partial(grown, 1.5, 0.9, 0.1))[:4] == [False] * 4
    assert judged("capri-scaling", partial(grown, 0.5, 600.0, 0.1))[4] is False
    # Near uniform play there is no slope, and no room for √T.
    assert judged("capri-scaling", partial(grown, 0.5, 1.0, 1e4)) == [None] * 5


def test_wrong_weights_are_judged_as_the_paper_says_it() -> None:
    def worse(said: float, far: float, one: str, policy: str, rounds: np.ndarray) -> np.ndarray:
        times = {"said": said, "u 0.8": far, "u 0.1": said}.get(one.split(",")[0], 1.0)
        return np.asarray(times * np.sqrt(rounds))

    assert judged("capri-misspecified", partial(worse, 1.0, 3.0)) == [True, True, True]
    assert judged("capri-misspecified", partial(worse, 2.5, 0.9)) == [False, False, False]
    # As much regret as with the right weights: too close to tell.
    assert judged("capri-misspecified", partial(worse, 1.0, 1.0)) == [True, True, None]


def test_theorem_6_7_by_hand() -> None:
    """As typed from the paper, at T = e¹⁰ with γ_T of two dimensions."""
    kernel, rounds, privacy = LinearKernel(), math.exp(10.0), ApproxDP(2.0, 1e-5)
    share = 0.1 / (400 * rounds * 10.0)
    many = math.log(168.0 * rounds / share)
    beta = (
        90 * math.sqrt(many)
        + 52 * math.sqrt(many * math.log(12 / share))
        + 3 * math.sqrt(2 * math.log(6 / share))
        + math.sqrt(24)
    )
    beta_1 = 8 * 10.0 / 2.0 * math.log(3 / share) * math.sqrt(math.log(12.5 / 1e-5))
    gain = information_gain(kernel, rounds)
    data = 4 + 1350 / 26 * beta * math.sqrt(2 * gain)
    noise = 1350 / 13 * beta_1 * gain
    root = math.sqrt(rounds)
    assert regret_bound(kernel, rounds, privacy) == pytest.approx(root * data + noise)
    assert regret_bound(kernel, rounds, privacy, local=True) == pytest.approx(root * (data + noise))


def test_the_printed_noise_covers_contexts_that_come_and_no_others() -> None:
    claims = figure_named("capri-bound").claims({}, Scale.paper)
    came, stranger = (claim for claim in claims if claim.paper.startswith("Theorem 4.1"))
    assert came.verdict is Verdict.holds
    assert (stranger.verdict, stranger.holds) == (Verdict.other_set_up, False)
    # By hand: μ = 2B/σ for σ = 4B ln T √ln(1.25 ln T/δ) at ε = 1.
    log, rounds = math.log(1e6), 10**6
    mu = 1.0 / (2.0 * log * math.sqrt(math.log(1.25 * log / 1e-5)))
    for trust in (Trust.JOINT, Trust.LOCAL):
        assert delivered(trust, rounds).size == pytest.approx(mu)
    # With rows of two numbers the other contexts say nearly all of the one that does not come.
    linear, matern = (
        delivered_to_a_stranger(x, rounds).size for x in (LinearKernel(), Matern(0.2, 1.5))
    )
    assert mu < linear < 1.1 * mu < matern


def test_the_first_kernel_that_a_bound_speaks_of_is_named() -> None:
    begins = {"a": 1e17, "b": 1e15, "c": 1e16}
    assert begins_shown(begins) == "T ≈ 10^15.0 (b; the others 10^16.0 to 10^17.0)"
    for claim in figure_named("capri-bound").claims({}, Scale.paper)[:2]:
        assert "(linear; the others" in claim.in_words


def test_what_is_played_as_capri_is_as_the_note_says() -> None:
    for trust, ridge in (
        (Trust.JOINT, 10.0),
        (Trust.LOCAL, pytest.approx(gaussian_scale(140.0, _AT_ONE))),
    ):
        policy = dialled(1.0, trust)
        assert isinstance(policy, EliminatingPolicy)
        assert (policy.calibration, policy.copies, policy.width) == ("exact", None, 0.25)
        assert policy.schedule(KernelWorld.standard().problem(10**6)) == 500
        assert policy.ridge() == ridge
    assert Capri(privacy=_AT_ONE).width == 1.0  # capri-cost
    as_paper = printed(1.0)
    assert isinstance(as_paper, EliminatingPolicy)
    # A control: as printed none of it is so.
    assert as_paper.schedule(KernelWorld.standard().problem(10**6)) == 1000
    assert (as_paper.calibration, as_paper.width, as_paper.ridge()) == ("paper", 1.0, 1.0)
    for name in ("capri-regret", "capri-scaling", "capri-misspecified"):
        assert PLAYED in figure_named(name).notes
    assert as_played("its valid width") in figure_named("capri-cost").notes


def test_the_regret_figure_covers_both_models_four_kernels_and_three_budgets() -> None:
    simulations = figure_named("capri-regret").simulations(Scale.paper)
    kernels = {name.split(", f")[0] for name in simulations}
    assert len(kernels) == 4 and "linear" in kernels
    for simulation in simulations.values():
        assert simulation.rounds == 10**6
        labels = set(simulation.policies)
        for trust in ("joint", "local"):
            assert {
                f"{p} {trust} {e}" for p in ("thompson", "capri") for e in ("0.5", "1", "5")
            } <= labels
        for label, policy in simulation.policies.items():
            held = policy.guarantee(simulation.environment.problem(10**6))
            assert held.is_private == (label != "not private")
            if " " in label and label != "not private":
                assert held.trust.name.lower() == label.split()[1]
