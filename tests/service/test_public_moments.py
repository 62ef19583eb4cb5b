"""Two streams that differ in rewards alone have the same public moments: closings, folds and pages."""

import random
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from writers import Hand, code_of, leading, woken_by

from dpbandits.errors import InvalidInput
from dpbandits.service.commands import Decide, Reward, Stop
from dpbandits.service.running import Running
from dpbandits.service.writer import Writer

TERMS = {"name": "headline", "privacy": "eps=1", "actions": ["calm", "loud"], "patience": 15.0}


def public(writer: Writer) -> tuple[Any, ...]:
    one = writer.running["headline"]
    return one.counts, one.generation, one.ledger.number, one.ledger.at, one.ledger.head != ""


def moments(folder: Path, seed: int, *, rewarded: bool) -> list[tuple[Any, ...]]:
    """What everybody could see at each decision, and what the pages say of when and how much."""
    folder.mkdir()
    arrivals, rewards, hand = random.Random(seed), random.Random(seed + 1), Hand()
    seen = []
    with leading(folder, hand, TERMS) as writer:
        for number in range(150):
            # Many at once, then few: so that a fold waits for decisions that make it worth its while.
            pause = 0.003 if number % 75 < 60 else arrivals.uniform(0.1, 6.0)
            until = hand.moment + pause
            while hand.moment < until:
                hand.moment = min(hand.moment + 0.25, until)
                if hand.moment < until:
                    writer._catch_up()
            woken_by(writer, Decide(1, number.to_bytes(16, "big"), b"", None, None))
            seen.append(public(writer))
            if rewarded and rewards.random() < 0.7:
                woken_by(writer, Reward(1, number, rewards.random()))
        with writer.store.reading() as db:
            pages = writer.store.pages(db, 1, 1000)
        bodies = [(one["at"], one["body"]["decided"], one["body"]["closed"]) for one in pages]
    return [*seen, *bodies]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_rewards_move_no_public_moment(tmp_path: Path, seed: int) -> None:
    without = moments(tmp_path / "without", seed, rewarded=False)
    assert moments(tmp_path / "with", seed, rewarded=True) == without
    assert len({one[1] for one in without[:150]}) > 5, "there were hardly any folds"


@pytest.mark.parametrize("rewarded", [False, True])
def test_a_fold_that_a_decision_makes_worth_its_while_waits_for_a_moment_of_its_own(
    tmp_path: Path, rewarded: bool
) -> None:
    """Not for what wakes the writer next, which may be a reward, or the clock."""
    hand, begun = Hand(), Hand().moment
    with leading(tmp_path, hand, TERMS) as writer:
        for number in range(100):
            woken_by(writer, Decide(1, number.to_bytes(16, "big"), b"", None, None))
        hand.moment = begun + 10.0
        writer._catch_up()
        hand.moment = begun + 14.95
        woken_by(writer, Decide(1, bytes(15) + b"d", b"", None, None))
        hand.moment = begun + 20.1
        writer._catch_up()  # a snapshot of so many open rounds would not be worth it
        hand.moment = begun + 29.9
        answer = woken_by(writer, Decide(1, bytes(15) + b"e", b"", None, None))
        if rewarded:
            woken_by(writer, Reward(1, answer.opened.number, 1.0))
        assert writer.running["headline"].generation == 1
        hand.moment = begun + 30.1
        writer._catch_up()
        assert writer.running["headline"].counts == (102, 101)
        assert writer.running["headline"].generation == 2


def test_a_stop_that_fails_halfway_is_not_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds were closed and noise drawn in memory: that must be thrown away."""

    def fail(_: object) -> None:
        raise InvalidInput("a page that cannot be written")

    with leading(tmp_path, Hand(), TERMS) as writer:
        woken_by(writer, Decide(1, bytes(16), b"", None, None))
        monkeypatch.setattr(Running, "page", fail)
        future: Future[Any] = Future()
        writer.submit(future, Stop("headline"))
        with pytest.raises(InvalidInput):
            writer._catch_up()
        assert code_of(future.result(timeout=0)) == "not-ready"


def test_pages_go_on_after_a_start_with_a_clock_that_was_ahead(tmp_path: Path) -> None:
    hand, ahead = Hand(), Hand()
    ahead.moment += 86_400.0
    for one in (hand, ahead):  # killed before anything is decided
        with leading(tmp_path, one, TERMS):
            pass
    with leading(tmp_path, hand) as writer:
        for number in range(3):
            woken_by(writer, Decide(1, number.to_bytes(16, "big"), b"", None, None))
            hand.moment += 70.0
            writer._catch_up()
        with writer.store.reading() as db:
            assert [one["body"]["decided"] for one in writer.store.pages(db, 1, 100)] == [1, 2, 3]
