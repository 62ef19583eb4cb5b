"""What deploy/compose.yaml starts, without containers: PostgreSQL, service, standby and HAProxy."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from needed import program
from postgres import Postgres, free_port

pytestmark = pytest.mark.slow

DEPLOY = Path(__file__).parents[1] / "deploy"
_PATIENCE = 30.0  # seconds, of a busy machine


class Deployment:
    """What compose would start, each part as a process of its own."""

    def __init__(self, folder: Path, postgres: Postgres) -> None:
        self.folder = folder
        self._database = urllib.parse.urlsplit(postgres.new_database().replace("+psycopg", ""))
        self.ports = {name: free_port() for name in ("entrance", "service", "standby")}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """The command of the compose file, with this machine's addresses and folders."""
        services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
        words = shlex.split(services[name]["command"][0].replace("$$", "$"))
        words = [sys.executable, "-m", *words[words.index("dpbandits") :]]
        here = self._database
        for option, value in {
            "--db": f"postgresql://{here.username}@{here.hostname}:{here.port}{here.path}",
            "--keyring": str(self.folder / "keyring.json"),
            "--host": "127.0.0.1",
            "--port": str(self.ports[name]),
        }.items():
            words[words.index(option) + 1] = value
        words[words.index("/etc/dpbandits/experiments.toml")] = str(DEPLOY / "experiments.toml")
        self._launch(name, words)

    def open_the_entrance(self) -> None:
        """HAProxy with the file of deploy/, but for names that only containers have."""
        text = (DEPLOY / "haproxy.cfg").read_text()
        assert text.count(" resolvers docker init-addr none") == 1
        text = text.replace(" resolvers docker init-addr none", "")
        text = re.sub(r"resolvers docker\n(    .*\n)+", "", text)
        text = text.replace("bind :8000", f"bind 127.0.0.1:{self.ports['entrance']}")
        for name in ("service", "standby"):
            text = text.replace(f"{name}:8000", f"127.0.0.1:{self.ports[name]}")
        path = self.folder / "haproxy.cfg"
        path.write_text(text)
        self._launch("entrance", [program("haproxy"), "-db", "-f", str(path)])

    def _launch(self, name: str, words: list[str]) -> None:
        environment = {**os.environ, "PGPASSWORD": str(self._database.password)}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(words, stdout=log, stderr=log, env=environment)

    def said(self, name: str) -> str:
        """What a part has printed."""
        return (self.folder / f"{name}.log").read_text()

    def status(self, name: str, path: str) -> int:
        """What a part answers; 0 for nothing."""
        return self.ask(name, path)[0]

    def ask(self, name: str, path: str, body: object = None, key: str = "") -> tuple[int, Any]:
        """One request; its status, 0 if there was no answer, and what was answered."""
        assert self.processes[name].poll() is None, self.said(name)
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports[name]}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, json.loads(answer.read() or b"null") if key else None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, None
        except OSError:
            return 0, None

    def close(self) -> None:
        """End all that lives."""
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()


def until(found: Callable[[], bool], what: str) -> float:
    """Wait for it; how long it took."""
    began = time.monotonic()
    while not found():
        assert time.monotonic() - began < _PATIENCE, f"no sign of {what}"
        time.sleep(0.05)
    return time.monotonic() - began


@pytest.fixture
def deployment(postgres: Postgres, tmp_path: Path) -> Iterator[Deployment]:
    deployed = Deployment(tmp_path, postgres)
    try:
        deployed.start("service")
        until(lambda: deployed.status("service", "/ready") == 200, "the service")
        deployed.start("standby")
        until(lambda: deployed.status("standby", "/health") == 200, "the standby")
        deployed.open_the_entrance()
        until(lambda: deployed.status("entrance", "/ready") == 200, "the entrance")
        yield deployed
    finally:
        deployed.close()


def _decide(deployed: Deployment, key: str, visit: int) -> dict[str, Any]:
    """Ask as a client does, again and again with the same request key."""
    path, body = "/v1/experiments/headline/decide", {"request": f"visit-{visit}", "person": str(visit)}
    answers: list[dict[str, Any]] = []

    def answered() -> bool:
        status, answer = deployed.ask("entrance", path, body, key)
        assert status in (0, 200, 502, 503, 504), status
        answers.extend([answer] if status == 200 else [])
        return bool(answers)

    until(answered, "a decision")
    return answers[0]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_the_standby_goes_on_behind_the_same_address(
    deployment: Deployment, end: signal.Signals
) -> None:
    found = re.search(r"dpb_[\w-]+", deployment.said("service"))
    assert found, deployment.said("service")
    key = found[0]
    assert deployment.status("standby", "/ready") == 503 and deployment.status("standby", "/") == 200
    before = [_decide(deployment, key, visit) for visit in range(20)]
    reward = {"ticket": before[0]["ticket"], "reward": 1}
    assert deployment.ask("entrance", "/v1/reward", reward, key) == (
        200,
        {"recorded": True, "repeated": False},
    )

    deployment.processes["service"].send_signal(end)
    deployment.processes["service"].wait(30)
    took = until(lambda: deployment.status("entrance", "/ready") == 200, "the standby's turn")
    again = [_decide(deployment, key, visit) for visit in range(20)]
    for one, other in zip(before, again, strict=True):
        assert other["repeated"] and (one["ticket"], one["action"]) == (other["ticket"], other["action"])
    assert deployment.ask("entrance", "/v1/reward", reward, key)[1]["repeated"]
    assert len({one["ticket"] for one in [*before, _decide(deployment, key, 99)]}) == 21

    deployment.start("service")  # comes back as the standby
    until(lambda: deployment.status("service", "/health") == 200, "the old writer")
    assert deployment.status("service", "/ready") == 503
    print(f"handed over in {took:.1f} s")


def test_the_examples_fit_what_is_deployed(deployment: Deployment) -> None:
    found = re.search(r"dpb_[\w-]+", deployment.said("service"))
    assert found, deployment.said("service")
    url = f"http://127.0.0.1:{deployment.ports['entrance']}"
    examples = DEPLOY.parent / "examples" / "service"
    settings = {**os.environ, "URL": url, "KEY": found[0], "PERSON": "anna"}
    for command in ([program("sh"), "decide.sh"], [sys.executable, "reader.py", "headline", "3"]):
        done = subprocess.run(command, cwd=examples, env=settings, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    key = found[0]

    def counted() -> bool:  # what is public is read anew every other second
        return bool(deployment.ask("entrance", "/v1/experiments/headline", key=key)[1]["decided"] == 4)

    until(counted, "the four decisions")


def test_the_password_is_told_to_nobody(deployment: Deployment, postgres: Postgres) -> None:
    password = str(urllib.parse.urlsplit(postgres.url).password)
    for name, process in deployment.processes.items():
        assert password not in deployment.said(name)
        assert password not in Path(f"/proc/{process.pid}/cmdline").read_text()
