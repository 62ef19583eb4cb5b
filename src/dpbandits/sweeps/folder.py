"""Finished units on disk: a Parquet file for each, named by its hash, there as a whole or not at all."""

import json
from pathlib import Path

from dpbandits.errors import InvalidInput, SaveFileError
from dpbandits.extras import extra
from dpbandits.simulation import Trace
from dpbandits.simulation.whole_file import forget_drafts
from dpbandits.version import __version__

_MARK = "dpbandits-sweep.json"


class Folder:
    """A folder of results. Units of any number of sweeps may share it: each is named by its content."""

    def __init__(self, path: str | Path) -> None:
        with extra("tables"):  # before any work
            import polars  # noqa: F401
        self.path = Path(path)
        self.claims = self.path / "claims"
        self._units = self.path / "units"
        _refuse_others(self.path)

    def make(self) -> "Folder":
        """Make it where it is not there yet, and clear away what killed processes left."""
        try:
            self._units.mkdir(parents=True, exist_ok=True)
            self.claims.mkdir(exist_ok=True)
            mark = self.path / _MARK
            if not mark.exists():
                mark.write_text(
                    json.dumps({"folder of": "dpbandits sweep", "version": __version__}) + "\n"
                )
            forget_drafts(self._units)
        except OSError as error:
            raise InvalidInput(
                f"cannot write in {self.path}: {(error.strerror or '').lower()}"
            ) from None
        return self

    def file(self, name: str) -> Path:
        """Where a unit is kept."""
        return self._units / f"{name}.parquet"

    def has(self, name: str) -> bool:
        """Whether a unit is finished."""
        return self.file(name).exists()

    def names(self) -> set[str]:
        """All that is finished."""
        return {path.stem for path in self._units.glob("*.parquet")} if self._units.is_dir() else set()

    def read(self, name: str) -> Trace | None:
        """A finished unit; a file that cannot be read is removed, and None is returned for it."""
        try:
            return Trace.load(self.file(name))
        except SaveFileError:
            self.file(name).unlink(missing_ok=True)
            return None

    def write(self, name: str, trace: Trace) -> None:
        """Keep a unit."""
        trace.save(self.file(name))


def _refuse_others(path: Path) -> None:
    """A folder with other things in it was meant for something else."""
    try:
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"{path} is a file, not a folder for results")
        if path.is_dir() and any(path.iterdir()) and not (path / _MARK).exists():
            raise InvalidInput(
                f"{path} holds other files than those of a sweep: give a folder of its own"
            )
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {(error.strerror or '').lower()}") from None
