"""The real `dpbandits sweep`, killed in three ways, ends with the table of one left in peace."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

pytestmark = [
    pytest.mark.slow,
    # Of Dask itself, when its processes end.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PLAN = """
policies = ["noise-aware-imed", "lazy-ucb", "ucb1"]
budgets = ["eps=0.5", "eps=2"]
rounds = 1e5
runs = 16
points = 5
block = 2

[environments]
two = "bernoulli-arms:means=.9 .5"
five = "bernoulli-arms"
"""
UNITS = 2 * (2 + 2 + 1) * 8


class Sweeps:
    """Processes that sweep into one folder, and how many units that has."""

    def __init__(self, folder: Path) -> None:
        self.plan, self.results = folder / "plan.toml", folder / "killed"
        self.said = folder / "said.txt"  # by the one that began last
        self.plan.write_text(PLAN)

    def finished(self) -> int:
        return len(list((self.results / "units").glob("*.parquet")))

    def begin(self, *options: str) -> "subprocess.Popen[bytes]":
        """One that has finished some more units."""
        enough = self.finished() + 10
        command = [sys.executable, "-m", "dpbandits", "sweep", str(self.plan), "--results"]
        quiet = subprocess.DEVNULL
        with self.said.open("wb") as said:
            process = subprocess.Popen(
                [*command, str(self.results), *options], stdout=quiet, stderr=said
            )
        while self.finished() < enough and process.poll() is None:
            time.sleep(0.01)
        assert self.finished() < UNITS
        return process

    def stamps(self) -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (self.results / "units").glob("*.parquet")}


def test_killed_three_times_then_finished(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    sweeps = Sweeps(tmp_path)
    killed = sweeps.begin()
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    ended = sweeps.begin()
    ended.terminate()
    assert ended.wait(30) == 143
    said = sweeps.said.read_text()
    assert f"stopped; finished units are kept in {sweeps.results}, and the same command resumes" in said
    before = sweeps.stamps()
    saved = tmp_path / "table.parquet"
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,  # type: ignore[no-untyped-call]
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        worker = min(client.run(os.getpid).values())
        last = sweeps.begin("--scheduler", cluster.scheduler_address, "--save", str(saved))
        os.kill(worker, signal.SIGKILL)
        assert last.wait(120) == 0
    after = sweeps.stamps()
    assert (
        len(after) == UNITS and after.items() >= before.items()
    )  # what was finished was not done again
    assert list((sweeps.results / "claims").iterdir()) == []
    sweeps.results = tmp_path / "in peace"
    command = [sys.executable, "-m", "dpbandits", "sweep", str(sweeps.plan), "--threads", "2"]
    peaceful = tmp_path / "peaceful.parquet"
    subprocess.run([*command, "--save", str(peaceful)], check=True, capture_output=True)
    assert pl.read_parquet(saved).equals(pl.read_parquet(peaceful))
    assert saved.read_bytes() == peaceful.read_bytes()


def test_two_processes_with_one_folder_share_the_work(tmp_path: Path) -> None:
    sweeps = Sweeps(tmp_path)
    one, other = sweeps.begin(), sweeps.begin()
    assert one.wait(120) == 0 and other.wait(120) == 0
    assert sweeps.finished() == UNITS
