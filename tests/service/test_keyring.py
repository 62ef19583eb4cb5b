"""The keyring: no key comes back once it is forgotten, and it belongs to one database."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from writers import ARMS, Hand, ask, decide, leading, woken_by, writing

from dpbandits.errors import ServiceError
from dpbandits.service.commands import Decide, Stop
from dpbandits.service.run import open_keyring, open_store
from dpbandits.service.sealing import Keyring, Seal

_KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from dpbandits.service.sealing import Keyring
keyring = Keyring(sys.argv[1], create=True)
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
keyring.begin(1)
"""


def test_a_process_that_is_killed_while_it_writes_leaves_no_copy_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "keyring"
    killed = subprocess.run([sys.executable, "-c", _KILLED_WHILE_WRITING, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 3  # of which the next one removes one
    Keyring(path, create=False)
    assert {one.name for one in tmp_path.iterdir()} == {"keyring", "keyring.lock"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_forgotten_key_is_not_brought_back_by_a_writer_that_was_replaced(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "keyring", create=True)
    first = keyring.begin(1)
    keyring.forget(1)
    keyring.advance({1: (first.next(), 5)})
    with pytest.raises(ServiceError, match="no key of NAME"):
        keyring.seal(1, 1, 5)
    assert first.next().key.hex() not in (tmp_path / "keyring").read_text()


def test_a_number_is_not_used_twice(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "keyring", create=True)
    first = keyring.begin(1)
    with pytest.raises(ServiceError, match="in use"):
        keyring.begin(1)
    assert keyring.seal(1, 0, 0).key == first.key
    keyring.forget(1)
    assert keyring.begun == 1


def test_a_new_database_does_not_take_the_keyring_of_another(tmp_path: Path) -> None:
    """It would overwrite its keys, and tickets of the one would be good in the other."""
    with writing(tmp_path, ARMS) as writer:
        decide(writer)
        ask(writer, Stop("headline"))
    store = open_store(str(tmp_path / "new.db"))
    with pytest.raises(ServiceError, match="belongs to another database"):
        open_keyring(store, tmp_path / "keyring")
    store.close()


def test_a_database_from_before_an_experiment_that_answered_is_refused(tmp_path: Path) -> None:
    with writing(tmp_path, ARMS):
        pass
    shutil.copy(tmp_path / "service.db", tmp_path / "copy.db")
    with writing(tmp_path, {**ARMS, "name": "later"}) as writer:
        decide(writer, "later")
    for one in ("service.db-wal", "service.db-shm"):
        (tmp_path / one).unlink(missing_ok=True)
    shutil.copy(tmp_path / "copy.db", tmp_path / "service.db")
    with pytest.raises(AssertionError, match="does not know experiment 2"), writing(tmp_path):
        pass


def test_an_experiment_that_could_not_be_written_is_in_nobodys_way(tmp_path: Path) -> None:
    with writing(tmp_path, ARMS):
        pass
    Keyring(tmp_path / "keyring", create=False).begin(2)  # and then the transaction failed
    with writing(tmp_path, {**ARMS, "name": "later"}) as writer:
        assert writer.running["later"].id == 3
        assert decide(writer, "later").opened.number == 0


def test_a_keyring_that_was_behind_at_a_crash_is_told_at_the_next_start(tmp_path: Path) -> None:
    """Otherwise a quiet experiment would keep the old key, and an older copy would pass."""
    with leading(tmp_path, Hand(), ARMS) as writer:
        for _ in range(1000):  # at which it folds
            woken_by(writer, Decide(1, os.urandom(16), b"", None, None))
        reached = writer.running["headline"].generation, writer.running["headline"].head
    assert reached == (1, 1000)  # and is killed before the keyring knows
    with leading(tmp_path, Hand()) as writer:
        writer.forwarder.tell()
    keyring = Keyring(tmp_path / "keyring", create=False)
    keyring.seal(1, 1, 1000)
    for older in ((0, 1000), (1, 999)):
        with pytest.raises(ServiceError, match="older than what was answered"):
            keyring.seal(1, *older)


class Racing(dict[int, tuple[Seal, int]]):
    """Gets a newer value right after it was looked at."""

    newer: tuple[Seal, int] | None = None

    def get(self, key: int, default: object = None) -> Any:
        held = super().get(key, default)
        if self.newer is not None:
            self[key], self.newer = self.newer, None
        return held


def test_what_is_reached_while_the_keyring_is_written_is_not_forgotten(tmp_path: Path) -> None:
    with leading(tmp_path, Hand(), ARMS) as writer:
        seal, reached = writer.running["headline"].seal, Racing()
        writer.forwarder._reached, reached.newer = reached, (seal.next(), 2)
        reached[1] = seal, 1
        writer.forwarder.tell()
        if reached.newer is not None:  # nobody looked
            reached[1] = reached.newer
        writer.forwarder.tell()
    with pytest.raises(ServiceError, match="older"):
        Keyring(tmp_path / "keyring", create=False).seal(1, 0, 1)
