"""Rounds in flight: tickets, late answers, clocks, many at once, and what survives a restart."""

import dataclasses
import math
import threading
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbandits as dpb
from dpbandits.audit import replay
from dpbandits.audit.watching import WatchedRounds
from dpbandits.engine import arguments, bare, wrapped
from dpbandits.errors import HorizonReached, InvalidInput, RoundError, SaveFileError, TooLate
from dpbandits.policies import policy_kinds
from dpbandits.policies.rounds import Round
from dpbandits.policies.saving import fingerprint, restore
from dpbandits.policies.testing import rehearse, short_form
from dpbandits.testing import example_environment, example_policies
from dpbandits.testing.driving import state_bytes

pytestmark = pytest.mark.slow

POLICY = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0), first_batch=3, block=4)
FILMS = dpb.MatroidBases(dpb.matroids.UniformMatroid(6, 2))


def learner(in_flight: int = 5, **options: Any) -> dpb.Learner:
    return POLICY.start(dpb.Arms(3), seed=1, in_flight=in_flight, **options)


def test_answers_come_in_any_order_and_go_to_their_own_rounds() -> None:
    it, tickets = learner(), []
    for _ in range(5):
        tickets.append(it.decide())
    assert (it.decided, it.rounds, it.in_flight) == (5, 0, 5)
    for ticket in reversed(tickets):
        it.update(ticket, 1.0)
    assert it.rounds == 0  # none is closed by its answer
    it.decide()
    assert it.rounds == 1


def test_a_round_is_closed_when_so_many_others_were_decided_and_then_it_is_too_late() -> None:
    it = learner()
    first = it.decide()
    for _ in range(4):
        it.decide()
    it.decide()  # the sixth
    with pytest.raises(TooLate, match="round 0 has closed"):
        it.update(first, 1.0)


def test_what_names_no_open_round_is_refused_and_changes_nothing() -> None:
    it, other = learner(), POLICY.start(dpb.Arms(3), seed=2, in_flight=5)
    ticket, foreign = it.decide(), other.decide()
    before = it.snapshot()
    number, _, digest = ticket.round.partition("-")
    for wrong, said in (
        (foreign, "not given out by this learner"),
        (f"{number}-{'0' * len(digest)}", "not given out"),
        (f"1-{digest}", "not given out"),
        ("", "no round is called"),
        ("-1-2", "no round is called"),
        ("9" * 300, "no round is called"),
        (ticket.action, "several rounds may be in flight"),
        (None, "several rounds may be in flight"),
    ):
        with pytest.raises(RoundError, match=said):
            it.update(wrong, 1.0)
    with pytest.raises(RoundError, match="several rounds may be in flight"):
        it.select()
    with pytest.raises(InvalidInput, match="got nan"):
        it.update(ticket, math.nan)
    assert it.snapshot() == before
    it.update(ticket.round, 1.0)
    with pytest.raises(RoundError, match="answered already: the first reward counts"):
        it.update(ticket, 0.0)
    with pytest.raises(RoundError, match="answered already"):
        it.skip(ticket)


def test_a_ticket_from_the_future_is_refused(tmp_path: Path) -> None:
    it = learner()
    kept = restore(it.snapshot())
    ticket = it.decide()
    with pytest.raises(RoundError, match="not decided yet"):
        kept.update(ticket, 1.0)


def test_rewards_that_miss_their_round_count_like_skipped_ones() -> None:
    late, skipped = learner(), learner()
    for index in range(60):
        one, other = late.decide(), skipped.decide()
        assert one.action == other.action
        if index % 3:
            late.update(one, 1.0)
            skipped.update(other, 1.0)
        else:
            skipped.skip(other)
    assert state_bytes(late) == state_bytes(skipped)


