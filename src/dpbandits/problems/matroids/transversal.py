"""Items that fill places: a set is independent if each of its items can have a place of its own."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.problems.matroids.matroid import Matroid
from dpbandits.recipes import IntRows

Integers = NDArray[np.int64]


class Places(NamedTuple):
    """Who has which place, and scratch for the search."""

    fits: Integers  # (items, width) the places an item fits, then −1
    holder: Integers  # (places,) the item that has it, −1 if none
    place: Integers  # (items,) the place it has, −1 if none
    reached: Integers  # (places,) the item it was reached from, −1 if it was not
    queue: Integers  # (items,)

    def limits(self) -> Limits:
        """Places and items that there are, or none."""
        items, places = self.place.size, self.holder.size
        return {
            "fits": FROM_RECIPE,
            "holder": (-1, items - 1),
            "place": (-1, places - 1),
            "reached": (-1, items - 1),
            "queue": (0, items - 1),
        }

    def clear(self) -> None:
        """All places are free."""
        self.holder[:] = -1
        self.place[:] = -1

    def join(self, item: int) -> bool:
        """Search for a free place, items that have one moving on if they can (an augmenting path)."""
        if self.place[item] >= 0:
            return False
        self.reached[:] = -1
        self.queue[0] = item
        head, tail = 0, 1
        while head < tail:
            one = self.queue[head]
            head += 1
            for index in range(self.fits.shape[1]):
                place = self.fits[one, index]
                if place < 0 or self.reached[place] >= 0:
                    continue
                self.reached[place] = one
                if self.holder[place] >= 0:
                    self.queue[tail] = self.holder[place]
                    tail += 1
                    continue
                while place >= 0:
                    mover = self.reached[place]
                    left = self.place[mover]
                    self.holder[place] = mover
                    self.place[mover] = place
                    place = left
                return True
        return False


@dataclass(frozen=True)
class TransversalMatroid(Matroid):
    """places[i] are the places that item i fits; a set is independent if all its items find one.

    >>> TransversalMatroid(((0,), (0, 1), (1,))).best_basis([0.5, 0.9, 0.7])
    (1, 2)
    """

    places: Annotated[
        IntRows,
        "The places each item can take; items with a place each may be chosen together.",
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        listed = [
            checks.sequence("places of an item", one) for one in checks.sequence("places", self.places)
        ]
        if not listed:
            raise InvalidInput("expected places for at least one item")
        for index, one in enumerate(listed):
            for place in one:
                checks.integer(least=0, **{f"places[{index}]": place})
        object.__setattr__(self, "places", tuple(tuple(sorted(set(map(int, x)))) for x in listed))

    @property
    def size(self) -> int:
        """One item per entry of `places`."""
        return len(self.places)

    def state(self) -> Places:
        """All places free."""
        names = {x: i for i, x in enumerate(sorted({x for one in self.places for x in one}))}
        width = max(1, *(len(one) for one in self.places))
        fits = np.full((self.size, width), -1, np.int64)
        for item, one in enumerate(self.places):
            fits[item, : len(one)] = [names[x] for x in one]
        free, size = np.full(max(1, len(names)), -1, np.int64), self.size
        return Places(fits, free, np.full(size, -1, np.int64), free.copy(), np.zeros(size, np.int64))
