"""Figures of Mishra & Thakurta 2015: their bounds, and verdicts that follow the measurements."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.experiments import Claim, Figure, Verdict, figure_named
from dpbandits.experiments.figure import Scale
from dpbandits.experiments.mishra_2015 import bounds, contextual, setting, ucb
from dpbandits.reports.figures import save_figure
from dpbandits.simulation import Trace
from dpbandits.simulation.replicate import thin_grid

pytestmark = pytest.mark.slow

Share = Callable[[str, str], Any]


def made_up(figure: Figure, share: Share, scale: Scale = Scale.paper) -> dict[str, Trace]:
    """Traces in which regret grows evenly to a share of uniform play's, a number or one for each run."""
    traces = {}
    for name, simulation in figure.simulations(scale).items():
        grid = thin_grid(simulation.rounds, simulation.points)
        spread = 1.0 + 1e-3 * np.arange(simulation.runs)
        rate = simulation.environment.uniform_regret()
        curves = {
            label: np.repeat((share(name, label) * spread * rate)[:, None, None] * grid[:, None], 3, 2)
            for label in simulation.policies
        }
        traces[name] = Trace({}, grid, curves, {})
    return traces


def claims_of(figure: Figure, share: Share) -> list[Claim]:
    claims = figure.claims(made_up(figure, share), Scale.paper)
    json.dumps([claim.to_dict() for claim in claims])  # as it is written: no numbers of NumPy's
    assert all(claim.criterion for claim in claims)
    return claims


def test_the_printed_constants_are_those_of_the_policies() -> None:
    for horizon in (10**4, 10**5, 10**7):
        for epsilon in (0.1, 1.0):
            problem, privacy = setting.ARMS.problem(horizon), dpb.PureDP(epsilon)
            printed = dpb.arms.TreeUCB(privacy=privacy, calibration="paper", failure=bounds.FAILURE)
            assert bounds.room(horizon, epsilon) == pytest.approx(printed.bonus(problem))
            sampling = dpb.arms.TreeThompson(privacy=privacy, calibration="paper")
            assert bounds.forced_rounds(horizon, epsilon, 0.5) == pytest.approx(
                sampling.first_sample(problem), abs=2 * problem.arms
            )
    # Halving once more adds a batch four times as long, and four times as many pulls.
    once, twice = (bounds.forced_rounds(2**20, 1.0, gap) for gap in (0.5, 0.25))
    assert once == 5 * (192 * 5 * 20 + 192 * 20**3 * 4)
    assert twice == 5 * (192 * 5 * 20 * (1 + 4) + 192 * 20**3 * 16)


def test_the_bound_is_where_the_intervals_are_as_wide_as_the_gap() -> None:
    horizon, epsilon = 10**6, 1.0
    gamma = bounds.room(horizon, epsilon)
    total = 0.0
    for gap in (0.125, 0.25, 0.375, 0.5):
        low, high = 1.0, 1e12
        while high - low > 1e-6 * high:
            n = math.sqrt(low * high)
            wide = 2 * math.sqrt(2 * math.log(horizon) / n) + 2 * gamma / n > gap
            low, high = (n, high) if wide else (low, n)
        total += gap * (low + 1.0)
    assert bounds.ucb_bound(horizon, epsilon) == pytest.approx(total, rel=1e-5)
    found = bounds.speaks_from(lambda t: bounds.ucb_share(t, 1.0))
    power = float(found.removeprefix("T ≈ 10^"))
    assert (
        bounds.ucb_share(10 ** (power + 0.06), 1.0) < 1.0 < bounds.ucb_share(10 ** (power - 0.06), 1.0)
    )
    assert bounds.room(horizon, 1.0, math.log2) > 3.0 * bounds.room(horizon, 1.0)


