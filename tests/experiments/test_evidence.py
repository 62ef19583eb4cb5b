"""Verdicts in four words, and intervals that hold as often as they say."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpbandits.errors import InvalidInput
from dpbandits.experiments import Claim, Verdict
from dpbandits.experiments.evidence import (
    LEVEL,
    Interval,
    all_within,
    mean_of,
    median_of,
    p_of_less,
    prediction_of,
    ratio_across,
    ratio_of,
    ratio_of_ratios,
    share_of,
    slope_across,
    slope_over,
)


def test_four_words_and_no_other() -> None:
    said: dict[str, Any] = {"paper": "p", "measured": "m", "criterion": "c"}
    assert Claim(**said, holds=True).verdict is Verdict.holds
    assert Claim(**said, holds=False).in_words == "does not hold"
    assert Claim(**said, holds=False, speaks_from="T = 10⁹").in_words == (
        "not reached: would speak from T = 10⁹ on"
    )
    other = Claim(**said, holds=True, differs="100K ratings, not 1M")
    assert other.in_words == "other set-up (100K ratings, not 1M): so here"
    assert other.to_dict()["verdict"] == "other set-up"
    unknown = Claim(**said, holds=None, differs="3 runs cannot tell")
    assert unknown.in_words == "other set-up (3 runs cannot tell): undecided here"
    with pytest.raises(InvalidInput, match="must say how it differs"):
        Claim(**said, holds=None)
    assert {one.value for one in Verdict} == {"holds", "does not hold", "not reached", "other set-up"}


@pytest.mark.parametrize("factor", [1.0, 1.6])
def test_intervals_hold_as_often_as_they_say(factor: float) -> None:
    """With `factor` 1.6 the truth is moved by 60 %: the control, which must be missed often.

    A right interval at 99 % holds in fewer than 970 of 1000 trials with probability below 10⁻⁶.
    """
    chance, held = np.random.default_rng(5), np.zeros(6)
    x = np.array([1.0, 2.0, 4.0, 8.0])
    for _ in range(1000):
        first, second = chance.gamma(9.0, 1.0, 12), chance.gamma(9.0, 3.0, 15)
        across = [chance.gamma(9.0, size, 12) for size in x**0.5]
        over = np.exp(0.5 * np.log(x) + 0.3 * chance.standard_normal((12, 1)) * (1.0 + np.log(x)))
        truths = ((mean_of(first), 9.0), (ratio_of(second, first), 3.0))
        worlds = [[chance.gamma(9.0, size, 12) for size in sizes] for sizes in ((4.0, 2.0), (2.0, 1.0))]
        again = (worlds[0][1], worlds[1][1])
        many = ((ratio_across(*worlds), 2.0), (ratio_of_ratios((second, first), again), 1.5))
        slopes = ((slope_across(x, across), 0.5), (slope_over(x, over), 0.5))
        held += [one.low <= factor * truth <= one.high for one, truth in (*truths, *slopes, *many)]
    assert pytest.approx(0.99) == LEVEL
    assert (held >= 970).all() if factor == 1.0 else (held < 970).all()


@pytest.mark.parametrize("factor", [1.0, 1.6])
def test_intervals_of_medians_and_shares_hold_for_runs_in_two_groups(factor: float) -> None:
    """As above: fewer than 970 of 1000 with probability below 10⁻⁶; the control moves the truth."""
    chance, held, law = np.random.default_rng(6), np.zeros(2), binom(40, 0.3)
    for _ in range(1000):
        runs = np.where(chance.random(40) < 0.3, 9.0, 1.0) * chance.exponential(1.0, 40)
        # P[run ≤ m] = 0.7 (1 − e^−m) + 0.3 (1 − e^−m/9) is ½ at the median.
        median, share = median_of(runs), share_of(int(law.rvs(random_state=chance)), 40)
        truths = ((median, 1.094283), (share, 0.3))
        held += [one.low <= factor * truth <= one.high for one, truth in truths]
    assert 0.7 * math.exp(-1.094283) + 0.3 * math.exp(-1.094283 / 9) == pytest.approx(0.5, abs=1e-5)
    assert (held >= 970).all() if factor == 1.0 else (held < 970).all()


def test_medians_and_shares_by_hand() -> None:
    # Of eight runs the median is outside the range of all with probability 2/2⁸ < 1 %.
    assert median_of(range(8)) == (3.5, 0.0, 7.0)
    with pytest.raises(InvalidInput, match="8 runs or more"):
        median_of(range(7))
    assert share_of(0, 10) == pytest.approx((0.0, 0.0, 1.0 - 0.005**0.1))
    assert share_of(10, 10) == pytest.approx((1.0, 0.005**0.1, 1.0))
    assert p_of_less(range(5), range(5, 10)) == pytest.approx(1 / math.comb(10, 5))
    assert p_of_less(range(5, 10), range(5)) > 0.99


def test_what_has_no_interval_is_refused() -> None:
    for bad in ([1.0], [[1.0, 2.0], [3.0, 4.0]]):
        with pytest.raises(InvalidInput, match="two runs or more"):
            mean_of(bad)
    with pytest.raises(InvalidInput, match="positive"):
        ratio_of([-1.0, 0.5], [1.0, 2.0])
    with pytest.raises(InvalidInput, match="positive"):
        slope_over([1.0, 2.0], [[0.0, 1.0], [1.0, 2.0]])
    assert ratio_of([2.0, 2.0], [1.0, 1.0]) == (2.0, 2.0, 2.0)
    assert f"{mean_of([1.0, 3.0]):.1f}".startswith("2.0 [") and math.isfinite(mean_of([1.0, 3.0]).high)


def test_a_further_run_is_where_it_is_predicted() -> None:
    """Normal runs: fewer than 970 of 1000 with probability below 10⁻⁶. Control: runs moved by 2σ."""
    chance, held = np.random.default_rng(7), np.zeros(2)
    for _ in range(1000):
        low, high = prediction_of(chance.normal(5.0, 1.0, 12))
        further = 5.0 + chance.standard_normal()
        held += [low <= further <= high, low <= further + 2.0 <= high]
    assert held[0] >= 970 > held[1]


def test_an_interval_is_inside_outside_or_cannot_tell() -> None:
    ratio = Interval(0.8, 0.6, 0.9)
    assert ratio.within(0.5, 1.0) is True
    assert ratio.within(1.0, 2.0) is False
    assert ratio.within(0.0, 0.6) is False
    assert ratio.within(0.7, 1.0) is None
    far = Interval(3.0, 2.5, 3.5)
    wide = Interval(1.0, 0.4, 3.0)
    assert all_within([ratio, ratio], 0.5, 1.0) is True
    assert all_within([ratio, wide], 0.5, 1.0) is None
    assert all_within([wide, far], 0.5, 1.0) is False
