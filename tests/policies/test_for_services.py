"""What learners and servers offer a service: rounds by hand, closing by the clock, states as bytes."""

import json
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.errors import DPBanditsError, HorizonReached, InvalidInput
from dpbandits.policies.saving import restore
from dpbandits.policies.testing import short_form
from dpbandits.testing.driving import state_bytes

POLICY = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0), first_batch=3, block=4)
LOCAL = dpb.local.LocalUCB(privacy=dpb.PureDP(1.0))


def learner(problem: dpb.Problem | None = None, **options: Any) -> dpb.Learner:
    given = {"seed": 1, "in_flight": 4, **options}
    return POLICY.start(problem or dpb.Arms(3), **given)


def test_rounds_by_hand_are_those_of_decide_and_update() -> None:
    one, other = learner(patience=5.0), learner(patience=5.0)
    for index in range(40):
        now = 0.7 * index
        ticket = one.decide(now=now)
        opened = other.open_round(None, now, None)
        assert ticket.action == opened.action and opened.number == index
        if index % 3:
            one.update(ticket, 0.5)
            other.answer_round(opened, 0.5)
        assert one.snapshot() == other.snapshot()


def test_expire_closes_what_the_clock_has_closed_and_releases_nothing() -> None:
    it = learner(patience=5.0)
    for now in (0.0, 1.0, 4.0):
        it.decide(now=now)
    before = [str(one.bit_generator.state) for one in it._streams]
    for now, closed in ((4.9, 0), (5.0, 1), (5.0, 1), (3.0, 1), (6.5, 2), (100.0, 3), (200.0, 3)):
        it.expire(now)
        assert it.rounds == closed and it.decided == 3
    assert [str(one.bit_generator.state) for one in it._streams] == before


def test_expire_then_decide_is_what_decide_does_alone() -> None:
    """A round is closed by the same clock, whether a fold comes in between or not."""
    one, other = learner(patience=5.0), learner(patience=5.0)
    for index in range(60):
        now = 2.0 * index
        first, second = one.decide(now=now), other.decide(now=now)
        assert first.action == second.action
        one.update(first, 1.0)
        other.update(second, 1.0)
        other.expire(now + 1.0)
    one.expire(500.0)
    other.expire(500.0)
    assert state_bytes(one) == state_bytes(other)


def test_expire_keeps_the_window_full() -> None:
    it = learner(in_flight=2, patience=50.0)
    it.decide(now=0.0)
    it.decide(now=1.0)
    it.expire(2.0)  # no decision is coming, so no room need be made
    assert it.rounds == 0


def test_expire_needs_a_clock_and_a_time() -> None:
    with pytest.raises(InvalidInput, match="started with patience"):
        learner().expire(1.0)
    for wrong in (float("nan"), float("inf"), "soon", None):
        with pytest.raises(InvalidInput):
            learner(patience=5.0).expire(wrong)  # type: ignore[arg-type]


def test_expire_counts_no_closing_against_a_horizon() -> None:
    policy = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0), prepulls=1)
    it = policy.start(dpb.Arms(2, horizon=3), seed=1, in_flight=2, patience=5.0)
    for index in range(3):
        it.open_round(None, 10.0 * index, None)
        it.expire(10.0 * index + 6.0)
    before = it.snapshot()
    with pytest.raises(HorizonReached):
        it.open_round(None, 50.0, None)
    assert it.snapshot() == before and it.rounds == 3


def test_who_has_rounds_left_is_told_by_what_is_closed() -> None:
    it = learner(dpb.Arms(3, rounds_per_person=1), in_flight=2)
    ada, bob = b"a" * 16, b"b" * 16
    assert it.has_rounds_left(ada)
    it.open_round(None, 0.0, ada)
    assert it.has_rounds_left(ada)  # her round is open
    it.open_round(None, 0.0, bob)
    it.open_round(None, 0.0, bob)
    assert not it.has_rounds_left(ada) and it.has_rounds_left(bob)
    assert not restore(it.snapshot()).has_rounds_left(ada)
    assert learner().has_rounds_left(ada)  # where nobody is told apart


