"""The base of every policy: a frozen recipe that can be started on a problem.

**People who return.** A problem may declare that up to k rounds of one person are learned from
(`rounds_per_person`). A policy's own methods are written for one round of each person, with all of
`self.privacy`; the base class does the rest, so that no policy can forget it. What is run is
`for_people(problem)`: the recipe whose one-round budget is the m-th part of the one asked for, m being
the `multiplier` of its mechanism, and what it delivers for one round is promised m-fold for all of hers.
"""

import contextlib
import functools
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np

from dpbandits import checks
from dpbandits.engine.streams import Seed
from dpbandits.errors import BudgetNotAccepted, InvalidInput, NotImplied
from dpbandits.mechanisms.exact import LARGEST_BUDGET, least_budget
from dpbandits.policies.released import Reading
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.accounting import grouped
from dpbandits.privacy.budgets import Budget, NonPrivate, PureDP
from dpbandits.privacy.calibration import limit_of, reduced
from dpbandits.privacy.guarantees import Guarantee, Returning
from dpbandits.problems import Arms, Problem
from dpbandits.recipes import Recipe

# The slots that a round is learned into, each with the number of the batch that is open there.
OpenBatches = tuple[tuple[int, int], ...]
NoiseKind = Literal["exact", "float"]


@dataclass(frozen=True, kw_only=True)
class Policy(Recipe):
    """How to decide, and what is promised about it. No data, no seed.

    A subclass names its `problem_kind`, the budgets it `accepts` and its `paper`, makes its first
    state in `begin`, whose methods are the verbs, and states its `guarantee`: both for one round of each
    person.
    """

    abstract: ClassVar[bool] = True
    problem_kind: ClassVar[type[Problem]]
    accepts: ClassVar[tuple[type[Budget], ...]]
    paper: ClassVar[str]
    needs_horizon: ClassVar[bool] = False
    # "proved" where the docstring has the proof; every class says it for itself.
    status: ClassVar[str] = "claimed"
    # Whether a learner runs compiled unless told otherwise: worth a second's wait for linear algebra.
    compiles: ClassVar[bool] = False
    testing: ClassVar[PolicyTesting] = PolicyTesting()

    privacy: Annotated[Budget, "The budget: what one person may at most reveal."]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.privacy, self.accepts):
            if not isinstance(self.privacy, Budget):
                shown = checks.shown(self.privacy)
                raise BudgetNotAccepted(f"expected a budget such as PureDP(1.0), got {shown}")
            kinds = ", ".join(kind.__name__ for kind in self.accepts)
            raise BudgetNotAccepted(
                f"{type(self).__name__} accepts {kinds}; got {checks.shown(self.privacy)}"
            )
        self.privacy.refuse_unplayable()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Methods about a run are of the recipe that is run: see the head of this file."""
        super().__init_subclass__(**kwargs)
        if "status" not in vars(cls):
            cls.status = "claimed"
        for name in ("begin", "parse_message", "plays_uniform_below", "released"):
            if name in vars(cls):
                setattr(cls, name, _of_the_run(vars(cls)[name]))
        if "guarantee" in vars(cls):
            cls.guarantee = _for_all_rounds(vars(cls)["guarantee"])  # type: ignore[method-assign]

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

    def multiplier(self, problem: Any) -> float:
        """How many times the cost of one round all of one person's cost, as this recipe releases them.

        By group privacy at most k, whatever is released: that holds for a policy that says no better.
        """
        return float(problem.rounds_per_person or 1)

    def keeps_apart(self) -> bool:
        """Whether `multiplier` rests on the rounds of one person being in different batches."""
        return False

    def open_batches(self, public: Any, action: Any) -> OpenBatches | None:
        """The batches that a round would be learned into now; None where they need not differ.

        By public values only: by action where actions are public, one slot for all in the joint model.
        """
        return None

    def suited_to_returning(self) -> Self:
        """This recipe with the options that suit people who return; its multiplier is then smaller."""
        return self

    def for_people(self, problem: Any) -> Self:
        """The recipe that is run: this one, unless several rounds of one person are learned from."""
        if problem.rounds_per_person in (None, 1) or isinstance(self.privacy, NonPrivate):
            return self
        suited = self.suited_to_returning()
        return replace(suited, privacy=reduced(self.privacy, suited.multiplier(problem)))

    def begin_public(self, problem: Any) -> tuple[Any, Any]:
        """A state to observe rows in that are public, for `take_public`."""
        if type(self).take_public is Policy.take_public:
            raise InvalidInput(
                f"{type(self).__name__} cannot start from public rows; NoiseAwareIMED, LazyThompson, "
                "RandomizedLinUCB and FocusedMatroidUCB can, and history= works"
            )
        public, secret = self.begin(problem)
        return public, secret

    def take_public(self, public: Any, secret: Any, seen: Any, sums: Any) -> None:
        """Restate what is known by rows that are public, without noise, as a first batch.

        `seen` and `sums` are a state that has observed them and released nothing. How wide later noise
        is must not depend on what they hold.
        """
        raise NotImplementedError

    def best_known(self, problem: Any, public: Any) -> Any:
        """The arm, public action or basis that leads by all that is released; None where none does."""
        reading = self.released(problem, public)
        if reading is None or reading.what not in ("arm", "item", "action") or not reading.leading:
            return None
        return np.array(reading.leading) if reading.what == "item" else reading.leading[0]

    def spent(self, public: Any) -> Budget | None:
        """The cost of what was released so far, for the person it cost most; None for nothing yet.

        None too where the policy cannot say. Never more than the guarantee, and a function of public
        values only. A reading, not a promise: only the guarantee, fixed beforehand, is one.
        """
        return None

    def says_what_is_spent(self) -> bool:
        """Whether its `spent` is None for nothing yet, and not for want of knowledge."""
        return type(self).spent is not Policy.spent

    def spent_by_person(self, problem: Any, public: Any) -> Budget | None:
        """`spent`, for all rounds of one person together: by group privacy, at most what is promised."""
        one, k = self.spent(public), problem.rounds_per_person
        if one is None or k is None or k == 1:
            return one
        promised = self.guarantee(problem).budget
        try:
            return grouped(one, k).within(promised)
        except NotImplied:
            return promised

    def released(self, problem: Any, public: Any) -> Reading | None:
        """What may be read (`released.py`), of `public` without its scratch; None for nothing."""
        return None

    def twin(self) -> "Policy | None":
        """The same algorithm without privacy: this recipe without noise, unless a simpler one exists."""
        if isinstance(self.privacy, NonPrivate) or NonPrivate not in self.accepts:
            return None
        return replace(self, privacy=NonPrivate())

    def plays_uniform_below(self, problem: Any) -> int:
        """The horizon below which this budget leaves nothing better than uniform play."""
        return 0

    def draws_of_one(self, problem: Any) -> float:
        """How many draws of noise may move with the data of one round, at most.

        Infinitely many unless a policy says better: then its noise cannot be exact.
        """
        return math.inf

    def refuses_exact_noise(self, problem: Any) -> str:
        """Why its noise cannot be exact on this problem; empty where it can (`mechanisms/exact.py`)."""
        guarantee = self.guarantee(problem)
        if not guarantee.is_private:
            return "there is no noise to protect anybody"
        draws = self.for_people(problem).draws_of_one(problem) * (problem.rounds_per_person or 1)
        size = limit_of(guarantee.budget)
        least = least_budget(draws, pure=isinstance(guarantee.budget, PureDP))
        if math.isinf(least):
            return "one round may be in any number of draws"
        if least <= size <= LARGEST_BUDGET:
            return ""
        return f"its grid is for budgets from {least:.2g} to {LARGEST_BUDGET:g} here, not {size:.4g}"

    def _draws_exactly(self, problem: Problem, noise: NoiseKind | None, seed: Seed) -> bool:
        if noise is not None:
            checks.one_of(("exact", "float"), noise=noise)
        self.check(problem)
        if noise == "float" or (noise is None and seed is not None):
            return False
        refused = self.refuses_exact_noise(problem)
        if noise == "exact" and refused:
            raise InvalidInput(f"{type(self).__name__} cannot draw exact noise here: {refused}")
        return not refused

    def check(self, problem: Problem) -> None:
        """Refuse a problem this policy cannot be started on."""
        if not isinstance(problem, self.problem_kind):
            found = checks.shown(problem)
            if hasattr(type(problem), "uniform_regret"):
                found = f"a world; give its problem, {type(problem).__name__}(…).problem(horizon)"
            raise InvalidInput(f"{type(self).__name__} is for {self.problem_kind.__name__}, got {found}")
        if self.needs_horizon and not isinstance(self.privacy, NonPrivate) and problem.horizon is None:
            raise InvalidInput(
                f"{type(self).__name__} needs the horizon to meet {self.privacy}: "
                f"{type(problem).__name__}(..., horizon=100_000)"
            )
        self.for_people(problem)  # which may refuse people who return
        if isinstance(problem, Arms) and problem.capacity is not None:
            public, _ = self.begin(replace(problem, capacity=None))
            if not hasattr(public, "away"):
                raise InvalidInput(
                    f"{type(self).__name__} is for arms that stay, got capacity={problem.capacity}; "
                    "those of NoiseAwareIMED and LazyThompson may come and go"
                )


def _of_the_run(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method written for one round of each person, as one of the recipe that is run on a problem."""

    @functools.wraps(method)
    def of_the_run(self: Policy, problem: Any, *rest: Any) -> Any:
        return method(self.for_people(problem), _once_each(problem), *rest)

    return of_the_run


def _for_all_rounds(guarantee: Callable[..., Guarantee]) -> Callable[..., Guarantee]:
    """A guarantee written for one round of each person, as one for all of hers."""

    @functools.wraps(guarantee)
    def for_all_rounds(self: Policy, problem: Any) -> Guarantee:
        Policy.check(self, problem)  # nothing is promised where it cannot be started
        recipe, k = self.for_people(problem), problem.rounds_per_person
        one = replace(guarantee(recipe, _once_each(problem)), status=self.status)
        if k is None:
            return one
        if k == 1 or not one.is_private:
            return replace(one, rounds_per_person=k)
        times = recipe.multiplier(problem)
        budget, returning = grouped(one.budget, times), Returning.COUNTED
        if recipe.keeps_apart():
            returning = Returning.APART
        elif times >= k:
            returning = Returning.GROUPED
        # Noise as a paper prints it may be too little for what was asked: what it delivers is stated.
        with contextlib.suppress(NotImplied):
            budget = budget.within(self.privacy)
        return replace(one, budget=budget, rounds_per_person=k, returning=returning)

    return for_all_rounds


def _once_each(problem: Any) -> Any:
    """The same problem without people who return."""
    return problem if problem.rounds_per_person is None else replace(problem, rounds_per_person=None)
