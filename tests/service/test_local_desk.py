"""The desk of the local model: a message counts once, whatever crashes in between."""

import warnings
from typing import Any

import msgspec
import numpy as np
import pytest
from desks import example_terms, local_policies, terms_of

import dpbandits as dpb
from dpbandits.engine import arguments
from dpbandits.errors import ServiceError
from dpbandits.policies import LocalPolicy, Person, Policy
from dpbandits.service.desk import Event
from dpbandits.service.local_desk import LocalDesk
from dpbandits.service.refusals import Refusal

ARMS = terms_of(dpb.local.LocalUCB(privacy=dpb.PureDP(1.0)), dpb.Arms(3))


def message_to(desk: LocalDesk, person: tuple[Any, Any] = (None, 1.0)) -> bytes:
    """That of somebody who decides by the newest broadcast."""
    policy, problem = desk.terms.policy, desk.terms.problem
    assert isinstance(policy, LocalPolicy)
    context, reward = person
    one: Person = policy.person(problem, desk.broadcast())
    one.select(*arguments(context))
    return one.report(float(reward))


def logged(events: list[Event]) -> list[Event]:
    """As they come back from the log."""
    return list(msgspec.msgpack.decode(msgspec.msgpack.encode(events)))


def refused(code: str, desk: LocalDesk, message: bytes) -> None:
    before = desk.snapshot()
    with pytest.raises(Refusal) as refusal:
        desk.receive(message)
    assert refusal.value.code == code and desk.snapshot() == before


def test_a_message_counts_once_over_a_crash() -> None:
    desk = LocalDesk.begin(ARMS)
    early = [message_to(desk) for _ in range(6)]  # all answer the first broadcast
    for message in early[:2]:
        desk.receive(message)
    kept = desk.fold(0.0)
    events = [desk.receive(message) for message in early[2:5]]
    again = LocalDesk.restore(ARMS, kept)
    for event in logged(events):
        again.replay(event)
    assert again.snapshot() == desk.snapshot() and again.decided == again.closed == 5
    for message in early[:5]:  # those before the snapshot and those after it
        refused("closed", again, message)
    again.receive(early[5])  # which was never received
    assert again.decided == 6


def test_what_came_after_the_last_commit_counts_when_it_is_sent_again() -> None:
    desk = LocalDesk.begin(ARMS)
    kept, message = desk.fold(0.0), message_to(desk)
    desk.receive(message)
    again = LocalDesk.restore(ARMS, kept)
    again.receive(message)
    assert again.snapshot() == desk.snapshot()


def test_a_server_that_forgets_its_tickets_is_caught() -> None:
    """The control: begun from a broadcast alone, a message of before would be told by its age only."""
    desk = LocalDesk.begin(ARMS)
    message = message_to(desk)
    desk.receive(message)
    forgetful = LocalDesk.restore(ARMS, desk.snapshot())
    forgetful.server._tickets.clear()
    forgetful.receive(message)
    assert forgetful.decided == 2  # which the first test would have seen


@pytest.mark.parametrize("policy", local_policies(), ids=lambda one: f"{one.name()} {one.privacy}")
def test_every_local_policy_comes_back(policy: Policy) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a horizon that is short for the budget
        terms = example_terms(policy, horizon=60)
        desk, chance = LocalDesk.begin(terms), np.random.default_rng(1)
        people = terms.problem.testing.people_inside(terms.problem, chance)
        kept, events = desk.snapshot(), list[Event]()
        for index in range(40):
            event = desk.receive(message_to(desk, people[index % len(people)]))
            events.append(event)
            if index in (9, 25):
                kept, events = desk.fold(0.0), []
            if index in (15, 39):
                again = LocalDesk.restore(terms, kept)
                for one in logged(events):
                    again.replay(one)
                assert again.snapshot() == desk.snapshot()
                desk = again
    assert desk.decided == 40
    read = desk.released()
    assert read is None or read.rounds == 40


def test_a_guarantee_that_ends_ends_the_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = LocalDesk.begin(ARMS)
    late = [message_to(desk) for _ in range(5)]
    monkeypatch.setattr(desk.server, "_last", 4)
    for message in late[:4]:
        desk.receive(message)
    refused("horizon-reached", desk, late[4])
    with pytest.raises(Refusal) as refusal:
        desk.broadcast()
    assert refusal.value.code == "horizon-reached"


@pytest.mark.parametrize("message", [b"", b"{", b"\xff", b"[]", b"null", b'{"kind": "message"}'])
def test_what_is_no_message_is_refused(message: bytes) -> None:
    refused("invalid", LocalDesk.begin(ARMS), message)


def test_the_message_of_another_experiment_is_refused() -> None:
    other = terms_of(dpb.local.LocalUCB(privacy=dpb.PureDP(2.0)), dpb.Arms(3))
    refused("invalid", LocalDesk.begin(ARMS), message_to(LocalDesk.begin(other)))


def test_an_event_of_another_kind_is_refused() -> None:
    with pytest.raises(ServiceError, match="an event of another version"):
        LocalDesk.begin(ARMS).replay([0, 1.0, b"", b"", None, 1])


def test_folds_are_due_by_the_count_of_messages() -> None:
    desk = LocalDesk.begin(ARMS)
    assert desk.is_idle(0.0) and not desk.is_fold_due()
    desk.receive(message_to(desk))
    assert not desk.is_idle(0.0) and not desk.is_fold_due()
    desk._received_at_fold -= 999
    assert desk.is_fold_due()
    desk.fold(0.0)
    assert desk.is_idle(0.0) and not desk.is_fold_due()
