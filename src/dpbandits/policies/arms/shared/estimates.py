"""What released batches say about the means of arms, and how noisy that is.

Under block-factorized Gaussian noise the estimate is the released prefix sum over the number of plays.
Where every batch has noise of its own it carries as much of it whatever its length, so batches are
weighted by precision, a_j = n_j/(n_j/4 + v) with v the variance of the noise: 2b² for Laplace, σ² for
Gaussian noise. An estimate then behaves like one of n_eff = (Σ a n)²/Σ a²n plays whose sum has Gaussian
noise of variance σ² Σ a² n_eff²/(Σ a n)², or m = Σ a²/max a² Laplace draws of scale max a·n_eff·b/Σ a n.
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
    tail: Array  # scale of each Laplace draw in weight·mean
    draws: Array  # effective number of Laplace draws
    moments: Array  # (arms, 5): Σ a·S̃, Σ a·n, Σ a²·n, Σ a², max a


def start_estimates(arms: int) -> Estimates:
    """Nothing known."""
    return Estimates(*(np.zeros(arms) for _ in range(5)), moments=np.zeros((arms, 5)))  # type: ignore[misc]


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
    scale = batches.scale
    noise = (2.0 if batches.laplace else 1.0) * scale * scale
    weight = length / (0.25 * length + noise)
    moments = estimates.moments
    moments[arm, 0] += weight * (total - before + 0.5 * length)
    moments[arm, 1] += weight * length
    moments[arm, 2] += weight * weight * length
    moments[arm, 3] += weight * weight
    moments[arm, 4] = max(moments[arm, 4], weight)
    effective = moments[arm, 1] * moments[arm, 1] / moments[arm, 2]
    estimates.mean[arm] = moments[arm, 0] / moments[arm, 1]
    estimates.weight[arm] = effective
    if batches.laplace:
        estimates.tail[arm] = scale * moments[arm, 4] * effective / moments[arm, 1]
        estimates.draws[arm] = moments[arm, 3] / (moments[arm, 4] * moments[arm, 4])
    else:
        estimates.variance[arm] = noise * moments[arm, 3] * (effective / moments[arm, 1]) ** 2


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
