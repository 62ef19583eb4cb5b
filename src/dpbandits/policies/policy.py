"""The base of every policy: a frozen recipe that can be started on a problem."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dpbandits.engine.streams import Seed, Streams
from dpbandits.errors import BudgetNotAccepted, InvalidInput
from dpbandits.policies.learner import Learner
from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems import Arms, Problem
from dpbandits.recipes import Recipe


@dataclass(frozen=True, kw_only=True)
class Policy(Recipe):
    """How to decide, and what is promised about it. No data, no seed.

    A subclass names its `problem_kind`, the budgets it `accepts` and its `paper`, makes its first
    state in `begin`, and states its `guarantee`; its verbs stand beside it as plain functions.
    """

    abstract: ClassVar[bool] = True
    problem_kind: ClassVar[type[Problem]]
    accepts: ClassVar[tuple[type[Budget], ...]]
    paper: ClassVar[str]
    needs_horizon: ClassVar[bool] = False
    status: ClassVar[str] = "proved"
    # The least share of the budget that some replayed neighbour must reach.
    replay_floor: ClassVar[float] = 0.9
    # Whether a learner runs compiled unless told otherwise: worth a second's wait for linear algebra.
    compiles: ClassVar[bool] = False

    privacy: Budget

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.privacy, self.accepts):
            kinds = ", ".join(kind.__name__ for kind in self.accepts)
            raise BudgetNotAccepted(f"{type(self).__name__} accepts {kinds}; got {self.privacy!r}")

    @classmethod
    def takes_no_budget(cls) -> bool:
        """Whether it has no budget to set; what it does may be private all the same."""
        return cls.accepts == (NonPrivate,)

    @abstractmethod
    def begin(self, problem: Any) -> tuple[Any, Any]:
        """The state before the first round: (public, secret)."""

    @abstractmethod
    def guarantee(self, problem: Any) -> Guarantee:
        """What is promised on this problem, argued in the class's docstring."""

    def spent(self, public: Any) -> Budget | None:
        """What has been released so far cost the person it cost most; None for nothing yet.

        None too where the policy cannot tell. Never more than the guarantee, and a function of public
        values only. A reading, not a promise: only the guarantee, fixed beforehand, is one.
        """
        return None

    def twin(self) -> "Policy | None":
        """The same algorithm without privacy: this recipe without noise, unless a simpler one exists."""
        if isinstance(self.privacy, NonPrivate) or NonPrivate not in self.accepts:
            return None
        return replace(self, privacy=NonPrivate())

    def small(self) -> "Policy":
        """The same policy with batches and blocks so short that a replay goes through several."""
        return self

    def plays_uniform_below(self, problem: Any) -> int:
        """The horizon below which this budget leaves nothing better than uniform play."""
        return 0

    def start(self, problem: Problem, *, seed: Seed = None, compiled: bool | None = None) -> Learner:
        """A learner on this problem; without a seed, on the operating system's randomness.

        A seed is for tests and simulation: whoever knows it can undo the noise. Compiled or not, it
        decides alike; the first compiled decision takes seconds to prepare, later ones are quicker.
        """
        return self.rehearse(
            problem, seed=seed, compiled=self.compiles if compiled is None else compiled
        )

    def rehearse(self, problem: Problem, *, seed: Seed = None, compiled: bool = False) -> Learner:
        """A learner that plays all parts, for tests: for a local policy the server and every person.

        For all other policies it is what `start` gives.
        """
        self.check(problem)
        streams = Streams.of(seed)
        return Learner(
            self, problem, *self.begin(problem), streams, seeded=seed is not None, compiled=compiled
        )

    def check(self, problem: Problem) -> None:
        """Refuse a problem this policy cannot be started on."""
        if not isinstance(problem, self.problem_kind):
            raise InvalidInput(
                f"{type(self).__name__} is for {self.problem_kind.__name__}, got {problem!r}"
            )
        if self.needs_horizon and not isinstance(self.privacy, NonPrivate) and problem.horizon is None:
            raise InvalidInput(
                f"{type(self).__name__} needs the horizon to meet {self.privacy}: "
                f"{type(problem).__name__}(..., horizon=100_000)"
            )
        if isinstance(problem, Arms) and problem.capacity is not None:
            public, _ = self.begin(replace(problem, capacity=None))
            if not hasattr(public, "away"):
                raise InvalidInput(
                    f"{type(self).__name__} is for arms that stay, got capacity={problem.capacity}; "
                    "those of NoiseAwareIMED and LazyThompson may come and go"
                )