def test_who_never_learns() -> None:
    """The second half counts: late learners do learn, who stays with the second-best arm does not."""
    rounds = np.arange(1, 101) * 10
    lost, found, late = 0.125 * rounds, 0.25 * np.minimum(rounds, 20), 0.25 * np.minimum(rounds, 500)
    curve = np.array([lost, found, late] * 4)[:, :, None].repeat(3, axis=2)
    one = setting.Measured(Trace({}, rounds, {"it": curve}, {}), 0.25, 0.125)
    assert one.never_learn("it").value == pytest.approx(1 / 3)
    assert sorted(one.final("it"))[::4] == pytest.approx([0.02, 0.5, 0.5])
    assert "33.3 % [" in one.said("it") and "never learn" in one.said("it")


def test_the_claims_on_ucb_follow_the_curves() -> None:
    figure = figure_named("mishra-ucb")

    def good(name: str, label: str) -> Any:
        if name == "long":
            return 0.05
        if label == ucb.PRINTED:
            return 0.9
        return {"eps-0.1": 0.5, "eps-1": 0.3, "eps-10": 0.1}[name]

    short, long, interval, budget, ours = claims_of(figure, good)
    assert short.verdict is Verdict.not_reached and short.in_words.endswith("T ≈ 10^5.8 on")
    assert long.verdict is Verdict.holds and "T = 10⁷" in long.paper
    assert interval.verdict is budget.verdict is Verdict.other_set_up
    assert interval.holds and not budget.holds  # Γ alone counts, and here it has 0.9 at every ε
    assert "at 0.1" in budget.criterion and budget.criterion.startswith(ucb.PRINTED)
    assert ours.verdict is Verdict.holds and ours.ours
    scales = {claim.scale for claim in (short, interval, budget, ours)}
    assert scales == {"T = 10⁵, 200 runs, synthetic arms"} and "10⁷" in long.scale

    # Low regret at T = 10⁵ is no evidence for a bound that says nothing there.
    assert claims_of(figure, lambda name, label: 0.01)[0].verdict is Verdict.not_reached
    beyond = claims_of(figure, lambda name, label: 0.5)
    assert beyond[1].verdict is Verdict.fails  # all runs beyond the bound
    assert not beyond[2].holds and not beyond[3].holds  # nothing is told apart from itself
    few = np.where(np.arange(60) < 2, 0.5, 0.05)  # 2 of 60 may be more than γ
    unclear = claims_of(figure, lambda n, x: few if n == "long" else 0.1)[1]
    assert unclear.holds is None and "60 runs are too few to tell" in unclear.in_words
    # One ε at which Γ does better; more regret at more ε.
    better = claims_of(figure, lambda n, x: 0.05 if (n, x) == ("eps-1", ucb.PRINTED) else good(n, x))
    assert better[2].holds is False
    falling = {"eps-0.1": 0.9, "eps-1": 0.8, "eps-10": 0.2, "long": 0.05}
    for last, holds in ((0.2, True), (0.85, False)):
        shares = falling | {"eps-10": last}
        for label, row in ((ucb.PRINTED, 3), (ucb.D1, 4)):
            found = claims_of(figure, lambda n, x, s=shares, one=label: s[n] if x == one else good(n, x))  # type: ignore[misc]
            assert found[row].holds is holds


def test_neither_median_nor_mean_hides_what_the_other_shows() -> None:
    """Four of ten runs are lost: by their ranks runs have less regret, on average more. Undecided."""
    figure, two_groups = figure_named("mishra-ucb"), np.where(np.arange(200) % 5 < 2, 0.5, 0.001)

    def split(name: str, label: str) -> Any:
        return 0.05 if name == "long" or label == ucb.PRINTED else two_groups

    interval = claims_of(figure, split)[2]
    assert "40 % [" in interval.measured and "mean 2" in interval.measured
    assert interval.holds is None
    assert "; ranks and mean disagree at ε = 0.1, 1 and 10)" in interval.in_words
    # Where ranks contradict as well, it is not so.
    lost = np.where(np.arange(200) % 5 < 3, 0.5, 0.001)
    assert claims_of(figure, lambda n, x: lost if x == ucb.D1 else split(n, x))[2].holds is False
    # As good on average as by ranks; and means that cannot be told apart.
    for rival, holds in ((0.4, True), (0.22, None)):
        found = claims_of(figure, lambda n, x, rival=rival: rival if x == ucb.PRINTED else split(n, x))  # type: ignore[misc]
        assert found[2].holds is holds


