"""Every policy keeps every promise, and every check catches a policy that breaks its promise."""

from collections.abc import Callable

import pytest
from epoch_greedy import epoch_greedy
from faulty_policies import FAULTS

from dpbandits import GaussianDP, NonPrivate, Policy
from dpbandits.errors import ConformanceError
from dpbandits.policies import policy_kinds
from dpbandits.testing import CHECKS, check_policy, example_environment, example_policies
from dpbandits.worlds import Environment

pytestmark = pytest.mark.slow

Check = Callable[[Policy, Environment], None]
POLICIES = [policy for kind in policy_kinds().values() for policy in example_policies(kind)]


def _name(value: object) -> str:
    if isinstance(value, Policy):
        return f"{value.name()}-{value.privacy}"
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize("check", CHECKS, ids=_name)
@pytest.mark.parametrize("policy", POLICIES, ids=_name)
def test_every_policy_keeps_every_promise(policy: Policy, check: Check) -> None:
    check(policy, example_environment(policy.problem_kind))


@pytest.mark.parametrize("privacy", [GaussianDP(1.0), NonPrivate()], ids=str)
def test_a_policy_from_outside_with_a_pause_conforms(privacy: GaussianDP) -> None:
    check_policy(epoch_greedy(privacy))


@pytest.mark.parametrize(("policy", "check"), FAULTS, ids=_name)
def test_the_check_catches_its_fault(policy: Policy, check: Check) -> None:
    with pytest.raises(ConformanceError, match=type(policy).__name__):
        check(policy, example_environment(policy.problem_kind))


def test_every_check_but_rounds_has_a_control() -> None:
    # `check_rounds` tests the learner itself, which no policy can break.
    assert {check for _, check in FAULTS} == set(CHECKS) - {
        check for check in CHECKS if check.__name__ == "check_rounds"
    }
