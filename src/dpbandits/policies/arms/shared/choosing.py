"""Choosing among arms, with ties broken by free randomness and never by raw data."""

import math
from typing import Any

from numba.extending import register_jitable

from dpbandits.engine import Chance


@register_jitable(forceinline=True)
def largest(values: Any, explore: Chance) -> int:
    """The position of the largest value; one of them at random where several are equal to 1e-9."""
    best, ties = 0, 1
    for arm in range(1, values.size):
        if values[arm] > values[best] + 1e-9:
            best, ties = arm, 1
        elif values[arm] >= values[best] - 1e-9:
            ties += 1
            if explore.random() * ties < 1.0:
                best = arm
    return best


@register_jitable(forceinline=True)
def largest_in_play(values: Any, away: Any, explore: Chance) -> int:
    """The same among arms that are not away; the values of the others are lost."""
    best = largest(values, explore)
    return _largest_of_rest(values, away, explore) if away[best] else best


@register_jitable
def _largest_of_rest(values: Any, away: Any, explore: Chance) -> int:
    for arm in range(values.size):
        if away[arm]:
            values[arm] = -math.inf
    return largest(values, explore)