@settings(max_examples=25)
@given(st.integers(1, 12), st.lists(st.integers(0, 11), min_size=80, max_size=80), st.booleans())
def test_when_answers_arrive_changes_no_decision(in_flight: int, lags: list[int], clock: bool) -> None:
    """Each reward comes after so many further decisions, if that is in time; or at once."""
    in_flight = max(in_flight, 2) if clock else in_flight
    options: dict[str, Any] = {"patience": 3.5} if clock else {}
    late, prompt = (learner(in_flight, **options) for _ in range(2))
    due: dict[int, list[tuple[dpb.Ticket, float]]] = {}
    for index, lag in enumerate(lags):
        now = {"now": 0.7 * index} if clock else {}
        one, other = late.decide(**now), prompt.decide(**now)
        assert one.action == other.action
        reward = float(index % 2)
        prompt.update(other, reward)
        in_time = min(in_flight, 4 if clock else in_flight) - 1
        due.setdefault(index + min(lag, in_time), []).append((one, reward))
        for ticket, value in due.pop(index, []):
            late.update(ticket, value)
    # What is still to come may be in open rounds alone: everything closed is alike.
    assert state_bytes(late) == state_bytes(prompt)


def test_patience_closes_by_the_clock_of_decisions_alone() -> None:
    it = learner(100, patience=10.0)
    first, second = it.decide(now=0.0), it.decide(now=4.0)
    it.decide(now=9.9)
    assert it.rounds == 0
    it.update(first, 1.0)  # late by the clock of the wall perhaps, but no decision came since
    it.decide(now=13.0)
    assert it.rounds == 1
    it.decide(now=2.0)  # an earlier time counts as the last one
    assert it.rounds == 1
    it.decide(now=14.0)
    assert it.rounds == 2
    with pytest.raises(TooLate):
        it.update(second, 1.0)
    with pytest.raises(InvalidInput, match="needs the time of every decision"):
        it.decide()
    with pytest.raises(InvalidInput, match="expected now to be a time"):
        it.decide(now=math.nan)
    with pytest.raises(InvalidInput, match="started with patience"):
        learner().decide(now=1.0)


def test_the_count_is_a_cap_for_the_clock() -> None:
    it = learner(3, patience=1e9)
    for index in range(7):
        it.decide(now=float(index))
    assert it.rounds == 4


@pytest.mark.parametrize(
    "options", [{"in_flight": 0}, {"in_flight": 2.5}, {"patience": 0.0}, {"patience": 60.0}]
)
def test_options_of_start_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"expected (in_flight|patience)|say how many at most"):
        POLICY.start(dpb.Arms(3), **options)


def test_many_at_once_are_as_many_one_by_one() -> None:
    many, single = learner(40), learner(40)
    rng = np.random.default_rng(3)
    for _ in range(6):
        tickets = many.decide_many(25)
        alone = [single.decide() for _ in range(25)]
        assert list(tickets) == alone and len(tickets) == 25
        rewards = rng.random(25).round()
        assert many.update_many(tickets, rewards).all()
        for ticket, reward in zip(alone, rewards, strict=True):
            single.update(ticket, reward)
    assert many.snapshot() == single.snapshot()


def test_many_updates_tell_which_were_too_late_and_refuse_as_a_whole() -> None:
    it = learner(10)
    with pytest.raises(InvalidInput, match="start with in_flight=11 or more"):
        it.decide_many(11)
    old, new = it.decide_many(10), it.decide_many(4)
    before = it.snapshot()
    for rewards, names, said in (
        ([1.0] * 9, old, "expected 10 rewards"),
        ([1.0, math.nan], new[:2], "of round 11, number 1 here: .* got nan"),
        ([1.0, 1.0], [new.rounds[0]] * 2, "answered twice"),
        ([1.0, 1.0], [new.rounds[0], "7-abc"], "not given out"),
    ):
        with pytest.raises((InvalidInput, RoundError), match=said):
            it.update_many(names, rewards)
    assert it.snapshot() == before
    assert it.update_many(old, np.ones(10)).tolist() == [False] * 4 + [True] * 6
    assert it.update_many(new.rounds, [0.0] * 4).all()


