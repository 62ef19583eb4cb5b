"""What policies for matroids protect: all that one person rated in her round, in all decisions."""

from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit
from dpbandits.problems.matroids import MatroidBases


def no_guarantee(problem: MatroidBases, reason: str) -> Guarantee:
    """For policies that are not private, and why."""
    return matroid_guarantee(NonPrivate(), problem, reason)


def matroid_guarantee(
    budget: Budget, problem: MatroidBases, reason: str = "none was asked for"
) -> Guarantee:
    """A budget for one round's vector of rewards, for any number of rounds."""
    return Guarantee(
        budget=budget,
        unit=Unit.REWARD_VECTOR,
        trust=Trust.CENTRAL,
        public=problem.public_facts(),
        reason=reason,
    )
