"""Batch schedules: functions of the budget and of counts of decisions, never of rewards."""

import math

from numba.extending import register_jitable

from dpbandits.checks import MOST_ROUNDS
from dpbandits.privacy.budgets import Budget, NonPrivate, PureDP

_LONGEST = float(MOST_ROUNDS)


def default_schedule(privacy: Budget) -> tuple[int, float]:
    """First batch and growth that did best over many instances, by kind and size of budget."""
    match privacy:
        case PureDP(epsilon=epsilon):
            return math.ceil(max(4.0, 16.0 / epsilon)), 0.5
        case NonPrivate():
            return 8, 0.25
    return math.ceil(max(8.0, 16.0 / privacy.to_gaussian().mu)), 0.25


@register_jitable(forceinline=True)
def whole_length(length: float) -> int:
    """Rounded up. Nobody plays longer than `MOST_ROUNDS`, and much more would not fit 64 bits."""
    return math.ceil(min(length, _LONGEST))


@register_jitable(forceinline=True)
def next_length(first_batch: int, growth: float, plays: int) -> int:
    """The length of an arm's next batch, given its decisions so far."""
    return max(first_batch, math.ceil(growth * plays))
