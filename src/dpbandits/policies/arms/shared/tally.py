"""Counting decisions round by round: for policies that learn from every round that is closed.

A decision counts from when it is made: the verb `wait` counts it in while it is in flight and out when
its round is closed, and `observe` counts it for good. So with one round at a time `wait` never runs and
nothing changes. Between two releases any number of rounds may be closed: the arms whose rewards are due
stand in a list, each once.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine.state import COUNT, MOST, Limits, exactly
from dpbandits.policies.released import Reading, of_sums

Integers = NDArray[np.int64]


# What stands for no arm: at the end of a list, and where an arm is on none.
_END, _OFF = -1, -2


class Due(NamedTuple):
    """A list of arms for which something is due, each at most once."""

    first: Integers  # (1,)
    after: Integers  # which arm follows each

    def limits(self) -> Limits:
        """From the first to the end, without a circle; the others are off it."""
        last, arm = self.after.size - 1, int(self.first[0])
        listed = np.zeros(self.after.size, np.bool_)
        while 0 <= arm <= last and not listed[arm]:
            listed[arm] = True
            arm = int(self.after[arm])
        follows = np.where(listed, last if arm == _END else _OFF, _OFF)
        return {"first": (_END, last), "after": (np.where(listed, _END, _OFF), follows)}


class Tally(NamedTuple):
    """Decisions, and how many of them are closed."""

    round: Integers  # (1,) decisions so far
    plays: Integers  # decisions for each arm
    closed: Integers  # those not in flight
    unknown: Integers  # (1,) arms none of whose rounds is closed
    due: Due  # arms with rewards that are not released yet

    def limits(self) -> Limits:
        """Nothing is closed that was not decided."""
        return {
            "round": exactly(self.plays.sum()),
            "plays": (self.closed, MOST),
            "closed": COUNT,
            "unknown": exactly(np.count_nonzero(self.closed == 0)),
        }

    def observed(self) -> int:
        """Rounds closed so far."""
        return int(self.closed.sum())

    def in_flight(self) -> Integers:
        """Decisions in flight."""
        return np.asarray(self.plays - self.closed)


def nothing_due(arms: int) -> Due:
    """An empty list."""
    return Due(np.full(1, _END, np.int64), np.full(arms, _OFF, np.int64))


def start_tally(arms: int) -> Tally:
    """No decision made."""
    return Tally(
        round=np.zeros(1, np.int64),
        plays=np.zeros(arms, np.int64),
        closed=np.zeros(arms, np.int64),
        unknown=np.full(1, arms, np.int64),
        due=nothing_due(arms),
    )


@register_jitable(forceinline=True)
def make_due(due: Due, arm: int) -> None:
    """Put an arm on the list, unless it is there."""
    if due.after[arm] == _OFF:
        due.after[arm] = due.first[0]
        due.first[0] = arm


@register_jitable(forceinline=True)
def any_due(due: Due) -> bool:
    """Whether the list has an arm."""
    return bool(due.first[0] >= 0)


@register_jitable(forceinline=True)
def take_due(due: Due) -> int:
    """Take the first arm off the list."""
    arm = int(due.first[0])
    due.first[0] = due.after[arm]
    due.after[arm] = _OFF
    return arm


@register_jitable(forceinline=True)
def count_in_flight(tally: Tally, arm: int, change: int) -> None:
    """Count a decision in as it is made, or out as its round is closed."""
    tally.round[0] += change
    tally.plays[arm] += change


@register_jitable(forceinline=True)
def count_closed(tally: Tally, arm: int) -> None:
    """Count a decision whose round is closed; its reward is due."""
    tally.round[0] += 1
    tally.plays[arm] += 1
    tally.closed[arm] += 1
    if tally.closed[arm] == 1:
        tally.unknown[0] -= 1
    make_due(tally.due, arm)


@register_jitable(forceinline=True)
def fewest(decisions: Integers) -> int:
    """The first of the arms with the fewest decisions."""
    least = 0
    for arm in range(1, decisions.size):
        if decisions[arm] < decisions[least]:
            least = arm
    return least


def is_due(due: Due) -> NDArray[np.bool_]:
    """For each arm whether it is on the list."""
    return np.asarray(due.after != _OFF)


def not_due(closed: Integers, due: Due) -> Integers:
    """The closed decisions of each arm whose rewards are released, as a learner is read.

    Rounds are closed by a decision, which then releases them; but if one is in flight at a time, when it
    is answered: that one is due.
    """
    return np.asarray(closed - is_due(due))


def of_exact_means(tally: Tally, mean: NDArray[np.float64]) -> Reading:
    """What may be read of means without noise."""
    size = not_due(tally.closed, tally.due)
    return of_sums("arm", (mean - 0.5) * size, size, 0.0)
