"""The basis of the largest weight, by the greedy rule, kept up to date as weights change.

Items are held in the order of their weights, the largest first, and the basis is what the greedy rule
makes of that order. When two neighbours in the order change places, the basis changes only if an item
outside overtakes one inside, and then only if the two can be exchanged: so most rounds cost a pass over
the order and nothing else. Loops are not in the order and are never chosen.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Chance
from dpbandits.engine.state import Limits, exactly, places

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Greedy(NamedTuple):
    """An order of the items, and the greedy basis of that order."""

    matroid: Any  # its state
    order: Integers  # all items but loops, the heaviest first
    inside: Integers  # by item: 1 in the basis, 0 outside
    basis: Integers  # the items inside, in no particular order
    tolerance: float  # weights this near each other keep the order they have

    def limits(self) -> Limits:
        """Each item is once in the order, and at most once in the basis."""
        size = self.inside.size
        return {
            "order": places(self.order, size),
            "inside": exactly(np.isin(np.arange(size), self.basis).astype(np.int64)),
            "basis": places(self.basis, size),
        }


def start_greedy(matroid: Any, size: int, *, tolerance: float = 0.0) -> Greedy:
    """All items that are not loops, in the order of their numbers, and its basis."""
    order = []
    for item in range(size):
        matroid.clear()
        if matroid.join(item):
            order.append(item)
    inside = np.zeros(size, np.int64)
    matroid.clear()
    for item in order:
        inside[item] = matroid.join(item)
    basis = np.flatnonzero(inside).astype(np.int64)
    return Greedy(matroid, np.array(order, np.int64), inside, basis, tolerance)


@register_jitable
def shuffle(greedy: Greedy, explore: Chance) -> None:
    """A random order, and its basis: where weights are equal, it decides."""
    order = greedy.order
    for place in range(order.size - 1, 0, -1):
        other = int(explore.random() * (place + 1))
        order[place], order[other] = order[other], order[place]
    _choose(greedy)


@register_jitable
def rebuild(greedy: Greedy, weights: Array) -> None:
    """Sort anew and choose anew: for weights that have little to do with those before."""
    order = greedy.order
    for place in range(1, order.size):
        item = order[place]
        floor = weights[item] - greedy.tolerance
        while place > 0 and floor > weights[order[place - 1]]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = item
    _choose(greedy)


@register_jitable
def _choose(greedy: Greedy) -> None:
    greedy.matroid.clear()
    greedy.inside[:] = 0
    chosen = 0
    for item in greedy.order:
        if greedy.matroid.join(item):
            greedy.inside[item] = 1
            greedy.basis[chosen] = item
            chosen += 1
            if chosen == greedy.basis.size:
                break
    # All bases of a matroid have one size. An outsider's state that is not one may stop short: items
    # left over from the basis before would be there twice, and move a sum by more than its noise is for.
    for item in greedy.order:
        if chosen == greedy.basis.size:
            break
        if greedy.inside[item] == 0:
            greedy.inside[item] = 1
            greedy.basis[chosen] = item
            chosen += 1


@register_jitable(forceinline=True)
def improve(greedy: Greedy, weights: Array) -> None:
    """Bring order and basis up to date: for weights that are nearly those before."""
    order = greedy.order
    above = math.inf
    for place in range(order.size):
        here = weights[order[place]]
        if here - greedy.tolerance > above:
            _move_up(greedy, weights, place)
            above = weights[order[place]]
        else:
            above = here


@register_jitable
def _move_up(greedy: Greedy, weights: Array, place: int) -> None:
    order, inside = greedy.order, greedy.inside
    item = order[place]
    floor = weights[item] - greedy.tolerance
    while place > 0 and floor > weights[order[place - 1]]:
        other = order[place - 1]
        if inside[other] == 1 and inside[item] == 0:
            _exchange(greedy, other, item)
        order[place] = other
        place -= 1
    order[place] = item


@register_jitable
def _exchange(greedy: Greedy, leaving: int, entering: int) -> None:
    """Exchange two items if the rest of the basis stays independent with the new one."""
    greedy.matroid.clear()
    position = 0
    for index in range(greedy.basis.size):
        if greedy.basis[index] == leaving:
            position = index
        else:
            greedy.matroid.join(greedy.basis[index])
    if greedy.matroid.join(entering):
        greedy.basis[position] = entering
        greedy.inside[leaving] = 0
        greedy.inside[entering] = 1
