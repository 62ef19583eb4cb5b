"""Finished runs of a simulation that is under way, kept so that the same call can resume."""

import contextlib
import io
import json
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits.errors import SaveFileError
from dpbandits.simulation.run import Played
from dpbandits.simulation.whole_file import forget_drafts, whole_file

Finished = dict[tuple[str, int], Played]
_SECONDS = 5.0  # between two writings
_SHARE = 0.05  # of the time, at most, is spent on them


class Checkpoint:
    """A file of finished runs that belongs to exactly one simulation; no path, no file."""

    def __init__(self, path: str | Path | None, header: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self._header = json.dumps(header, sort_keys=True)
        self._kept = 0  # runs in the file

    def read(self) -> Finished:
        """The runs finished earlier; an error if the file is of another simulation."""
        if self.path is None:
            return {}
        forget_drafts(self.path.parent, self.path.name)
        if not self.path.exists():
            return {}
        try:
            with np.load(io.BytesIO(self.path.read_bytes()), allow_pickle=False) as archive:
                header = archive["header"].tobytes().decode()
                tasks = json.loads(archive["tasks"].tobytes())
                curves, seconds = archive["curves"], archive["seconds"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise SaveFileError(f"{self.path} is not a checkpoint that can be read: {error}") from error
        if header != self._header:
            raise SaveFileError(f"{self.path} is a checkpoint of another simulation; delete it first")
        self._kept = len(tasks)
        rows = zip(tasks, curves, seconds, strict=True)
        return {(label, run): Played(curve, float(spent)) for (label, run), curve, spent in rows}

    @contextlib.contextmanager
    def keeping(self, played: Finished) -> Iterator[None]:
        """Within, what is finished is written every few seconds, and when something is raised."""
        if self.path is None:
            yield
            return
        over = threading.Event()
        writer = threading.Thread(target=self._write_at_times, args=(played, over), daemon=True)
        writer.start()
        try:
            yield
        except BaseException:
            over.set()
            writer.join()
            self.write(played)
            raise
        over.set()
        writer.join()
        self.path.unlink(missing_ok=True)  # the simulation is finished

    def _write_at_times(self, played: Finished, over: threading.Event) -> None:
        pause = _SECONDS
        while not over.wait(pause):
            began = time.monotonic()
            with contextlib.suppress(OSError):  # a full disk may have room again
                self.write(played)
            pause = max(_SECONDS, (time.monotonic() - began) / _SHARE)

    def write(self, played: Finished) -> None:
        """Keep the finished runs, replacing an older file as a whole."""
        finished = dict(played)  # at one moment: another thread adds to it
        if self.path is None or len(finished) == self._kept:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self.path) as draft, draft.open("wb") as file:
            np.savez(
                file,
                header=np.frombuffer(self._header.encode(), np.uint8),
                tasks=np.frombuffer(json.dumps(list(finished)).encode(), np.uint8),
                curves=np.stack([one.curves for one in finished.values()]),
                seconds=np.array([one.seconds for one in finished.values()]),
            )
        self._kept = len(finished)
