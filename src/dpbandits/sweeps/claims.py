"""Who is playing what, so that several processes with one folder do not do the same twice.

A claim is a small file that one process makes, and touches as long as it works on the unit. Nothing but
time depends on claims: a unit that is played twice has the same numbers both times, and replaces itself
as a whole.
"""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Container
from pathlib import Path
from typing import Self

_BEAT = 5.0  # seconds between touches
_STALE = 60.0  # seconds after which an untouched claim is anybody's
_OURS: set[Path] = set()  # by this process; a claim of its number that is not here is of a former life


class Claims:
    """Those of one sweep; on leaving, all are given back."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._over = folder, threading.Event()
        self._clock = folder / f".clock-{socket.gethostname()}-{os.getpid()}-{id(self):x}"
        self._held: set[Path] = set()
        self._beat = threading.Thread(target=self._touch_at_times, daemon=True)

    def __enter__(self) -> Self:
        self._beat.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._beat.join()
        for path in list(self._held):
            self._give_back(path)
        self._clock.unlink(missing_ok=True)

    def take(self, name: str) -> bool:
        """Claim a unit, unless another process is at it."""
        path = claim_file(self._folder, name)
        if path.exists():
            if holder(self._folder, name, self._now()):
                return False
            path.unlink(missing_ok=True)
        try:
            with path.open("x") as file:  # fails if another process was quicker
                _OURS.add(path)
                self._held.add(path)
                json.dump({"host": socket.gethostname(), "pid": os.getpid()}, file)
        except FileExistsError:
            return False
        return True

    def release(self, name: str) -> None:
        """The unit is finished."""
        self._give_back(claim_file(self._folder, name))

    def _give_back(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._held.discard(path)
        _OURS.discard(path)

    def _touch_at_times(self) -> None:
        while not self._over.wait(_BEAT):
            for path in list(self._held):
                with contextlib.suppress(OSError):
                    os.utime(path)

    def _now(self) -> float:
        """By the clock of the disk, which other machines share."""
        self._clock.touch()
        return self._clock.stat().st_mtime


def holder(folder: Path, name: str, now: float) -> str:
    """Who is playing a unit; nobody where its claim was left by a process that is gone."""
    path = claim_file(folder, name)
    try:
        touched = path.stat().st_mtime
        found = json.loads(path.read_text())
        host, pid = str(found["host"]), int(found["pid"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError):  # as when it is just being made
        host, pid = "", 0
    gone = not _is_alive(pid) or (pid == os.getpid() and path not in _OURS)
    if now - touched > _STALE or (host == socket.gethostname() and gone):
        return ""
    return f"{host} (process {pid})" if host else "somebody"


def forget_claims(folder: Path, finished: Container[str]) -> None:
    """Remove claims on finished units, left by processes that were killed at that moment."""
    for path in folder.glob("*.json"):
        if path.stem in finished:
            path.unlink(missing_ok=True)


def claim_file(folder: Path, name: str) -> Path:
    """Where a unit is claimed."""
    return folder / f"{name}.json"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True
