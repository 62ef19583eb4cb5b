"""Multi-armed bandits: a fixed number of arms, rewards in [0, 1]."""

import math
from dataclasses import dataclass
from typing import Any, Self

from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.problems.problem import Problem


@dataclass(frozen=True)
class Arms(Problem):
    """`arms` actions without context; each reward is clipped to [0, 1] before it is stored.

    The actions are the output, so how often each was played is public.
    """

    arms: int

    def __post_init__(self) -> None:
        super().__post_init__()
        # With one arm there is nothing to decide, so nothing to protect or learn.
        checks.integer(least=2, arms=self.arms)

    @classmethod
    def example(cls, horizon: int | None) -> Self:
        """Three arms."""
        return cls(3, horizon=horizon)

    def context(self, *offered: Any) -> None:
        """Arms have no context."""
        if offered:
            raise InvalidInput("select() takes no context when the problem is Arms")

    def reward(self, value: Any) -> float:
        """One number; NaN and anything that is not a number are refused."""
        if type(value) is not float:
            checks.number(reward=value)
            value = float(value)
        if math.isnan(value):
            raise InvalidInput("expected reward to be a number, got nan; use skip() for a missing one")
        return float(value)

    def extreme_people(self) -> tuple[tuple[None, float], ...]:
        """Both ends, far beyond both ends, and no reward at all."""
        return tuple((None, reward) for reward in (0.0, 1.0, -1e9, 1e9, self.missing))

    def public_facts(self) -> tuple[str, ...]:
        """The number of arms and the range rewards are clipped to."""
        return "the number of arms", "the reward range [0, 1]"


@register_jitable(forceinline=True)
def centred(reward: float) -> float:
    """A reward as it is stored: clipped to [0, 1], minus ½; a missing one (NaN) is exactly 0.

    Whatever comes in, the result lies in [−½, ½]: replacing one reward moves a sum by at most 1.
    """
    if reward != reward:
        return 0.0
    return min(max(reward, 0.0), 1.0) - 0.5
