"""Databases and keyrings that are lost, damaged, exchanged or older than what was answered: refused."""

import asyncio
import json
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from callers import Load
from killing import TREE, Process, under_load

pytestmark = pytest.mark.slow

OTHER = {**TREE, "name": "other"}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a service that decided a little and was killed."""
    folder = tmp_path_factory.mktemp("killed")
    with Process(folder, faults=["forwarding"]) as one:
        play(one, "first")
    return folder


@pytest.fixture(name="process")
def after_a_kill(tmp_path: Path, killed: Path) -> Iterator[Process]:
    """Its keyring follows what was answered within half a second; folds are as usual."""
    folder = shutil.copytree(killed, tmp_path / "service")
    with Process(folder, faults=["forwarding"]) as one:
        yield one


def play(process: Process, name: str, decisions: int = 5, *, clean: bool = False) -> list[str]:
    """Start it, decide and reward a little, and end it; the tickets."""

    async def played() -> list[str]:
        process.start()
        await process.ready()
        tickets = []
        for number in range(decisions):
            told = await process.decide("tree", f"{name} {number}")
            tickets.append(str(told["ticket"]))
            assert await process.reward(tickets[-1], number / 8.0) == "recorded"
        await asyncio.sleep(1.0)  # the keyring moves on
        return tickets

    tickets = asyncio.run(played())
    if clean:
        assert process.stop() in (0, -signal.SIGTERM)
        assert log_rows(process) == 0
    else:
        process.kill()
    return tickets


def copy(process: Process, to: Path, *, keyring: bool = False) -> Path:
    """The files of a database, and its keyring if wanted."""
    to.mkdir()
    for file in process.folder.glob("service.db*"):
        shutil.copy2(file, to)
    if keyring:
        shutil.copy2(process.keyring, to)
    return to


def put_back(process: Process, copied: Path) -> None:
    for file in process.folder.glob("service.db*"):
        file.unlink()
    for file in copied.iterdir():
        shutil.copy2(file, process.folder)


def log_rows(process: Process) -> int:
    """How many entries a restart would have to replay."""
    with sqlite3.connect(process.database) as db:
        rows = int(db.execute("select count(*) from log").fetchone()[0])
    db.close()
    return rows


def change(process: Process, statement: str, *values: Any) -> None:
    """Write to its database behind its back."""
    with sqlite3.connect(process.database) as db:
        assert db.execute(statement, values).rowcount == 1
    db.close()


def test_a_database_from_before_a_fold_is_refused(process: Process, tmp_path: Path) -> None:
    old = copy(process, tmp_path / "old")
    play(process, "later", clean=True)
    put_back(process, old)
    assert "is older than what was answered from tree" in process.refused()


def test_a_database_from_before_the_last_answers_is_refused(process: Process, tmp_path: Path) -> None:
    """No fold lies between: the keyring knows the last entry of the log too."""
    old = copy(process, tmp_path / "old")
    play(process, "later")
    newest = copy(process, tmp_path / "newest")
    assert _generation(process) == 0
    put_back(process, old)
    assert "is older than what was answered from tree" in process.refused()
    put_back(process, newest)
    play(process, "and on")


def _generation(process: Process) -> int:
    generations: list[int] = [key[0] for key in json.loads(process.keyring.read_text())["keys"].values()]
    return max(generations)


def test_a_ticket_from_the_future(process: Process, tmp_path: Path) -> None:
    """Database and keyring are both restored: only callers can know, and are told."""
    play(process, "second", clean=True)
    old = copy(process, tmp_path / "old", keyring=True)
    later = play(process, "later", clean=True)
    put_back(process, old)

    async def told() -> str:
        process.start()
        await process.ready()
        return await process.reward(later[-1], 1.0)

    assert asyncio.run(told()) == "ticket-from-the-future"


def test_a_lost_keyring(process: Process) -> None:
    process.keyring.unlink()
    assert "there is no keyring at" in process.refused()
    assert not process.keyring.exists()


def test_the_keyring_of_another_database(process: Process, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    with Process(folder) as other:
        play(other, "theirs")
        shutil.copy2(other.keyring, process.keyring)
    assert "the keyring belongs to another database" in process.refused()


def test_a_damaged_keyring(process: Process) -> None:
    process.keyring.write_bytes(process.keyring.read_bytes()[:40])
    assert "is not a keyring, or it is damaged" in process.refused()


def test_an_older_keyring_opens_what_followed(process: Process, tmp_path: Path) -> None:
    """Later keys follow from earlier ones; it is never to be kept, but loses nothing."""
    play(process, "second", clean=True)
    old = tmp_path / "old.keyring"
    shutil.copy2(process.keyring, old)
    tickets = play(process, "later", clean=True)
    assert len(tickets) == len(play(process, "still later"))
    shutil.copy2(old, process.keyring)
    play(process, "and on")
    assert process.inspect()["tree"]["decided"] == 25


def test_a_keyring_from_before_an_experiment_began(process: Process, tmp_path: Path) -> None:
    old = tmp_path / "old.keyring"
    shutil.copy2(process.keyring, old)
    process.experiments = [TREE, OTHER]
    play(process, "later")
    shutil.copy2(old, process.keyring)
    assert "the keyring has no key of other" in process.refused()


def test_a_keyring_that_cannot_be_written(tmp_path: Path) -> None:
    """Old keys are not forgotten: after a while nothing more is decided, until they can be."""
    place = tmp_path / "keys"
    place.mkdir()
    away = tmp_path / "away"

    async def story(load: Load) -> None:
        await asyncio.sleep(1.0)
        place.rename(away)
        while await process.state() == "ready":
            await asyncio.sleep(0.1)
        assert await process.state() == "not-ready"
        assert "old keys are not forgotten" in process.said
        assert (await process.get("/health"))[0] == 200
        before = len(load.journal.answered_at)
        await asyncio.sleep(1.0)
        assert len(load.journal.answered_at) == before
        away.rename(place)
        await process.ready(within=5.0)

    with Process(tmp_path, keyring=place / "keyring", faults=["forwarding"]) as process:
        verdict = asyncio.run(under_load([process], story))
        assert verdict.counts.are_zero and verdict.decisions > 20, verdict
        place.rename(away)
        assert "the keyring" in process.refused()


def test_experiments_begin_and_end_without_a_keyring_to_write_to(tmp_path: Path) -> None:
    """To begin is refused, and the others go on; of one that ended the key is forgotten later."""
    place, away = tmp_path / "keys", tmp_path / "away"
    place.mkdir()

    async def story() -> None:
        process.start()
        await process.ready()
        place.rename(away)
        status, _ = await process.post("/v1/experiments", {**TREE, "name": "third"})
        assert status == 503
        await process.decide("tree", "still")
        status, told = await process.post("/v1/experiments/other/stop")
        assert status == 200, told
        await process.decide("tree", "and still")
        away.rename(place)
        while len(json.loads(process.keyring.read_text())["keys"]) > 1:
            await asyncio.sleep(0.1)
        await process.ready(within=5.0)
        status, _ = await process.post("/v1/experiments", {**TREE, "name": "third"})
        assert status == 201

    with Process(tmp_path, [TREE, OTHER], keyring=place / "keyring", faults=["forwarding"]) as process:
        asyncio.run(asyncio.wait_for(story(), 30.0))


def test_a_file_that_is_no_database(process: Process) -> None:
    for file in process.folder.glob("service.db*"):
        file.unlink()
    Path(process.database).write_bytes(b"nothing of the kind" * 1000)
    assert process.refused() == f"error: cannot use {process.database}: file is not a database"


def test_a_damaged_row_of_the_log(process: Process) -> None:
    with sqlite3.connect(process.database) as db:
        sealed = bytearray(db.execute("select sealed from log where entry = 3").fetchone()[0])
    db.close()
    sealed[20] ^= 1
    change(process, "update log set sealed = ? where entry = 3", bytes(sealed))
    assert "log 3 of experiment 1 cannot be opened: it was changed" in process.refused()


def test_two_rows_of_the_log_exchanged(process: Process) -> None:
    change(process, "update log set entry = 1000 where entry = 3")
    change(process, "update log set entry = 3 where entry = 4")
    change(process, "update log set entry = 4 where entry = 1000")
    assert "log 3 of experiment 1 cannot be opened" in process.refused()


@pytest.mark.parametrize(
    ("which", "sentence"),
    [
        ("entry = 3", "entry 3 of the log of tree is missing"),
        ("entry = (select max(entry) from log)", "were answered"),
    ],
)
def test_a_missing_row_of_the_log(process: Process, which: str, sentence: str) -> None:
    change(process, f"delete from log where {which}")
    assert sentence in process.refused()


def test_a_missing_snapshot(process: Process) -> None:
    change(process, "delete from snapshots")
    assert "the snapshot of tree is missing" in process.refused()


def test_another_machine_must_not_replay(process: Process) -> None:
    """Bits may differ where numpy does: first a clean stop where the log was written."""
    with sqlite3.connect(process.database) as db:
        here = str(db.execute("select fingerprint from snapshots").fetchone()[0])
    db.close()
    numpy = json.loads(here)["numpy"]
    there = here.replace(f'"{numpy}"', '"1.26.0"')
    assert there != here
    change(process, "update snapshots set fingerprint = ?", there)
    told = process.refused()
    assert "was not stopped cleanly" in told and f"numpy 1.26.0 (here {numpy})" in told
    change(process, "update snapshots set fingerprint = ?", here)
    play(process, "second", clean=True)
    change(process, "update snapshots set fingerprint = ?", there)
    play(process, "third")