def test_many_with_contexts_and_sets() -> None:
    linear = dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(1.0))
    it = linear.start(dpb.LinearContexts(2), in_flight=6, compiled=False, seed=1)
    features = [[[1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0], [0.6, 0.6]]]  # as many actions as she may have
    tickets = it.decide_many(features)
    assert tickets.actions[0] == 0 and it.update_many(tickets, [1.0, -1.0]).all()
    shelf = dpb.FocusedMatroidUCB(privacy=dpb.PureDP(1.0)).start(FILMS, in_flight=6, seed=1)
    shown = shelf.decide_many(4)
    assert shown.actions.shape == (4, 2)
    assert shelf.update_many(shown, np.ones((4, 2))).all()
    with pytest.raises(InvalidInput, match="at least one action"):
        it.decide_many([np.zeros((0, 2))])


def test_the_horizon_counts_decisions() -> None:
    it = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)).start(
        dpb.Arms(3, horizon=20), in_flight=16
    )
    it.decide_many(15)
    with pytest.raises(HorizonReached):
        it.decide_many(6)
    it.decide_many(5)
    with pytest.raises(HorizonReached):
        it.decide()


def test_all_rounds_can_be_closed_at_the_end_of_a_test() -> None:
    it = learner(100)
    tickets = it.decide_many(60)
    it.update_many(tickets.rounds[:50], [1.0] * 50)
    it.close()
    assert (it.rounds, it.decided) == (60, 60)
    assert it._public.batches.released.sum() > 0  # and what was due is released
    with pytest.raises(TooLate):
        it.update(tickets[55], 1.0)
    other = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)).start(
        dpb.Arms(3, horizon=10), in_flight=8
    )
    other.decide_many(8)
    other.close()  # it draws, so it counts as a decision
    other.decide()
    with pytest.raises(HorizonReached):
        other.decide()
    with pytest.raises(HorizonReached):
        other.close()


def test_threads_keep_their_own_rounds() -> None:
    it, wrong = learner(2000), []

    def work(kind: float) -> None:
        for _ in range(200):
            ticket = it.decide()
            try:
                it.update(ticket, kind)
            except TooLate:
                wrong.append(ticket)

    threads = [threading.Thread(target=work, args=(float(kind % 2),)) for kind in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # More may be open than are ever decided: none can be late.
    assert it.decided == 1600 and not wrong


def _states() -> list[dpb.Learner]:
    kernel = dpb.KernelContexts.testing.example(None)
    return [
        learner(9),
        dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(1.0)).start(
            dpb.LinearContexts(2), in_flight=9, compiled=False
        ),
        dpb.FocusedMatroidUCB(privacy=dpb.PureDP(1.0)).start(FILMS, in_flight=9),
        dpb.KernelThompson(privacy=dpb.GaussianDP(1.0)).start(kernel, in_flight=9),
        learner(9, patience=1e9),
    ]


def _context(it: dpb.Learner) -> tuple[Any, ...]:
    if isinstance(it.problem, dpb.LinearContexts):
        return ([[1.0, 0.0], [0.3, 0.3]],)
    return (1,) if isinstance(it.problem, dpb.KernelContexts) else ()


@pytest.mark.parametrize("which", range(5))
def test_a_snapshot_goes_on_bit_for_bit_with_its_rounds_and_generators(which: int) -> None:
    it = _states()[which]
    clock = {"now": 1.0} if which == 4 else {}
    tickets = [it.decide(*_context(it), **clock) for _ in range(12)]
    answer = 1.0 if which != 2 else [1.0, 0.0]
    it.update(tickets[5], answer)
    it.skip(tickets[7])
    other = restore(it.snapshot())
    for one in (it, other):
        one.update(tickets[9], answer)
    for _ in range(30):
        pair = [one.decide(*_context(it), **clock) for one in (it, other)]
        assert np.array_equal(pair[0].action, pair[1].action) and pair[0].round == pair[1].round
    assert it.snapshot() == other.snapshot()
    it.renew()
    other.renew()
    assert it.snapshot() != other.snapshot()


