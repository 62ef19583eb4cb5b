"""The base of every environment."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from dpbandits.problems import Problem
from dpbandits.recipes import Recipe


@dataclass(frozen=True)
class Environment(Recipe):
    """A world as a frozen recipe. Its state has the verbs `offer`, `pay` and `settle`.

    Every round draws the same number of chances whatever is chosen, so that two policies on one run
    meet the same world (common random numbers).
    """

    abstract: ClassVar[bool] = True

    @abstractmethod
    def problem(self, rounds: int | None) -> Problem:
        """What a policy may know about this world when it is played for `horizon` rounds."""

    @abstractmethod
    def world(self) -> Any:
        """The state, with its verbs."""

    @abstractmethod
    def uniform_regret(self) -> float:
        """The expected regret of one uniformly random action."""
