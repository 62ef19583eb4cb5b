"""A random basis in every round: what a policy must beat."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dpbandits.engine import Chance, Noise, NoSecret
from dpbandits.policies.matroid.shared.matroid_policy import MatroidPolicy
from dpbandits.policies.matroid.shared.protection import no_guarantee
from dpbandits.policies.trusted import WithoutBudget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.matroids import MatroidBases
from dpbandits.problems.matroids.bases import Items, Rewards
from dpbandits.problems.matroids.greedy import Greedy, shuffle, start_greedy


class Public(NamedTuple):
    """Nothing is learned."""

    greedy: Greedy

    def release(self, secret: NoSecret, noise: Noise) -> None:
        """There is nothing to release."""

    def select(self, context: None, explore: Chance) -> Items:
        """The greedy basis of a fresh random order."""
        shuffle(self.greedy, explore)
        return (self.greedy.basis,)

    def observe(self, secret: NoSecret, context: None, action: Items, reward: Rewards) -> None:
        """Rewards are not read."""


@dataclass(frozen=True, kw_only=True)
class UniformBases(WithoutBudget, MatroidPolicy):
    r"""Play the greedy basis of a random order of the items in every round.

    **Definition.** All orders are equally likely, independently in every round. (Bases need not be: an
    item without a parallel one is chosen more often.)

    **Guarantee.** No reward is ever read, so the decisions show nothing about anyone. It is listed
    as not private because a budget of zero is no budget.

    **Regret.** Linear: the reference that a private policy must beat.

    >>> from dpbandits.problems import UniformMatroid
    >>> print(UniformBases().guarantee(MatroidBases(UniformMatroid(4, 2))))
    No privacy guarantee: it reads no rewards, so there is nothing to protect.
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "dpbandits"

    def begin(self, problem: MatroidBases) -> tuple[Any, Any]:
        """Any order."""
        return Public(start_greedy(problem.matroid.state(), problem.items)), NoSecret()

    def plays_uniform_below(self, problem: MatroidBases) -> int:
        """At every horizon."""
        return 2**62

    def guarantee(self, problem: MatroidBases) -> Guarantee:
        """None is needed."""
        reason = "it reads no rewards, so there is nothing to protect"
        return no_guarantee(problem, reason)
