"""Nothing that a person brought can be found on disk: canaries, and what finds them where they are."""

import asyncio
import base64
import hashlib
import json
import secrets
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
import sqlalchemy as sa
from postgres import Postgres

import dpbandits as dpb
from dpbandits.errors import ServiceError
from dpbandits.service import commands, forwarding, writer
from dpbandits.service.run import open_keyring, open_store
from dpbandits.service.sealing import Keyring, Seal
from dpbandits.service.service import Service
from dpbandits.service.tables import log, snapshots
from dpbandits.service.terms import Terms

pytestmark = pytest.mark.slow

TERMS = {
    "name": "canary",
    "policy": "randomized-lin-ucb",
    "privacy": "mu=1",
    "problem": {"kind": "LinearContexts", "dim": 2},
    "rounds_per_person": 1,
    "patience": 0.2,
}


class Brought(NamedTuple):
    """What somebody brings: to every test other values, for a cluster keeps what a control left there.

    Texts of 16 bytes, so that the controls can put them in the place of hashes.
    """

    context: float
    reward: float
    person: str
    request: str
    since: float  # what was not written to after this need not be looked through

    @classmethod
    def fresh(cls) -> "Brought":
        feature, reward = (0.25 + secrets.randbits(52) / 2**53 for _ in range(2))
        return cls(
            feature,
            reward,
            f"Åsa {secrets.token_hex(6)[:11]}",
            f"request {secrets.token_hex(4)}",
            time.time() - 5.0,
        )


