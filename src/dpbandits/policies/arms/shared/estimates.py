"""What released batches say about the means of arms, and how noisy that is.

Under block-factorized Gaussian noise the estimate is the released prefix sum over the number of plays.
Where every batch has noise of its own it carries as much of it whatever its length, so batches are
weighted by precision, a_j = n_j/(n_j/4 + v) with v the variance of the noise: 2b² for Laplace, σ² for
Gaussian noise. An estimate then behaves like one of n_eff = (Σ a n)²/Σ a²n plays whose sum has Gaussian
noise of variance σ² Σ a² n_eff²/(Σ a n)², or Laplace draws of scales a·n_eff·b/Σ a n. These count as
m = Σ a⁴/max a⁴ of the largest of them, and the rest of their variance as Gaussian: what matters far out
is kept exactly, and so are the second and the fourth cumulant.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.policies.released import Reading, of_sums
from dpbandits.sums.batches import Batches

Array = NDArray[np.float64]


class Estimates(NamedTuple):
    """One entry per arm."""

    mean: Array  # x_i
    weight: Array  # n_i, or n_eff of a weighted mean
    variance: Array  # Gaussian noise variance of weight·mean
    tail: Array  # b, scale of the largest Laplace draw in weight·mean
    draws: Array  # m, how many of that scale stand for all
    moments: Array  # (arms, 6): Σ a·S̃, Σ a·n, Σ a²·n, Σ a², Σ a⁴, max a


def start_estimates(arms: int) -> Estimates:
    """Nothing known."""
    return Estimates(*(np.zeros(arms) for _ in range(5)), moments=np.zeros((arms, 6)))  # type: ignore[misc]


@register_jitable(forceinline=True)
def update_estimate(
    estimates: Estimates, batches: Batches, arm: int, plays: int, length: int, before: float
) -> None:
    """Restate an arm after a batch of `length`; `before` was its released total until then."""
    total = batches.total[arm, 0]
    if batches.weights.size > 1:
        estimates.mean[arm] = total / plays + 0.5
        estimates.weight[arm] = plays
        estimates.variance[arm] = batches.variance[arm]
        return
    moments = estimates.moments[arm]
    weight = _precision(batches, length)
    moments[0] += weight * (total - before + 0.5 * length)
    moments[1] += weight * length
    moments[2] += weight * weight * length
    moments[3] += weight * weight
    moments[4] += _fourth(weight)
    moments[5] = max(moments[5], weight)
    estimates.mean[arm] = moments[0] / moments[1]
    found = _weighted(batches, moments[1], moments[2], moments[3], moments[4], moments[5])
    estimates.weight[arm], estimates.variance[arm], estimates.tail[arm], estimates.draws[arm] = found


@register_jitable(forceinline=True)
def foreseen(
    estimates: Estimates, batches: Batches, arm: int, plays: int, length: int
) -> tuple[float, float, float, float]:
    """Weight, variance, tail and draws of an arm as they will be after one more batch."""
    if batches.weights.size > 1:
        block = min(batches.place[arm, 0], batches.sizes.size - 1)
        drawn = batches.scale * batches.ratio[block] * batches.weights[batches.place[arm, 1]]
        return float(plays + length), batches.variance[arm] + drawn * drawn, 0.0, 0.0
    moments, a = estimates.moments[arm], _precision(batches, length)
    squares = moments[2] + a * a * length, moments[3] + a * a
    return _weighted(
        batches,
        moments[1] + a * length,
        squares[0],
        squares[1],
        moments[4] + _fourth(a),
        max(moments[5], a),
    )


@register_jitable(forceinline=True)
def _precision(batches: Batches, length: int) -> float:
    """A = n/(n/4 + v)."""
    noise = (2.0 if batches.laplace else 1.0) * batches.scale * batches.scale
    return length / (0.25 * length + noise)


@register_jitable(forceinline=True)
def _fourth(a: float) -> float:
    """a⁴ by products, which round alike wherever they are compiled; powers do not."""
    return (a * a) * (a * a)


@register_jitable(forceinline=True)
def _weighted(
    batches: Batches, an: float, aan: float, aa: float, aaaa: float, most: float
) -> tuple[float, float, float, float]:
    """Weight, variance, tail and draws from Σ a·n, Σ a²·n, Σ a², Σ a⁴ and max a."""
    effective = an * an / aan
    unit = batches.scale * effective / an
    if not batches.laplace:
        return effective, unit * unit * aa, 0.0, 0.0
    draws = aaaa / _fourth(most)
    return effective, 2.0 * unit * unit * max(0.0, aa - draws * most * most), unit * most, draws


def estimate_public(estimates: Estimates, batches: Batches, arm: int, plays: int) -> None:
    """Restate an arm after a first batch that is public: its weight is 4, and it adds no noise."""
    total = batches.total[arm, 0] + 0.5 * plays
    estimates.moments[arm, :3] = 4.0 * total, 4.0 * plays, 16.0 * plays
    estimates.mean[arm] = total / plays
    estimates.weight[arm] = plays


def of_estimates(
    what: str, known: Estimates, batches: Batches, plays: NDArray[np.int64], **others: Any
) -> Reading:
    """What may be read of them."""
    total, variance = (
        known.weight * (known.mean - 0.5),
        known.variance + 2.0 * known.draws * known.tail**2,
    )
    laplace = batches.laplace
    return of_sums(what, total, known.weight, variance, laplace=laplace, plays=plays, **others)