def test_save_and_load_keep_rounds_in_flight(tmp_path: Path) -> None:
    it = learner(9)
    tickets = [it.decide() for _ in range(12)]
    it.update(tickets[5], 1.0)
    it = dpb.load(it.save(tmp_path / "x.dpb"))
    assert (it.decided, it.rounds, it.in_flight) == (12, 3, 9)
    with pytest.raises(RoundError, match="answered already"):
        it.update(tickets[5], 1.0)
    with pytest.raises(TooLate):
        it.update(tickets[2], 1.0)
    it.update(tickets[11], 1.0)


def test_a_damaged_snapshot_is_refused() -> None:
    data = learner(9).snapshot()
    with pytest.raises(SaveFileError, match="the snapshot is damaged"):
        restore(data[:-40])


def test_the_fingerprint_names_versions_and_blas() -> None:
    found = fingerprint()
    assert found["dpbandits"] == dpb.__version__ and found["numpy"] == np.__version__
    assert found["randomgen"] == metadata.version("randomgen")  # whose cipher draws the noise
    assert found == fingerprint() and "openblas" in found["blas"].lower()


PEOPLE = dpb.Arms(3, rounds_per_person=2)


@pytest.mark.parametrize("declared", [None, 1])
def test_nothing_is_drawn_twice_for_somebody_from_whom_enough_was_learned(declared: int | None) -> None:
    policy = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0), prepulls=2)
    problem = dpb.Arms(2, horizon=60, rounds_per_person=declared)
    it = policy.start(problem, seed=1)
    for index in range(60):
        it.update(it.select(person=min(index, 10)), 1.0)
    assert it.spent is not None and it.spent.implies(dpb.GaussianDP).mu <= 1.0 + 1e-9
    if declared:
        assert replay(policy, problem, rounds=60, thorough=False).private


def test_a_save_cut_short_ends_the_learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it, move = learner(), Path.replace

    def interrupt(self: Path, target: Path) -> Path:
        move(self, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        it.save(tmp_path / "x.dpb")
    with pytest.raises(RoundError, match=r"save\(\) .* cut short"):
        it.decide()


@pytest.mark.parametrize("kind", policy_kinds().values(), ids=lambda kind: kind.__name__)
def test_a_record_does_not_tell_whether_the_last_person_has_answered(kind: type[dpb.Policy]) -> None:
    policy = short_form(example_policies(kind)[0])
    world = example_environment(kind.problem_kind)
    state, chance = world.world(), np.random.default_rng(1)
    it = rehearse(policy, world.problem(100), seed=1)
    for _ in range(30):
        context = state.offer(chance)
        ticket = it.decide(*arguments(context))
        before = it.released()
        it.update(ticket, bare(state.pay(context, wrapped(ticket.action), chance)))
        after = it.released()
        assert (before is None) == (after is None)
        local = isinstance(policy, dpb.local.LocalPolicy)  # whose server is told by a message
        if before is not None and after is not None and it.guarantee.is_private and not local:
            assert before.to_dict() == after.to_dict()


def test_so_many_rounds_of_a_person_are_learned_from_and_the_rest_are_decided_for() -> None:
    it = POLICY.start(PEOPLE, seed=1)
    for index in range(300):
        arm = it.select(person=index % 5)
        it.update(arm, float(arm == 2))
    assert it.rounds == 300 and it._rounds.observed <= 10
    with pytest.raises(InvalidInput, match="say for whom"):
        it.select()
    with pytest.raises(InvalidInput, match="expected person to be"):
        it.select(person=2.5)


def test_without_a_declaration_a_named_person_is_learned_from_once() -> None:
    it = POLICY.start(dpb.Arms(3), seed=1)
    for index in range(40):
        it.update(it.select(person=None if index % 2 else "ada"), 1.0)
    assert it._rounds.observed == 21  # nobody named is taken for a new person each time
    assert it.guarantee.rounds_per_person is None


def test_when_nobody_is_left_to_learn_from_the_best_known_arm_is_played() -> None:
    """300 people teach that arm 2 pays; afterwards it is played every time, and no other is tried."""
    it = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0)).start(dpb.Arms(3, rounds_per_person=1), seed=1)
    for person in range(300):
        arm = it.select(person=person)
        it.update(arm, float(arm == 2))
    before = state_bytes(it)
    again = []
    for person in range(300):
        again.append(it.select(person=person))
        it.update(again[-1], 1.0)
    assert set(again) == {2} and it.released().leading == (2,)  # type: ignore[union-attr]
    assert state_bytes(it) == before


