"""The desk against a plain model of it, by a machine that tries everything in any order."""

import copy
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from desks import (
    Kept,
    example_terms,
    sent_context,
    sent_reward,
    takes_people,
    terms_of,
    trusted_policies,
)
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import dpbandits as dpb
from dpbandits.engine import Streams
from dpbandits.errors import InvalidInput, ServiceError
from dpbandits.policies import Policy
from dpbandits.service.desk import Desk, Opened
from dpbandits.service.refusals import Refusal
from dpbandits.service.terms import Terms

IMED = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0), first_batch=2, block=2)
TREE = dpb.arms.TreeUCB(privacy=dpb.GaussianDP(1.0))
FILMS = dpb.MatroidBases(dpb.matroids.UniformMatroid(5, 2), horizon=1000)
PLAYED = {
    "arms that come and go": terms_of(IMED, dpb.Arms(3, capacity=5)),
    "people who come once": terms_of(IMED, dpb.Arms(3, capacity=4, rounds_per_person=1)),
    "people who return": terms_of(TREE, dpb.Arms(2, rounds_per_person=2, horizon=1000), in_flight=3),
    "no clock": terms_of(TREE, dpb.Arms(2, horizon=1000), in_flight=2, patience=None),
    "a horizon": terms_of(
        dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0), prepulls=1), dpb.Arms(2, horizon=9)
    ),
    "sets": terms_of(dpb.matroids.PrivateMatroidUCB(privacy=dpb.PureDP(1.0)), FILMS),
}


def name_of(policy: Policy) -> str:
    return f"{policy.name()} {policy.privacy}"


@dataclass
class Round:
    """What the model knows of one."""

    key: bytes
    token: bytes
    began: float
    answer: Opened
    reward: Any = "none yet"


@dataclass
class Model:
    """The desk, as one would explain it."""

    terms: Terms
    rounds: list[Round] = field(default_factory=list)  # all of them
    closed: int = 0
    now: float = 0.0
    labels: list[str] = field(default_factory=list)
    away: set[int] = field(default_factory=set)

    @property
    def open(self) -> list[Round]:
        return self.rounds[self.closed :]

    @property
    def has_reached_its_end(self) -> bool:
        horizon = self.terms.guarantee.horizon
        return horizon is not None and len(self.rounds) >= horizon

    def pass_time(self, now: float) -> None:
        self.now = max(self.now, now)
        patience = self.terms.patience
        while self.open and patience is not None and self.now - self.open[0].began >= patience:
            self.closed += 1

    def make_room(self, now: float) -> None:
        self.pass_time(now)
        if len(self.open) >= self.terms.in_flight:
            self.closed += 1

    def visits_closed(self, token: bytes) -> int:
        return sum(one.token == token for one in self.rounds[: self.closed])


def copied(model: Model) -> Model:
    return copy.deepcopy(model, {id(model.terms): model.terms})


