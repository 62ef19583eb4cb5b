"""Finished runs of an interrupted simulation, kept so that the same call can resume."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.errors import SaveFileError
from dpbandits.simulation.run import Played


class Checkpoint:
    """A file of finished runs that belongs to exactly one simulation; no path, no file."""

    def __init__(self, path: str | Path | None, header: dict[str, Any], grid: NDArray[np.int64]) -> None:
        self.path = None if path is None else Path(path)
        self._header, self._grid = json.dumps(header, sort_keys=True), grid

    def read(self) -> dict[tuple[str, int], Played]:
        """The runs finished earlier; an error if the file is of another simulation."""
        if self.path is None or not self.path.exists():
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
        rows = zip(tasks, curves, seconds, strict=True)
        return {(label, run): Played(curve, float(spent)) for (label, run), curve, spent in rows}

    def write(self, played: dict[tuple[str, int], Played]) -> None:
        """Keep the finished runs, replacing an older file as a whole."""
        if self.path is None or not played:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(self.path.name + ".part")
        with draft.open("wb") as file:
            np.savez(
                file,
                header=np.frombuffer(self._header.encode(), np.uint8),
                tasks=np.frombuffer(json.dumps(list(played)).encode(), np.uint8),
                curves=np.stack([one.curves for one in played.values()]),
                seconds=np.array([one.seconds for one in played.values()]),
            )
        draft.replace(self.path)

    def forget(self) -> None:
        """Remove the file: the simulation is finished."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
