"""Killed under load, again and again: nothing that was answered is ever undone or drawn twice.

A short loop of each; the long one is `DPBANDITS_KILLS=100 pytest tests/service/test_killing.py -rP`.
"""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from callers import Load
from killing import CHANGING, PEOPLE, TREE, Died, Process, killed_again_and_again

if TYPE_CHECKING:
    from postgres import Postgres

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("DPBANDITS_KILLS", "6"))
EXPERIMENTS = (TREE, PEOPLE, CHANGING)


async def add_an_arm(load: Load) -> None:
    assert await load.act("/v1/experiments/changing/actions", {"label": "four"}) in (201, 409)


async def retire_an_arm(load: Load) -> None:
    await load.retire("changing", "one")


def check_killing(process: Process) -> None:
    with process:
        verdict = asyncio.run(
            killed_again_and_again(process, KILLS, seed=KILLS, midway=[add_an_arm, retire_an_arm])
        )
        print(f"{KILLS} kills: {verdict}")
        assert verdict.counts.are_zero, verdict
        assert verdict.decisions > 20 * KILLS and verdict.acknowledged > 15 * KILLS
        assert verdict.replayed > 10 * KILLS
        assert process.verify_ledgers() > KILLS  # each start is an entry
        found = process.inspect()
        assert found["people"]["most_of_one_person"] == 2
        assert found["changing"]["labels"] == ["one", "two", "three", "four"]
        assert found["changing"]["retired"] == ["one"]
        assert all(one["closed"] > 0 and one["generation"] > 0 for one in found.values())


def test_killed_with_sqlite(tmp_path: Path) -> None:
    check_killing(Process(tmp_path, EXPERIMENTS, faults=["brisk"]))


def test_killed_with_postgresql(tmp_path: Path, postgres: "Postgres") -> None:
    database = postgres.new_database()
    check_killing(Process(tmp_path, EXPERIMENTS, database=database, faults=["brisk"]))


def test_answering_before_the_commit_is_caught(tmp_path: Path) -> None:
    with Process(tmp_path, EXPERIMENTS, faults=["brisk", "early"]) as process:
        try:
            verdict = asyncio.run(killed_again_and_again(process, 10, seed=3))
        except Died as died:  # the keyring was told of an answer that the database never had
            if "older than what was answered" in str(died):
                return
            raise
        print(verdict)
        counts = verdict.counts
        assert counts.answered_differently + counts.tickets_shared > 0
        assert counts.sums_wrong > 0


def test_fresh_generators_after_a_restart_are_refused(tmp_path: Path) -> None:
    """What was answered is in the log, and is not what other noise leads to."""
    with (
        Process(tmp_path, EXPERIMENTS, faults=["brisk", "fresh"]) as process,
        pytest.raises(Died, match="would now answer otherwise than it did in round"),
    ):
        asyncio.run(killed_again_and_again(process, 6, seed=3))


def test_fresh_generators_are_caught_where_a_restart_does_not_refuse(tmp_path: Path) -> None:
    with Process(tmp_path, [TREE], faults=["brisk", "fresh", "blind"]) as process:
        verdict = asyncio.run(killed_again_and_again(process, 3, seed=3))
        print(verdict)
        assert verdict.counts.noise_redrawn > 10
