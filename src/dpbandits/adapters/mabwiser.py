"""A facade with MABWiser's verbs: fit, partial_fit, predict, predict_expectations."""

import itertools
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpbandits import checks
from dpbandits.errors import InvalidInput, RoundError
from dpbandits.extras import extra
from dpbandits.policies import Learner, Released, TrustedPolicy
from dpbandits.privacy import Guarantee
from dpbandits.problems import Arms, History, LinearContexts, Problem


class MAB:
    """A policy with MABWiser's verbs, on arms with names; `features` is how many a context has, if any.

    `fit` starts from a log, as the first rounds of the same guarantee (`start(…, history=…)`). `predict`
    decides, and opens a round for each decision. `partial_fit` answers all open rounds, in their order,
    and closes them as one batch. `predict_expectations` reads what is released, and opens nothing.

    What differs from MABWiser, so that the guarantee holds:

    - `fit` is for once and comes first: to fit the same people again would spend the budget again.
    - `partial_fit` takes a row for each decision of `predict` since the last one, with the arm that was
      predicted; nan is for a reward that did not come. Rows that another system chose belong into `fit`.
    - At most `in_flight` predictions may wait for their rewards; a further one is refused.
    - When `partial_fit` is called must not depend on the rewards. It releases like a decision, and
      counts as one where the guarantee ends at a horizon.
    - Rewards are clipped to [0, 1] (for contexts to ±1) and contexts shortened to a norm of 1, unless a
      `problem` is given that declares otherwise.
    - The seed is for tests. There are no neighbourhood policies, and arms do not come and go.

    >>> import dpbandits as dpb
    >>> mab = MAB(["red", "blue"], dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)))
    >>> mab.fit(["red", "blue", "red"], [1, 0, 1])
    >>> arm = mab.predict()
    >>> mab.partial_fit([arm], [1.0])
    """

    def __init__(
        self,
        arms: Sequence[Any],
        policy: TrustedPolicy,
        *,
        features: int | None = None,
        problem: Problem | None = None,
        in_flight: int = 10_000,
        seed: int | None = None,
    ) -> None:
        self.arms = checks.sequence("arms", arms)
        if not _differ(self.arms):
            raise InvalidInput("expected arms with different names")
        if not isinstance(policy, TrustedPolicy):
            raise InvalidInput(
                f"expected a policy such as NoiseAwareIMED(privacy=…), got {checks.shown(policy)}"
            )
        checks.integer(least=1, limit=checks.MOST_IN_FLIGHT - 1, in_flight=in_flight)
        self.policy, self.seed, self.in_flight = policy, seed, int(in_flight)
        if features is None and problem is None and not issubclass(Arms, policy.problem_kind):
            raise InvalidInput(
                f"{type(policy).__name__} decides by contexts: say how many numbers one has, features=3"
            )
        self.problem = problem or _usual_problem(len(self.arms), features)
        if getattr(self.problem, "arms", None) != len(self.arms):
            raise InvalidInput(f"expected a problem of {len(self.arms)} arms, got {self.problem!r}")
        self.is_contextual = isinstance(self.problem, LinearContexts)
        self._learner: Learner | None = None
        self._open: deque[tuple[Any, str]] = deque()  # the arm, and the name of its round

    @property
    def learner(self) -> Learner:
        """What decides; without a `fit` it starts from nothing."""
        if self._learner is None:
            self._start(None)
        assert self._learner is not None
        return self._learner

    @property
    def guarantee(self) -> Guarantee:
        """What is promised; after `fit` it names the log that it began with."""
        # Asked before `fit`, it must not begin without it.
        return self.policy.guarantee(self.problem) if self._learner is None else self.learner.guarantee

    def fit(self, decisions: Any, rewards: Any, contexts: Any = None) -> None:
        """Start from a log: each row is one person's round, and nan a reward that did not come."""
        if self._learner is not None:
            raise RoundError(
                "fit() comes first and once: fitting the same people again would spend the budget again"
            )
        if (contexts is not None) != self.is_contextual:
            wants = "a context for each row" if self.is_contextual else "no contexts"
            raise InvalidInput(f"expected {wants}; features=… says how many numbers a context has")
        action = [self._number(arm) for arm in checks.sequence("decisions", decisions)]
        self._start(History(action=action, reward=rewards, features=contexts))

    def predict(self, contexts: Any = None) -> Any:
        """Decide for one person, or for each of several: a list, where there are more than one.

        Each opens a round, to be answered by `partial_fit`.
        """
        if self.is_contextual and contexts is None:
            raise InvalidInput("expected a context for each person to decide for")
        rows: list[Any] = [None] if contexts is None else checks.sequence("contexts", contexts)
        if rows and self.is_contextual and np.ndim(rows[0]) == 0:
            rows = [contexts]  # one person's vector
        if len(self._open) + len(rows) > self.in_flight:
            raise RoundError(
                f"{len(self._open):,} predictions wait for their rewards, and {self.in_flight:,} may: "
                "call partial_fit() first, or give a larger in_flight"
            )
        if not rows:
            raise InvalidInput("expected at least one context to decide for, got none")
        tickets = self.learner.decide_many(rows if self.is_contextual else len(rows))
        chosen = [self.arms[int(action)] for action in tickets.actions]
        self._open.extend(zip(chosen, tickets.rounds, strict=True))
        return chosen[0] if len(chosen) == 1 else chosen

    def partial_fit(self, decisions: Any, rewards: Any, contexts: Any = None) -> None:
        """Answer all open rounds, in the order of their predictions, and close them as one batch."""
        if contexts is not None:
            raise InvalidInput("partial_fit() knows the contexts from predict(): leave them out")
        arms, given = checks.sequence("decisions", decisions), checks.sequence("rewards", rewards)
        if arms and not self._open:
            raise RoundError(
                "nothing was predicted since the last partial_fit(): rows that another system chose "
                "belong into fit()"
            )
        if len(arms) != len(self._open) or len(given) != len(arms):
            raise RoundError(
                f"expected decision and reward of each of the {len(self._open):,} predictions since the "
                f"last partial_fit(), got {len(arms):,} and {len(given):,}; nan is for none"
            )
        for row, (arm, (chosen, _)) in enumerate(zip(arms, self._open, strict=True)):
            if self._number(arm) != self._number(chosen):
                raise RoundError(
                    f"row {row} of decisions is not what predict() chose: rows that were chosen "
                    "otherwise belong into fit()"
                )
        if not arms:
            return
        values = [math.nan if one is None else one for one in given]
        came = [not (isinstance(one, float | np.floating) and math.isnan(one)) for one in values]
        tickets = [ticket for _, ticket in self._open]
        self.learner.update_many(
            [ticket for ticket, there in zip(tickets, came, strict=True) if there],
            [value for value, there in zip(values, came, strict=True) if there],
        )
        self._open.clear()
        self.learner.close()

    def predict_expectations(self, contexts: Any = None) -> Any:
        """For each arm its released mean, nan while there is none; with contexts, for each of them."""
        released = self.learner.released()
        if released is None:
            raise InvalidInput(f"{type(self.policy).__name__} releases no expectations")
        if not self.is_contextual:
            one = dict(zip(self.arms, released.mean.tolist(), strict=True))
            return one if contexts is None else [dict(one) for _ in contexts]
        rows = np.atleast_2d(checks.array("contexts as rows of numbers", contexts))
        means = _by_context(released, rows, len(self.arms))
        found = [dict(zip(self.arms, row, strict=True)) for row in means.tolist()]
        return found[0] if len(found) == 1 else found

    def _number(self, arm: Any) -> int:
        for number, one in enumerate(self.arms):
            if one == arm:
                return number
        raise InvalidInput(f"there is no arm {checks.shown(arm)}")

    def _start(self, history: History | None) -> None:
        # One more than may wait: then none is closed before `partial_fit` closes them all.
        places = self.in_flight + 1
        self._learner = self.policy.start(
            self.problem, in_flight=places, seed=self.seed, history=history
        )


