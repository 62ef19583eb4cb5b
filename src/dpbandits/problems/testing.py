"""What audits and the conformance suite must know about a kind of problem; not for users."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from dpbandits.problems.history import History

_INSIDE = 24  # people drawn at random for an audit

P = TypeVar("P")


class ProblemTesting(ABC, Generic[P]):
    """The `testing` of a problem: small examples of it, and people whom an audit puts in it."""

    # How long the conformance suite's replays are; their cost grows with the square.
    replay_rounds: ClassVar[int] = 48

    @abstractmethod
    def example(self, horizon: int | None, *, size: int = 3) -> P:
        """A small problem of this kind."""

    def example_like(self, problem: P, horizon: int | None, *, size: int = 3) -> P:
        """The same, of the case of this kind that a problem is."""
        return self.example(horizon, size=size)

    def others(self, horizon: int | None) -> dict[str, P]:
        """Examples of other cases of this kind, by what they are called."""
        return {}

    @abstractmethod
    def size_in_words(self, problem: P) -> str:
        """How large a problem is: ``12 arms``."""

    @abstractmethod
    def extreme_people(self, problem: P) -> tuple[tuple[Any, Any], ...]:
        """(context, reward) pairs: first two opposite ends of what is declared, then others inside and
        beyond it.
        """

    def people_inside(self, problem: P, chance: np.random.Generator) -> tuple[tuple[Any, Any], ...]:
        """The same for people within what is declared, at random: no leak may hide between the ends."""
        parts = [0, _INSIDE - 1, *chance.permutation(np.arange(1, _INSIDE - 1))]
        shares = (parts + chance.random(_INSIDE)) / _INSIDE  # one in each part, opposite ones first
        rewards = [self.reward_inside(problem, float(share), chance) for share in shares]
        return tuple((self.context_inside(problem, chance), reward) for reward in rewards)

    @abstractmethod
    def reward_inside(self, problem: P, share: float, chance: np.random.Generator) -> Any:
        """A reward at this share of the range, as verbs are given it."""

    def past(self, problem: P, people: Sequence[tuple[Any, Any]]) -> History:
        """These people as rows of an earlier log, whose actions go round.

        Where a problem takes no history, one that it refuses.
        """
        return History(reward=np.zeros(len(people)))

    def context_inside(self, problem: P, chance: np.random.Generator) -> Any:
        """A context as verbs are given it."""
        return None


def numbered_past(count: int, people: Sequence[tuple[Any, Any]]) -> History:
    """The same where actions have numbers."""
    return History(action=np.arange(len(people)) % count, reward=[reward for _, reward in people])