class DeskMachine(RuleBasedStateMachine):
    """Decisions, rewards, folds, crashes and acts of the operator, in any order."""

    desk_kind: type[Desk] = Desk
    played = sorted(PLAYED)
    model: Model

    @initialize(data=st.data())
    def begin(self, data: Any) -> None:
        terms = PLAYED[data.draw(st.sampled_from(self.played), label="on")]
        self.kept = Kept(terms, self.desk_kind)
        self.model = Model(terms, labels=list(terms.labels))
        self.keys = 0
        self._note_commit()

    def _note_commit(self) -> None:
        self.kept.commit()
        self.committed = self.desk.snapshot(), copied(self.model)

    @property
    def desk(self) -> Desk:
        return self.kept.desk

    def _refused(self, code: str, call: Any, *arguments: Any) -> None:
        """And nothing has changed."""
        before = self.desk.snapshot()
        with pytest.raises(Refusal) as refusal:
            call(*arguments)
        assert refusal.value.code == code
        assert self.desk.snapshot() == before

    # Decisions

    @rule(after=st.sampled_from([0.0, 0.0, 1.0, 2.5, 5.0, -3.0]), who=st.integers(0, 3))
    def decide(self, after: float, who: int) -> None:
        self.keys += 1  # of this session: what a crash undid is asked with another key
        key, now = self.keys.to_bytes(16, "big"), self.model.now + after
        token = bytes([who + 1]) * 16 if self.model.terms.asks_who else b""
        if self.model.has_reached_its_end:
            self._refused("horizon-reached", self.kept.decide, now, key, token)
            return
        known = self.model.visits_closed(token)  # before this decision closes any
        answer = self.kept.decide(now, key, token)
        self.model.make_room(now)
        began, patience = self.model.now, self.model.terms.patience
        assert answer.number == len(self.model.rounds)
        assert answer.expires == (None if patience is None else began + patience)
        self._check_counted(answer, known)
        if self.model.away:
            assert answer.action not in self.model.away
        self.model.rounds.append(Round(key, token, began, answer))

    def _check_counted(self, answer: Opened, known: int) -> None:
        most = self.model.terms.problem.rounds_per_person
        if most is None or known < most:
            assert answer.counted
        elif most == 1:  # a second one may have been refused because of its batch
            assert not answer.counted

    @precondition(lambda self: self.model.rounds)
    @rule(which=st.integers(0, 30))
    def ask_again(self, which: int) -> None:
        one = self.model.rounds[which % len(self.model.rounds)]
        is_open = one.answer.number >= self.model.closed
        assert self.desk.known(one.key) == (one.answer if is_open else None)

    # Rewards

    def _picked(self, rounds: list[Round], which: int) -> Round:
        return rounds[which % len(rounds)]

    @precondition(lambda self: self.model.open)
    @rule(which=st.integers(0, 3), value=st.sampled_from([0.0, 0.25, 1.0, None]))
    def reward(self, which: int, value: float | None) -> None:
        one = self._picked(self.model.open, which)
        action = one.answer.action
        sent = [value] * len(action) if isinstance(action, list) and value is not None else value
        if one.reward == "none yet":
            assert self.kept.reward(one.answer.number, sent)
            one.reward = value
        elif one.reward == value:
            assert not self.kept.reward(one.answer.number, sent)
        else:
            self._refused("rewarded-differently", self.kept.reward, one.answer.number, sent)

    @precondition(lambda self: self.model.closed)
    @rule(which=st.integers(0, 30))
    def reward_too_late(self, which: int) -> None:
        self._refused("closed", self.kept.reward, which % self.model.closed, 1.0)

    @rule(ahead=st.integers(0, 3))
    def reward_too_early(self, ahead: int) -> None:
        number = len(self.model.rounds) + ahead
        self._refused("ticket-from-the-future", self.kept.reward, number, 1.0)

    @precondition(lambda self: self.model.open)
    @rule(which=st.integers(0, 3), value=st.sampled_from(["1", [1.0, 1.0, 1.0], float("nan"), {}]))
    def reward_with_nonsense(self, which: int, value: Any) -> None:
        before = self.desk.snapshot()
        with pytest.raises((InvalidInput, Refusal)):
            self.kept.reward(self._picked(self.model.open, which).answer.number, value)
        assert self.desk.snapshot() == before

    # Time, folds and crashes

    @rule(after=st.sampled_from([0.0, 2.5, 5.0, 50.0]))
    def fold(self, after: float) -> None:
        now = self.model.now + after
        self.kept.fold(now)
        if self.model.terms.patience is not None:
            self.model.pass_time(now)
        assert self.desk.is_idle(now)
        self._note_commit()

    @rule()
    def commit(self) -> None:
        self._note_commit()

    @rule()
    def crash(self) -> None:
        self.kept.crash()
        state, model = self.committed
        assert self.desk.snapshot() == state
        self.model = copied(model)

    @rule()
    def stop_and_start(self) -> None:
        """Nothing is lost that was committed, and everything is now."""
        self._note_commit()
        self.crash()

    # Acts of the operator

    @property
    def _may_change(self) -> bool:
        return getattr(self.model.terms.problem, "capacity", None) is not None

    @rule(which=st.integers(0, 4))
    def retire(self, which: int) -> None:
        in_play = len(self.model.labels) - len(self.model.away)
        if (
            not self._may_change
            or which >= len(self.model.labels)
            or which in self.model.away
            or in_play == 1
        ):
            self._refused("cannot-change", self.kept.change, "retire", f"arm {which}")
        else:
            self.kept.change("retire", f"arm {which}")
            self.model.away.add(which)

    @rule(which=st.integers(0, 4))
    def revive(self, which: int) -> None:
        if which not in self.model.away:
            self._refused("cannot-change", self.kept.change, "revive", f"arm {which}")
        else:
            self.kept.change("revive", f"arm {which}")
            self.model.away.remove(which)

    @rule()
    def add(self) -> None:
        known, label = len(self.model.labels), f"arm {len(self.model.labels)}"
        if not self._may_change or known == self.model.terms.problem.capacity:  # type: ignore[attr-defined]
            self._refused("cannot-change", self.kept.change, "add", label)
            return
        self._refused("cannot-change", self.kept.change, "add", self.model.labels[0])
        self.kept.change("add", label)
        self.model.labels.append(label)

    # What holds at any time

    @invariant()
    def counts_agree(self) -> None:
        desk, model = self.desk, self.model
        assert (desk.decided, desk.closed) == (len(model.rounds), model.closed)
        assert len(desk.learner.open_rounds()) == len(model.open) <= model.terms.in_flight
        assert desk.now == model.now

    @invariant()
    def open_rounds_agree(self) -> None:
        for one, kept in zip(self.model.open, self.desk.learner.open_rounds(), strict=True):
            assert self.desk.known(one.key) == one.answer
            assert kept.answered == (one.reward != "none yet")
        assert len(self.desk._known) == len(self.model.open)

    @invariant()
    def what_is_public_agrees(self) -> None:
        desk, model = self.desk, self.model
        assert desk.labels == model.labels
        assert desk.retired == tuple(model.labels[arm] for arm in sorted(model.away))
        actions = [one.answer.action for one in model.rounds]
        counts = np.bincount(np.array(actions, int).ravel(), minlength=len(desk.shares))
        assert counts.tolist() == desk.shares


