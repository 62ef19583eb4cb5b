"""Where units are played: in threads of this process, on a Dask cluster, or on a GPU."""

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.simulation import Trace
from dpbandits.simulation.progress import RoundsBar
from dpbandits.sweeps.unit import Unit


class Engine(Protocol):
    """What plays units and answers with futures."""

    @property
    def slots(self) -> int:
        """How many units are played at a time."""

    @property
    def ahead(self) -> int:
        """How many more to hand out, so that nothing waits for the next."""

    def begin(self, units: list[Unit], bar: RoundsBar) -> None:
        """Before the first unit."""

    def submit(self, unit: Unit) -> "Future[Trace]":
        """Play a unit."""

    def result(self, future: "Future[Trace]") -> Trace:
        """What was played, or a sentence about why it could not be."""

    def stop(self) -> None:
        """The sweep is interrupted: whatever is being played is given up."""

    def end(self) -> None:
        """After the last."""


class Threads:
    """Units side by side, each in one thread; several threads for each where there are few."""

    ahead = 1

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None:
            checks.integer(least=1, limit=1024, threads=threads)
        self.slots = threads or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self.slots)
        self._each = 1

    def begin(self, units: list[Unit], bar: RoundsBar) -> None:
        """Share the threads out."""
        self._bar = bar
        self._each = max(1, self.slots // max(1, len(units)))

    def submit(self, unit: Unit) -> "Future[Trace]":
        """In the next free thread."""
        return self._pool.submit(unit.play, threads=self._each, progress=self._bar)

    def result(self, future: "Future[Trace]") -> Trace:
        """As it is."""
        return future.result()

    def stop(self) -> None:
        """Chunks of rounds end soon, and units with them."""
        self._bar.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def end(self) -> None:
        """No thread stays."""
        self._pool.shutdown(wait=False)


class Gpu(Threads):
    """One unit after the other: each fills the GPU."""

    def __init__(self) -> None:
        super().__init__(1)


def engine_for(device: str, threads: int | None, on: Any) -> Engine:
    """The one that was asked for."""
    if on is None:
        if device == "cuda" and threads is not None:
            raise InvalidInput('device="cuda" plays one unit after the other: leave threads out')
        return Gpu() if device == "cuda" else Threads(threads)
    if device == "cuda":
        raise InvalidInput('device="cuda" plays on the GPU of this machine: leave out the scheduler')
    if threads is not None:
        raise InvalidInput("a Dask worker has as many threads as it was started with: leave threads out")
    from dpbandits.sweeps.dask import Dask

    return Dask(on)


def distinct(units: Iterable[Unit]) -> list[Unit]:
    """One unit for each piece of code that there is to compile."""
    found: dict[Any, Unit] = {}
    for unit in units:
        found.setdefault((type(unit.policy), type(unit.policy.privacy), unit.environment), unit)
    return list(found.values())
