"""Searches for the best arm: what a policy that ends with a recommendation has in its state.

The end is noticed as anything else is, by the first decision that comes after the release which settled
it. That decision, and all after it, play the recommended arm. No reward is read any more, and those in
batches that were open are forgotten, by the next decision at the latest. (A file that is saved before
then holds them, as it holds answers of rounds in flight.)
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine.state import MOST, Limits
from dpbandits.policies.arms.shared.episodes import decisions
from dpbandits.policies.released import Reading
from dpbandits.sums.batches import Buffers


class Search(NamedTuple):
    """Whether the search has ended, and with what."""

    arm: NDArray[np.int64]  # (1,) the recommended arm; −1 while it is searched for
    stopped: NDArray[np.int64]  # (1,) decisions made until then; −1 before
    arms: int

    def limits(self) -> Limits:
        """Both or neither."""
        ended = self.arm[0] >= 0
        return {"arm": (-1, self.arms - 1), "stopped": (0, MOST) if ended else (-1, -1)}


def start_search(arms: int) -> Search:
    """Nothing found yet."""
    return Search(np.full(1, -1, np.int64), np.full(1, -1, np.int64), arms)


@register_jitable(forceinline=True)
def is_over(public: Any) -> bool:
    """Whether there is a recommendation."""
    return bool(public.search.arm[0] >= 0)


@register_jitable
def recommend(public: Any, arm: int) -> None:
    """End the search with this arm, after all decisions that were made so far."""
    made = 0
    for one in range(public.search.arms):
        made += decisions(public, one)
    public.search.arm[0] = arm
    public.search.stopped[0] = made


@register_jitable
def forget(secret: Buffers) -> None:
    """Empty the open batches, which will not be released."""
    for arm in range(secret.open.shape[0]):
        secret.open[arm, 0] = 0.0


def with_recommendation(reading: Reading, search: Search) -> Reading:
    """What may be read, and how the search ended."""
    if search.arm[0] < 0:
        return reading
    return replace(reading, recommendation=int(search.arm[0]), stopped=int(search.stopped[0]))
