"""What policies for kernels protect: one person's context and reward."""

from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit
from dpbandits.problems.kernel_contexts import KernelContexts


def no_guarantee(problem: KernelContexts, reason: str) -> Guarantee:
    """For policies that are not private, and why."""
    return kernel_guarantee(NonPrivate(), problem, reason)


def kernel_guarantee(
    budget: Budget, problem: KernelContexts, reason: str = "", *, trust: Trust = Trust.JOINT
) -> Guarantee:
    """A budget for one person's context and reward, for any number of rounds."""
    return Guarantee(
        budget=budget,
        unit=Unit.ROUND,
        trust=trust,
        public=problem.public_facts(),
        reason=reason,
    )
