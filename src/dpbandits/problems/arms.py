"""Multi-armed bandits: a fixed number of arms, rewards in [0, 1]."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.problems.history import History, Row
from dpbandits.problems.problem import Problem
from dpbandits.problems.testing import ProblemTesting, numbered_past
from dpbandits.wording import counted

COMING_AND_GOING = "which arms are in play when"


@dataclass(frozen=True)
class Arms(Problem):
    """`arms` actions without context; each reward is clipped to [0, 1] before it is stored.

    The actions are the output, so how often each was played is public. With a `capacity` arms may be
    added later, up to that many in all; the first `arms` are in play from the start.
    """

    arms: Annotated[int, "How many arms there are."]
    capacity: Annotated[int | None, "The most arms there may ever be, if arms are added later."] = field(
        default=None, kw_only=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # With one arm there is nothing to decide, so nothing to protect or learn.
        checks.integer(least=2, limit=checks.MOST_ACTIONS, arms=self.arms)
        if self.capacity is not None:
            checks.integer(least=self.arms, limit=checks.MOST_ACTIONS, capacity=self.capacity)

    @property
    def slots(self) -> int:
        """The most arms that there can be."""
        return self.arms if self.capacity is None else self.capacity

    def context(self, *offered: Any) -> None:
        """Arms have no context."""
        if offered:
            raise InvalidInput("Arms has no context to decide by; a person is given as person=…")

    def is_action(self, action: Any) -> bool:
        """One of the arms there is room for."""
        return super().is_action(action) and action < self.slots

    def reward(self, value: Any) -> float:
        """One number (or a boolean), later clipped to [0, 1]; NaN and all else are refused."""
        return checks.reward(value)

    def past(self, history: History) -> Iterator[Row]:
        """Arms that are in play from the start, with their rewards."""
        return history.numbered(self.arms, "arms")

    def public_facts(self) -> tuple[str, ...]:
        """The number of arms and the range rewards are clipped to; who comes and goes, if any may."""
        facts = "the number of arms", "the reward range [0, 1]"
        return facts if self.capacity is None else (*facts, COMING_AND_GOING)


@register_jitable(forceinline=True)
def centred(reward: float) -> float:
    """A reward as it is stored: clipped to [0, 1], minus ½; a missing one (NaN) is exactly 0.

    Whatever comes in, the result lies in [−½, ½] and on a grid of 2⁻²⁰. Sums of up to 2³² of them are
    exact in double precision, so replacing one reward moves a sum by at most 1, rounding included.
    """
    if reward != reward:
        return 0.0
    return math.floor(min(max(reward, 0.0), 1.0) * 1048576.0 + 0.5) / 1048576.0 - 0.5


class _Testing(ProblemTesting[Arms]):
    """For audits of policies on `Arms`."""

    def example(self, horizon: int | None, *, size: int = 3) -> Arms:
        """As many arms as its size."""
        return Arms(size, horizon=horizon)

    def size_in_words(self, problem: Arms) -> str:
        """Its arms."""
        return counted(problem.arms, "arm")

    def extreme_people(self, problem: Arms) -> tuple[tuple[None, float], ...]:
        """Both ends first, then the inside, far beyond both ends, and no reward at all."""
        beyond = (-1e9, 1e300, math.inf, -math.inf, problem.missing)
        return tuple((None, reward) for reward in (0.0, 1.0, 0.25, 0.5, *beyond))

    def past(self, problem: Arms, people: Sequence[tuple[Any, Any]]) -> History:
        return numbered_past(problem.arms, people)

    def reward_inside(self, problem: Arms, share: float, chance: np.random.Generator) -> float:
        return share


Arms.testing = _Testing()
