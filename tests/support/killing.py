"""The real `dpbandits serve` with a witness beside it, killed and otherwise mistreated under load."""

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from callers import Caller, Load, NoAnswer
from judging import Verdict, judge
from live_service import free_port, toml_file

from dpbandits.service.store import Store
from dpbandits.service.verification import verify

_HERE = Path(__file__).parent
_PATIENCE = 60.0  # seconds for a start: the first on a machine compiles

TREE = {
    "name": "tree",
    "policy": "tree-ucb",
    "privacy": "eps=1",
    "horizon": 1_000_000,
    "actions": ["a", "b", "c"],
    "in_flight": 100,
}
PEOPLE = {
    "name": "people",
    "privacy": "eps=1",
    "actions": ["x", "y"],
    "rounds_per_person": 2,
    "expected_people": 2000,
    "in_flight": 100,
    "patience": 3.0,
}
CHANGING = {
    "name": "changing",
    "privacy": "eps=1",
    "problem": {"kind": "Arms", "arms": 3, "capacity": 5},
    "actions": ["one", "two", "three"],
    "in_flight": 100,
}
LINEAR = {
    "name": "linear",
    "policy": "randomized-linucb",
    "privacy": "eps=1,delta=1e-6",
    "problem": {"kind": "LinearContexts", "arms": 3, "dim": 4},
    "horizon": 1_000_000,
    "in_flight": 100,
}


class Process:
    """`dpbandits serve` with a witness, in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        experiments: Sequence[Mapping[str, Any]] = (TREE,),
        *,
        database: str | None = None,
        keyring: Path | None = None,
        faults: Sequence[str] = (),
        name: str = "service",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.experiments, self.name = folder, list(experiments), name
        self.database = str(folder / "service.db") if database is None else database
        self.keyring = keyring or folder / "service.keyring"
        self.faults, self.settings = list(faults), dict(settings or {})
        self.witness, self.log = folder / "witness", folder / f"{name}.log"
        self.port = free_port()
        self.starts = 0
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> "Process":
        """Begin to start it."""
        declared = toml_file(self.folder, self.experiments)
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, str(_HERE / "witness.py"), "serve", str(declared), *self._options()],
                stdout=log,
                stderr=log,
                env=self._environment(),
                start_new_session=True,  # Ctrl-C is for the tests
            )
        self.starts += 1
        return self

    def _options(self) -> list[str]:
        place = ["--db", self.database, "--keyring", str(self.keyring)]
        return [*place, "--port", str(self.port)]

    def _environment(self) -> dict[str, str]:
        plain = {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "COLUMNS": "100"}
        own = {"WITNESS": str(self.witness), "FAULTS": ",".join(self.faults)}
        return {**os.environ, **plain, **own, **self.settings}

    @property
    def child(self) -> "subprocess.Popen[bytes]":
        assert self._child is not None
        return self._child

    @property
    def is_alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def said(self) -> str:
        """All that it ever wrote."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def admin(self) -> str:
        """The administrator's key, of the first start."""
        found = re.search(r"shown this once: (\S+)", self.said)
        assert found is not None, self.said
        return found.group(1)

    def send(self, number: signal.Signals) -> None:
        self.child.send_signal(number)

    def kill(self) -> None:
        """`kill -9`, and wait for the end."""
        self.child.kill()
        self.child.wait()

    def stop(self) -> int:
        """SIGTERM; its exit status."""
        self.send(signal.SIGTERM)
        return self.child.wait(30)

    def refused(self) -> str:
        """What it says when it will not start; an error if it starts."""
        before = len(self.said)
        self.start()
        try:
            status = self.child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it started:\n{self.said[before:]}") from None
        told = self.said[before:]
        assert status != 0 and "serving" not in told, told
        return " ".join(told.split())

    async def ready(self, within: float = _PATIENCE) -> float:
        """Wait until it decides; how many seconds that took."""
        began = time.monotonic()
        while time.monotonic() - began < within:
            if not self.is_alive:
                raise Died(self.said[-3000:])
            if (await self.get("/ready"))[0] == 200:
                return time.monotonic() - began
            await asyncio.sleep(0.02)
        raise TimeoutError(self.said[-3000:])

    async def ready_or_standing_by(self) -> None:
        """Wait until it has found out who it is."""
        while self.is_alive and await self.state() not in ("ready", "standby"):
            await asyncio.sleep(0.02)
        if not self.is_alive:
            raise Died(self.said[-3000:])

    async def state(self) -> str:
        """`ready`, the name of the problem that says why not, or nothing."""
        status, told = await self.get("/ready")
        return "ready" if status == 200 else str(told["type"]).rpartition(":")[2] if status else ""

    async def post(self, path: str, body: Any = None) -> tuple[int, Any]:
        """One request, with the administrator's key."""
        caller = Caller([self.port], self.admin)
        try:
            return await caller.ask("POST", path, body)
        finally:
            caller.hang_up()

    async def decide(self, experiment: str, request: str, **body: Any) -> dict[str, Any]:
        """One decision, at once."""
        path = f"/v1/experiments/{experiment}/decide"
        status, told = await self.post(path, {"request": request, **body})
        assert status == 200, told
        return dict(told)

    async def reward(self, ticket: str, value: float) -> str:
        """`recorded`, or the name of the problem."""
        status, told = await self.post("/v1/reward", {"ticket": ticket, "reward": value})
        return "recorded" if status == 200 else str(told["type"]).rpartition(":")[2]

    async def get(self, path: str) -> tuple[int, Any]:
        """What a public route says; 0 and nothing where nobody answers."""
        caller = Caller([self.port], "")
        try:
            return await caller.ask("GET", path)
        except NoAnswer:
            return 0, None
        finally:
            caller.hang_up()

    def inspect(self) -> dict[str, Any]:
        """What a restart finds; the service must not be running."""
        told = subprocess.run(
            [sys.executable, str(_HERE / "witness.py"), "inspect", self.database, str(self.keyring)],
            env={**self._environment(), "FAULTS": "blind" if "blind" in self.faults else ""},
            capture_output=True,
            text=True,
            check=False,
        )
        if told.returncode:
            raise Died(told.stderr)
        return dict(json.loads(told.stdout))

    def verify_ledgers(self) -> int:
        """As anybody may; how many entries there are."""
        store, entries = Store(self.database), 0
        try:
            with store.reading() as db:
                for row in store.experiments(db):
                    entries += verify(store.ledger_entries(db, row.id, limit=10**6)).entries
        finally:
            store.close()
        return entries

    def close(self) -> None:
        """End it, whatever it does."""
        if self.is_alive:
            self.send(signal.SIGCONT)
            self.kill()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Died(Exception):
    """The service ended by itself; with what it said."""