@pytest.mark.parametrize("in_flight", [1, 6])
def test_people_are_kept_in_saves_and_snapshots(tmp_path: Path, in_flight: int) -> None:
    it = POLICY.start(PEOPLE, seed=1, in_flight=in_flight)
    for index in range(40):
        it.decide(person=index % 7)
    other = restore(it.snapshot())
    for index in range(60):
        pair = [one.decide(person=index % 9) for one in (it, other)]
        assert pair[0] == pair[1]
    assert it.snapshot() == other.snapshot()
    loaded = dpb.load(it.save(tmp_path / "x.dpb"))
    assert loaded._rounds.people is not None and not loaded._rounds.people.counts(
        loaded._rounds.people.token(3)
    )


@pytest.mark.parametrize("kind", [dpb.arms.BetaThompson, dpb.matroids.MatroidThompson])
def test_the_best_known_action_is_kept_so_that_it_is_not_released_again(kind: Any) -> None:
    """These draw whenever they release: one release more after a restart would move the generator."""
    policy = kind()
    problem = dataclasses.replace(policy.problem_kind.testing.example(100), rounds_per_person=1)
    for seed in range(5):
        it = policy.start(problem, seed=seed, in_flight=3)
        for index in range(20 + seed):
            it.decide(person=index % 7)
        assert it._rounds.leader[0] is not None
        other = restore(it.snapshot())
        for index in range(20):
            pair = [one.decide(person=index % 9) for one in (it, other)]
            assert np.array_equal(pair[0].action, pair[1].action)
            assert it.snapshot() == other.snapshot()


class TwoInABatch(WatchedRounds):
    """Counts her rounds, but does not look where they go."""

    def _may_learn(self, person: bytes, action: Any) -> bool:
        assert self.people is not None
        return self.people.take(person, None)


@pytest.mark.parametrize("rounds_per_person", [2, 4])
@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (short_form(POLICY), dpb.Arms(3)),
        (
            short_form(dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(1.0))),
            dpb.LinearContexts.testing.example(None),
        ),
    ],
    ids=["arms", "linear"],
)
def test_all_rounds_of_a_person_cost_the_budget_and_two_in_a_batch_more(
    policy: dpb.Policy, problem: dpb.Problem, rounds_per_person: int
) -> None:
    declared = dataclasses.replace(problem, rounds_per_person=rounds_per_person)
    found = replay(policy, declared, rounds=24)
    assert found.private and found.cost >= 0.95 * found.limit, found
    assert not replay(policy, declared, rounds=24, machine=TwoInABatch).private
    spread = replay(policy, declared, rounds=50, in_flight=5, thorough=False)
    assert spread.private


class ClosesOnArrival(WatchedRounds):
    """What looks natural: a round is closed as soon as its reward is there."""

    def answer(self, opened: Round, reward: Any, noise: Any) -> Any:
        super().answer(opened, reward, noise)
        if not np.isnan(reward):
            self.open.remove(opened)
            self.open.appendleft(opened)
            self._close(noise)


def test_closing_on_arrival_is_caught() -> None:
    options: dict[str, Any] = {"rounds": 40, "in_flight": 7, "thorough": False}
    honest = replay(POLICY, dpb.Arms(3), **options)
    assert honest.private and honest.tight
    assert not replay(POLICY, dpb.Arms(3), machine=ClosesOnArrival, **options).private
