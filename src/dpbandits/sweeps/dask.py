"""Units on a Dask cluster. Workers need no folder: what they play comes back, and is kept here."""

import socket
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from typing import Any

from dpbandits import checks
from dpbandits.errors import InvalidInput, SweepError
from dpbandits.extras import extra
from dpbandits.simulation import Trace
from dpbandits.simulation.progress import RoundsBar
from dpbandits.sweeps.engines import distinct
from dpbandits.sweeps.unit import VERSIONS, Unit
from dpbandits.wording import counted

_ROUNDS_TO_COMPILE = 1000
_LOST = "the connection to the Dask scheduler is lost; what is finished is kept"
_PATIENCE = 10.0  # seconds, for a scheduler to answer


class Dask:
    """A cluster by its client, or by the address of its scheduler."""

    def __init__(self, on: Any) -> None:
        with extra("dask"):
            from distributed import Client

        self._is_ours = isinstance(on, str)
        try:
            client = Client(on, timeout=_PATIENCE) if self._is_ours else on  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InvalidInput(f"no Dask scheduler answers at {on}: {error}") from None
        if not isinstance(client, Client):
            raise InvalidInput(
                f"expected a Dask client or the address of a scheduler, got {checks.shown(on)}"
            )
        self._client: Any = client
        self._under_way: set[Any] = set()  # futures of Dask's own, which forgets what nobody holds
        self._bar, self._waits = RoundsBar(0, show=False), False

    @property
    def slots(self) -> int:
        """The threads of the workers there are now: some may come and go."""
        threads: list[int] = [worker["nthreads"] for worker in self._workers().values()]
        if not threads and not self._waits:
            self._bar.say("waiting for a Dask worker …")
        self._waits = not threads
        return max(1, sum(threads))

    @property
    def ahead(self) -> int:
        """One more for each, since handing out takes a while."""
        return self.slots

    def _workers(self) -> dict[str, Any]:
        if self._client.status in ("closing", "closed"):
            raise SweepError(_LOST)
        found: dict[str, Any] = self._client.scheduler_info(n_workers=-1).get("workers", {})
        return found

    def begin(self, units: list[Unit], bar: RoundsBar) -> None:
        """Compile on one worker of each machine; the others there read it from the disk."""
        self._bar = bar
        if not self._workers():
            bar.say("waiting for a Dask worker …")
            self._client.wait_for_workers(1)
        machines: dict[str, list[str]] = {}
        for address, worker in self._workers().items():
            machines.setdefault(worker["host"], []).append(address)
        codes = distinct(units)
        bar.say(
            f"compiling, where not done before: {counted(len(codes), 'combination')} "
            f"on {counted(len(machines), 'machine')} …"
        )
        options = {"pure": False, "allow_other_workers": True}  # should these die
        futures = [
            self._client.submit(_compile, unit, VERSIONS, workers=addresses, **options)
            for addresses in machines.values()
            for unit in codes
        ]
        self._client.gather(futures)

    def submit(self, unit: Unit) -> "Future[Trace]":
        """On the next free worker; if that dies, on another."""
        # Not by Dask's executor: its futures wait for ever when a connection breaks while they are read.
        answer: Future[Trace] = Future()

        def hand_on(done: Any) -> None:
            try:
                answer.set_result(done.result())
            except BaseException as error:
                answer.set_exception(error)
            self._under_way.discard(done)
            self._bar.advance(unit.total_rounds)

        played = self._client.submit(_play, unit, VERSIONS, pure=False)
        self._under_way.add(played)
        played.add_done_callback(hand_on)
        return answer

    def result(self, future: "Future[Trace]") -> Trace:
        """Dask plays a unit again when its worker died; where it gives up, a sentence says so."""
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            raise SweepError(
                f"{error.allowed_failures + 1} Dask workers died on one unit: see their logs; "
                "what is finished is kept"
            ) from None
        except (CancelledError, OSError):
            raise SweepError(_LOST) from None

    def stop(self) -> None:
        """Workers are told to forget what is not finished."""
        if self._under_way and self._client.status == "running":
            self._client.cancel(list(self._under_way))

    def end(self) -> None:
        """A connection of our own is closed."""
        if self._is_ours:
            self._client.close()


def _compile(unit: Unit, versions: dict[str, str]) -> None:
    """In a worker: play a little, so that code is compiled and kept."""
    _refuse_other(versions)
    replace(unit, rounds=min(unit.rounds, _ROUNDS_TO_COMPILE), runs=range(1)).play()


def _play(unit: Unit, versions: dict[str, str]) -> Trace:
    """In a worker: its trace."""
    _refuse_other(versions)
    return unit.play()


def _refuse_other(versions: dict[str, str]) -> None:
    """A worker with other versions would give other numbers."""
    for name, version in versions.items():
        if VERSIONS.get(name) != version:
            raise InvalidInput(
                f"the Dask worker on {socket.gethostname()} has {name} {VERSIONS.get(name)}, "
                f"this machine {version}: numbers would differ"
            )