async def killed_again_and_again(
    process: Process,
    kills: int,
    *,
    seed: int,
    every: tuple[float, float] = (0.1, 1.3),
    midway: Sequence[Callable[[Load], Awaitable[None]]] = (),
) -> Verdict:
    """A load under which the service is killed at random moments, some of them while it recovers."""
    chance = random.Random(seed)
    process.start()
    await process.ready()
    load = Load([process.port], process.admin, process.experiments, seed=seed)
    acts = {(place + 1) * kills // (len(midway) + 1): act for place, act in enumerate(midway)}
    acting: list[asyncio.Task[None]] = []
    try:
        for number in range(kills):
            if number in acts:
                acting.append(asyncio.ensure_future(_awaited(acts[number](load))))
            await asyncio.sleep(chance.uniform(*every))
            process.kill()
            process.start()
            if chance.random() < 0.15:
                continue  # and again, before it is ready
            await process.ready()
            await load.answered(5)  # so that a kill on a busy machine meets something under way
        await process.ready()
        await asyncio.gather(*acting)
        await load.finish()
    finally:
        load.give_up()
    process.kill()
    return judge(load.journal, process.witness, process.inspect())


async def _awaited(act: Awaitable[None]) -> None:
    await act


async def under_load(
    processes: Sequence[Process], story: Callable[[Load], Awaitable[None]], *, seed: int = 0
) -> Verdict:
    """Start them, let callers come, tell the story, wait until everybody has an answer, and judge."""
    for process in processes:
        process.start()
        await process.ready_or_standing_by()
    first = processes[0]
    ports = [process.port for process in processes]
    load = Load(ports, first.admin, first.experiments, seed=seed)
    try:
        await story(load)
        load.fail_early()
        await load.finish()
    finally:
        load.give_up()
    for process in processes:
        process.close()
    return judge(load.journal, first.witness, first.inspect())
