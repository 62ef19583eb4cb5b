"""Worlds that play a script: who comes when and what each action pays her is fixed in advance.

A sampling audit plays two of them that differ in one person. What was chosen is written down as a row
of 0 and 1 for each round, one place for each action or item.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Chance
from dpbandits.policies import Policy
from dpbandits.problems import Problem

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Settled = tuple[float, float, float]


class Script(NamedTuple):
    """What every kind of script is given and records."""

    round: Integers  # (1,) the one now played
    rewards: Array  # (rounds, actions)
    chosen: NDArray[np.uint8]  # (rounds, actions)


class ArmsScript(NamedTuple):
    """A script without contexts."""

    script: Script

    def offer(self, chance: Chance) -> None:
        """No context."""

    def pay(self, context: None, action: int, chance: Chance) -> float:
        """As written."""
        return float(self.script.rewards[self.script.round[0], action])

    def settle(self, context: None, action: int, reward: float) -> Settled:
        """Write it down."""
        return _settle(self.script, action)


class FeaturesScript(NamedTuple):
    """A script of people with features."""

    script: Script
    features: Array  # (rounds, actions, dim)

    def offer(self, chance: Chance) -> tuple[Array]:
        """Her features."""
        return (self.features[self.script.round[0]],)

    def pay(self, context: tuple[Array], action: int, chance: Chance) -> float:
        """As written."""
        return float(self.script.rewards[self.script.round[0], action])

    def settle(self, context: tuple[Array], action: int, reward: float) -> Settled:
        """Write it down."""
        return _settle(self.script, action)


class NumbersScript(NamedTuple):
    """A script of people whose context is a number."""

    script: Script
    contexts: Integers  # (rounds,)

    def offer(self, chance: Chance) -> int:
        """Her context."""
        return int(self.contexts[self.script.round[0]])

    def pay(self, context: int, action: int, chance: Chance) -> float:
        """As written."""
        return float(self.script.rewards[self.script.round[0], action])

    def settle(self, context: int, action: int, reward: float) -> Settled:
        """Write it down."""
        return _settle(self.script, action)


class ItemsScript(NamedTuple):
    """A script in which the items of a basis pay."""

    script: Script
    paid: Array  # (rank,)
    all_paid: Array  # (items,)

    def offer(self, chance: Chance) -> None:
        """No context."""

    def pay(self, context: None, action: tuple[Integers], chance: Chance) -> tuple[Array]:
        """As written, for each item."""
        items = action[0]
        paid = self.paid if items.size == self.paid.size else self.all_paid
        for place in range(items.size):
            paid[place] = self.script.rewards[self.script.round[0], items[place]]
        return (paid,)

    def settle(self, context: None, action: tuple[Integers], reward: tuple[Array]) -> Settled:
        """Write it down."""
        items, script = action[0], self.script
        for place in range(items.size):
            script.chosen[script.round[0], items[place]] = 1
        script.round[0] += 1
        return 0.0, 0.0, 0.0


@register_jitable(forceinline=True)
def _settle(script: Script, action: int) -> Settled:
    script.chosen[script.round[0], action] = 1
    script.round[0] += 1
    return 0.0, 0.0, 0.0


@dataclass(frozen=True)
class Design:
    """A recipe on a problem, and two scripts that differ in the person of one round.

    `rewards` is (2, rounds, actions); `contexts` is None, (2, rounds) numbers, or
    (2, rounds, actions, dim) features.
    """

    name: str
    policy: Policy
    problem: Problem
    rewards: Array
    contexts: Any = None
    changed: int = 0

    @property
    def rounds(self) -> int:
        """How long the scripts are."""
        return int(self.rewards.shape[1])

    @property
    def actions(self) -> int:
        """How many may be chosen."""
        return int(self.rewards.shape[2])

    def world(self, which: int) -> Any:
        """One of the two scripts, at its beginning."""
        shape = self.rounds, self.actions
        script = Script(np.zeros(1, np.int64), self.rewards[which].copy(), np.zeros(shape, np.uint8))
        if self.problem.kept_items is not None:
            rank = self.problem.rank  # type: ignore[attr-defined]
            return ItemsScript(script, np.zeros(rank), np.zeros(self.actions))
        if self.contexts is None:
            return ArmsScript(script)
        contexts = np.ascontiguousarray(self.contexts[which])
        return (NumbersScript if contexts.ndim == 1 else FeaturesScript)(script, contexts)
