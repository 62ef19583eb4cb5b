"""The loop that hands units out and keeps what comes back."""

import contextlib
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from dpbandits.errors import SweepError
from dpbandits.simulation import Trace
from dpbandits.simulation.ending import ended_by_sigterm
from dpbandits.simulation.progress import RoundsBar
from dpbandits.sweeps.claims import Claims, forget_claims
from dpbandits.sweeps.engines import Engine
from dpbandits.sweeps.folder import Folder
from dpbandits.sweeps.unit import Unit

_LOOK = 0.5  # seconds between looks at what others have finished
_WRITERS = 4  # threads: to write a unit takes longer than to ask for the next
_LAST_CHUNKS = 2.0  # seconds that a stopped sweep waits for what is being played


def played_units(
    units: Mapping[str, Unit], folder: Folder, engine: Engine, bar: RoundsBar
) -> dict[str, Trace]:
    """The traces of all units: those in the folder are read, the others are played and kept there.

    Units that another process has claimed are left to it, and waited for at the end.
    """
    try:
        with ended_by_sigterm():
            folder.make()
            found = _read(units, folder, bar)
            forget_claims(folder.claims, found)
            missing = {name: unit for name, unit in units.items() if name not in found}
            bar.spare(sum(units[name].total_rounds for name in found))
            if missing:
                engine.begin(list(missing.values()), bar)
                with Claims(folder.claims) as claims:
                    _Work(missing, folder, engine, claims, bar).do()
                found |= _read(missing, folder, bar)
    finally:
        engine.end()
    for name in units.keys() - found.keys():
        raise SweepError(f"{folder.file(name)} was written and cannot be read: is its disk in order?")
    return found


def _read(units: Mapping[str, Unit], folder: Folder, bar: RoundsBar) -> dict[str, Trace]:
    """Those that are finished; a damaged one is removed, and this is said."""
    found, finished = {}, folder.names()
    for name in units:
        if name in finished and (trace := folder.read(name)) is not None:
            found[name] = trace
        elif name in finished:
            bar.say(f"{folder.file(name)} was damaged and is played again")
    return found


class _Work:
    """One sweep's share of the work."""

    def __init__(
        self, units: dict[str, Unit], folder: Folder, engine: Engine, claims: Claims, bar: RoundsBar
    ) -> None:
        self._units, self._folder, self._engine = units, folder, engine
        self._claims, self._bar = claims, bar
        self._waiting, self._elsewhere = deque(units), deque[str]()
        self._played: dict[Future[Trace], str] = {}
        self._written: dict[Future[None], str] = {}
        self._writers = ThreadPoolExecutor(_WRITERS)

    def do(self) -> None:
        """Until all units are in the folder."""
        try:
            while self._waiting or self._elsewhere or self._played or self._written:
                self._hand_out()
                self._keep(_LOOK)
        except BaseException:
            self._engine.stop()
            self._keep_last()
            raise
        finally:
            self._writers.shutdown()

    def _hand_out(self) -> None:
        most = self._engine.slots + self._engine.ahead
        while self._waiting and len(self._played) < most and len(self._written) < most:
            name = self._waiting.popleft()
            if not self._claims.take(name):
                self._elsewhere.append(name)
            elif self._folder.has(name):  # finished by another process in the meantime
                self._claims.release(name)
                self._bar.spare(self._units[name].total_rounds)
            else:
                self._played[self._engine.submit(self._units[name])] = name

    def _keep(self, patience: float) -> None:
        """Wait for something to happen, write what was played, and look at what others did."""
        under_way: list[Future[Any]] = [*self._played, *self._written]
        if under_way:
            done = wait(under_way, patience, FIRST_COMPLETED).done
        else:
            time.sleep(patience)
            done = set()
        for future in done & self._played.keys():
            name = self._played.pop(future)
            self._written[
                self._writers.submit(self._folder.write, name, self._engine.result(future))
            ] = name
        for future in done & self._written.keys():
            name = self._written.pop(future)
            future.result()
            self._claims.release(name)
        if not self._waiting:
            self._waiting, self._elsewhere = self._elsewhere, deque()

    def _keep_last(self) -> None:
        """What is finished within a moment is kept as well."""
        ends = time.monotonic() + _LAST_CHUNKS
        for future, name in self._played.items():
            # Stopped, cancelled, failed or too late: another time.
            with contextlib.suppress(Exception, KeyboardInterrupt):
                self._folder.write(name, future.result(max(0.0, ends - time.monotonic())))
