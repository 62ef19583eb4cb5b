"""Uniform play: what any learning must beat."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise, NoSecret
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.policies.linear.shared.choosing import any_action, offered
from dpbandits.policies.linear.shared.protection import no_guarantee
from dpbandits.policies.trusted import WithoutBudget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.linear import LinearProblem


class Public(NamedTuple):
    """The decision set, where it is fixed, and how many arms there are, where there are arms."""

    actions: NDArray[np.float64]
    blocks: int

    def limits(self) -> Limits:
        """They are declared."""
        return {"actions": FROM_RECIPE}

    def release(self, secret: NoSecret, noise: Noise) -> None:
        """There is nothing to release."""

    def select(self, context: Any, explore: Chance) -> int:
        """Any action."""
        return any_action(offered(context, self.actions)[0], self.blocks, explore)

    def observe(self, secret: NoSecret, context: Any, action: int, reward: float) -> None:
        """Learns nothing."""


@dataclass(frozen=True, kw_only=True)
class UniformActions(WithoutBudget):
    r"""Play one of the actions offered, drawn uniformly at random, in every round.

    **Definition.** P[action k of K] = 1/K, independently.

    **Guarantee.** Nobody's features or rewards are ever read, so the decisions show nothing about
    anyone. It is listed as not private because a budget of zero is no budget.

    **Regret.** T times the average gap, linear: the reference that a private policy must beat.

    >>> import dpbandits as dpb
    >>> print(UniformActions().guarantee(dpb.LinearContexts(2)))
    No privacy guarantee: it reads no rewards, so there is nothing to protect.
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = LinearProblem
    paper: ClassVar[str] = "dpbandits"

    def plays_uniform_below(self, problem: LinearProblem) -> int:
        """At every horizon."""
        return 2**62

    def begin(self, problem: LinearProblem) -> tuple[Any, Any]:
        """Nothing to remember."""
        return Public(problem.actions, problem.blocks), NoSecret()

    def guarantee(self, problem: LinearProblem) -> Guarantee:
        """None is needed."""
        return no_guarantee(problem, "it reads no rewards, so there is nothing to protect")
