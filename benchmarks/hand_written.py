"""Modified Thompson sampling on Bernoulli arms as one would write it for this case alone."""

import math
from typing import Any

import numba
import numpy as np


@numba.njit(nogil=True, error_model="numpy")
def modified_thompson(
    means: Any, prepulls: int, variance_scale: float, rounds: int, noise: Any, chance: Any
) -> float:
    """The regret of one run; draws the same numbers as the library, in the same order."""
    arms = means.size
    best = means.max()
    counts, total = np.zeros(arms), np.zeros(arms)
    regret = 0.0
    for t in range(rounds):
        if t < prepulls * arms:
            action = t // prepulls
        else:
            action, highest = 0, -np.inf
            for arm in range(arms):
                width = math.sqrt(variance_scale / (counts[arm] + 1.0))
                sample = noise.normal(total[arm] / (counts[arm] + 1.0), width)
                if sample > highest:
                    action, highest = arm, sample
        total[action] += 1.0 if chance.random() < means[action] else 0.0
        counts[action] += 1.0
        regret += best - means[action]
    return regret
