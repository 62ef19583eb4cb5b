"""The keyring: no key comes back once it is forgotten, and it belongs to one database."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from writers import ARMS, ask, decide, writing

from dpbandits.errors import ServiceError
from dpbandits.service.run import open_keyring, open_store
from dpbandits.service.sealing import Keyring
from dpbandits.service.writer import Stop

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
    with pytest.raises(ServiceError, match="no key of experiment 1"):
        keyring.seal(1, 1, 5)
    assert first.next().key.hex() not in (tmp_path / "keyring").read_text()


def test_a_number_is_not_used_twice(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "keyring", create=True)
    first = keyring.begin(1)
    with pytest.raises(ServiceError, match="in use"):
        keyring.begin(1)
    assert keyring.seal(1, 0, 0).key == first.key
    keyring.forget(1)
    with pytest.raises(ServiceError, match="in use"):
        keyring.begin(1)


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
