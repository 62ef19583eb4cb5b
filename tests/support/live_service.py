"""The real `dpbandits serve`, as a process of its own on a free port, in a folder of its own."""

import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from dpbandits.client import AsyncClient, Client

Terms = Mapping[str, Any]
_PATIENCE = 60.0  # seconds until it serves: the first run on a machine compiles


class LiveService:
    """A service that is started, stopped, killed and started again on the same database.

    `said` is all that it wrote, both its standard output and its standard error.
    """

    def __init__(
        self, folder: Path, *, database: str | None = None, options: Sequence[str] = ()
    ) -> None:
        self.folder, self.options = folder, list(options)
        self.database = str(folder / "service.db") if database is None else database
        self.keyring = folder / "service.keyring"
        self.port = free_port()
        self.admin = ""  # the administrator's key, once it was shown
        self.said = ""
        self.process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._client: httpx.Client | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, experiments: Sequence[Terms] = ()) -> "LiveService":
        """Start it and wait until it says that it serves."""
        arguments = ["--db", self.database, "--keyring", str(self.keyring), "--port", str(self.port)]
        if experiments:
            arguments.insert(0, str(toml_file(self.folder, experiments)))
        self.process = launch("serve", *arguments, *self.options)
        lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._listen, args=(self.process, lines), daemon=True)
        self._reader.start()
        deadline = time.monotonic() + _PATIENCE
        while (line := lines.get(timeout=max(0.0, deadline - time.monotonic()))) is not None:
            if found := re.search(r"shown this once: (\S+)", line):
                self.admin = found.group(1)
            if " at http://" in line:
                return self
        raise AssertionError(f"it did not start:\n{self.said}")

    def _listen(self, process: "subprocess.Popen[str]", lines: "queue.Queue[str | None]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.said += line
            lines.put(line)
        lines.put(None)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send it a signal and wait; its exit status."""
        process, self.process = self.process, None
        assert process is not None and self._reader is not None and process.stdout is not None
        process.send_signal(number)
        status = process.wait(30)
        self._reader.join()
        process.stdout.close()
        return status

    def restart(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it and start it again; the experiments are in its database."""
        self.end(number)
        self.start()

    @property
    def http(self) -> httpx.Client:
        """A plain client with the administrator's key."""
        if self._client is None:
            headers = {"authorization": f"Bearer {self.admin}"}
            self._client = httpx.Client(base_url=self.url, headers=headers, timeout=30)
        return self._client

    def client(self, key: str | None = None, **options: Any) -> Client:
        """The package's own client."""
        return Client(self.url, self.admin if key is None else key, **options)

    def async_client(self) -> AsyncClient:
        """The same for asyncio."""
        return AsyncClient(self.url, self.admin)

    def begin(self, **terms: Any) -> None:
        """Begin an experiment."""
        answer = self.http.post("/v1/experiments", json=terms)
        assert answer.status_code == 201, answer.text

    def new_key(self, name: str, *scopes: str, **limits: Any) -> str:
        """An API key."""
        answer = self.http.post("/v1/keys", json={"name": name, "scopes": scopes, **limits})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["key"])

    def memory(self) -> float:
        """Resident memory of the process, in megabytes."""
        assert self.process is not None
        told = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", told)
        assert found is not None
        return int(found.group(1)) / 1024.0

    def close(self) -> None:
        """End it, whatever it does."""
        if self._client is not None:
            self._client.close()
        if self.process is not None:
            self.end(signal.SIGTERM if self.process.poll() is None else signal.SIGKILL)


@contextmanager
def live_service(
    folder: Path,
    experiments: Sequence[Terms] = (),
    *,
    database: str | None = None,
    options: Sequence[str] = (),
) -> Iterator[LiveService]:
    """A service that runs for as long as the block; `database` is an SQLite file unless given."""
    service = LiveService(folder, database=database, options=options)
    try:
        yield service.start(experiments)
    finally:
        service.close()


def launch(*arguments: str, **options: Any) -> "subprocess.Popen[str]":
    """`dpbandits …` in a process of its own, with one stream for all that it says."""
    program = "from dpbandits.cli.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "COLUMNS": "100"},
        start_new_session=True,  # Ctrl-C is for the tests
        **options,
    )


def toml_file(folder: Path, experiments: Sequence[Terms]) -> Path:
    """A file that declares experiments. JSON's texts, numbers and lists are TOML's too."""
    path = folder / "experiments.toml"
    tables = (
        "\n".join(f"{term} = {_toml(value)}" for term, value in one.items()) for one in experiments
    )
    path.write_text("\n".join(f"[[experiment]]\n{table}\n" for table in tables), encoding="utf-8")
    return path


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
