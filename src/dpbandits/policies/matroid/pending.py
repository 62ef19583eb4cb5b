"""What rounds in flight mean for items: which have news, and which come first where nothing is known.

Between two releases no round, one or many may have been closed, of any bases: so the items with rewards
that are not released yet are listed as they come, whatever basis is in play by then.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

Integers = NDArray[np.int64]
# Beyond every index, and still when divided by the number of decisions.
_FIRST = 1e300


class News(NamedTuple):
    """The items with rewards that are not released yet, in the order in which they came."""

    items: Integers
    listed: Integers  # by item: 1 if it is among them
    size: Integers  # (1,) how many there are


def start_news(items: int) -> News:
    """None."""
    return News(np.zeros(items, np.int64), np.zeros(items, np.int64), np.zeros(1, np.int64))


@register_jitable(forceinline=True)
def list_news(news: News, item: int) -> None:
    """There is a reward for this item."""
    if news.listed[item] == 0:
        news.listed[item] = 1
        news.items[news.size[0]] = item
        news.size[0] += 1


@register_jitable(forceinline=True)
def clear_news(news: News) -> None:
    """All of it was released."""
    for place in range(news.size[0]):
        news.listed[news.items[place]] = 0
    news.size[0] = 0


@register_jitable(forceinline=True)
def unknown_index(waiting: int) -> float:
    """For an item of which nothing is known: beyond all others, largest for the fewest in flight."""
    return _FIRST / (1.0 + waiting)
