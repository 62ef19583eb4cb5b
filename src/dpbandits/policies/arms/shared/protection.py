"""What policies for arms protect: every reward, in all decisions."""

from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit
from dpbandits.problems.arms import Arms


def no_guarantee(problem: Arms, reason: str) -> Guarantee:
    """For policies that are not private, and why."""
    return arms_guarantee(NonPrivate(), problem, reason)


def arms_guarantee(
    budget: Budget,
    problem: Arms,
    reason: str = "",
    *,
    horizon: bool = False,
    trust: Trust = Trust.CENTRAL,
) -> Guarantee:
    """A budget for as many rounds as there are; `horizon`: whether their number was part of it."""
    return Guarantee(
        budget=budget,
        unit=Unit.REWARD,
        trust=trust,
        public=(*problem.public_facts(), *(("the horizon",) if horizon else ())),
        reason=reason,
    )
