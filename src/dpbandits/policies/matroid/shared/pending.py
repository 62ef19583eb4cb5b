"""What rounds in flight mean for items: which have news, and which come first where nothing is known.

Between two releases no round, one or many may have been closed, of any bases: so the items with rewards
that are not released yet are listed as they come, whatever basis is in play by then.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Chance
from dpbandits.engine.state import Limits, exactly, places
from dpbandits.problems.arms import centred
from dpbandits.problems.matroids.bases import Items
from dpbandits.problems.matroids.greedy import shuffle
from dpbandits.sums.batches import Buffers

Integers = NDArray[np.int64]
# Beyond every index, and still when divided by the number of decisions.
_FIRST = 1e300


class News(NamedTuple):
    """The items with rewards that are not released yet, in the order in which they came."""

    items: Integers
    listed: Integers  # by item: 1 if it is among them
    size: Integers  # (1,) how many there are

    def limits(self) -> Limits:
        """Each item is listed at most once."""
        most, size = self.items.size, max(int(self.size[0]), 0)
        listed = np.isin(np.arange(most), self.items[:size]).astype(np.int64)
        return {"items": places(self.items, most, size), "listed": exactly(listed), "size": (0, most)}


def start_news(items: int) -> News:
    """None."""
    return News(np.zeros(items, np.int64), np.zeros(items, np.int64), np.zeros(1, np.int64))


@register_jitable(forceinline=True)
def list_news(news: News, items: Integers) -> None:
    """There are rewards for these items."""
    size = news.size[0]
    for item in items:
        if news.listed[item] == 0:
            news.listed[item] = 1
            news.items[size] = item
            size += 1
    news.size[0] = size


@register_jitable(forceinline=True)
def take_news(news: News, place: int) -> int:
    """The item at a place of the list; it is released now."""
    item = int(news.items[place])
    news.listed[item] = 0
    return item


@register_jitable(forceinline=True)
def any_basis(public: Any, explore: Chance) -> Items:
    """While nothing is known: a random basis, after one look at everything where that is asked for."""
    shuffle(public.greedy, explore)
    if public.look[0] == 1:
        public.look[0] = 0
        return (public.everything,)
    return (public.greedy.basis,)


@register_jitable(forceinline=True)
def unknown_index(waiting: int) -> float:
    """For an item of which nothing is known: beyond all others, largest for the fewest in flight."""
    return _FIRST / (1.0 + waiting)


@register_jitable(forceinline=True)
def count_waiting(public: Any, item: int, change: int) -> bool:
    """Count a decision for an item into or out of those in flight; False if nothing is known of it."""
    public.waiting[item] += change
    if public.plays[item] == 0:
        public.mean[item] = unknown_index(public.waiting[item])
        return False
    return True


@register_jitable(forceinline=True)
def feed(public: Any, secret: Buffers, item: int, reward: float) -> None:
    """Put a reward into the open batch of its item, and count the batch if that is full now."""
    secret.open[item, 0] += centred(reward)
    public.open[item] += 1
    if public.open[item] == public.length[item]:
        public.full[0] += 1
