"""Numbers with intervals, for verdicts: means, ratios of means, slopes on log axes, medians and shares.

All intervals are at LEVEL, by Student's t; those of medians and shares, which suit runs that fall into
two groups, assume nothing about the law of the runs. Runs of one policy are independent of each other
and of those of other policies unless two policies are compared on common seeds, where that makes an
interval longer than it need be, not shorter (rewards are shared, so differences vary less than is
allowed for).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbandits.errors import InvalidInput

LEVEL = 0.99


class Interval(NamedTuple):
    """An estimate, and the ends of its interval at LEVEL."""

    value: float
    low: float
    high: float

    def __format__(self, form: str) -> str:
        return f"{self.value:{form}} [{self.low:{form}}, {self.high:{form}}]"

    def within(self, low: float, high: float) -> bool | None:
        """True where all of it is between the two, False where none is, None where that is open."""
        if low < self.low and self.high < high:
            return True
        return False if self.high <= low or high <= self.low else None


def all_within(intervals: Iterable[Interval], low: float, high: float) -> bool | None:
    """The same of several: False as soon as one lies outside, None where one cannot tell."""
    found = {interval.within(low, high) for interval in intervals}
    return False if False in found else None if None in found else True


def mean_of(runs: ArrayLike) -> Interval:
    """The mean of independent runs."""
    values, error = _mean_and_variance(runs)
    reach = _t(values.size - 1) * math.sqrt(error)
    mean = float(values.mean())
    return Interval(mean, mean - reach, mean + reach)


def prediction_of(runs: ArrayLike) -> tuple[float, float]:
    """Between which two numbers one further run is, at LEVEL, if runs are about normal."""
    values, error = _mean_and_variance(runs)
    reach = _t(values.size - 1) * math.sqrt(error * (values.size + 1.0))
    mean = float(values.mean())
    return mean - reach, mean + reach


def ratio_of(above: ArrayLike, below: ArrayLike) -> Interval:
    """The ratio of two means of positive runs; its logarithm by the delta method and Welch."""
    return _product((1.0, above), (-1.0, below))


def ratio_of_ratios(one: tuple[ArrayLike, ArrayLike], other: tuple[ArrayLike, ArrayLike]) -> Interval:
    """The ratio of the means of one pair of samples, over that of another pair."""
    return _product((1.0, one[0]), (-1.0, one[1]), (-1.0, other[0]), (1.0, other[1]))


def ratio_across(above: Sequence[ArrayLike], below: Sequence[ArrayLike]) -> Interval:
    """The geometric mean over settings, such as worlds, of ratios of means of independent runs."""
    share = 1.0 / len(above)
    pairs = zip(above, below, strict=True)
    return _product(
        *((sign * share, runs) for pair in pairs for sign, runs in zip((1, -1), pair, strict=True))
    )


def slope_across(x: ArrayLike, samples: Sequence[ArrayLike]) -> Interval:
    """The slope of ln(mean) against ln(x), where each x has independent runs of its own."""
    weights = _slope_weights(x)
    parts = [_relative(runs) for runs in samples]
    value = float(sum(w * math.log(mean) for w, (mean, _, _) in zip(weights, parts, strict=True)))
    terms = [(float(w), variance, size) for w, (_, variance, size) in zip(weights, parts, strict=True)]
    reach = _reach(terms)
    return Interval(value, value - reach, value + reach)


def slope_over(rounds: ArrayLike, curves: ArrayLike) -> Interval:
    """The mean of the runs' own slopes of ln(curve) against ln(rounds); `curves` is (runs, points)."""
    return mean_of(slopes_over(rounds, curves))


def slopes_over(rounds: ArrayLike, curves: ArrayLike) -> NDArray[np.float64]:
    """Each run's own slope of ln(curve) against ln(rounds); `curves` is (runs, points)."""
    slopes: NDArray[np.float64] = np.log(_positive(curves)) @ _slope_weights(rounds)
    return slopes


