"""The one compiled loop, and the cache that makes it start at once in the next process."""

import contextlib
import functools
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from dpbandits.engine.verbs import (
    asks_pause,
    modules_of,
    observe,
    offer,
    pay,
    release,
    select,
    settle,
)

_config: Any = numba.config  # its stubs do not list the settings
_PACKAGE = Path(__file__).parents[1]
_KEPT_CACHES = 8


class Ledger(NamedTuple):
    """What a simulated run keeps: running totals, and their values at the rounds of a thin grid."""

    grid: NDArray[np.int64]
    curves: NDArray[np.float64]  # (points, 3): regret, reward, optimum
    totals: NDArray[np.float64]  # (3,)
    done: NDArray[np.int64]  # rounds played, points written

    @classmethod
    def on(cls, grid: NDArray[np.int64]) -> "Ledger":
        """An empty ledger over a grid of round numbers."""
        return cls(grid, np.zeros((grid.size, 3)), np.zeros(3), np.zeros(2, np.int64))


def _run(
    public: Any,
    secret: Any,
    world: Any,
    noise: Any,
    explore: Any,
    chance: Any,
    ledger: Any,
    stop: int,
) -> None:
    """Play rounds until `stop` or until the policy asks for its pause."""
    done, point = ledger.done[0], ledger.done[1]
    regret, earned, optimum = ledger.totals[0], ledger.totals[1], ledger.totals[2]
    while done < stop:
        if asks_pause(public, done):
            break
        release(public, secret, noise)
        context = offer(world, chance)
        action = select(public, context, explore)
        reward = pay(world, context, action, chance)
        observe(public, secret, context, action, reward)
        best, mean, income = settle(world, context, action, reward)
        regret += best - mean
        earned += income
        optimum += best
        done += 1
        if done == ledger.grid[point]:
            ledger.curves[point, 0] = regret
            ledger.curves[point, 1] = earned
            ledger.curves[point, 2] = optimum
            point += 1
    ledger.done[0], ledger.done[1] = done, point
    ledger.totals[0], ledger.totals[1], ledger.totals[2] = regret, earned, optimum


def _release(public: Any, secret: Any, noise: Any) -> None:
    release(public, secret, noise)


def _select(public: Any, context: Any, explore: Any) -> Any:
    return select(public, context, explore)


def _observe(public: Any, secret: Any, context: Any, action: Any, reward: Any) -> None:
    observe(public, secret, context, action, reward)


class Compiled(NamedTuple):
    """The compiled loop, and each verb compiled on its own."""

    run: Callable[..., None]
    release: Callable[..., None]
    select: Callable[..., Any]
    observe: Callable[..., None]


def compiled_for(public: Any, world: Any = None) -> Compiled:
    """The compiled functions for a policy's state (and a world), from the disk where possible.

    Numba's cache does not notice an edit in the file of a function that is *called*, so the cache
    lives in a folder named by a hash of every source that could be: this package's, and the modules
    of verbs that come from outside it.
    """
    modules = modules_of(type(public), "release", "select", "observe")
    if world is not None:
        modules |= modules_of(type(world), "offer", "pay", "settle")
    return _compile(tuple(sorted(m for m in modules if not m.startswith("dpbandits."))))


@functools.lru_cache
def _compile(outside: tuple[str, ...]) -> Compiled:
    with _cache_folder(outside) as usable:
        jit = numba.njit(cache=usable, nogil=True, error_model="numpy")
        return Compiled(*(jit(function) for function in (_run, _release, _select, _observe)))


@contextlib.contextmanager
def _cache_folder(outside: tuple[str, ...]) -> Iterator[bool]:
    """Point numba's cache at our own folder while our functions are declared, and only then."""
    before = _config.CACHE_DIR
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpbandits"
    try:
        folder = (Path(before) if before else home) / f"dpbandits-{_digest(outside)}"
        folder.mkdir(parents=True, exist_ok=True)
        folder.touch()
        _forget_old(folder)
    except OSError:
        # No writable home, or a verb typed into a notebook, which has no source file to hash.
        yield False
        return
    _config.CACHE_DIR = str(folder)
    try:
        yield True
    finally:
        _config.CACHE_DIR = before


def _digest(outside: tuple[str, ...]) -> str:
    files = sorted(_PACKAGE.rglob("*.py"))
    files += [Path(getattr(sys.modules[module], "__file__", None) or "") for module in outside]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _forget_old(folder: Path) -> None:
    """Each edit makes a new folder: keep the few used last."""
    known = sorted(folder.parent.glob("dpbandits-*"), key=lambda path: path.stat().st_mtime)
    for path in known[:-_KEPT_CACHES]:
        shutil.rmtree(path, ignore_errors=True)
