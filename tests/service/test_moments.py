"""Public moments are functions of decisions and of time: the same stream, with and without rewards.

Folds, closings, generations and the pages of the ledger must be alike; what was released need not be.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from writers import Hand, ask, decide, writing

from dpbandits.service import desk, writer
from dpbandits.service.commands import Decided, Reward
from dpbandits.service.desk import Desk
from dpbandits.service.writer import Writer

pytestmark = pytest.mark.slow

STEPS = 120
ARMS = {
    "name": "arms",
    "privacy": "eps=1",
    "actions": ["calm", "loud", "long"],
    "in_flight": 40,
    "patience": 100.0,  # longer than a silence
}
PEOPLE = {
    **ARMS,
    "name": "people",
    "patience": 25.0,
    "rounds_per_person": 2,
    "expected_people": 100,
}


@dataclass
class Moments:
    """What everybody may see of when things happened."""

    folds: list[tuple[Any, ...]] = field(default_factory=list)
    closings: list[tuple[Any, ...]] = field(default_factory=list)
    ledger: list[tuple[Any, ...]] = field(default_factory=list)
    rewards: int = 0


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold after few decisions."""
    monkeypatch.setattr(desk, "_FOLD_AFTER", 25)
    monkeypatch.setattr(desk, "_BYTES_A_DECISION", 10_000)
    monkeypatch.setattr(writer, "_PAGE_EVERY", 15.0)


@dataclass
class Moment:
    """What happens at one time."""

    later: float  # than the moment before, in seconds
    decisions: Sequence[tuple[str, int]] = ()  # experiments and people
    rewarded: Sequence[int] = ()  # how many decisions ago
    looked_at: bool = True  # whether the writer looks at the clock by itself, as it does all the time


def play(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stream: Iterable[Moment], *, rewarded: bool
) -> Moments:
    """The same decisions at the same times, with or without their rewards."""
    folder.mkdir()
    told, hand, opened = Moments(), Hand(), list[tuple[int, int]]()
    with monkeypatch.context() as patched, writing(folder, ARMS, PEOPLE, hand=hand) as one:
        seen = watch(patched, told)
        for moment in stream:
            hand.moment += moment.later
            if moment.looked_at:
                look(one, seen, hand.moment)
            for name, person in moment.decisions:
                answer = decide(one, name, token=bytes([person]) * 16 if name == "people" else b"")
                assert isinstance(answer, Decided)
                opened.append((one.running[name].id, answer.opened.number))
                told.closings.append((hand.moment, name, *one.running[name].counts))
            for back in moment.rewarded if rewarded else ():
                experiment, number = opened[-min(back, len(opened))]
                told.rewards += ask(one, Reward(experiment, number, 1.0)) is True
    with writing(folder, hand=hand) as again, again.store.reading() as db:
        for name in ("arms", "people"):
            entries = again.store.ledger_entries(db, again.running[name].id)
            told.ledger += [_public(entry) for entry in entries]
    return told


def _public(entry: dict[str, Any]) -> tuple[Any, ...]:
    body = entry["body"]
    counts = tuple(body.get(part) for part in ("decided", "closed", "epoch", "generation"))
    return entry["experiment"], entry["number"], entry["kind"], entry["at"], *counts


def some_day() -> Iterator[Moment]:
    """Busy times and silences, with rewards between decisions, in silences, and too late."""
    chance, since = random.Random(5), 0.0
    yield Moment(0.0, [("arms", 0), ("people", 0)])
    for step in range(STEPS):
        names = chance.choices(["arms", "people"], k=chance.choice([0, 0, 1, 3, 8]))
        moment = Moment(
            chance.choice([0.1, 0.5, 1.0, 2.5]),
            [(name, chance.randrange(60)) for name in names],
            _some_rewards(chance),
            chance.random() < 0.5,
        )
        since += moment.later
        if since > 4.0:
            moment.looked_at, since = True, 0.0
        if step % 40 == 39:
            yield from [Moment(2.0, (), _some_rewards(chance)) for _ in range(45)]
        yield moment


def _some_rewards(chance: random.Random) -> list[int]:
    return [chance.randrange(1, 50) for _ in range(chance.randrange(8))]