def median_of(runs: ArrayLike) -> Interval:
    """The median of independent runs, between two of them: ranks by the binomial law."""
    from scipy.stats import binom

    values = np.sort(np.asarray(runs, dtype=float))
    # The median is below the k-th smallest with probability P[B < k], B heads of as many fair coins:
    # the largest k for which that is at most half of what is left of LEVEL.
    rank = int(binom.ppf((1.0 - LEVEL) / 2.0, values.size, 0.5))
    if values.ndim != 1 or rank < 1:
        raise InvalidInput(f"a median's interval needs 8 runs or more, got {values.size}")
    return Interval(float(np.median(values)), float(values[rank - 1]), float(values[-rank]))


def share_of(times: int, runs: int) -> Interval:
    """How often something happens, seen so many times in independent runs (Clopper and Pearson)."""
    from scipy.stats import beta

    tail = (1.0 - LEVEL) / 2.0
    low = float(beta.ppf(tail, times, runs - times + 1)) if times > 0 else 0.0
    high = float(beta.isf(tail, times + 1, runs - times)) if times < runs else 1.0
    return Interval(times / runs, low, high)


def p_of_less(one: ArrayLike, other: ArrayLike) -> float:
    """The p-value of runs of one being smaller than the other's: Mann and Whitney, one-sided."""
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(one, other, alternative="less").pvalue)


def paired_ratio(above: ArrayLike, below: ArrayLike) -> Interval:
    """The geometric mean of ratios within pairs, such as two policies on the same functions."""
    ratios = _positive(above) / _positive(below)
    return Interval(*(math.exp(number) for number in mean_of(np.log(ratios))))


def speaks_from(bound: Callable[[float], float], uniform: float) -> float:
    """From which T on a bound that grows more slowly than T is below `uniform`·T, to 1 %.

    From 10 rounds on, and ∞ if not before 10⁴⁰; the share of bound and uniform play must fall with T.
    """
    low, high = 1.0, 10.0
    while bound(high) >= uniform * high:
        low, high = high, 10.0 * high
        if high > 1e40:
            return math.inf
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if bound(middle) >= uniform * middle else (low, middle)
    return high


def as_power_of_ten(rounds: float) -> str:
    """How a number of rounds from which a bound speaks is written.

    >>> as_power_of_ten(7.24e5)
    '10^5.9'
    """
    return f"10^{math.log10(rounds):.1f}"


def _mean_and_variance(runs: ArrayLike) -> tuple[NDArray[np.float64], float]:
    values = np.asarray(runs, dtype=float)
    if values.ndim != 1 or values.size < 2:
        raise InvalidInput(f"an interval needs two runs or more, got an array of shape {values.shape}")
    return values, float(values.var(ddof=1) / values.size)


def _product(*parts: tuple[float, ArrayLike]) -> Interval:
    """The product of means of independent runs, each to its power."""
    found = [(power, *_relative(runs)) for power, runs in parts]
    value = math.fsum(power * math.log(mean) for power, mean, _, _ in found)
    reach = _reach([(power, variance, size) for power, _, variance, size in found])
    return Interval(math.exp(value), math.exp(value - reach), math.exp(value + reach))


def _relative(runs: ArrayLike) -> tuple[float, float, int]:
    """The mean, the variance of the mean's logarithm, and the number of runs."""
    values, error = _mean_and_variance(runs)
    mean = float(values.mean())
    if mean <= 0.0:
        raise InvalidInput(f"a ratio or a slope on log axes needs positive means, got {mean:g}")
    return mean, error / (mean * mean), values.size


def _positive(curves: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(curves, dtype=float)
    if not (values > 0.0).all():
        raise InvalidInput("a slope on log axes needs positive curves: begin where all runs have regret")
    return values


def _slope_weights(x: ArrayLike) -> NDArray[np.float64]:
    """What ordinary least squares on ln(x) multiplies each ln(y) by."""
    logs = np.log(np.asarray(x, dtype=float))
    centred = logs - logs.mean()
    weights: NDArray[np.float64] = centred / (centred @ centred)
    return weights


def _reach(terms: Sequence[tuple[float, float, int]]) -> float:
    """Half the interval of a sum of independent (weight, variance, runs), Welch–Satterthwaite."""
    parts = [(weight * weight * variance, size) for weight, variance, size in terms]
    total = sum(part for part, _ in parts)
    if total == 0.0:
        return 0.0
    freedom = total * total / sum(part * part / (size - 1.0) for part, size in parts)
    return _t(freedom) * math.sqrt(total)


def _t(freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + LEVEL / 2.0, freedom))