def written(value: float | str) -> Iterator[tuple[str, bytes]]:
    """The ways in which a value could stand in a file."""
    if isinstance(value, str):
        plain = {code: value.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be", "latin-1")}
        plain["in JSON"] = json.dumps(value)[1:-1].encode()
    else:
        plain = {"little endian": struct.pack("<d", value), "big endian": struct.pack(">d", value)}
        yield "decimal", repr(value)[:12].encode()
        yield "in hexadecimal", value.hex()[4:14].encode()
    for name, data in plain.items():
        yield name, data
        yield f"{name}, as hexadecimal digits", data.hex().encode()
        yield f"{name}, as capital digits", data.hex().upper().encode()
        for shift in range(3):  # a group of base64 begins at every third byte
            text = base64.b64encode(data[shift : shift + (len(data) - shift) // 3 * 3])
            yield f"{name}, in base64 from {shift}", text


def found_in(folder: Path, brought: Brought) -> set[str]:
    """Which of it is in any file of a folder."""
    values: list[float | str] = [*brought[:2], *brought[2:4]]
    pairs = zip(brought._fields, values, strict=False)
    forms = {name: [form for _, form in written(value)] for name, value in pairs}
    found = set()
    for path in folder.rglob("*"):
        changed = path.is_file() and path.stat().st_mtime >= brought.since
        data = path.read_bytes() if changed else b""
        found |= {name for name, some in forms.items() if any(form in data for form in some)}
    return found


class Place:
    """A database, a keyring, and the folder in which all of their files are."""

    def __init__(self, folder: Path, database: str, files: Path, cluster: Postgres | None) -> None:
        self.keyring, self.database, self._cluster = folder / "keyring", database, cluster
        self._folders, self.brought = {folder, files}, Brought.fresh()

    def settle(self) -> None:
        """Have everything written that a database would write some time later."""
        if self._cluster is not None:
            with psycopg.connect(self._cluster.url.replace("+psycopg", ""), autocommit=True) as db:
                db.execute("checkpoint")

    def canaries(self) -> set[str]:
        """Those on disk."""
        self.settle()
        return set().union(*(found_in(folder, self.brought) for folder in self._folders))


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "SQLite":
        return Place(tmp_path, str(tmp_path / "served.db"), tmp_path, None)
    cluster: Postgres = request.getfixturevalue("postgres")
    return Place(tmp_path, cluster.new_database(), cluster.folder, cluster)


@pytest.fixture(autouse=True)
def _uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dpb.linear.RandomizedLinUCB, "compiles", False)


class Sealed(dict[tuple[str, int, int], bytes]):
    """What was in the tables: (what, generation, number) → bytes."""


def rows(service: Service) -> Sealed:
    """The sealed rows now."""
    found = Sealed()
    with service.store.reading() as db:
        snapshot = db.execute(sa.select(snapshots)).one()
        found["snapshot", snapshot.generation, snapshot.generation] = bytes(snapshot.sealed)
        for row in db.execute(sa.select(log)):
            found["log", snapshot.generation, row.entry] = bytes(row.sealed)
    return found


async def until(holds: Any) -> None:
    async with asyncio.timeout(20.0):
        while not holds():
            await asyncio.sleep(0.02)


async def served(place: Place, monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], Sealed, set[str]]:
    """A decision and its reward: what is on disk while the round is open, and after the fold."""
    monkeypatch.setattr(forwarding, "_EVERY", 0.05)
    store = open_store(place.database)
    service = Service(store, open_keyring(store, place.keyring), declared=[Terms.read(TERMS)])
    service.start()
    try:
        await until(lambda: service.is_ready)
        one = service.named("canary")
        feature, reward, person, request, _ = place.brought
        features = [[feature, 0.25], [0.25, feature]]
        decided = await service.ask(service.decide_command(one, request, person, features))
        assert await service.ask(commands.Reward(one.id, decided.opened.number, reward))
        while_open, sealed = place.canaries(), rows(service)
        monkeypatch.setattr(writer, "_FOLD_EVERY", 0.1)
        await until(lambda: service.named("canary").counts == (1, 1))
        # The keyring follows.
        await until(lambda: _generation(place.keyring) > max(key[1] for key in sealed))
        return while_open, sealed, place.canaries()
    finally:
        await service.stop()


def _generation(keyring: Path) -> int:
    return int(json.loads(keyring.read_bytes())["keys"]["1"][0])


def test_nothing_that_was_brought_is_on_disk_and_old_rows_cannot_be_opened(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = list[bytes]()
    begin = Keyring.begin

    def spied(self: Keyring, experiment: int) -> Seal:
        seal = begin(self, experiment)
        keys.append(seal.key)
        return seal

    monkeypatch.setattr(Keyring, "begin", spied)
    while_open, sealed, after = asyncio.run(served(place, monkeypatch))
    assert while_open == after == set()
    # With the key of that time the rows open, and hold what was brought.
    first = Seal(1, 0, keys[0])
    opened = b"".join(
        _at(first, generation).open(what, number, data)
        for (what, generation, number), data in sealed.items()
    )
    assert {what for what, *_ in sealed} == {"log", "snapshot"}
    assert struct.pack("<d", place.brought.context) in opened
    assert struct.pack(">d", place.brought.reward) in opened
    # With what is left they do not.
    generation, key, head = json.loads(place.keyring.read_bytes())["keys"]["1"]
    left = Seal(1, generation, bytes.fromhex(key))
    for _ in range(3):
        for (what, then, number), data in sealed.items():
            with pytest.raises(ServiceError, match="cannot be opened"):
                Seal(1, then, left.key).open(what, number, data)
        left = left.next()
    with pytest.raises(ServiceError, match="older than what was answered"):
        Keyring(place.keyring, create=False).seal(1, generation - 1, head)


def _at(seal: Seal, generation: int) -> Seal:
    while seal.generation < generation:
        seal = seal.next()
    return seal


def test_where_nothing_is_sealed_or_hashed_every_canary_is_found(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seal, "close", lambda self, what, number, data: data)
    monkeypatch.setattr(Service, "_token", lambda self, one, person: person.encode())
    plain, request = hashlib.blake2b, place.brought.request.encode()

    def unhashed(data: bytes, **options: Any) -> Any:
        if data.endswith(request):
            return type("Plain", (), {"digest": lambda self: request})()
        return plain(data, **options)

    monkeypatch.setattr("dpbandits.service.service.hashlib.blake2b", unhashed)
    while_open, _, after = asyncio.run(served(place, monkeypatch))
    assert while_open == {"context", "reward", "person", "request"}
    assert {"context", "reward"} <= after  # in a log of the database's own, if nowhere else


def test_postgres_keeps_a_deleted_row_in_its_write_ahead_log(postgres: Postgres) -> None:
    """Why raw data is sealed, and not only deleted."""
    url, brought = postgres.new_database().replace("+psycopg", ""), Brought.fresh()
    raw = struct.pack("<d", brought.context), brought.reward, brought.person
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("create table plain (feature bytea, reward float8, person text)")
        db.execute("insert into plain values (%s, %s, %s)", raw)
        db.execute("delete from plain")
        db.execute("vacuum full plain")
        db.execute("checkpoint")
    assert {"context", "reward", "person"} <= found_in(postgres.folder / "data" / "pg_wal", brought)