def test_one_answer_of_many() -> None:
    assert setting.all_of([True, True]) is True and setting.all_of([True, None]) is None
    assert setting.all_of([None, False, True]) is False


def test_a_bound_that_does_not_speak_is_no_excuse_for_a_row_of_ours() -> None:
    theorem, sampling = claims_of(figure_named("mishra-constants"), lambda name, label: 0.3)
    assert theorem.verdict is Verdict.not_reached
    assert sampling.verdict is Verdict.fails and "10^9.3 on" in sampling.measured


def test_the_claims_on_thompson_follow_the_curves() -> None:
    figure = figure_named("mishra-thompson")
    falling = {"eps-0.1": 0.6, "eps-1": 0.3, "eps-10": 0.1}
    theory, learns, budget = claims_of(figure, lambda name, label: falling[name])
    assert theory.verdict is Verdict.not_reached and "10^9.3" in theory.in_words
    assert learns.verdict is budget.verdict is Verdict.holds and learns.ours and budget.ours
    lost = np.where(np.arange(200) % 5 < 2, 1.5, 0.001)  # the median is low, the mean is not
    assert not claims_of(figure, lambda name, label: lost)[1].holds
    assert not claims_of(figure, lambda name, label: 0.6)[1].holds
    assert not claims_of(figure, lambda name, label: 0.3)[2].holds


def test_the_claims_on_contextual_algorithms_follow_the_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = figure_named("mishra-contextual")
    split, gamma, alpha, *learn = claims_of(figure, lambda name, label: 0.3)
    assert split.holds and "0.4108-DP" in split.measured and split.verdict is Verdict.other_set_up
    assert gamma.holds and gamma.verdict is Verdict.other_set_up and "d = 2" in gamma.scale
    assert all(claim.ours for claim in learn)
    assert alpha.holds and [claim.holds for claim in learn] == [True, True]
    assert not any(claim.holds for claim in claims_of(figure, lambda name, label: 0.6)[3:])
    one = claims_of(figure, lambda name, label: 0.6 if name.startswith("UCB") else 0.3)
    assert [claim.holds for claim in one[3:]] == [False, True]

    # As if replay had found more, or nothing, and as if α did nothing.
    monkeypatch.setattr(contextual, "_exploited", lambda alpha, runs: np.linspace(0.8, 0.9, runs))
    for cost, holds in ((1.2, False), (0.1, True)):
        monkeypatch.setattr(contextual, "_replayed", lambda label, cost=cost: cost)
        found = claims_of(figure, lambda name, label: 0.3)
        assert [claim.holds for claim in found[:3]] == [holds, False, False]


@pytest.mark.parametrize(
    "name", ["mishra-ucb", "mishra-thompson", "mishra-constants", "mishra-contextual"]
)
def test_both_scales_can_be_drawn(name: str, tmp_path: Path) -> None:
    figure = figure_named(name)
    for scale in Scale:
        traces = made_up(figure, lambda name, label: 0.3, scale)
        drawn = save_figure(figure.draw(traces, scale), tmp_path / f"{name}-{scale}.svg")
        assert drawn.stat().st_size > 10_000 and figure.describe_scale(scale)
        rows = figure.rows(traces, scale)
        assert all("guarantee" in row and "never learn" in row for row in rows)
        assert len(rows) == sum(
            len(one.policies) for key, one in figure.simulations(scale).items() if key != "long"
        )
