"""What audits and the conformance suite must know about a policy; not for users."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpbandits.engine.streams import Seed
from dpbandits.policies.learner import Learner

if TYPE_CHECKING:
    from dpbandits.policies.policy import Policy
    from dpbandits.problems import Problem


class PolicyTesting:
    """The `testing` of a policy: options so short that a replay goes through several batches.

    An option that depends on the recipe is given as a function of it.
    """

    def __init__(self, **short: Any) -> None:
        self._short = short

    def short_form(self, policy: Any) -> "Policy":
        """The same policy with these options."""
        options = {name: one(policy) if callable(one) else one for name, one in self._short.items()}
        changed: Policy = replace(policy, **options) if options else policy
        return changed

    def rehearse(self, policy: Any, problem: Any, *, seed: Seed, **options: Any) -> Learner:
        """A learner that plays all parts: for a local policy the server and every person."""
        return Learner.begin(policy, problem, seed=seed, **options)


def short_form(policy: "Policy") -> "Policy":
    """The same policy with batches and blocks so short that a replay goes through several."""
    return policy.testing.short_form(policy)


def rehearse(policy: "Policy", problem: "Problem", *, seed: Seed = None, **options: Any) -> Learner:
    """A learner that plays all parts: for a local policy the server and every person.

    For all other policies it is what `start` gives, with its options.
    """
    return policy.testing.rehearse(policy, problem, seed=seed, **options)
