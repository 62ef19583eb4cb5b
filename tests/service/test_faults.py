"""Disks that fill up or break, databases that restart, writers that freeze or that are two at once."""

import asyncio
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from callers import Load
from judging import Verdict
from killing import CHANGING, LINEAR, PEOPLE, TREE, Process, under_load
from needed import missing
from postgres import Postgres, find_postgres
from small_disk import small_disk

pytestmark = pytest.mark.slow

EXPERIMENTS = (TREE, PEOPLE, CHANGING)


def check(verdict: Verdict, *, decisions: int = 50) -> None:
    print(verdict)
    assert verdict.counts.are_zero, verdict
    assert verdict.decisions > decisions


def test_disk_full(tmp_path: Path) -> None:
    """While there is no room nothing is answered; the process lives, and goes on when there is some."""
    with small_disk(tmp_path / "disk") as disk:
        process = Process(
            tmp_path,
            EXPERIMENTS,
            database=str(disk.folder / "service.db"),
            keyring=disk.folder / "keyring",
            faults=["brisk"],
        )
        with process:

            async def story(load: Load) -> None:
                for _ in range(3):
                    await asyncio.sleep(1.0)
                    await full_for_a_while(process, load)
                    print(f"back after {await load.answered(1, 15):.2f} s")

            async def full_for_a_while(process: Process, load: Load) -> None:
                while await process.state() == "ready":
                    disk.fill()
                    await asyncio.sleep(0.02)
                before, silent = len(load.journal.answered_at), 0
                for _ in range(200):
                    disk.fill()  # what a closed connection gave back
                    await asyncio.sleep(0.05)
                    assert (await process.get("/health"))[0] == 200
                    now = len(load.journal.answered_at)
                    before, silent = now, silent + 1 if now == before else 0
                    if silent == 30:
                        break
                assert silent == 30, "it answers, though there is no room"
                disk.free()

            check(asyncio.run(under_load([process], story)))
            assert "full" in process.said


def test_disk_full_under_postgresql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL stops for want of room for its log; the service waits for it."""
    programs = find_postgres() or missing("PostgreSQL")
    # Where another user may go too: as root, PostgreSQL runs as one.
    with tempfile.TemporaryDirectory() as place, small_disk(Path(place) / "disk", 100) as disk:
        Path(place).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", str(disk.folder))
        cluster = Postgres(programs)
        monkeypatch.undo()

        async def story(load: Load) -> None:
            await asyncio.sleep(1.0)
            while await process.state() == "ready":
                disk.fill()
                await asyncio.sleep(0.05)
            assert (await process.get("/health"))[0] == 200
            disk.free()
            await asyncio.to_thread(cluster.restart, "immediate")
            print(f"answered again {await load.answered(1, 15):.2f} s after PostgreSQL")

        try:
            database = cluster.new_database()
            with Process(tmp_path, EXPERIMENTS, database=database, faults=["brisk"]) as process:
                check(asyncio.run(under_load([process], story)))
                assert process.starts == 1
                assert "No space left on device" in cluster.log()
        finally:
            cluster.remove()


def test_postgresql_restarts(tmp_path: Path, postgres: Postgres) -> None:
    async def story(load: Load) -> None:
        for mode in ("immediate", "fast", "immediate", "fast"):
            await asyncio.sleep(1.0)
            await asyncio.to_thread(postgres.restart, mode)
            print(f"{mode}: answered again {await load.answered(1, 15):.2f} s after PostgreSQL")

    database, experiments = postgres.new_database(), (*EXPERIMENTS, LINEAR)
    with Process(tmp_path, experiments, database=database, faults=["brisk"]) as process:
        check(asyncio.run(under_load([process], story)))
        assert process.starts == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_two_writers_without_locks(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The fence alone keeps them apart."""
    database = None
    if kind == "postgresql":
        database = request.getfixturevalue("postgres").new_database()
    one, other = (
        Process(tmp_path, EXPERIMENTS, database=database, faults=["brisk", "unlocked"], name=name)
        for name in ("one", "other")
    )

    async def story(load: Load) -> None:
        await asyncio.sleep(10.0)

    with one, other:
        check(asyncio.run(under_load([one, other], story)))
        fenced = [process.said.count("another process writes now") for process in (one, other)]
        print(f"{fenced} times fenced")
        assert min(fenced) >= 3


def test_a_stopped_writer_is_replaced_and_fenced(tmp_path: Path, postgres: Postgres) -> None:
    database = postgres.new_database()
    one, other = (
        Process(tmp_path, EXPERIMENTS, database=database, name=name) for name in ("one", "other")
    )

    async def story(load: Load) -> None:
        assert (await one.state(), await other.state()) == ("ready", "standby")
        await asyncio.sleep(1.0)
        one.send(signal.SIGSTOP)
        print(f"replaced after {await other.ready():.1f} s")
        await load.answered(1, 5.0)
        one.send(signal.SIGCONT)
        while await one.state() != "standby":
            await asyncio.sleep(0.05)
        assert await other.state() == "ready"
        await load.answered(1, 5.0)

    with one, other:
        check(asyncio.run(under_load([one, other], story)))


