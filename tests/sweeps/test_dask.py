"""Sweeps on a Dask cluster of real processes: the numbers of threads, whatever happens to a worker."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import dpbandits as dpb
from dpbandits.errors import InvalidInput, SweepError
from dpbandits.sweeps.dask import Dask, _refuse_other

pytestmark = [
    pytest.mark.slow,
    # Of Dask itself, when its processes end.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PLAN: dict[str, Any] = {
    "policies": [dpb.NoiseAwareIMED, dpb.arms.LazyUCB, dpb.arms.UCB1],
    "environments": [dpb.worlds.BernoulliArms(means) for means in ((0.9, 0.5), (0.6, 0.5, 0.4))],
    "budgets": ["eps=0.5", "eps=2"],
    "rounds": 3000,
    "runs": 12,
    "seed": 5,
    "points": 5,
    "block": 3,
    "progress": False,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from distributed import LocalCluster

    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=None
    ) as found:
        yield found


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    from distributed import Client

    with Client(cluster) as found:  # type: ignore[no-untyped-call]
        yield found


def test_the_table_is_that_of_threads(cluster: Any, client: Any, tmp_path: Path) -> None:
    threads = dpb.sweep(**PLAN, results=tmp_path / "threads", threads=2)
    assert dpb.sweep(**PLAN, results=tmp_path / "client", on=client).equals(threads)
    address = cluster.scheduler_address
    assert dpb.sweep(**PLAN, results=tmp_path / "address", on=address).equals(threads)


def test_a_killed_worker_costs_its_unit_only(client: Any, tmp_path: Path) -> None:
    plan = PLAN | {"rounds": 200_000, "block": 1}
    folder = tmp_path / "dask" / "units"
    before = set(client.run(os.getpid).values())
    died_at = []

    def kill() -> None:
        while not folder.is_dir() or len(list(folder.glob("*.parquet"))) < 20:
            time.sleep(0.01)
        died_at.append(len(list(folder.glob("*.parquet"))))
        os.kill(min(before), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = dpb.sweep(**plan, results=tmp_path / "dask", on=client)
    killer.join()
    assert 20 <= died_at[0] < 120
    assert set(client.run(os.getpid).values()) != before
    assert found.equals(dpb.sweep(**plan, results=tmp_path / "threads"))


def test_a_worker_with_other_versions_is_refused() -> None:
    from dpbandits.sweeps.unit import VERSIONS

    _refuse_other(VERSIONS)
    with pytest.raises(InvalidInput, match=r"has numpy .*, this machine 0\.1: numbers would differ"):
        _refuse_other(VERSIONS | {"numpy": "0.1"})


def test_a_unit_that_no_worker_survives_is_a_sentence(client: Any) -> None:
    from distributed import KilledWorker

    died: Future[dpb.Trace] = Future()
    died.set_exception(KilledWorker("unit", None, 3))  # type: ignore[arg-type]
    with pytest.raises(SweepError, match="4 Dask workers died on one unit"):
        Dask(client).result(died)


def test_where_no_scheduler_answers_a_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpbandits.sweeps.dask._PATIENCE", 0.5)
    with pytest.raises(InvalidInput, match="no Dask scheduler answers at tcp"):
        dpb.sweep(**PLAN, results=tmp_path / "r", on="tcp://127.0.0.1:9")
