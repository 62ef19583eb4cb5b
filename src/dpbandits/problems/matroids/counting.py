"""Matroids that count: a limit on the items of each of some sets, which are nested or disjoint."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.state import FLAG, FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.problems.matroids.matroid import Matroid
from dpbandits.recipes import IntRows, Ints

Integers = NDArray[np.int64]


class Counts(NamedTuple):
    """How full each set is."""

    member: Integers  # (items, depth) the sets an item is in, then −1
    capacity: Integers  # (sets,)
    filled: Integers  # (sets,)
    chosen: Integers  # (items,) 1 if it is

    def limits(self) -> Limits:
        """No set holds more than it may."""
        recipe = dict.fromkeys(("member", "capacity"), FROM_RECIPE)
        return {"filled": (0, self.capacity), "chosen": FLAG, **recipe}

    def clear(self) -> None:
        """Nothing chosen."""
        self.filled[:] = 0
        self.chosen[:] = 0

    def join(self, item: int) -> bool:
        """Room is needed in every set that the item is in."""
        if self.chosen[item] == 1:
            return False
        for place in range(self.member.shape[1]):
            group = self.member[item, place]
            if group >= 0 and self.filled[group] >= self.capacity[group]:
                return False
        for place in range(self.member.shape[1]):
            group = self.member[item, place]
            if group >= 0:
                self.filled[group] += 1
        self.chosen[item] = 1
        return True


def _start_counts(items: int, sets: Sequence[Iterable[int]], capacities: Sequence[int]) -> Counts:
    inside: list[list[int]] = [[] for _ in range(items)]
    for group, members in enumerate(sets):
        for item in members:
            inside[item].append(group)
    depth = max(1, *(len(groups) for groups in inside))
    member = np.full((items, depth), -1, np.int64)
    for item, groups in enumerate(inside):
        member[item, : len(groups)] = groups
    capacity = np.array(capacities, np.int64)
    return Counts(member, capacity, np.zeros(capacity.size, np.int64), np.zeros(items, np.int64))


def _whole_numbers(name: str, values: Iterable[int]) -> tuple[int, ...]:
    listed = checks.sequence(name, values)
    for index, value in enumerate(listed):
        checks.integer(least=0, **{f"{name}[{index}]": value})
    return tuple(int(value) for value in listed)


@dataclass(frozen=True)
class UniformMatroid(Matroid):
    """Any `most` of `items` items: the plain choice of several at once.

    >>> UniformMatroid(5, 2).rank
    2
    """

    items: Annotated[int, "How many items there are."]
    most: Annotated[int, "How many may be chosen together."]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(least=1, limit=checks.MOST_ITEMS, items=self.items)
        checks.integer(least=0, most=self.most)

    @property
    def size(self) -> int:
        """As given."""
        return self.items

    def state(self) -> Counts:
        """One set of everything."""
        return _start_counts(self.items, [range(self.items)], [min(self.most, self.items)])


@dataclass(frozen=True)
class PartitionMatroid(Matroid):
    """Each item has a group; of group g at most capacities[g] items.

    >>> PartitionMatroid((0, 0, 1, 1, 1), (1, 2)).best_basis([0.1, 0.2, 0.3, 0.5, 0.4])
    (1, 3, 4)
    """

    groups: Annotated[Ints, "The group of each item."]
    capacities: Annotated[Ints, "How many items of each group may be chosen."]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "groups", _whole_numbers("groups", self.groups))
        object.__setattr__(self, "capacities", _whole_numbers("capacities", self.capacities))
        if not self.groups or max(self.groups) >= len(self.capacities):
            raise InvalidInput(f"expected a capacity for each of the groups, got {self.capacities}")

    @property
    def size(self) -> int:
        """One item per entry of `groups`."""
        return len(self.groups)

    def state(self) -> Counts:
        """A set per group."""
        sets = [[i for i, g in enumerate(self.groups) if g == k] for k in range(len(self.capacities))]
        return _start_counts(self.size, sets, tuple(self.capacities))


@dataclass(frozen=True)
class LaminarMatroid(Matroid):
    """At most capacities[k] items of sets[k]; any two of the sets are nested or disjoint.

    >>> shop = LaminarMatroid(4, ((0, 1), (0, 1, 2)), (1, 2))
    >>> shop.independent([0, 2, 3]), shop.independent([0, 1])
    (True, False)
    """

    items: Annotated[int, "How many items there are."]
    sets: Annotated[IntRows, "Sets of items, nested or disjoint."]
    capacities: Annotated[Ints, "How many items of each set may be chosen."]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(least=1, limit=checks.MOST_ITEMS, items=self.items)
        sets = tuple(
            tuple(sorted(set(_whole_numbers("sets", one)))) for one in checks.sequence("sets", self.sets)
        )
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "capacities", _whole_numbers("capacities", self.capacities))
        if len(sets) != len(self.capacities):
            raise InvalidInput(f"expected {len(sets)} capacities, got {len(self.capacities)}")
        for index, one in enumerate(sets):
            if one and one[-1] >= self.items:
                raise InvalidInput(f"expected items below {self.items} in sets, got {one[-1]}")
            for other in sets[:index]:
                common = set(one) & set(other)
                if common and common != set(one) and common != set(other):
                    raise InvalidInput(
                        f"expected sets to be nested or disjoint; {one} and {other} overlap"
                    )

    @property
    def size(self) -> int:
        """As given."""
        return self.items

    def state(self) -> Counts:
        """The sets as they are."""
        return _start_counts(self.items, tuple(self.sets), tuple(self.capacities))
