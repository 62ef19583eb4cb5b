"""Callers who want answers from a service that dies: what they were told, and what became of it.

`Process` is the real `dpbandits serve`, started through `witness.py`. `Load` decides and rewards over
HTTP, repeats under the same request key until there is an answer, and writes every one down. `judge`
then compares what callers were told with what the witness saw and with what a restart finds:

| count | of |
|---|---|
| answered_differently | requests and tickets with two different answers, or whose answer was forgotten |
| tickets_shared | tickets that two requests were given |
| noise_redrawn | answered decisions at which the learner's state was not the same every time |
| sums_wrong | actions whose rewards are not exactly those acknowledged, each counted once |
| people_over | people from whom more was learned than was declared |
| retired_played | decisions for an arm that was out of play before they were asked for |
"""

import asyncio
import base64
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_AGAIN = frozenset({429, 502, 503, 504})
_GRID = 2**20  # rewards are whole multiples of 1/2²⁰: their sums are exact
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


# The service


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
        declared = self.folder / "experiments.toml"
        declared.write_text("\n".join(_toml_table(one) for one in self.experiments))
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
            env={**self._environment(), "FAULTS": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        if told.returncode:
            raise Died(told.stderr)
        return dict(json.loads(told.stdout))

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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _toml_table(terms: Mapping[str, Any]) -> str:
    def text(value: Any) -> str:
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{name} = {text(one)}" for name, one in value.items()) + "}"
        return json.dumps(value)

    return "\n".join(["[[experiment]]", *(f"{name} = {text(one)}" for name, one in terms.items()), ""])


# Callers


class NoAnswer(Exception):
    """Nobody knows whether the request was carried out."""


