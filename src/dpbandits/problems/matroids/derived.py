"""Matroids made of others: with fewer items in a set, or with fewer items at all."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.problems.matroids.matroid import Matroid
from dpbandits.recipes import Ints


class Truncated(NamedTuple):
    """A matroid's state, and how many items may still join."""

    inner: Any
    left: NDArray[np.int64]  # (1,)
    most: int

    def limits(self) -> Limits:
        """Room for no more than was declared."""
        return {"left": (0, self.most)}

    def clear(self) -> None:
        """The empty set."""
        self.left[0] = self.most
        self.inner.clear()

    def join(self, item: int) -> bool:
        """As long as there is room."""
        if self.left[0] > 0 and self.inner.join(item):
            self.left[0] -= 1
            return True
        return False


class Restricted(NamedTuple):
    """A matroid's state, and its name for each item."""

    inner: Any
    items: NDArray[np.int64]

    def limits(self) -> Limits:
        """Names are declared."""
        return {"items": FROM_RECIPE}

    def clear(self) -> None:
        """The empty set."""
        self.inner.clear()

    def join(self, item: int) -> bool:
        """By its name there."""
        return bool(self.inner.join(self.items[item]))


@dataclass(frozen=True)
class TruncatedMatroid(Matroid):
    """The independent sets of a matroid with at most `most` items.

    >>> from dpbandits.problems import GraphicMatroid
    >>> GraphicMatroid(((0, 1), (1, 2), (2, 3))).truncated(2).rank
    2
    """

    matroid: Annotated[Matroid, "The matroid to choose from."]
    most: Annotated[int, "How many items may be chosen together."]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.matroid, Matroid):
            raise InvalidInput(f"expected a matroid, got {checks.shown(self.matroid)}")
        checks.integer(least=0, most=self.most)

    @property
    def size(self) -> int:
        """Items stay as they are."""
        return self.matroid.size

    def state(self) -> Truncated:
        """The matroid's own state, with room for `most` items."""
        return Truncated(self.matroid.state(), np.full(1, self.most, np.int64), self.most)


@dataclass(frozen=True)
class RestrictedMatroid(Matroid):
    """Some items of a matroid, numbered anew; a set is independent if it was.

    >>> from dpbandits.problems import UniformMatroid
    >>> UniformMatroid(5, 2).restricted((4, 1)).rank
    2
    """

    matroid: Annotated[Matroid, "The matroid to choose from."]
    items: Annotated[Ints, "The items that stay."]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.matroid, Matroid):
            raise InvalidInput(f"expected a matroid, got {checks.shown(self.matroid)}")
        items = tuple(self.matroid._item(item) for item in checks.sequence("items", self.items))
        if not items or len(set(items)) < len(items):
            raise InvalidInput(f"expected different items, at least one; got {checks.shown(self.items)}")
        object.__setattr__(self, "items", items)

    @property
    def size(self) -> int:
        """The items kept."""
        return len(self.items)

    def state(self) -> Restricted:
        """The matroid's own, with the names."""
        return Restricted(self.matroid.state(), np.array(self.items, np.int64))
