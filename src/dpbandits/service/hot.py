"""The two routes that everybody waits for, in front of all others as plain ASGI.

A framework would take three to five times as long as the rest of a request (docs/architecture.md).
"""

import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from dpbandits.service.commands import Decided
from dpbandits.service.refusals import Refusal, trace_of
from dpbandits.service.running import Running
from dpbandits.service.service import Service

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("dpbandits.service")

MOST_BODY = 65_536
_PREFIX, _SUFFIX = "/v1/experiments/", "/decide"


class DecideRequest(msgspec.Struct, forbid_unknown_fields=True):
    """`request` names this decision: the same key gets the same answer while its round is open."""

    request: str
    person: str | None = None
    context: Any = None


class RewardRequest(msgspec.Struct, forbid_unknown_fields=True):
    """`reward` is a number, a list with one for each item chosen, or null: none will come."""

    ticket: str
    reward: Any


class DecideAnswer(msgspec.Struct):
    """`counted` is whether the person may still be learned from, as far as is known now."""

    ticket: str
    action: Any
    expires: str | None
    counted: bool
    repeated: bool
    ledger: str  # the hash of the newest entry, so that callers are witnesses of it


class RewardAnswer(msgspec.Struct):
    """`repeated` is whether this very reward was there already."""

    recorded: bool
    repeated: bool


_read_decide = msgspec.json.Decoder(DecideRequest).decode
_read_reward = msgspec.json.Decoder(RewardRequest).decode
_write = msgspec.json.Encoder().encode
_HEADERS = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


class Hot:
    """Answers decide and reward; hands everything else on."""

    def __init__(self, service: Service, others: App) -> None:
        self._service, self._others = service, others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] != "http":
            return await self._others(scope, receive, send)
        path: str = scope["path"]
        if path == "/v1/reward":
            return await self._answer("reward", self._reward, scope, receive, send)
        if path.startswith(_PREFIX) and path.endswith(_SUFFIX):
            name = path[len(_PREFIX) : -len(_SUFFIX)]
            return await self._answer("decide", self._decide, scope, receive, send, name)
        try:
            await self._others(scope, receive, send)
        except Exception as error:  # it was answered; uvicorn would log its words
            _unforeseen(error)

    async def _answer(
        self, route: str, how: Any, scope: Scope, receive: Receive, send: Send, *path: str
    ) -> None:
        began = time.perf_counter() if self._service.metrics.operator else 0.0
        try:
            if scope["method"] != "POST":
                raise Refusal("wrong-method", allow="POST")
            body: bytes = _write(await how(scope, receive, *path))
            status, headers = 200, [*_HEADERS, (b"content-length", b"%d" % len(body))]
        except Exception as error:
            refusal = error if isinstance(error, Refusal) else _unforeseen(error)
            status, headers, body = refusal.status, refusal.headers(), refusal.body()
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        if self._service.metrics.operator:
            self._service.metrics.count(route, status, time.perf_counter() - began)

    async def _decide(self, scope: Scope, receive: Receive, name: str) -> DecideAnswer:
        service = self._service
        service.access.check(_authorization(scope), "decide", name)
        body = await read_body(receive)
        one = service.named(name)
        asked = _decide_request(body)
        command = service.decide_command(one, asked.request, asked.person, asked.context)
        return self._decided(one, await service.ask(command))

    def _decided(self, one: Running, answer: Decided) -> DecideAnswer:
        opened, label = answer.opened, one.desk.label
        action = opened.action
        return DecideAnswer(
            ticket=self._service.tickets.give(one.id, opened.number),
            action=[label(item) for item in action] if isinstance(action, list) else label(action),
            expires=None if opened.expires is None else _iso(int(opened.expires)),
            counted=opened.counted,
            repeated=answer.repeated,
            ledger=one.ledger.head,
        )

    async def _reward(self, scope: Scope, receive: Receive) -> RewardAnswer:
        service = self._service
        key = service.access.identify(_authorization(scope))
        body = await read_body(receive)
        try:
            given = _read_reward(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise unreadable(error, RewardRequest) from None
        fresh = await service.ask(service.reward_command(key, given.ticket, given.reward))
        return RewardAnswer(recorded=True, repeated=not fresh)


def _decide_request(body: bytes) -> DecideRequest:
    """What is asked. Many write nan and infinity as such: no feature may decide whether she counts."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _read_decide(body)
    try:
        asked = msgspec.convert(json.loads(body.decode()), DecideRequest)
        (asked.request + (asked.person or "")).encode()  # half a character is none
        return asked
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise unreadable(error, DecideRequest) from None


def unreadable(error: Exception, kind: type[msgspec.Struct]) -> Refusal:
    """What is wrong with a body: which of the fields that it should have, and nothing that it has."""
    said = str(error) if isinstance(error, msgspec.ValidationError) else ""
    for field in kind.__struct_fields__:
        if said.endswith(f"missing required field `{field}`"):
            return Refusal("invalid", detail=f"The field `{field}` is missing.")
        if f"`$.{field}`" in said or f"`$.{field}[" in said:
            return Refusal("invalid", detail=f"The field `{field}` is of the wrong type.")
    if "unknown field" in said:
        known = ", ".join(f"`{field}`" for field in kind.__struct_fields__)
        return Refusal("invalid", detail=f"There is a field too many: send {known} and no others.")
    return Refusal("invalid")


def _unforeseen(error: Exception) -> Refusal:
    log.error("a request failed\n%s", trace_of(error))
    return Refusal("failed")


def _authorization(scope: Scope) -> bytes | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            return bytes(value)
    return None


async def read_body(receive: Receive) -> bytes:
    """All of it, if that is not too much."""
    message = await receive()
    read = message.get("body", b"")
    while message.get("more_body") and len(read) <= MOST_BODY:
        message = await receive()
        read = bytearray(read) if isinstance(read, bytes) else read  # which grows in place
        read += message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise Refusal("timeout")
    if len(read) > MOST_BODY:
        raise Refusal("too-large")
    return bytes(read)


@lru_cache(maxsize=64)  # many decisions fall into one second
def _iso(moment: int) -> str:
    """A time as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