def watch(patched: pytest.MonkeyPatch, told: Moments) -> list[float]:
    """Note each fold, and when the writer looked at the clock."""
    fold, keep_time, seen = Desk.fold, Writer._keep_time, list[float]()

    def noted_fold(self: Desk, now: float) -> bytes:
        data = fold(self, now)
        told.folds.append((self.terms.name, now, self.decided, self.closed))
        return data

    def noted_time(self: Writer, now: float) -> None:
        keep_time(self, now)
        seen.append(now)

    patched.setattr(Desk, "fold", noted_fold)
    patched.setattr(Writer, "_keep_time", noted_time)
    return seen


def look(one: Writer, seen: list[float], moment: float) -> None:
    """Wait until the writer has looked at the clock: it does so four times a second."""
    while not seen or seen[-1] < moment - 0.001:
        one._arrived.set()


def test_the_same_moments_with_and_without_rewards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_them = play(tmp_path / "with", monkeypatch, some_day(), rewarded=True)
    without = play(tmp_path / "without", monkeypatch, some_day(), rewarded=False)
    assert with_them.rewards > 100 and without.rewards == 0
    assert with_them.folds == without.folds
    assert with_them.closings == without.closings
    assert with_them.ledger == without.ledger
    by_time = [one for one in without.folds if one[2] == 0 or one[3] == one[2]]
    assert len(without.folds) > 30 and by_time
    assert sum(entry[2] == "page" for entry in without.ledger) > 10


def test_a_fold_that_was_put_off_is_not_made_because_a_reward_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many rounds time out and nothing is decided: no fold yet. Then one decision closes them all, and
    a reward wakes the writer just before the next moment at which it folds.
    """
    stream = [
        Moment(0.0, [("people", person) for person in range(20)]),
        *[Moment(2.0)] * 19,
        Moment(1.8, [("people", 30)], [1]),
        Moment(0.1, (), [1], looked_at=False),
        Moment(0.6),
    ]
    with_it = play(tmp_path / "with", monkeypatch, stream, rewarded=True)
    without = play(tmp_path / "without", monkeypatch, stream, rewarded=False)
    assert with_it.rewards == 1
    assert with_it.folds == without.folds
    assert [fold[1:] for fold in without.folds[:2]] == [(1e6 + 10.0, 20, 0), (1e6 + 40.0, 21, 20)]


def count_rewards_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold after so many events, whatever they are."""
    reward, due, fold = Desk.reward, Desk.is_fold_due, Desk.fold

    def counted(self: Any, number: int, value: Any) -> Any:
        event = reward(self, number, value)
        self.events = getattr(self, "events", 0) + 1
        return event

    def due_by_events(self: Any) -> bool:
        return due(self) or self.decided - self._decided_at_fold + getattr(self, "events", 0) >= 25

    def emptied(self: Any, now: float) -> bytes:
        self.events = 0
        return fold(self, now)

    monkeypatch.setattr(Desk, "reward", counted)
    monkeypatch.setattr(Desk, "is_fold_due", due_by_events)
    monkeypatch.setattr(Desk, "fold", emptied)


def call_rewards_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold by the clock where a reward came, though nothing was decided and nothing is over."""
    reward, idle, fold = Desk.reward, Desk.is_idle, Desk.fold

    def soiled(self: Any, number: int, value: Any) -> Any:
        self.dirty = True
        return reward(self, number, value)

    def idle_if_clean(self: Any, now: float) -> bool:
        return idle(self, now) and not getattr(self, "dirty", False)

    def cleaned(self: Any, now: float) -> bytes:
        self.dirty = False
        return fold(self, now)

    monkeypatch.setattr(Desk, "reward", soiled)
    monkeypatch.setattr(Desk, "is_idle", idle_if_clean)
    monkeypatch.setattr(Desk, "fold", cleaned)


@pytest.mark.parametrize("mistake", [count_rewards_as_well, call_rewards_news])
def test_folds_that_follow_rewards_are_caught(
    mistake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    with_them = play(tmp_path / "with", monkeypatch, some_day(), rewarded=True)
    without = play(tmp_path / "without", monkeypatch, some_day(), rewarded=False)
    assert with_them.folds != without.folds
