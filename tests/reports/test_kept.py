"""The picture of reward against privacy."""

import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import dpbandits as dpb
from dpbandits.errors import InvalidInput
from dpbandits.reports.kept import Kept, axis_of, mean_and_interval


def test_intervals_are_students() -> None:
    runs = np.array([0.5, 0.7, 0.6, 0.9])
    mean, half = mean_and_interval(runs)
    low, high = scipy.stats.t.interval(0.95, 3, loc=runs.mean(), scale=scipy.stats.sem(runs))
    assert (mean - half, mean + half) == pytest.approx((low, high))
    assert math.isnan(mean_and_interval(runs[:1])[1])


def test_each_definition_of_privacy_has_an_axis() -> None:
    budgets = [dpb.PureDP(4.0), dpb.PureDP(0.1), dpb.GaussianDP(1.0)]
    budgets += [dpb.ApproxDP(1.0, 1e-6), dpb.ApproxDP(1.0, 1e-5)]
    budgets += [dpb.ZeroConcentratedDP(0.5), dpb.RenyiDP(8.0, 4.0)]
    kept = Kept({"one": {budget: np.array([0.5]) for budget in budgets}}, {}, 0.2)
    axes = kept.axes()
    assert len(axes) == 6
    assert next(iter(axes.values())) == [dpb.PureDP(0.1), dpb.PureDP(4.0)]
    with pytest.raises(InvalidInput, match="has no place on an axis"):
        axis_of(dpb.NonPrivate())


def test_the_picture_shows_the_best_policies_and_both_lines() -> None:
    budgets: list[dpb.Budget] = [dpb.PureDP(0.1), dpb.PureDP(1.0)]
    private = {
        f"policy {index}": {budget: np.array([0.4, 0.42]) + 0.02 * index for budget in budgets}
        for index in range(12)
    }
    free = {"worse": np.array([0.8, 0.82]), "better": np.array([0.9, 0.92])}
    drawing = Kept(private, free, 0.3).draw()
    (axes,), (legend,) = drawing.axes, drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "without privacy: better",
        *(f"policy {index}" for index in (11, 10, 9, 8, 7, 6)),
        "6 others",
        "uniform play",
    ]
    assert axes.get_xscale() == "log" and axes.get_ylim()[0] < 0.3 < 1.0 < axes.get_ylim()[1]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "1"]


def test_the_legend_is_in_the_order_of_the_lines_at_their_ends() -> None:
    """The second policy is better on average; the first where there is least privacy."""
    budgets: list[dpb.Budget] = [dpb.PureDP(0.1), dpb.PureDP(1.0)]
    shares = {"first": (0.2, 0.8), "second": (0.6, 0.7)}
    private = {
        name: {held: np.array([share, share]) for held, share in zip(budgets, both, strict=True)}
        for name, both in shares.items()
    }
    (legend,) = Kept(private, {}, 0.1).draw().legends
    assert [text.get_text() for text in legend.get_texts()] == ["first", "second", "uniform play"]


def test_limits_are_a_dotted_line_through_their_budgets() -> None:
    budgets: list[dpb.Budget] = [dpb.PureDP(0.1), dpb.PureDP(1.0)]
    private = {"one": {held: np.array([0.5, 0.6]) for held in budgets}}
    limits = dict(zip(budgets, (0.7, 0.9), strict=True))
    drawing = Kept(private, {}, 0.3, limits).draw()
    (line,) = (line for line in drawing.axes[0].get_lines() if line.get_label() == "limit for large t")
    assert np.asarray(line.get_xydata()).tolist() == [[0.1, 0.7], [1.0, 0.9]]


def test_twins_stand_where_there_is_no_privacy_and_numbers_of_ticks_do_not_touch() -> None:
    budgets: list[dpb.Budget] = [dpb.PureDP(epsilon) for epsilon in (0.1, 1.0, 1.05, 10.0)]
    private = {"one": {held: np.array([0.5, 0.6]) for held in budgets}}
    (axes,) = Kept(private, {"one (twin)": np.array([0.8, 0.9])}, 0.3).draw().axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "1", "", "10", "none"]
    twin = next(line for line in axes.get_lines() if line.get_markerfacecolor() == "white")
    assert float(np.asarray(twin.get_ydata())[0]) == pytest.approx(0.85)
    assert float(np.asarray(twin.get_xdata())[0]) > 10.0


def test_a_trace_without_budgets_has_no_such_picture(tmp_path: Path) -> None:
    world = dpb.worlds.BernoulliArms([0.2, 0.5])
    trace = dpb.simulate(dpb.BetaThompson(), world, 10, 2, 0, progress=False)
    with pytest.raises(InvalidInput, match="all of these policies have none"):
        trace.plot_kept()
    private = dpb.simulate(
        {f"x, {one}": dpb.NoiseAwareIMED(privacy=one) for one in (dpb.PureDP(1.0), dpb.PureDP(2.0))},
        world,
        100,
        2,
        0,
        progress=False,
    )
    private.plot_kept(tmp_path / "kept.svg")
    assert (tmp_path / "kept.svg").exists()
    worthless = dpb.simulate(
        dpb.BetaThompson(), dpb.worlds.BernoulliArms([0.0, 0.0]), 10, 2, 0, progress=False
    )
    with pytest.raises(InvalidInput, match="it is not above 0"):
        worthless.plot_kept()


def test_what_is_kept_is_what_is_not_lost() -> None:
    world = dpb.worlds.BernoulliArms([0.2, 0.5])
    trace = dpb.simulate(dpb.arms.UniformArms(), world, 1000, 3, 0, progress=False)
    assert trace.optimum() == pytest.approx(500.0)
    kept = trace.reward_kept("uniform-arms")
    assert kept == pytest.approx(1.0 - trace.regret("uniform-arms")[:, -1] / 500.0)
    assert kept.mean() == pytest.approx(0.7, abs=0.02)


def test_a_picture_of_a_log_says_that_it_is_no_private_release() -> None:
    log = {"item": ["a", "b"] * 50, "click": [0, 1] * 50}
    logged = dpb.worlds.LoggedArms.read(log, action="item", reward="click")
    policies = {
        f"x, {one}": dpb.NoiseAwareIMED(privacy=one) for one in (dpb.PureDP(1.0), dpb.PureDP(2.0))
    }
    said = "Made of the table itself, without noise: no private release of it."
    for world, expected in ((logged, said), (dpb.worlds.BernoulliArms([0.0, 1.0]), "")):
        trace = dpb.simulate(policies, world, 100, 2, 0, progress=False)
        for figure in (trace.plot(), trace.plot_kept()):
            assert figure.get_suptitle() == expected
        assert str(trace.summary()).endswith(expected) and trace.caveat == expected