def _differ(arms: list[Any]) -> bool:
    """Whether no two are equal, as 1 and True are."""
    try:
        return len(set(arms)) == len(arms)
    except TypeError:  # of what cannot be in a set
        return not any(one == other for one, other in itertools.combinations(arms, 2))


def _usual_problem(arms: int, features: int | None) -> Problem:
    return Arms(arms) if features is None else LinearContexts(features, arms)


def _by_context(released: Released, rows: Any, arms: int) -> Any:
    """The expected rewards of all arms for each context: each arm has a block of parameters."""
    if rows.shape[1] * arms != released.mean.size:
        raise InvalidInput(
            f"expected contexts of {released.mean.size // arms} numbers, got {rows.shape}"
        )
    return rows @ released.mean.reshape(arms, -1).T


def for_simulator(mab: MAB) -> Any:
    """The same as a `mabwiser.mab.MAB`, for `mabwiser.simulator.Simulator`.

    Its offline mode (`batch_size=0`) fits on a part of a log and predicts for the rest. Its online mode
    hands back the log's decisions in place of those that were predicted: that is refused.
    """
    with extra("mabwiser"):
        from mabwiser.mab import MAB as Theirs  # noqa: N811 - two of one name

    class Simulated(Theirs):  # type: ignore[misc]
        def __init__(self) -> None:
            self.arms, self.n_jobs, self.seed = mab.arms, 1, mab.seed
            self.fit, self.partial_fit = mab.fit, mab.partial_fit
            self.predict, self.predict_expectations = mab.predict, mab.predict_expectations

        is_contextual = mab.is_contextual

        @property
        def _imp(self) -> Any:
            return self

        @property
        def arm_to_expectation(self) -> dict[Any, float]:
            found: dict[Any, float] = mab.predict_expectations()
            return found

        def __repr__(self) -> str:
            return repr(mab)

    return Simulated()
