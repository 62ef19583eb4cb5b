"""The local model after a crash: people who had a broadcast answer what the server still says."""

import warnings

import pytest

from dpbandits.policies import LocalPolicy, policy_named
from dpbandits.policies.testing import short_form
from dpbandits.service.local_desk import LocalDesk
from dpbandits.service.terms import Terms
from dpbandits.testing import example_environment, example_policies


@pytest.mark.parametrize("name", ["local-ucb", "local-capri", "local-kernel-thompson"])
def test_a_replay_broadcasts_the_same(name: str) -> None:
    kind = policy_named(name)
    policy, problem = (
        short_form(example_policies(kind)[0]),
        example_environment(kind.problem_kind).problem(500),
    )
    assert isinstance(policy, LocalPolicy)
    terms = Terms(name="local", policy=policy, problem=problem, declared={})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a horizon that is short
        desk = LocalDesk.begin(terms)
        before, events = desk.snapshot(), []
        for number in range(60):
            person = policy.person(problem, desk.broadcast())
            person.select(*(() if name == "local-ucb" else (number % 2,)))
            events.append(desk.receive(person.report(1.0)))
        again = LocalDesk.restore(terms, before)
    for event in events:
        again.replay(event)
    assert again.broadcast() == desk.broadcast()
    assert again.snapshot() == desk.snapshot()
