"""The service as HTTP sees it: who asks, what is asked for, what is public."""

import asyncio
import hashlib
import time
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpbandits.errors import InvalidInput
from dpbandits.service.access import Access, ApiKey
from dpbandits.service.commands import Command, Decide, Reward
from dpbandits.service.desk import Desk, read_context
from dpbandits.service.local_desk import LocalDesk
from dpbandits.service.metrics import Metrics
from dpbandits.service.populations import population_record
from dpbandits.service.preparing import Preparation
from dpbandits.service.recovery import directory
from dpbandits.service.refusals import Refusal
from dpbandits.service.running import Running
from dpbandits.service.sealing import Keyring
from dpbandits.service.store import Store
from dpbandits.service.terms import Terms
from dpbandits.service.tickets import Tickets
from dpbandits.service.views import MOMENTS, View, view
from dpbandits.service.writer import Writer

MOST_KEY = 128  # characters of a request key
MOST_PERSON = 256
_VIEWS_FOR = 2.0  # seconds that what everybody may read is kept: reading it must not cost much
_ENTRIES_SHOWN = 20


class Service:
    """Everything together; used from one event loop."""

    def __init__(
        self,
        store: Store,
        keyring: Keyring,
        *,
        declared: Sequence[Terms] = (),
        fail: Callable[[str], None] | None = None,
        operator_metrics: bool = False,
    ) -> None:
        self.store, self.keyring = store, keyring
        self.access = Access(store.keys())
        self.tickets = Tickets(keyring.secret_for("tickets"))
        self._request_key, self._person_key = (keyring.secret_for(x) for x in ("requests", "people"))
        self.writer = Writer(store, keyring, self._deliver, declared=declared, fail=fail)
        self.prepare = Preparation()
        self.metrics = Metrics(self, operator=operator_metrics)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._views: tuple[float, list[View], dict[str, list[dict[str, Any]]]] = (0.0, [], {})
        self._reading_views = asyncio.Lock()

    def start(self) -> None:
        """Within the event loop."""
        self._loop = asyncio.get_running_loop()
        self.writer.start()

    async def stop(self) -> None:
        """Fold, and end."""
        await asyncio.to_thread(self.writer.stop)

    # Commands

    async def ask(self, command: Command) -> Any:
        """The writer's answer to a command, or its refusal."""
        assert self._loop is not None
        future = self._loop.create_future()
        self.writer.submit(future, command)
        answer = await future
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def _deliver(self, answers: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
        if answers and self._loop is not None:
            self._loop.call_soon_threadsafe(_resolve, answers)

    def named(self, name: str) -> Running:
        """An experiment by its name, as the writer has it."""
        one = self.writer.running.get(name)
        if one is None:
            raise Refusal("no-such-experiment" if self.is_ready else self._not_ready())
        return one

    def _not_ready(self) -> Any:
        return "standby" if self.writer.state == "standby" else "not-ready"

    @property
    def is_ready(self) -> bool:
        """Whether it decides."""
        return self.writer.is_ready

    def decide_command(self, one: Running, request: Any, person: Any, context: Any) -> Decide:
        """What a request asks for, checked."""
        one.refuse_unless_running()
        if not isinstance(one.public_desk, Desk):
            raise Refusal(
                "invalid", detail="People of this experiment decide on their own: see broadcast."
            )
        if not (isinstance(request, str) and 0 < len(request) <= MOST_KEY):
            raise Refusal("invalid", detail=f"Send `request`, a text of 1 to {MOST_KEY} characters.")
        try:
            offered, checked = read_context(one.terms.problem, context)
        except (InvalidInput, RecursionError):
            raise Refusal("invalid-context") from None
        token = self._token(one, person)
        data = one.id.to_bytes(4, "big") + request.encode(errors="surrogatepass")
        key = hashlib.blake2b(data, key=self._request_key, digest_size=16).digest()
        return Decide(one.id, key, token, offered, checked)

    def _token(self, one: Running, person: Any) -> bytes:
        """What stands for a person; only where people are told apart."""
        if person is None:
            if one.terms.asks_who:
                raise Refusal("no-person")
            return b""
        if not one.terms.asks_who:
            raise Refusal(
                "invalid",
                detail="This experiment does not tell people apart: leave `person` out, or declare "
                "`rounds_per_person` in another one.",
            )
        if not (isinstance(person, str) and 0 < len(person) <= MOST_PERSON):
            raise Refusal("invalid", detail=f"Send `person` as a text of 1 to {MOST_PERSON} characters.")
        # One name has several spellings in Unicode, and whoever is written in two is one person.
        data = unicodedata.normalize("NFC", person).encode(errors="surrogatepass")
        return hashlib.blake2b(data, key=self._person_key, digest_size=16).digest()

    def reward_command(self, key: ApiKey, ticket: Any, value: Any) -> Reward:
        """What a reward is for, and that this key may give it."""
        found = self.tickets.read(ticket)
        one = None if found is None else self.writer.by_id.get(found[0])
        if found is None or one is None:
            raise Refusal("no-such-decision" if found is None or self.is_ready else self._not_ready())
        key.require("reward", one.terms.name)
        if one.has_ended:
            raise Refusal("closed")
        one.refuse_unless_running()
        if value is not None:
            try:
                value = one.terms.problem.reward(value)
            except (InvalidInput, RecursionError):
                raise Refusal("invalid-reward") from None
            # As numbers that the log can hold: JSON knows whole ones of any length.
            value = value.tolist() if isinstance(value, np.ndarray) else value
        return Reward(one.id, found[1], value)

    def local(self, name: str) -> tuple[Running, LocalDesk]:
        """An experiment of the local model."""
        one = self.named(name)
        one.refuse_unless_running()
        if not isinstance(one.public_desk, LocalDesk):
            raise Refusal("invalid", detail="This experiment decides for people: see decide.")
        return one, one.public_desk

    # What is public

    async def views(self) -> list[View]:
        """Of every experiment."""
        return (await self._public())[1]

    async def entries_shown(self) -> dict[str, list[dict[str, Any]]]:
        """The last entries of each ledger, for the page."""
        return (await self._public())[2]

    async def _public(self) -> tuple[float, list[View], dict[str, list[dict[str, Any]]]]:
        async with self._reading_views:
            if time.monotonic() - self._views[0] > _VIEWS_FOR:
                self._views = await asyncio.to_thread(self._read_public)
            return self._views

    def _read_public(self) -> tuple[float, list[View], dict[str, list[dict[str, Any]]]]:
        found = list(self.writer.running.values()) or directory(self.store)
        views, entries = [], {}
        for one in found:
            with self.store.reading() as db:
                pages = self.store.pages(db, one.id, MOMENTS)
                last = one.ledger.number - _ENTRIES_SHOWN - 1
                entries[one.terms.name] = self.store.ledger_entries(db, one.id, last, _ENTRIES_SHOWN)
            views.append(view(one, together(one, found), pages))
        return time.monotonic(), views, entries

    async def ledger(self, name: str, after: int, limit: int) -> list[dict[str, Any]]:
        """Entries of a ledger."""

        def read() -> list[dict[str, Any]]:
            found = list(self.writer.running.values()) or directory(self.store)
            one = next((one for one in found if one.terms.name == name), None)
            if one is None:
                raise Refusal("no-such-experiment")
            with self.store.reading() as db:
                return self.store.ledger_entries(db, one.id, after, limit)

        return await asyncio.to_thread(read)

    async def reload_keys(self) -> None:
        """Keys that another process made or revoked."""
        self.access.replace(await asyncio.to_thread(self.store.keys))


def together(one: Running, others: Sequence[Running]) -> str:
    """What all experiments on its population cost a person, in a sentence."""
    population = one.terms.population or one.terms.name
    terms = (other.terms for other in others)
    budgets = {one.name: one.guarantee.budget for one in terms if one.is_on(population)}
    if one.terms.population is None and len(budgets) == 1:  # nothing has succeeded it
        return ""
    return str(population_record(population, budgets)["sentence"])


def _resolve(answers: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, answer in answers:
        if not future.done():  # whoever asked may have gone
            future.set_result(answer)