class Caller:
    """One connection; where a service does not answer, the next call goes to the next one."""

    def __init__(self, ports: Sequence[int], key: str, patience: float = 3.0) -> None:
        self._ports, self._at, self._patience = list(ports), 0, patience
        self._key = key
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        try:
            return await asyncio.wait_for(self._ask(method, path, body), self._patience)
        except (OSError, EOFError, TimeoutError, asyncio.IncompleteReadError) as error:
            self.hang_up()
            self._at += 1
            raise NoAnswer from error

    async def _ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if self._open is None:
            port = self._ports[self._at % len(self._ports)]
            self._open = await asyncio.open_connection("127.0.0.1", port)
        reader, writer = self._open
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {len(data)}\r\n"
        if self._key:
            head += f"authorization: Bearer {self._key}\r\n"
        writer.write(head.encode() + b"\r\n" + data)
        told = (await reader.readuntil(b"\r\n\r\n")).decode()
        status, headers = int(told.split(" ", 2)[1]), told.lower()
        length = re.search(r"content-length: (\d+)", headers)
        answer = await reader.readexactly(int(length.group(1)) if length else 0)
        if "connection: close" in headers:
            self.hang_up()
        return status, json.loads(answer) if "json" in headers and answer else answer

    def hang_up(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def go_elsewhere(self) -> None:
        self.hang_up()
        self._at += 1


@dataclass
class Journal:
    """Everything that callers were told."""

    answers: dict[tuple[str, str], set[tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(set)
    )  # by experiment and request: tickets and actions
    acknowledged: dict[str, float] = field(default_factory=dict)  # by ticket
    unknown: dict[str, float] = field(default_factory=dict)  # closed before anybody knew
    forgotten: list[str] = field(default_factory=list)  # answers that the service does not know any more
    retired_played: int = 0
    answered_at: list[float] = field(default_factory=list)


class Load:
    """So many callers at once, each with some rounds open."""

    def __init__(
        self,
        ports: Sequence[int],
        key: str,
        experiments: Sequence[Mapping[str, Any]],
        *,
        callers: int = 12,
        seed: int = 0,
        people: int = 150,
        pause: float = 0.0,
    ) -> None:
        self.journal = Journal()
        self._ports, self._key, self._pause = list(ports), key, pause
        self._experiments, self._people = experiments, people
        self._random, self._stopping = random.Random(seed), False
        self._retired: set[str] = set()
        self._tasks = [asyncio.create_task(self._call(number)) for number in range(callers)]

    async def finish(self, within: float = 30.0) -> Journal:
        """Ask for no more, and wait until everybody has an answer."""
        self._stopping = True
        await asyncio.wait_for(asyncio.gather(*self._tasks), within)
        return self.journal

    def fail_early(self) -> None:
        """Raise what a caller ran into."""
        for task in self._tasks:
            if task.done():
                task.result()

    def give_up(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def act(self, path: str, body: Any = None) -> int:
        """An administrator's act, repeated until it is done: 409 where it was."""
        caller = Caller(self._ports, self._key)
        try:
            return (await self._until_answered(caller, "POST", path, body))[0]
        finally:
            caller.hang_up()

    async def retire(self, experiment: str, label: str) -> None:
        """From here on no new request may get this action."""
        await self.act(f"/v1/experiments/{experiment}/actions/{label}/retire")
        self._retired.add(label)

    async def _call(self, number: int) -> None:
        caller = Caller(self._ports[number % len(self._ports) :] + self._ports, self._key)
        held: list[str] = []  # tickets to reward
        try:
            while not self._stopping:
                if len(held) < self._random.randrange(1, 4):
                    held += await self._decide(caller)
                else:
                    await self._reward(caller, held.pop(0 if self._random.random() < 0.7 else -1))
                if self._pause:
                    await asyncio.sleep(self._pause)
            for ticket in held:
                await self._reward(caller, ticket)
        finally:
            caller.hang_up()

    async def _decide(self, caller: Caller) -> set[str]:
        """The ticket; none where the round was closed before its answer came through."""
        terms = self._random.choice(self._experiments)
        name, request = str(terms["name"]), f"{self._random.getrandbits(64):016x}"
        body: dict[str, Any] = {"request": request}
        if "rounds_per_person" in terms:
            body["person"] = f"person {self._random.randrange(self._people)}"
        if terms is LINEAR:
            body["context"] = [self._random.random() / 2.0 for _ in range(4)]
        away = set(self._retired)
        found = set[str]()
        for _ in range(2 if self._random.random() < 0.2 else 1):  # some ask again, without need
            path = f"/v1/experiments/{name}/decide"
            status, told, _ = await self._until_answered(caller, "POST", path, body)
            if status == 410:  # asked again so late that its round is closed
                continue
            if status != 200:
                raise AssertionError(f"decide: {status} {told}")
            found.add(told["ticket"])
            self.journal.answers[name, request].add((told["ticket"], str(told["action"])))
            self.journal.answered_at.append(time.monotonic())
            self.journal.retired_played += name == "changing" and told["action"] in away
        return found

    async def _reward(self, caller: Caller, ticket: str) -> None:
        if self._random.random() < 0.1:
            return  # most people do not answer
        value = self._random.randrange(_GRID + 1) / _GRID
        for _ in range(2 if self._random.random() < 0.2 else 1):
            if not await self._reward_once(caller, ticket, value):
                return
        if self._random.random() < 0.05:  # another one is refused, open or closed
            body = {"ticket": ticket, "reward": 1.0 - value if value != 0.5 else 0.0}
            status, told, _ = await self._until_answered(caller, "POST", "/v1/reward", body)
            if status not in (409, 410):
                self.journal.forgotten.append(f"another reward: {status} {told}")

    async def _reward_once(self, caller: Caller, ticket: str, value: float) -> bool:
        """Whether it was acknowledged."""
        body, journal = {"ticket": ticket, "reward": value}, self.journal
        status, told, lost = await self._until_answered(caller, "POST", "/v1/reward", body)
        if status == 200:
            journal.acknowledged[ticket] = value
        elif status == 410:
            if lost and ticket not in journal.acknowledged:
                journal.unknown[ticket] = value
        elif status == 409:
            journal.forgotten.append(f"reward: {told['type']}")
        else:
            raise AssertionError(f"reward: {status} {told}")
        return status == 200

    async def _until_answered(
        self, caller: Caller, method: str, path: str, body: Any
    ) -> tuple[int, Any, bool]:
        """Status and answer; and whether an earlier attempt may have been carried out unheard."""
        lost = False
        while True:
            try:
                status, told = await caller.ask(method, path, body)
                if status not in _AGAIN:
                    return status, told, lost
                # It may have been carried out all the same, if the commit's outcome is unknown.
                lost = True
                caller.go_elsewhere()
            except NoAnswer:
                lost = True
            await asyncio.sleep(self._random.uniform(0.02, 0.1))


# What became of it


@dataclass(frozen=True)
class Counts:
    """All of them must be 0."""

    answered_differently: int
    tickets_shared: int
    noise_redrawn: int
    sums_wrong: int
    people_over: int = 0
    retired_played: int = 0

    @property
    def are_zero(self) -> bool:
        return not any(astuple(self))


@dataclass(frozen=True)
class Verdict:
    """The counts, and of how much."""

    counts: Counts
    decisions: int
    acknowledged: int
    replayed: int
    unknown: int


def judge(journal: Journal, process: Process, found: Mapping[str, Any]) -> Verdict:
    """Compare what callers were told with what the witness saw and a restart finds."""
    witnessed, replayed = read_witness(process.witness)
    counts = Counts(
        answered_differently=_answered_differently(journal),
        tickets_shared=_tickets_shared(journal),
        noise_redrawn=_redrawn(journal, witnessed),
        sums_wrong=sum(_sums_wrong(journal, name, one) for name, one in found.items()),
        people_over=sum(one["most_of_one_person"] > 2 for one in found.values()),
        retired_played=journal.retired_played,
    )
    return Verdict(
        counts, len(journal.answers), len(journal.acknowledged), replayed, len(journal.unknown)
    )


def read_witness(path: Path) -> tuple[dict[tuple[str, int], set[str]], int]:
    """The states in which each decision was answered or made again, and how many were made again.

    One that was made and never answered is nobody's: after a crash another takes its number.
    """
    told: dict[tuple[str, int], set[str]] = defaultdict(set)
    last: dict[tuple[str, str, int], str] = {}
    replayed = 0
    for line in path.read_text().splitlines():
        run, kind, experiment, number, digest = line.split(" ")
        place = experiment, int(number)
        if kind == "answered":
            digest = last.get((run, *place), "")
        else:
            last[run, *place] = digest
        if kind != "live" and digest:
            told[place].add(digest)
        replayed += kind == "replayed"
    return told, replayed


def _answered_differently(journal: Journal) -> int:
    by_ticket = defaultdict(set)
    for told in journal.answers.values():
        for ticket, action in told:
            by_ticket[ticket].add(action)
    twice = sum(len(told) > 1 for told in journal.answers.values())
    return twice + sum(len(actions) > 1 for actions in by_ticket.values()) + len(journal.forgotten)


def _tickets_shared(journal: Journal) -> int:
    holders = defaultdict(set)
    for place, told in journal.answers.items():
        for ticket, _ in told:
            holders[ticket].add(place)
    return sum(len(requests) > 1 for requests in holders.values())


def _redrawn(journal: Journal, witnessed: Mapping[tuple[str, int], set[str]]) -> int:
    """Answers that the witness did not see count as well: it must not be blind."""
    answered = {
        (experiment, round_of(ticket))
        for (experiment, _), told in journal.answers.items()
        for ticket, _ in told
    }
    return sum(len(witnessed.get(place, ())) != 1 for place in answered)


def round_of(ticket: str) -> int:
    """The number in a ticket, which is public."""
    return int.from_bytes(base64.urlsafe_b64decode(ticket)[3:9], "big")


def _sums_wrong(journal: Journal, experiment: str, found: Mapping[str, Any]) -> int:
    held = [*found["closed_rewards"], *found["open_rewards"]]
    kept = {number for number, _, _ in held}
    told = []
    for (name, _), answers in journal.answers.items():
        for ticket, action in answers if name == experiment else ():
            if ticket in journal.acknowledged:
                told.append((action, journal.acknowledged[ticket]))
            elif ticket in journal.unknown and round_of(ticket) in kept:
                told.append((action, journal.unknown[ticket]))  # or not: nobody was told
    sums, kept_sums = _sums(told), _sums((action, value) for _, action, value in held)
    wrong = sum(sums[action] != kept_sums[action] for action in sums.keys() | kept_sums.keys())
    if found["raw_sums"] is not None:  # what the learner itself holds, of closed rounds
        closed = _sums((action, value) for _, action, value in found["closed_rewards"])
        for action, total in found["raw_sums"].items():
            wrong += total != closed[action][1] - 0.5 * closed[action][0]
    return wrong


def _sums(rewards: Iterable[tuple[str, float]]) -> dict[str, tuple[int, float]]:
    """How many there are of each action, and their sum, which is exact."""
    sums: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for action, value in rewards:
        sums[action] = sums[action][0] + 1, sums[action][1] + value
    return sums


# The loop


async def killed_again_and_again(
    process: Process,
    kills: int,
    *,
    seed: int,
    every: tuple[float, float] = (0.3, 1.5),
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
            load.fail_early()
        await process.ready()
        await asyncio.gather(*acting)
        await load.finish()
    finally:
        load.give_up()
    process.kill()
    return judge(load.journal, process, process.inspect())


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
    return judge(load.journal, first, first.inspect())
