"""Matroid worlds: a Bernoulli reward for each item, independent of the others."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.problems import Matroid, MatroidBases
from dpbandits.problems.matroids.bases import Items, Rewards
from dpbandits.problems.matroids.greedy import shuffle, start_greedy
from dpbandits.recipes import Floats
from dpbandits.worlds.environment import Environment, means_in_words

Array = NDArray[np.float64]
# Up to this many items the expected basis of a random order is computed from all sets.
_ALL_SETS = 10
_ORDERS = 200


@dataclass(frozen=True)
class MatroidEnvironment(Environment):
    """A matroid, and what each of its items pays on average."""

    abstract: ClassVar[bool] = True

    def item_matroid(self) -> Matroid:
        """The matroid whose bases are played."""
        raise NotImplementedError

    def item_means(self) -> tuple[float, ...]:
        """The expected reward of each item."""
        raise NotImplementedError

    def problem(self, rounds: int | None) -> MatroidBases:
        """The bases of the matroid."""
        return MatroidBases(self.item_matroid(), horizon=rounds)

    def best_items(self) -> tuple[int, ...]:
        """The best basis."""
        return self.item_matroid().best_basis(self.item_means())

    def best_return(self) -> float:
        """What the best basis pays on average."""
        means = self.item_means()
        return math.fsum(means[item] for item in self.best_items())

    def in_words(self) -> str:
        """How many items, and the range of their means."""
        means = self.item_means()
        return means_in_words(len(means), "Bernoulli item", means)

    def uniform_regret(self) -> float:
        """The best return minus that of the greedy basis of a random order.

        Exact for up to 10 items; above, the average over 200 orders.
        """
        matroid, means = self.item_matroid(), self.item_means()
        if matroid.size <= _ALL_SETS:
            chosen = _chances_of_being_chosen(matroid)
            return self.best_return() - math.fsum(p * m for p, m in zip(chosen, means, strict=True))
        greedy, explore, total = (
            start_greedy(matroid.state(), matroid.size),
            np.random.default_rng(0),
            0.0,
        )
        for _ in range(_ORDERS):
            shuffle(greedy, explore)
            total += float(np.array(means)[greedy.basis].sum())
        return self.best_return() - total / _ORDERS


def _chances_of_being_chosen(matroid: Matroid) -> list[float]:
    """P[item in the greedy basis of a random order]: it is not spanned by the items before it."""
    size, state = matroid.size, matroid.state()
    rank = []
    for chosen in range(1 << size):
        state.clear()
        rank.append(sum(state.join(item) for item in range(size) if chosen >> item & 1))
    orders = [math.factorial(k) * math.factorial(size - 1 - k) for k in range(size)]
    found = []
    for item in range(size):
        before = (chosen for chosen in range(1 << size) if not chosen >> item & 1)
        good = sum(orders[one.bit_count()] for one in before if rank[one | 1 << item] > rank[one])
        found.append(good / math.factorial(size))
    return found


@dataclass(frozen=True)
class MatroidArms(MatroidEnvironment):
    """Item i pays 1 with probability means[i], else 0, independently of the others."""

    matroid: Annotated[Matroid, "Which items may be chosen together."]
    means: Annotated[Floats, "The mean reward of each item."]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.matroid, Matroid):
            raise InvalidInput(
                f"expected a matroid such as UniformMatroid(5, 2), got {checks.shown(self.matroid)}"
            )
        listed = checks.sequence("means", self.means)
        means = tuple(checks.number("means[…]", mean) for mean in listed)
        object.__setattr__(self, "means", means)
        if len(means) != self.matroid.size:
            raise InvalidInput(
                f"expected a mean for each of the {self.matroid.size} items, got {len(means)}"
            )
        for index, mean in enumerate(means):
            checks.unit(**{f"means[{index}]": mean})

    def item_matroid(self) -> Matroid:
        """As given."""
        return self.matroid

    def item_means(self) -> tuple[float, ...]:
        """As given."""
        return tuple(self.means)

    def world(self) -> "ItemsWorld":
        """The means, and room for the rewards of a round."""
        return ItemsWorld(np.array(self.means), *start_rewards(self))


class ItemsWorld(NamedTuple):
    """State of `MatroidArms`."""

    means: Array
    best: float
    paid: Array  # (rank,) the rewards of a basis
    all_paid: Array  # (items,) those of all items, for a policy that looks at all once

    def limits(self) -> Limits:
        """What no round changes."""
        return {"means": FROM_RECIPE}

    def offer(self, chance: Chance) -> None:
        """No context."""

    def pay(self, context: None, action: Items, chance: Chance) -> Rewards:
        """Every item draws, chosen or not, so that all policies meet the same rewards."""
        for item in range(self.means.size):
            self.all_paid[item] = 1.0 if chance.random() < self.means[item] else 0.0
        items = action[0]
        if items.size != self.paid.size:
            return (self.all_paid,)
        for place in range(items.size):
            self.paid[place] = self.all_paid[items[place]]
        return (self.paid,)

    def settle(self, context: None, action: Items, reward: Rewards) -> tuple[float, float, float]:
        """The best return, the expected one of the basis, and what it paid."""
        return settle_basis(self.means, self.best, self.paid.size, action, reward)


def start_rewards(world: MatroidEnvironment) -> tuple[float, Array, Array]:
    """What the best basis pays, and room for the rewards of a basis and of all items."""
    matroid = world.item_matroid()
    return world.best_return(), np.zeros(matroid.rank), np.zeros(matroid.size)


@register_jitable(forceinline=True)
def settle_basis(
    means: Array, best: float, rank: int, action: Items, reward: Rewards
) -> tuple[float, float, float]:
    """A look at all items is no basis, and earns nothing."""
    mean, income = 0.0, 0.0
    items, rewards = action[0], reward[0]
    if items.size == rank:
        for place in range(rank):
            mean += means[items[place]]
            income += rewards[place]
    return best, mean, income
