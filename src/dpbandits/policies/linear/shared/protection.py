"""What linear policies protect, by the kind of problem."""

from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit
from dpbandits.problems.linear import LinearActions, LinearProblem


def no_guarantee(problem: LinearProblem, reason: str) -> Guarantee:
    """For policies that are not private, and why."""
    return linear_guarantee(NonPrivate(), problem, reason)


def linear_guarantee(
    budget: Budget,
    problem: LinearProblem,
    reason: str = "",
    *,
    horizon: bool = False,
    trust: Trust | None = None,
) -> Guarantee:
    """A budget for as many rounds as there are; `horizon`: whether their number was part of it.

    Where people bring contexts of their own, a person's features and reward are hidden from everybody
    else; she herself is shown an action chosen by her features, which no policy could do under ordinary
    differential privacy (`standard_privacy_regret` in limits/linear.py). With a public
    decision set, the rewards are hidden from everybody.
    """
    own = not isinstance(problem, LinearActions)
    return Guarantee(
        budget=budget,
        unit=Unit.ROUND if own else Unit.REWARD,
        trust=trust or (Trust.JOINT if own else Trust.CENTRAL),
        public=(*problem.public_facts(), *(("the horizon",) if horizon else ())),
        reason=reason,
    )
