"""Experiments are made ready apart: who asks does not wait for long, and nobody else waits at all."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dpbandits.errors import InvalidInput
from dpbandits.service import preparing, running
from dpbandits.service.desk import Desk
from dpbandits.service.preparing import Preparation, Prepared, prepared
from dpbandits.service.refusals import Refusal
from dpbandits.service.running import begin_desk
from dpbandits.service.terms import Terms

DECLARED = {"name": "a", "privacy": "eps=1", "actions": ["x", "y"]}
OTHER = {**DECLARED, "name": "b"}


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """What slow terms wait for; nobody waits for them for long."""
    monkeypatch.setattr(preparing, "_WAIT", 0.05)
    event = threading.Event()
    yield event
    event.set()


def slow(event: threading.Event) -> Callable[[], Terms]:
    def read() -> Terms:
        assert event.wait(10)
        return Terms.read(DECLARED)

    return read


def plain(declared: dict[str, Any]) -> Callable[[], Terms]:
    return lambda: Terms.read(declared)


def test_one_is_made_ready() -> None:
    made = asyncio.run(Preparation().of((None, DECLARED), plain(DECLARED)))
    assert (made.terms.name, made.desk.decided) == ("a", 0)


def test_what_takes_long_is_there_later(held: threading.Event) -> None:
    async def ask() -> Prepared:
        preparation = Preparation()
        for declared in (DECLARED, DECLARED, OTHER):
            with pytest.raises(Refusal) as refused:
                await preparation.of((None, declared), slow(held))
            assert (refused.value.code, refused.value.retry_after) == ("busy", 5)
        held.set()
        await asyncio.sleep(0.2)
        # With the same terms nothing is begun again.
        return await preparation.of((None, dict(DECLARED)), plain(OTHER))

    assert asyncio.run(ask()).terms.name == "a"


def test_what_nobody_came_back_for_is_dropped(held: threading.Event) -> None:
    async def ask() -> Prepared:
        preparation = Preparation()
        with pytest.raises(Refusal):
            await preparation.of((None, DECLARED), slow(held))
        held.set()
        await asyncio.sleep(0.2)
        return await preparation.of((None, OTHER), plain(OTHER))

    assert asyncio.run(ask()).terms.name == "b"


def test_a_service_that_stops_meanwhile(held: threading.Event) -> None:
    async def ask() -> None:
        with pytest.raises(Refusal):
            await Preparation().of((None, DECLARED), slow(held))

    asyncio.run(ask())
    held.set()
    for thread in threading.enumerate():
        if thread.name == "preparing":
            thread.join(10)  # pytest fails on what a thread does not catch


def test_refusals_do_not_repeat_what_was_sent() -> None:
    marker = "zqxjk"
    for declared in ({**DECLARED, "policy": marker}, {**DECLARED, marker: 1}):
        with pytest.raises(Refusal) as refused:
            prepared(plain(declared))
        assert refused.value.code == "invalid" and marker not in str(refused.value)


def test_states_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_STATE", 10_000)
    begin_desk(Terms.read(DECLARED))
    arms = {"kind": "Arms", "arms": 1000}
    with pytest.raises(InvalidInput, match="its state would take"):
        begin_desk(Terms.read({"name": "a", "privacy": "eps=1", "problem": arms}))
    with pytest.raises(InvalidInput, match="its state would take"):
        begin_desk(Terms.read({**DECLARED, "rounds_per_person": 1, "expected_people": 10_000}))
    with pytest.raises(Refusal):
        prepared(plain({"name": "a", "privacy": "eps=1", "problem": arms}))


def test_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Desk, "begin", fail)
    with pytest.raises(InvalidInput, match="not enough memory"):
        begin_desk(Terms.read(DECLARED))