def test_a_standby_takes_over_after_a_kill(tmp_path: Path, postgres: Postgres) -> None:
    database = postgres.new_database()
    pair = [Process(tmp_path, EXPERIMENTS, database=database, name=name) for name in ("one", "other")]

    async def story(load: Load) -> None:
        for turn in range(4):
            await asyncio.sleep(1.0)
            writer, standby = pair[turn % 2], pair[1 - turn % 2]
            writer.kill()
            took = await standby.ready(within=10.0)
            print(f"handed over after {took:.1f} s")
            await load.answered(1, 5.0)
            writer.start()
            await writer.ready_or_standing_by()
            assert await writer.state() == "standby"

    with pair[0], pair[1]:
        check(asyncio.run(under_load(pair, story)))


def test_a_writer_that_recovers_for_long_is_left_alone(tmp_path: Path, postgres: Postgres) -> None:
    """At the first start, and when nobody has given a sign of life for long."""
    database = postgres.new_database()
    one, other = (
        Process(tmp_path, [TREE], database=database, faults=["slow"], name=name)
        for name in ("one", "other")
    )

    async def story() -> None:
        one.start()  # alone: the keyring is made with the database
        while "ledgers are signed" not in one.said:
            await asyncio.sleep(0.02)
        for _ in range(2):
            other.start()
            if not one.is_alive:
                one.start()
            began = time.monotonic()
            while "ready" not in (await one.state(), await other.state()):
                assert time.monotonic() - began < 25.0
                await asyncio.sleep(0.1)
            one.kill()
            other.kill()
            with psycopg.connect(database.replace("+psycopg", "")) as db:
                db.execute("update service set beat = beat - 100")

    with one, other:
        asyncio.run(story())
        assert "cannot be used" not in one.said + other.said


def refuse_syncs(process: Process) -> None:
    """From now on the kernel answers EIO to fdatasync."""
    Path(process.settings["BROKEN_DISK"]).touch()


def refuse_writes(process: Process) -> None:
    """From now on files end soon after where the witness is: an error in writing that is not "full"."""
    most = process.witness.stat().st_size + 200_000
    resource.prlimit(process.child.pid, resource.RLIMIT_FSIZE, (most, most))


@pytest.mark.parametrize("broken", [refuse_syncs, refuse_writes])
def test_a_broken_disk_ends_the_process(broken: Callable[[Process], None], tmp_path: Path) -> None:
    """Nobody knows what is on it: only a new process may go on, and nothing is answered meanwhile."""
    if os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("the numbers of system calls are known for two kinds of machine")

    async def story(load: Load) -> None:
        await asyncio.sleep(1.5)
        broken(process)
        began = time.monotonic()
        while process.is_alive:
            assert time.monotonic() - began < 30.0
            await asyncio.sleep(0.02)
        print(f"ended after {time.monotonic() - began:.2f} s")
        assert process.child.returncode == 2
        assert "the disk does not keep what it is given" in process.said
        process.faults.remove("fsync")
        process.start()
        await process.ready()
        await load.answered(1, 5.0)

    settings = {"BROKEN_DISK": str(tmp_path / "broken")}
    with Process(tmp_path, EXPERIMENTS, faults=["brisk", "fsync"], settings=settings) as process:
        check(asyncio.run(under_load([process], story)))


def test_clocks_that_jump(tmp_path: Path) -> None:
    """While it runs the wall's clock is not looked at; after a restart time goes on, never back."""
    clock = tmp_path / "clock"
    clock.write_text("0")
    day, expiries = 86_400, list[str]()

    async def story(load: Load) -> None:
        async def expiry() -> str:
            told = await process.decide("tree", f"clock {len(expiries)}")
            expiries.append(told["expires"])
            return str(told["ticket"])

        def restart() -> None:
            process.kill()
            process.start()

        await expiry()
        for moved in (-day, day, 0):
            clock.write_text(str(moved))
            await asyncio.sleep(0.5)
            held = await expiry()
        assert expiries[-1][:13] <= _later(expiries[0], 60)[:13]
        clock.write_text(str(day))
        restart()
        await process.ready()
        await expiry()
        assert await process.reward(held, 1.0) == "closed"  # a day later
        assert expiries[-1] > _later(expiries[0], day - 60)
        clock.write_text(str(-day))
        restart()
        await process.ready()
        await expiry()
        assert expiries == sorted(expiries)

    terms = [{**TREE, "patience": 600.0}, PEOPLE]
    faults, settings = ["brisk", "clock"], {"CLOCK": str(clock)}
    with Process(tmp_path, terms, faults=faults, settings=settings) as process:
        verdict = asyncio.run(under_load([process], story))
        process.verify_ledgers()
    assert verdict.counts.are_zero, verdict


def _later(moment: str, seconds: float) -> str:
    """An ISO time so much later."""
    from datetime import datetime, timedelta

    return (datetime.fromisoformat(moment) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
