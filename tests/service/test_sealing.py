"""The keyring: who may read it, what it forgets, and what it refuses."""

import json
import multiprocessing
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dpbandits.errors import ServiceError
from dpbandits.service.sealing import Keyring, Seal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keyring"


def held(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_bytes()))


def test_what_is_sealed_opens_as_what_it_is_and_as_nothing_else() -> None:
    seal = Seal(1, 2, bytes(32))
    sealed = seal.close("log", 7, b"raw")
    assert seal.open("log", 7, sealed) == b"raw" and b"raw" not in sealed
    others = [
        (Seal(1, 2, bytes(32)), "snapshot", 7),
        (Seal(1, 2, bytes(32)), "log", 8),
        (Seal(2, 2, bytes(32)), "log", 7),
        (Seal(1, 3, bytes(32)), "log", 7),
        (Seal(1, 2, bytes([1]) * 32), "log", 7),
        (seal.next(), "log", 7),
    ]
    for other, what, number in others:
        with pytest.raises(ServiceError, match="cannot be opened"):
            other.open(what, number, sealed)
    for changed in (sealed[:-1], b"", sealed[:12], bytes([sealed[0] ^ 1]) + sealed[1:]):
        with pytest.raises(ServiceError, match="cannot be opened"):
            seal.open("log", 7, changed)


def test_the_same_twice_is_sealed_differently() -> None:
    """A commit that failed is written again under the same number."""
    seal = Seal(1, 0, bytes(32))
    assert len({seal.close("log", 1, b"raw") for _ in range(100)}) == 100


def test_keys_follow_from_each_other_forwards(path: Path) -> None:
    keyring = Keyring(path, create=True)
    first = keyring.begin(1)
    chain = [first]
    for _ in range(5):
        chain.append(chain[-1].next())
    assert len({seal.key for seal in chain}) == 6
    for seal in chain:  # a keyring that is behind reaches them all
        assert keyring.seal(1, seal.generation, 0).key == seal.key


def test_it_is_for_its_owner_only_and_so_is_its_lock(path: Path) -> None:
    before = os.umask(0)
    try:
        keyring = Keyring(path, create=True)
        keyring.begin(1)
        for one in (path, Path(f"{path}.lock")):
            assert stat.S_IMODE(one.stat().st_mode) == 0o600
        assert {one.name for one in path.parent.iterdir()} == {"keyring", "keyring.lock"}
    finally:
        os.umask(before)


def test_what_was_moved_on_from_is_refused_and_its_key_is_gone(path: Path) -> None:
    keyring = Keyring(path, create=True)
    first = keyring.begin(1)
    second = first.next()
    keyring.advance({1: (second, 40)})
    assert held(path)["keys"] == {"1": [1, second.key.hex(), 40]}
    assert first.key.hex() not in path.read_text()
    for generation, head in ((0, 40), (1, 39), (0, 0)):
        with pytest.raises(ServiceError, match="older than what was answered"):
            keyring.seal(1, generation, head)
    assert keyring.seal(1, 1, 40).key == second.key
    assert keyring.seal(1, 2, 41).key == second.next().key


def test_it_never_moves_back(path: Path) -> None:
    keyring = Keyring(path, create=True)
    first = keyring.begin(1)
    later = first.next().next()
    keyring.advance({1: (later, 90)})
    for seal, head in ((first, 100), (first.next(), 90), (later, 89)):
        keyring.advance({1: (seal, head)})
        assert held(path)["keys"]["1"] == [2, later.key.hex(), 90]
    keyring.advance({1: (later, 91)})
    assert held(path)["keys"]["1"] == [2, later.key.hex(), 91]


def test_secrets_are_told_apart_by_purpose_and_stay(path: Path) -> None:
    keyring = Keyring(path, create=True)
    purposes = ("tickets", "people", "ledger", "requests", "name")
    found = {purpose: keyring.secret_for(purpose) for purpose in purposes}
    assert len(set(found.values())) == len(found) and all(len(one) == 32 for one in found.values())
    again = Keyring(path, create=False)
    assert {purpose: again.secret_for(purpose) for purpose in purposes} == found
    assert again.name == keyring.name != Keyring(path.with_name("other"), create=True).name
    assert keyring.name not in path.read_text()


def test_a_lost_keyring_is_not_made_anew(path: Path) -> None:
    with pytest.raises(ServiceError, match="there is no keyring at"):
        Keyring(path, create=False)
    assert not path.exists()


def test_an_experiment_it_does_not_know_is_refused(path: Path) -> None:
    keyring = Keyring(path, create=True)
    with pytest.raises(ServiceError, match="no key of NAME"):
        keyring.seal(5, 0, 0)
    keyring.begin(5)
    keyring.forget(5)
    keyring.forget(5)  # which changes nothing
    with pytest.raises(ServiceError, match="no key of NAME"):
        keyring.seal(5, 0, 0)


def test_what_was_forgotten_is_not_remembered_by_a_late_advance(path: Path) -> None:
    keyring = Keyring(path, create=True)
    seal = keyring.begin(5)
    keyring.forget(5)
    keyring.advance({5: (seal.next(), 3)})
    assert held(path)["keys"] == {}


def test_a_chain_that_is_too_long_is_refused_at_once(path: Path) -> None:
    keyring = Keyring(path, create=True)
    keyring.begin(1)
    with pytest.raises(ServiceError, match="generations behind"):
        keyring.seal(1, 10**9, 0)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"secret": "00"}',
        b'{"secret": "zz", "keys": {}}',
        b'{"secret": 5, "keys": {}}',
        b'{"secret": "00", "keys": 7}',
        b"\xff\xfe",
        b'{"secret": "00", "keys": {"1": [0, "zz", 0]}}',
        b'{"secret": "00", "keys": {"1": "key"}}',
        b'{"secret": "00", "keys": {"1": ["0", "00", 0]}}',
        b'{"secret": "00", "keys": {"1": [0, 1]}}',
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(path: Path, damage: bytes) -> None:
    Keyring(path, create=True).begin(1)
    path.write_bytes(damage)
    with pytest.raises(ServiceError, match="not a keyring, or it is damaged"):
        Keyring(path, create=True).seal(1, 0, 0)
    assert path.read_bytes() == damage


def test_a_file_that_was_replaced_is_not_written_to(path: Path) -> None:
    keyring = Keyring(path, create=True)
    seal = keyring.begin(1)
    path.unlink()
    Keyring(path, create=True)
    before = path.read_bytes()
    for change in (lambda: keyring.begin(2), lambda: keyring.advance({1: (seal.next(), 1)})):
        with pytest.raises(ServiceError, match="was replaced by another one"):
            change()
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServiceError, match="cannot be locked: No such file"):
        Keyring(tmp_path / "nowhere" / "keyring", create=True)
    keyring = Keyring(tmp_path / "keyring", create=True)
    before = keyring.path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ServiceError, match="cannot be written: No space left"):
        keyring.begin(1)
    assert keyring.path.read_bytes() == before
    assert {one.name for one in tmp_path.iterdir()} == {"keyring", "keyring.lock"}


def _begin_some(path: Path) -> None:
    keyring, done = Keyring(path, create=False), 0
    while done < 20:
        with suppress(ServiceError):  # the other one was quicker
            keyring.begin(keyring.begun + 1)
            done += 1


@pytest.mark.slow
def test_two_processes_do_not_lose_each_others_keys(path: Path) -> None:
    Keyring(path, create=True)
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_begin_some, args=(path,)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
        assert one.exitcode == 0
    assert len(held(path)["keys"]) == 40
