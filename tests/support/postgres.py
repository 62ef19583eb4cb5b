"""A PostgreSQL of the tests' own: made in an empty folder, stopped, killed and thrown away."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import sql

_OWNER = "dpbandits"
_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_PATIENCE = 30.0  # seconds; recovery after a kill waits until the dead server's children are gone

Mode = Literal["smart", "fast", "immediate"]


def find_postgres() -> Path | None:
    """The folder of the newest server's programs: Debian keeps them out of the path."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda folder: float(folder.parent.name))
    program = shutil.which("initdb")
    return Path(program).resolve().parent if program else None


class Postgres:
    """A cluster on a socket in its own folder and on a free port of the loopback interface.

    Other processes of the machine need the password that is part of `url`.
    """

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="dpbandits-pg-"))  # sockets have short names
        self.port = free_port()
        self._password = secrets.token_hex(16)
        self._server: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._become = _somebody_else()
        if self._become:
            os.chown(self.folder, self._become["user"], self._become["group"])
        self._initialize()

    def start(self) -> None:
        """Start it and wait until it answers; nothing happens where it runs."""
        deadline = time.monotonic() + _PATIENCE
        while not self._answers():
            if time.monotonic() > deadline:
                raise TimeoutError(f"PostgreSQL does not start:\n{self.log()[-2000:]}")
            if not self.is_running:
                self._server = self._launch()
            time.sleep(0.05)

    def stop(self, mode: Mode = "fast") -> None:
        """Stop it: `fast` ends connections in order, `immediate` leaves recovery to the next start."""
        self._end(_SIGNALS[mode])

    def kill(self) -> None:
        """`kill -9` of the server; its children notice by themselves and end."""
        self._end(signal.SIGKILL)

    def restart(self, mode: Mode = "fast") -> None:
        """Stop and start, on the same port."""
        self.stop(mode)
        self.start()

    def new_database(self) -> str:
        """The address of an empty database; the cluster is started where a test left it down."""
        self.start()
        self._databases += 1
        name = f"test_{self._databases}"
        with self._connect() as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        return self.url_of(name)

    def url_of(self, database: str) -> str:
        """For SQLAlchemy; libpq's form, which psycopg takes, is without `+psycopg`."""
        return f"postgresql+psycopg://{_OWNER}:{self._password}@127.0.0.1:{self.port}/{database}"

    @property
    def url(self) -> str:
        """The address of the database that every cluster has."""
        return self.url_of("postgres")

    @property
    def is_running(self) -> bool:
        """Whether the server's process lives."""
        return self._server is not None and self._server.poll() is None

    def log(self) -> str:
        """What the server has said so far."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def remove(self) -> None:
        """Stop it and delete all that it wrote."""
        self.stop("immediate")
        shutil.rmtree(self.folder)

    def _initialize(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self._password)
        command = [str(self._programs / "initdb"), "--pgdata=data", f"--username={_OWNER}", "--no-sync"]
        command += [
            "--pwfile=password",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
        ]
        made = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **self._become)
        secret.unlink()
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr}")

    def _launch(self) -> subprocess.Popen[bytes]:
        command = [
            str(self._programs / "postgres"),
            "-D",
            "data",
            "-p",
            str(self.port),
            "-k",
            str(self.folder),
        ]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=16MB"]
        with (self.folder / "log").open("ab") as log:
            # A session of its own: Ctrl-C is for the tests, whose fixture then stops the server.
            return subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, start_new_session=True, **self._become
            )

    def _end(self, number: signal.Signals) -> None:
        if self._server is not None:
            self._server.send_signal(number)
            self._server.wait(_PATIENCE)
            self._server = None

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            host=str(self.folder), port=self.port, user=_OWNER, dbname="postgres", autocommit=True
        )

    def _answers(self) -> bool:
        if not self.is_running:
            return False
        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True


def _somebody_else() -> dict[str, Any]:
    """PostgreSQL refuses to run as root, so it then runs as the user Debian made for it."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
