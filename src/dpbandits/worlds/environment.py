"""The base of every environment."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dpbandits.problems import Problem
from dpbandits.recipes import Recipe
from dpbandits.wording import counted, number


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

    def small_world(self) -> Any:
        """The same with as little scratch space as it needs, for a GPU that plays very many at once."""
        return self.world()

    @abstractmethod
    def uniform_regret(self) -> float:
        """The expected regret of one uniformly random action."""

    def uniform_total(self, rounds: int) -> float:
        """The expected regret of so many random actions; worlds that change say it for themselves."""
        return rounds * self.uniform_regret()

    def in_hindsight(self) -> bool:
        """Whether regret is against the one action that was best over all rounds so far.

        Otherwise it is against the best action of every round. In hindsight `settle` gives, as the best
        mean of a round, what the largest sum of the means of one action grows by.
        """
        return False

    def in_words(self) -> str:
        """For titles: its name, and its numbers."""
        numbers = {name: value for name, value in vars(self).items() if type(value) in (int, float)}
        numbers.pop("seed", None)
        sizes = ", ".join(f"{name} {number(value)}" for name, value in numbers.items())
        return f"{self.name()} ({sizes})" if sizes else self.name()


def means_in_words(count: int, what: str, means: Sequence[float]) -> str:
    """So many of something, and the largest and smallest of their means."""
    return f"{counted(count, what)} of means {number(max(means))} to {number(min(means))}"
