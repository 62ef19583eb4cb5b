"""Sampling from posteriors of arms' means."""

import math

from numba.extending import register_jitable

from dpbandits.engine import Chance

_GRID = float(2**20)


@register_jitable(forceinline=True)
def beta_sample(wins: float, plays: float, explore: Chance) -> float:
    """A draw of Beta(wins + 1, plays − wins + 1), with the wins rounded to 2⁻²⁰.

    The generator samples a parameter of exactly 1 by another method than 1 + 10⁻¹², and uses up its
    randomness differently. Rounded, noise of next to no size decides like none at all.
    """
    wins = math.floor(wins * _GRID + 0.5) / _GRID
    return explore.beta(wins + 1.0, plays - wins + 1.0)
