"""Playing one arm for a whole batch: what the policies that do so share.

An episode is a batch of decisions for one arm. It ends after a number of *decisions* fixed when it
began; then the batch is released (`sums/batches.py`) and the policy chooses again. The clock is public.
"""

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.problems.arms import centred
from dpbandits.sums.batches import Buffers

Clock = NDArray[np.int64]
# Places in a clock: whose batch is open, decisions until it ends, its length (0: none is open).
ARM, LEFT, LENGTH = 0, 1, 2


def start_clock() -> Clock:
    """No episode open."""
    return np.zeros(3, np.int64)


@register_jitable(forceinline=True)
def open_episode(clock: Clock, arm: int, length: int) -> None:
    """Play this arm for so many decisions."""
    clock[ARM] = arm
    clock[LEFT] = length
    clock[LENGTH] = length


@register_jitable(forceinline=True)
def episode_ended(clock: Clock) -> bool:
    """Whether the open episode has had all its decisions, so that its batch is due."""
    return bool(clock[LENGTH] > 0 and clock[LEFT] == 0)


@register_jitable(forceinline=True)
def count_decision(clock: Clock, buffers: Buffers, action: int, reward: float) -> None:
    """Put a reward into the open batch; a missing one is counted as exactly nothing."""
    clock[LEFT] -= 1
    buffers.open[action, 0] += centred(reward)


@register_jitable(forceinline=True)
def first_unplayed(plays: NDArray[np.int64]) -> int:
    """The first arm without a released batch; −1 if there is none."""
    for arm in range(plays.size):
        if plays[arm] == 0:
            return arm
    return -1