QUICK = settings(
    max_examples=8, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
DeskMachine.TestCase.settings = QUICK
test_the_desk_is_what_the_model_says = DeskMachine.TestCase


@pytest.mark.slow
def test_the_desk_is_what_the_model_says_at_length() -> None:
    run_state_machine_as_test(DeskMachine, settings=settings(QUICK, max_examples=25))


class FreshlyDrawn(Desk):
    """Takes fresh generators when it is restored."""

    @classmethod
    def restore(cls, terms: Terms, data: bytes) -> "Desk":
        desk = super().restore(terms, data)
        desk.learner.use(Streams.of(None))
        return desk


class Forgetful(Desk):
    """Forgets the key of the oldest open round when it is restored."""

    @classmethod
    def restore(cls, terms: Terms, data: bytes) -> "Desk":
        desk = super().restore(terms, data)
        if desk._keys:
            answer = desk._known.pop(desk._keys[0])
            desk._keys[0] = bytes(16)
            desk._known[bytes(16)] = answer
        return desk


class Generous(Desk):
    """Forgets who was learned from when it is restored."""

    @classmethod
    def restore(cls, terms: Terms, data: bytes) -> "Desk":
        desk = super().restore(terms, data)
        people = desk.learner._rounds.people
        assert people is not None
        people._counts.cells[...] = 0
        return desk


class Hasty(Desk):
    """Closes the oldest round as soon as it is rewarded."""

    def reward(self, number: int, value: Any) -> Any:
        event = super().reward(number, value)
        rounds = self.learner._rounds
        while rounds.open and rounds.open[0].answered:
            rounds._close(self.learner._noise)
        self._forget_closed(0)
        return event


@pytest.mark.parametrize(
    ("broken", "played"),
    [
        (FreshlyDrawn, "arms that come and go"),
        (Forgetful, "no clock"),
        pytest.param(Generous, "people who come once", marks=pytest.mark.slow),
        pytest.param(Hasty, "no clock", marks=pytest.mark.slow),
    ],
)
def test_the_machine_catches_a_desk_that_is_wrong(broken: type[Desk], played: str) -> None:
    machine = type("Broken", (DeskMachine,), {"desk_kind": broken, "played": [played]})
    once = settings(QUICK, phases=[Phase.generate], max_examples=200, derandomize=True, database=None)
    # An action that is not the one that was answered, or anything that the model does not say.
    with pytest.raises((AssertionError, ServiceError, ExceptionGroup)):
        run_state_machine_as_test(machine, settings=once)


def play_with_crashes(terms: Terms, seed: int, steps: int = 60) -> tuple[int, int]:
    """Random decisions, rewards, commits, folds and crashes; the states must agree after each crash."""
    chance, problem, kept = np.random.default_rng(seed), terms.problem, Kept(terms)
    people = problem.testing.extreme_people(problem) + problem.testing.people_inside(problem, chance)
    waiting: dict[int, Any] = {}
    now, crashes, replayed = 0.0, 0, 0
    committed = kept.desk.snapshot()
    for step in range(steps):
        now += float(chance.exponential())
        context, reward = people[chance.integers(len(people))]
        token = bytes([chance.integers(1, 9)]) * 16 if terms.asks_who else b""
        answer = kept.decide(now, step.to_bytes(16, "big"), token, sent_context(context))
        waiting[answer.number] = sent_reward(reward, answer.action)
        for number in list(waiting):
            if chance.random() < 0.3:
                value = waiting.pop(number)
                if number >= kept.desk.closed:
                    kept.reward(number, value)
        done = chance.random()
        if done < 0.5:
            kept.commit()
        elif done < 0.6:
            kept.fold(now)
        if not kept.pending:
            committed = kept.desk.snapshot()
        if done > 0.85 or step == steps - 1:
            kept.crash()
            assert kept.desk.snapshot() == committed
            crashes, replayed = crashes + 1, replayed + len(kept.log)
            waiting = {n: one for n, one in waiting.items() if n < kept.desk.decided}
    return crashes, replayed


@pytest.mark.slow
@np.errstate(over="ignore", invalid="ignore")  # some people have infinite features
@pytest.mark.parametrize("policy", trusted_policies(), ids=name_of)
def test_every_policy_comes_back_from_a_crash_bit_for_bit(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(policy), "compiles", False)  # the same decisions, without the compiler
    for seed, rounds_per_person in enumerate([None, 1, 3] if takes_people(policy) else [None]):
        crashes, replayed = play_with_crashes(example_terms(policy, rounds_per_person), seed, steps=40)
        assert crashes >= 3 and replayed >= 1


@pytest.mark.slow
def test_so_does_one_that_is_compiled() -> None:
    policy = next(one for one in trusted_policies() if one.name() == "randomized-lin-ucb")
    assert policy.compiles
    assert play_with_crashes(example_terms(policy, 3), 0)[0] >= 3


@np.errstate(over="ignore", invalid="ignore")
@pytest.mark.parametrize("kind", ["noise-aware-imed", "private-matroid-ucb"])
def test_one_policy_of_a_family_comes_back_from_a_crash(kind: str) -> None:
    policy = next(one for one in trusted_policies() if one.name() == kind)
    assert play_with_crashes(example_terms(policy, 3), 1)[0] >= 3


def test_the_log_of_another_version_or_with_another_action_is_refused() -> None:
    kept = Kept(PLAYED["no clock"])
    kept.decide(0.0, bytes(16))
    *event, action = kept.pending[0]
    other = Desk.restore(kept.terms, kept.snapshot)
    with pytest.raises(ServiceError, match="would now answer otherwise"):
        other.replay([*event, 1 - action])
    with pytest.raises(ServiceError, match="an event of another version"):
        other.replay([9, "?"])


def test_a_snapshot_is_of_its_own_experiment_and_never_of_a_seeded_learner() -> None:
    one, other = PLAYED["no clock"], PLAYED["people who return"]
    with pytest.raises(ServiceError, match="of another experiment"):
        Desk.restore(other, Desk.begin(one).snapshot())
    seeded = Desk.begin(one)
    seeded.learner = one.policy.start(one.problem, seed=1, in_flight=2)  # type: ignore[attr-defined]
    with pytest.raises(ServiceError, match="of another experiment"):
        Desk.restore(one, seeded.snapshot())


def test_a_fold_is_due_after_so_many_decisions_and_never_because_of_rewards() -> None:
    """And because of the open rounds, where those are more."""
    moments = []
    for rewarded in (False, True):
        kept, due = Kept(terms_of(IMED, dpb.Arms(2), in_flight=1500, patience=None)), []
        for index in range(3100):
            answer = kept.decide(float(index), index.to_bytes(16, "big"))
            if rewarded:
                kept.reward(answer.number, 1.0)
            if kept.desk.is_fold_due():
                kept.fold(float(index))
                due.append(index)
        moments.append((due, kept.desk.closed))
    assert moments[0] == moments[1] == ([999, 2499], 1600)


def test_generators_are_renewed_by_a_fold_and_only_by_it() -> None:
    desk = Desk.begin(PLAYED["no clock"])
    before = [str(one.bit_generator.state) for one in desk.learner._streams]
    desk.snapshot()
    desk.expire(100.0)
    assert [str(one.bit_generator.state) for one in desk.learner._streams] == before
    desk.fold(100.0)
    after = [str(one.bit_generator.state) for one in desk.learner._streams]
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_an_idle_desk_has_nothing_to_fold() -> None:
    kept = Kept(PLAYED["arms that come and go"])
    assert kept.desk.is_idle(1e9)
    kept.decide(0.0, bytes(16))
    assert not kept.desk.is_idle(0.0)
    kept.fold(1.0)
    assert kept.desk.is_idle(4.9) and not kept.desk.is_idle(5.0)  # when the clock closes its round
    kept.fold(5.0)
    assert kept.desk.closed == 1 and kept.desk.is_idle(1e9)


def test_exactly_the_acknowledged_rewards_are_counted_once_over_crashes() -> None:
    """By the sums of a policy that adds no noise: all rewards are quarters, so sums are exact."""
    terms = terms_of(dpb.arms.KLUCB(), dpb.Arms(3), in_flight=5, patience=None)
    kept, chance = Kept(terms), np.random.default_rng(3)
    actions: dict[int, int] = {}
    acknowledged: dict[int, float] = {}
    for index in range(200):
        answer = kept.decide(0.0, index.to_bytes(16, "big"))
        kept.commit()
        actions[answer.number] = answer.action
        for _ in range(2):
            number = int(chance.integers(kept.desk.closed, kept.desk.decided))
            value = float(chance.integers(5)) / 4.0
            with suppress(Refusal):  # another value was acknowledged before
                if kept.reward(number, value):
                    kept.commit()
                    acknowledged[number] = value
        if chance.random() < 0.1:
            kept.crash()
        elif chance.random() < 0.1:
            kept.fold(0.0)
    kept.desk.learner.close()
    sums = np.zeros(3)
    for number, value in acknowledged.items():
        sums[actions[number]] += value - 0.5
    assert 100 < len(acknowledged) < 200
    assert kept.desk.learner._secret.total.tolist() == sums.tolist()
