"""The writer of a service in process, on an SQLite file, with a clock that a test moves."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpbandits.service.clock import Clock
from dpbandits.service.commands import Command, Decide
from dpbandits.service.refusals import Refusal
from dpbandits.service.sealing import Keyring
from dpbandits.service.store import Store
from dpbandits.service.terms import Terms
from dpbandits.service.writer import Writer

ARMS = {"name": "headline", "privacy": "eps=1", "actions": ["calm", "loud", "long"]}


class Hand:
    """A clock's hand: both clocks follow it."""

    def __init__(self) -> None:
        self.moment = 1_000_000.0

    def clock(self) -> Clock:
        return Clock(wall=lambda: self.moment, steady=lambda: self.moment)


def deliver(answers: Sequence[tuple["Future[Any]", Any]]) -> None:
    for future, answer in answers:
        future.set_result(answer)


@contextmanager
def writing(
    folder: Path, *declared: Mapping[str, Any], hand: Hand | None = None, database: str | None = None
) -> Iterator[Writer]:
    """A writer that is ready; it ends cleanly."""
    store = Store(database or folder / "service.db")
    store.migrate()
    keyring = Keyring(folder / "keyring", create=store.keyring_name() is None)
    said = list[str]()
    terms = [Terms.read(one) for one in declared]
    clock = None if hand is None else hand.clock()
    writer = Writer(store, keyring, deliver, declared=terms, clock=clock, fail=said.append)
    writer.start()
    try:
        while writer.state != "ready":
            assert writer.state != "failed", said
            time.sleep(0.005)
        yield writer
    finally:
        writer.stop()


def ask(writer: Writer, command: Command) -> Any:
    """Its answer, which may be a refusal."""
    future: Future[Any] = Future()
    writer.submit(future, command)
    return future.result(timeout=30)


def decide(writer: Writer, name: str = "headline", key: bytes | None = None, token: bytes = b"") -> Any:
    """A decision without context."""
    key = os.urandom(16) if key is None else key
    return ask(writer, Decide(writer.running[name].id, key, token, None, None))


def code_of(answer: Any) -> str:
    """Which refusal it is."""
    assert isinstance(answer, Refusal), answer
    return answer.code


@contextmanager
def leading(folder: Path, hand: Hand, *declared: Mapping[str, Any]) -> Iterator[Writer]:
    """A writer without its thread: it does what is due when it is told to."""
    store = Store(folder / "service.db")
    store.migrate()
    keyring = Keyring(folder / "keyring", create=True)
    terms = [Terms.read(one) for one in declared]
    writer = Writer(store, keyring, deliver, declared=terms, clock=hand.clock())
    writer._lead()
    try:
        yield writer
    finally:
        store.close()


def woken_by(writer: Writer, command: Command) -> Any:
    """Its answer to a command that comes now."""
    future: Future[Any] = Future()
    writer.submit(future, command)
    writer._catch_up()
    return future.result(timeout=0)
