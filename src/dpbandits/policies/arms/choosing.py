"""Choosing among arms, with ties broken by free randomness and never by raw data."""

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
