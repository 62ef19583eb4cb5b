"""Callers who want answers from a service that dies, and write down every one that they get."""

import asyncio
import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_AGAIN = frozenset({429, 502, 503, 504})
_GRID = 2**20  # rewards are whole multiples of 1/2²⁰: their sums are exact


class NoAnswer(Exception):
    """Nobody knows whether the request was carried out."""


class Unforeseen(Exception):
    """An answer that nobody should get here."""


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

    async def answered(self, decisions: int, within: float = 30.0) -> float:
        """Wait for so many more answers to decisions; how many seconds that took."""
        began, wanted = time.monotonic(), len(self.journal.answered_at) + decisions
        while len(self.journal.answered_at) < wanted:
            assert time.monotonic() - began < within, "nobody is answered"
            await asyncio.sleep(0.02)
            self.fail_early()
        return time.monotonic() - began

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
        if "problem" in terms and "dim" in terms["problem"]:
            body["context"] = [self._random.random() / 2.0 for _ in range(terms["problem"]["dim"])]
        away = set(self._retired)
        found = set[str]()
        for _ in range(2 if self._random.random() < 0.2 else 1):  # some ask again, without need
            path = f"/v1/experiments/{name}/decide"
            status, told, _ = await self._until_answered(caller, "POST", path, body)
            if status == 410:  # asked again so late that its round is closed
                continue
            if status != 200:
                raise Unforeseen(f"decide: {status} {told}")
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
            raise Unforeseen(f"reward: {status} {told}")
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
