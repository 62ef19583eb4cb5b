r"""A bound for the length of features, from a sample of people and inside a budget.

The answer is a value of a public grid, ten to a doubling between two declared ends. Let c(v) be how many
of the n people are no longer than v (longer ones count at the upper end), and r = ⌈q·n⌉. The grid's
quantile is its first value with c(v) ≥ r. The *loss* of a value v after u is how many people would have
to be replaced for v to be that quantile,

    loss(v) = max(0, r − c(v), c(u) − r + 1),

so replacing one person changes every loss by at most 1, and some loss is 0. Values are tried in random
order, each is taken with probability exp(−ε·loss/2), and the first one taken is the answer: that is
permute-and-flip (McKenna & Sheldon 2020), which is ε-DP and never worse than the exponential mechanism.
Where all rows are equally long, only the first value above them has a loss of 0: ties cost nothing. With
m values, the answer's loss is k or more with probability at most m·exp(−ε·k/2).

**Exact.** ε/2 is rounded down to a multiple of 2⁻⁴⁰, and every coin and every place in the order is a
comparison of uniform whole numbers (`mechanisms/exact.py`). Lengths are rounded, but each depends on one
person alone. How long a draw takes is not protected, as of all exact noise.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.streams import Seed, Streams
from dpbandits.errors import BudgetNotAccepted, InvalidInput
from dpbandits.mechanisms.exact import below, falls
from dpbandits.privacy.budgets import Budget, PureDP

_PER_DOUBLING = 10  # values of the grid
_UNIT = 1 << 40  # of which ε/2 is a whole number
_FAILURE = 0.01


@dataclass(frozen=True)
class NormEstimate:
    """A bound on lengths, for `max_norm`, and what it cost: all of it may be published."""

    max_norm: float
    quantile: float
    people: int
    bounds: tuple[float, float]
    budget: PureDP

    @property
    def rank_error(self) -> float:
        """How many people the rank of the bound is off by at most, with probability 99 %."""
        return 2.0 / self.budget.epsilon * math.log(grid(self.bounds).size / _FAILURE)

    def __str__(self) -> str:
        low, high = self.bounds
        return (
            f"max_norm {self.max_norm:.4g}, near the {self.quantile:g} quantile of {self.people:,} "
            f"people (off by at most {self.rank_error:,.0f} of them, with probability 99 %): "
            f"{self.budget} under replacement of one person's features, if each of them is there once "
            "and the seed stays secret; public by declaration: how many they are, the quantile and the "
            f"bounds {low:g} and {high:g}; for whoever is served too, budgets add up."
        )


def private_norm(
    rows: Any,
    *,
    privacy: Budget,
    bounds: tuple[float, float],
    quantile: float = 0.95,
    seed: Seed = None,
) -> NormEstimate:
    """A bound that about a share `quantile` of people is within: ε-DP by permute-and-flip.

    `rows` are the features of earlier people, (n, d), each of them once; or (n, K, d), of which each
    person's longest counts. What is not finite counts as zeros, as it does in a learner. `bounds` are
    the least and the largest bound that there may be, by public knowledge. Neighbours replace one
    person's features; how many people there are is public. Why it is private: the head of this file.

    Best are people who will not be served. Where the same people are served later, both budgets count:
    ``privacy.compose([estimate.budget, learner.guarantee.budget])``.

    It takes a sample: with fewer than `rank_error`/(1 − quantile) people the answer may be beyond all
    of them. At ε = 0.1 and the quantile 0.95 that is about 3,700 people, at ε = 1 370.

    >>> import numpy as np
    >>> import dpbandits as dpb
    >>> rows = np.random.default_rng(0).uniform(-0.1, 0.1, size=(5000, 6))
    >>> found = private_norm(rows, privacy=dpb.PureDP(0.1), bounds=(1e-3, 1.0), seed=0)
    >>> round(found.max_norm, 2), round(found.rank_error)
    (0.19, 184)
    >>> problem = dpb.LinearContexts(6, max_norm=found.max_norm)
    """
    if not isinstance(privacy, PureDP):
        raise BudgetNotAccepted(f"expected a budget such as PureDP(0.1), got {checks.shown(privacy)}")
    privacy.refuse_unplayable()
    checks.open_unit(quantile=quantile)
    low, high = checks.low_and_high("bounds", bounds)
    checks.bound(bounds=low)
    lengths = _lengths(rows)
    losses = _losses(lengths, grid((low, high)), math.ceil(quantile * lengths.size))
    chosen = _permute_and_flip(losses, math.floor(privacy.epsilon / 2.0 * _UNIT), Streams.of(seed).noise)
    value = float(grid((low, high))[chosen])
    return NormEstimate(value, float(quantile), lengths.size, (low, high), privacy)


def grid(bounds: tuple[float, float]) -> NDArray[np.float64]:
    """The values that there are between two ends."""
    doublings = math.log2(bounds[1]) - math.log2(bounds[0])
    return np.geomspace(*bounds, math.ceil(doublings * _PER_DOUBLING) + 1)


def _lengths(rows: Any) -> NDArray[np.float64]:
    """Of each person's longest row."""
    given = checks.array("features as (n, d), a row for each person, or (n, K, d)", rows)
    if given.ndim not in (2, 3) or given.size == 0:
        raise InvalidInput(f"expected features as (n, d) or (n, K, d), got shape {given.shape}")
    given[~np.isfinite(given).all(axis=tuple(range(1, given.ndim)))] = 0.0
    with np.errstate(over="ignore"):  # a warning would tell about somebody's features
        longest: NDArray[np.float64] = np.linalg.norm(given, axis=-1).reshape(len(given), -1).max(axis=1)
    return longest


def _losses(lengths: NDArray[np.float64], values: NDArray[np.float64], rank: int) -> list[int]:
    """How many people would have to be replaced for each value to be the quantile."""
    within = np.searchsorted(np.sort(lengths), values, side="right")
    within[-1] = lengths.size
    before = np.concatenate(([0], within[:-1]))
    losses: list[int] = np.maximum(np.maximum(rank - within, before - rank + 1), 0).tolist()
    return losses


def _permute_and_flip(losses: list[int], units: int, generator: np.random.Generator) -> int:
    """The first in random order whose coin of probability exp(−units·loss/2⁴⁰) shows heads."""
    left = list(range(len(losses)))
    while True:
        drawn = left.pop(below(generator, len(left)))
        if falls(generator, units * losses[drawn], _UNIT):
            return drawn
