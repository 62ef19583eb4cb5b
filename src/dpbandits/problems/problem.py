"""The base of every problem: the declared facts a guarantee may rest on."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems.history import History, Row
from dpbandits.problems.testing import ProblemTesting
from dpbandits.recipes import Recipe


class UnusableContext(Exception):
    """A context that nothing can be learned from; `instead` is the one to play the round with."""

    def __init__(self, instead: Any) -> None:
        super().__init__()
        self.instead = instead


class Shortened(tuple[Any, ...]):
    """A context of which something was brought within the declared bounds; otherwise like any other."""


class FarWithin(tuple[Any, ...]):
    """A context that is far within the declared bounds; otherwise like any other."""


@dataclass(frozen=True)
class Problem(Recipe):
    """What is declared before the first round.

    `horizon`: the number of rounds, where known, at most 10¹⁵. `rounds_per_person`: how many rounds of
    one person are learned from, where people are distinguished; at most 10,000. There may be 100,000
    actions, 10,000 items of a matroid and 1,000 features (`checks.py`).
    """

    abstract: ClassVar[bool] = True
    # Whose decisions a trusted learner can protect: all, or those for everyone else.
    trust: ClassVar[Trust] = Trust.CENTRAL
    testing: ClassVar[ProblemTesting[Any]]
    horizon: Annotated[int | None, "The number of rounds, where it is known beforehand."] = field(
        default=None, kw_only=True
    )
    rounds_per_person: Annotated[
        int | None, "Learn from at most this many rounds of one person, named by `person`."
    ] = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon is not None:
            checks.integer(least=1, horizon=self.horizon)
        if self.rounds_per_person is not None:
            most = checks.MOST_ROUNDS_PER_PERSON
            checks.integer(least=1, limit=most, rounds_per_person=self.rounds_per_person)

    @abstractmethod
    def context(self, *offered: Any) -> Any:
        """What `select` was given, checked and brought into the declared range.

        What no data can be (another type, another shape) is refused. What a person may have brought is
        not: `UnusableContext` has the context to play her round with.
        """

    def each(self, contexts: Any) -> list[Any]:
        """What many people brought, one by one, for `decide_many`."""
        return checks.sequence("contexts", contexts)

    @property
    def kept_features(self) -> int | None:
        """What `observe` reads of a context: nothing (None), its number (0), or this many features."""
        return None

    @property
    def kept_items(self) -> int | None:
        """The most items of an action that is a set; None where it is a number."""
        return None

    def kept(self, context: Any, action: Any) -> tuple[Any, Any]:
        """What must be kept of a context and action until the round is closed: as little as `observe`
        reads. Where there are features of many actions, the chosen row alone.
        """
        return context, action

    def is_action(self, action: Any) -> bool:
        """Whether a policy may have chosen this; by its number, where that is all that is known."""
        return isinstance(action, int) and action >= 0

    @abstractmethod
    def reward(self, value: Any) -> Any:
        """A reward, checked; the policy's `observe` brings it into the declared range."""

    @property
    def missing(self) -> Any:
        """The reward that stands for none; `observe` stores it as the zero row."""
        return math.nan

    def past(self, history: History) -> Iterator[Row]:
        """The rows of an earlier log as `observe` reads them, checked."""
        raise InvalidInput(f"{type(self).__name__} cannot start from a history")

    def public_facts(self) -> tuple[str, ...]:
        """What a guarantee rests on being public, beside a horizon."""
        return ()
