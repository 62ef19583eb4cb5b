"""Posterior samples from free randomness, the same in plain Python and compiled."""

import math

from numba.extending import register_jitable

from dpbandits.engine import Chance


@register_jitable(forceinline=True)
def beta_sample(wins: float, losses: float, explore: Chance) -> float:
    """A draw from Beta(wins, losses), both at least 1.

    Unlike NumPy's, it has no special case at exactly 1: parameters that are nearly equal give
    samples that are nearly equal, so that noise near 0 decides like none.
    """
    won = _gamma_sample(wins, explore)
    return won / (won + _gamma_sample(losses, explore))


@register_jitable(forceinline=True)
def _gamma_sample(shape: float, explore: Chance) -> float:
    """Marsaglia & Tsang 2000, for a shape of at least 1."""
    centre = shape - 1.0 / 3.0
    width = 1.0 / math.sqrt(9.0 * centre)
    while True:
        normal = explore.normal(0.0, 1.0)
        root = 1.0 + width * normal
        if root <= 0.0:
            continue
        cube = root * root * root
        uniform = 1.0 - explore.random()  # never 0
        square = normal * normal
        if uniform < 1.0 - 0.0331 * square * square:
            return centre * cube
        if math.log(uniform) < 0.5 * square + centre * (1.0 - cube + math.log(cube)):
            return centre * cube
