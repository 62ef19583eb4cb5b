"""Some runs of one policy on one world: played as one, kept as one, and named by all that makes them."""

import hashlib
import inspect
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy
import scipy

from dpbandits import checks
from dpbandits.policies import Policy
from dpbandits.recipes import Recipe
from dpbandits.simulation import Trace, simulate
from dpbandits.simulation.gpu import about_gpu
from dpbandits.simulation.progress import RoundsBar
from dpbandits.simulation.replicate import Device
from dpbandits.simulation.timing import Timing
from dpbandits.version import __version__
from dpbandits.worlds import Environment

# Folders of this package whose code may change a number.
_PLAYED = ("engine", "mechanisms", "policies", "privacy", "problems", "simulation", "sums", "worlds")


def _sources() -> str:
    """A hash of them: whoever edits a policy must not be shown units of before."""
    root, found = Path(__file__).parents[1], hashlib.sha256()
    for folder in _PLAYED:
        for file in sorted((root / folder).rglob("*.py")):
            found.update(file.read_bytes() + b"\0")
    return found.hexdigest()[:12]


# What may change a number; the interpreter does not.
VERSIONS = {
    "dpbandits": f"{__version__}+{_sources()}",
    "numpy": numpy.__version__,
    "numba": numba.__version__,
    "scipy": scipy.__version__,
}


# A unit has about this many rounds (seconds of work), and at most so many rows in its table.
_ROUNDS: dict[Device, int] = {"cpu": 20_000_000, "cuda": 20_000_000_000}
_ROUNDS_IN_LEAPS = 5_000_000_000
_ROWS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What one worker plays in one piece."""

    policy: Policy
    environment: Environment
    rounds: int
    runs: range
    seed: int
    points: int = 100
    timing: Timing = field(default_factory=Timing)
    rounds_per_person: int | None = None
    device: Device = "cpu"
    leaps: bool = False
    code: str = ""  # of a policy or world from outside this package: see `code_of`

    @property
    def total_rounds(self) -> int:
        """Over all its runs."""
        return self.rounds * len(self.runs)

    def name(self) -> str:
        """A hash of all that determines its numbers, and of nothing else."""
        record = {
            "format": 1,
            "policy": self.policy.to_dict(),
            "environment": self.environment.to_dict(),
            "rounds": self.rounds,
            "runs": [self.runs.start, self.runs.stop],
            "seed": self.seed,
            "points": self.points,
            "timing": self.timing.to_dict(),
            "rounds_per_person": self.rounds_per_person,
            "made_by": _made_by(self.device),
            "versions": VERSIONS,
            "code": self.code,
        } | ({"leaps": True} if self.leaps else {})
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def play(self, *, threads: int = 1, progress: bool | RoundsBar = False) -> Trace:
        """Its trace."""
        return simulate(
            self.policy,
            self.environment,
            self.rounds,
            self.runs,
            self.seed,
            device=self.device,
            leaps=self.leaps,
            threads=threads,
            progress=progress,
            points=self.points,
            rounds_per_person=self.rounds_per_person,
            **self.timing.options(),
        )


def blocks(
    rounds: int, runs: int, points: int, device: Device, size: int | None = None, *, leaps: bool = False
) -> list[range]:
    """Runs cut into pieces of some seconds' work each. More runs begin with the same pieces."""
    most = min(
        (_ROUNDS_IN_LEAPS if leaps else _ROUNDS[device]) // rounds, _ROWS // points, checks.MOST_ACTIONS
    )
    step = size or max(1, most)
    return [range(first, min(runs, first + step)) for first in range(0, runs, step)]


@cache
def _made_by(device: Device) -> dict[str, str]:
    return about_gpu() if device == "cuda" else {"device": "cpu", "generator": "PCG64"}


def code_of(*recipes: Recipe) -> str:
    """A hash of the files of classes from outside this package, which no version tells apart."""
    kinds = {kind for recipe in recipes for kind in type(recipe).__mro__}
    outside = sorted({_file(kind) for kind in kinds if not _has_a_version(kind)})
    found = hashlib.sha256()
    for file in outside:
        found.update(Path(file).read_bytes() + b"\0")
    return found.hexdigest() if outside else ""


def _has_a_version(kind: type[Any]) -> bool:
    return kind.__module__.split(".")[0] in ("dpbandits", "abc", "builtins", "typing")


def _file(kind: type[Any]) -> str:
    """Where it was written; /dev/null for what was typed where no file is kept."""
    try:
        return inspect.getsourcefile(kind) or "/dev/null"
    except (TypeError, OSError):
        return "/dev/null"
