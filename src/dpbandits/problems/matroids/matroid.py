"""The base of every matroid, and how one's own is written: by saying which sets are independent."""

import functools
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.problems.matroids.greedy import rebuild, start_greedy
from dpbandits.recipes import Recipe

if TYPE_CHECKING:
    from dpbandits.problems.matroids.derived import RestrictedMatroid, TruncatedMatroid

_TABULATED = 16


@dataclass(frozen=True)
class Matroid(Recipe):
    """Items 0, 1, … and which sets of them are independent.

    For a matroid of your own give `size` and `independent(chosen)`; with up to 16 items that is all, for
    its axioms are then checked and its sets tabulated. A larger one gives `state()` in place of
    `independent`: a named tuple of arrays, with the verbs `clear` and `join` as methods.
    """

    abstract: ClassVar[bool] = True

    @property
    @abstractmethod
    def size(self) -> int:
        """How many items there are."""

    def independent(self, chosen: Iterable[int]) -> bool:
        """Whether these items may be chosen together."""
        items = [self._item(item) for item in checks.sequence("items", chosen)]
        state = self.state()
        state.clear()
        return len(set(items)) == len(items) and all(state.join(item) for item in items)

    def state(self) -> Any:
        """A fresh state with the verbs `clear` and `join`."""
        if type(self).independent is Matroid.independent:
            raise TypeError(f"{type(self).__name__} needs independent(chosen) or state()")
        return _tabulate(self)

    def _item(self, item: int) -> int:
        checks.integer(least=0, item=item)
        if item >= self.size:
            raise InvalidInput(f"expected an item below {self.size}, got {item}")
        return int(item)

    @functools.cached_property
    def rank(self) -> int:
        """The size of every basis."""
        return int(start_greedy(self.state(), self.size).basis.size)

    @functools.cached_property
    def loops(self) -> tuple[int, ...]:
        """Items that are in no independent set, so never chosen."""
        order = start_greedy(self.state(), self.size).order
        return tuple(sorted(set(range(self.size)) - set(order.tolist())))

    def best_basis(self, weights: Sequence[float] | NDArray[np.float64]) -> tuple[int, ...]:
        """A basis of the largest total weight, as sorted items.

        >>> from dpbandits.problems import UniformMatroid
        >>> UniformMatroid(4, 2).best_basis([0.1, 0.9, 0.5, 0.7])
        (1, 3)
        """
        given = checks.array(f"{self.size} finite weights", weights)
        if given.shape != (self.size,) or not np.all(np.isfinite(given)):
            raise InvalidInput(f"expected {self.size} finite weights, got {checks.shown(weights)}")
        greedy = start_greedy(self.state(), self.size)
        rebuild(greedy, given)
        return tuple(sorted(greedy.basis.tolist()))

    def truncated(self, rank: int) -> "TruncatedMatroid":
        """The same with at most `rank` items in a set."""
        from dpbandits.problems.matroids.derived import TruncatedMatroid

        return TruncatedMatroid(self, rank)

    def restricted(self, items: Sequence[int]) -> "RestrictedMatroid":
        """The same with these items only, numbered anew in this order."""
        from dpbandits.problems.matroids.derived import RestrictedMatroid

        return RestrictedMatroid(self, tuple(checks.sequence("items", items)))


class Table(NamedTuple):
    """Every set of a small matroid, a bit each; a set is a number whose bits are its items."""

    bits: NDArray[np.uint8]
    chosen: NDArray[np.int64]  # (1,) the set

    def limits(self) -> Limits:
        """A set of items that there are."""
        return {"bits": FROM_RECIPE, "chosen": (0, 8 * self.bits.size - 1)}

    def clear(self) -> None:
        """The empty set."""
        self.chosen[0] = 0

    def join(self, item: int) -> bool:
        """Look the larger set up."""
        wanted = self.chosen[0] | (1 << item)
        if wanted == self.chosen[0] or not (self.bits[wanted >> 3] >> (wanted & 7)) & 1:
            return False
        self.chosen[0] = wanted
        return True


@functools.lru_cache(maxsize=16)
def _table(matroid: Matroid) -> NDArray[np.uint8]:
    name, size = type(matroid).__name__, matroid.size
    checks.integer(least=1, size=size)
    if size > _TABULATED:
        raise InvalidInput(
            f"{name} has {size} items; a matroid given by independent() has at most {_TABULATED}, a "
            "larger one gives state()"
        )
    sets = np.arange(1 << size)
    members = [[item for item in range(size) if one >> item & 1] for one in range(1 << size)]
    independent = np.array([bool(matroid.independent(chosen)) for chosen in members])
    _check_axioms(name, size, sets, independent)
    return np.packbits(independent, bitorder="little")


def _check_axioms(name: str, size: int, sets: NDArray[Any], independent: NDArray[np.bool_]) -> None:
    """The empty set, subsets of independent sets, and a rank that is submodular."""
    if not independent[0]:
        raise InvalidInput(f"{name} is no matroid: the empty set must be independent")
    rank = np.zeros(sets.size, np.int64)
    for item in range(size):
        without = sets & ~(1 << item)
        if np.any(independent & ~independent[without]):
            raise InvalidInput(f"{name} is no matroid: a part of an independent set must be independent")
    sizes = np.array([one.bit_count() for one in sets.tolist()])
    for chosen in sets[np.argsort(sizes, kind="stable")][1:].tolist():
        smaller = max(int(rank[chosen & ~(1 << item)]) for item in range(size) if chosen >> item & 1)
        rank[chosen] = sizes[chosen] if independent[chosen] else smaller
    for one in range(size):
        for other in range(one):
            first, second = sets | 1 << one, sets | 1 << other
            if np.any(rank[first] + rank[second] < rank[first | second] + rank[sets]):
                raise InvalidInput(
                    f"{name} is no matroid: a smaller independent set must grow by an item of a larger"
                )


def _tabulate(matroid: Matroid) -> Table:
    return Table(_table(matroid).copy(), np.zeros(1, np.int64))
