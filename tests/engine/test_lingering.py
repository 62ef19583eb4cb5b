"""Policies that say which decisions take long: all others only look at what is there."""

import pytest

from dpbandits import Policy
from dpbandits.engine import Streams, steps_of
from dpbandits.engine.state import state_bytes
from dpbandits.engine.streams import run_seed
from dpbandits.policies import policy_kinds
from dpbandits.testing import example_environment, example_policies

_ROUNDS = 400


def _lingers(policy: Policy) -> bool:
    problem = example_environment(policy.problem_kind).problem(_ROUNDS)
    return hasattr(policy.begin(problem)[0], "lingers")


POLICIES = [policy for kind in policy_kinds().values() for policy in example_policies(kind)]
POLICIES = [policy for policy in POLICIES if _lingers(policy)]


def test_the_recommended_policies_say_so() -> None:
    assert {"noise-aware-imed", "focused-matroid-ucb"} <= {policy.name() for policy in POLICIES}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: f"{policy.name()}-{policy.privacy}")
def test_a_decision_that_does_not_linger_changes_nothing_and_draws_nothing(policy: Policy) -> None:
    environment = example_environment(policy.problem_kind)
    (public, secret), world = policy.begin(environment.problem(_ROUNDS)), environment.world()
    streams, steps, changed, short = Streams.of(run_seed(3, 0)), steps_of(public), 0, 0
    for _ in range(_ROUNDS):
        lingers, before = public.lingers(), _all_of(public, secret, streams)
        context = world.offer(streams.chance)
        action = steps.decide(public, secret, context, streams.noise, streams.explore)
        if lingers:
            changed += _all_of(public, secret, streams) != before
        else:
            assert _all_of(public, secret, streams) == before
            short += 1
        reward = world.pay(context, action, streams.chance)
        steps.learn(public, secret, context, action, reward, streams.noise)
    assert short > _ROUNDS // 4  # there are such decisions
    assert changed > 5  # the control: the others do change it


def _all_of(public: object, secret: object, streams: Streams) -> list[object]:
    draws = (str(one.bit_generator.state) for one in (streams.noise, streams.explore))
    return [*state_bytes(public, secret), *draws]