@pytest.mark.parametrize("expected", [1, 1000, 100_000])
def test_the_register_of_people_is_made_for_those_who_are_expected(expected: int) -> None:
    it = learner(dpb.Arms(3, rounds_per_person=1), expected_people=expected)
    people = it._rounds.people
    assert people is not None and people.expected == expected
    assert people.nbytes <= 2 * expected + 100
    again = restore(it.snapshot())._rounds.people
    assert again is not None and again.expected == expected


@pytest.mark.parametrize("expected", [0, -5, 2.5, 10**10, "many"])
def test_a_number_of_people_that_cannot_be_is_refused(expected: Any) -> None:
    with pytest.raises(InvalidInput, match="expected expected"):
        learner(dpb.Arms(3, rounds_per_person=1), expected_people=expected)


def test_with_more_people_than_expected_some_are_refused_and_none_counts_too_often() -> None:
    it = learner(dpb.Arms(3, rounds_per_person=1), in_flight=1, expected_people=5)
    for person in range(200):
        it.update(it.select(person=person), 1.0)
    observed = it._rounds.observed
    assert 5 <= observed < 200
    for person in range(200):  # and again
        it.update(it.select(person=person), 1.0)
    assert it._rounds.observed <= 200


def sent(server: dpb.local.Server) -> bytes:
    person = LOCAL.person(dpb.Arms(3), server.broadcast())
    person.select()
    return person.report(1.0)


def test_a_server_comes_back_with_what_it_received() -> None:
    server = LOCAL.start(dpb.Arms(3))
    received, late = [sent(server) for _ in range(5)], sent(server)
    for message in received:
        server.receive(message)
    again = LOCAL.restore(dpb.Arms(3), server.snapshot())
    assert again.snapshot() == server.snapshot() and again.broadcast() == server.broadcast()
    for message in received:
        with pytest.raises(DPBanditsError, match="received already"):
            again.receive(message)
    again.receive(late)
    server.receive(late)
    assert again.snapshot() == server.snapshot() and again.rounds == 6


def test_a_seeded_server_comes_back_too() -> None:
    server = LOCAL.start(dpb.Arms(3), seed=7)
    assert LOCAL.restore(dpb.Arms(3), server.snapshot()).snapshot() == server.snapshot()


def test_what_is_too_old_stays_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpb.local.Server, "window", 3)
    server = LOCAL.start(dpb.Arms(3))
    first = sent(server)
    for _ in range(4):
        server.receive(sent(server))
    again = LOCAL.restore(dpb.Arms(3), server.snapshot())
    assert len(again._order) == len(again._tickets) == 3
    with pytest.raises(DPBanditsError, match="too old to tell"):
        again.receive(first)


@pytest.mark.parametrize(
    "change",
    [
        {"tickets": ["x"]},
        {"tickets": 5},
        {"oldest": "x"},
        {"streams": []},
        {"streams": [{}, {}, {}]},
        {"streams": None},
        {"rounds": -1},
        {"public": {}},
        {"kind": "broadcast"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_snapshot_that_cannot_be_right_is_refused(change: dict[str, Any]) -> None:
    record = json.loads(LOCAL.start(dpb.Arms(3)).snapshot())
    with pytest.raises(DPBanditsError):
        LOCAL.restore(dpb.Arms(3), json.dumps(record | change).encode())


def test_the_snapshot_of_another_problem_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the snapshot is for the problem"):
        LOCAL.restore(dpb.Arms(4), LOCAL.start(dpb.Arms(3)).snapshot())


def test_what_a_thompson_sampler_of_the_local_model_draws_is_drawn_again() -> None:
    """Messages are read by what people were told to play: after a restart it must be the same."""
    problem = dpb.KernelContexts.testing.example(2_000_000)
    policy: Any = short_form(dpb.kernels.LocalKernelThompson(privacy=dpb.GaussianDP(1.0)))
    server = policy.start(problem)
    again, chance = policy.restore(problem, server.snapshot()), np.random.default_rng(1)
    people = problem.testing.people_inside(problem, chance)
    for index in range(30):
        context, reward = people[index % len(people)]
        person = policy.person(problem, server.broadcast())
        person.select(context)
        message = person.report(float(reward))
        server.receive(message)
        again.receive(message)
    assert again.snapshot() == server.snapshot()
