"""The client and the service together, while the service is killed and started again."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpbandits.client import Client, Decision

pytestmark = pytest.mark.slow
VISITS = 300
KILLS = (60, 120, 180)  # after as many visits
EXPERIMENTS = Path(__file__).parents[2] / "examples" / "service" / "experiments.toml"


class Served:
    """`dpbandits serve` as a process that may be killed."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = folder
        self.said = folder / "said"

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "dpbandits",
            "serve",
            str(EXPERIMENTS),
            "--port",
            str(self.port),
        ]
        with self.said.open("a") as out:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=out)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def key(self) -> str:
        """The administrator's, which is printed once it serves."""
        while True:
            for word in self.said.read_text().split():
                if word.startswith("dpb_"):
                    return word
            assert self.process.poll() is None, self.said.read_text()
            time.sleep(0.05)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setitem(os.environ, "COLUMNS", "200")
    served = Served(tmp_path)
    served.start()
    yield served
    served.kill()


def test_nothing_is_lost_or_done_twice(served: Served) -> None:
    with Client(served.url, served.key(), retries=9) as client:
        decisions: list[Decision] = []
        recorded = 0
        for visit in range(VISITS):
            if visit in KILLS:  # while the next request is on its way
                threading.Timer(0.005, served.restart).start()
            decisions.append(client.decide("headline", person=str(visit)))
            recorded += client.reward(decisions[-1], 1.0)
        assert recorded == VISITS
        assert len({decision.ticket for decision in decisions}) == VISITS
        assert client.experiment("headline")["decided"] == VISITS
        for visit in range(0, VISITS, VISITS // 10):
            decision = decisions[visit]
            again = client.decide("headline", person=str(visit), request=decision.request)
            assert again.repeated
            assert (again.ticket, again.action) == (decision.ticket, decision.action)
            assert client.reward(decision, 1.0)
        kinds = [entry["kind"] for entry in client.ledger("headline")]
        assert kinds.count("resumed") == len(KILLS)
