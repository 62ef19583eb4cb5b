"""A client of the decision service: ask for a decision, show it, say how it went.

```python
with Client("https://decisions.example.org", key) as client:
    decision = client.decide("headline", person="anna@example.org")
    clicked = show(decision.action)
    client.reward(decision, 1.0 if clicked else 0.0)
```

`AsyncClient` has the same methods, to be awaited. This file needs httpx and nothing else of this
package: it may be copied to where only that is installed.

**Repeating.** Where no answer comes, or the service is busy (429, 502, 503, 504), a request is repeated
after a pause that grows and that `Retry-After` may lengthen. Every attempt at a decision carries the
same request key, so that it is made once.
"""

import math
import random
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from urllib.parse import quote

try:
    import anyio
    import httpx
except ModuleNotFoundError as error:
    raise ImportError("this needs httpx: pip install 'dpbandits[client]'") from error

__all__ = ["AsyncClient", "Client", "Decision", "ServiceError"]

BUSY = {429, 502, 503, 504}
NO_ANSWER = (httpx.NetworkError, httpx.RemoteProtocolError, httpx.TimeoutException)
FIRST_PAUSE = 0.2  # seconds; doubled each time
AT_ONCE = 20  # requests of one AsyncClient
LONGEST_PAUSE = 30.0  # who asks for a longer one is believed to be away

Result = TypeVar("Result")


class ServiceError(Exception):
    """The service refused, or could not be reached.

    `status` is that of HTTP, None where no answer came. `code` is the service's word for what was wrong,
    such as "no-such-experiment"; or "no-answer"; or "unreadable", where something else has answered.
    """

    def __init__(self, status: int | None, code: str, detail: str) -> None:
        self.status, self.code, self.detail = status, code, detail
        super().__init__(f"{code}{'' if status is None else f' ({status})'}: {detail}")


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What was decided for one person, and the ticket by which to say how it went."""

    experiment: str
    request: str  # the key under which it was asked for
    ticket: str
    action: Any  # its label; its number where there are no labels; a list where a set is chosen
    expires: datetime | None  # rewards count until then; None: until later decisions close the round
    counted: bool  # False: the person has had her share of rounds, and nothing is learned from this one
    repeated: bool  # whether the service had decided this before
    ledger: str | None = None  # hash of its newest entry: noted, it shows if the past is changed


@dataclass(frozen=True)
class _Question(Generic[Result]):
    """One request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[httpx.Response], Result]
    json: Any = None
    content: bytes | None = None
    late: Result | None = None  # what 410 means, where it is an answer rather than an error

    def options(self) -> dict[str, Any]:
        """What httpx is to send."""
        if self.content is not None:
            return {"content": self.content, "headers": {"content-type": "application/octet-stream"}}
        return {} if self.json is None else {"json": self.json}

    def answer(self, response: httpx.Response) -> Result:
        """The answer as Python values."""
        if response.status_code == 410 and self.late is not None:
            return self.late
        if not response.is_success:
            raise _error_of(response)
        try:
            return self.read(response)
        except (ValueError, KeyError, TypeError) as error:  # JSON that is none, or is another
            raise _unreadable(response) from error


def _error_of(response: httpx.Response) -> ServiceError:
    """The service's own problem document, or that something else has answered."""
    try:
        problem = response.json()
        code = problem["type"].removeprefix("urn:dpbandits:problem:")
        return ServiceError(response.status_code, code, problem["detail"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return _unreadable(response)


def _unreadable(response: httpx.Response) -> ServiceError:
    detail = "this is no answer of the decision service; check the address and what is in between"
    return ServiceError(response.status_code, "unreadable", detail)


def _pause_after(response: httpx.Response | None, tried: int) -> float | None:
    """Seconds until the next attempt; None where this answer is final."""
    if response is not None and response.status_code not in BUSY:
        return None
    asked = "" if response is None else response.headers.get("retry-after", "")
    wanted = float(asked) if re.fullmatch(r"[0-9]{1,9}", asked) else 0.0
    if wanted > LONGEST_PAUSE:
        return None
    # Jitter, so that those who were turned away together do not come back together.
    growing = min(FIRST_PAUSE * 2.0**tried, LONGEST_PAUSE)
    return wanted + growing * random.uniform(0.5, 1.0)


def _no_answer(tried: int, error: Exception | None) -> ServiceError:
    reason = type(error).__name__
    return ServiceError(None, "no-answer", f"the service did not answer, tried {tried} times ({reason})")


def _plain(value: Any) -> Any:
    """Arrays and numbers of NumPy, or of whatever else has `tolist`, as lists and numbers."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _finite(value: Any) -> Any:
    """None instead of numbers that JSON does not have."""
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _of(experiment: str) -> str:
    return f"/v1/experiments/{quote(experiment, safe='')}"


def _decide(
    experiment: str, person: str | None, context: Any, request: str | None
) -> _Question[Decision]:
    request = uuid.uuid4().hex if request is None else request
    body = {"request": request, "person": person, "context": _finite(_plain(context))}

    def read(response: httpx.Response) -> Decision:
        said = response.json()
        return Decision(
            experiment=experiment,
            request=request,
            ticket=said["ticket"],
            action=said["action"],
            expires=None if said["expires"] is None else datetime.fromisoformat(said["expires"]),
            counted=said["counted"],
            repeated=said["repeated"],
            ledger=said.get("ledger"),
        )

    sent = {name: value for name, value in body.items() if value is not None}
    return _Question("POST", f"{_of(experiment)}/decide", read, json=sent)


def _reward(decision: Decision | str, value: Any) -> _Question[bool]:
    ticket = decision.ticket if isinstance(decision, Decision) else decision
    body = {"ticket": ticket, "reward": _plain(value)}
    return _Question(
        "POST", "/v1/reward", lambda said: bool(said.json()["recorded"]), json=body, late=False
    )


def _dict(response: httpx.Response) -> dict[str, Any]:
    found = response.json()
    if not isinstance(found, dict):
        raise TypeError("expected an object")
    return found


def _list(field: str) -> Callable[[httpx.Response], list[dict[str, Any]]]:
    return lambda response: list(response.json()[field])


def _experiments() -> _Question[list[dict[str, Any]]]:
    return _Question("GET", "/v1/experiments", _list("experiments"))


def _experiment(name: str) -> _Question[dict[str, Any]]:
    return _Question("GET", _of(name), _dict)


def _ledger(name: str, after: int) -> _Question[list[dict[str, Any]]]:
    return _Question("GET", f"{_of(name)}/ledger?after={after:d}", _list("entries"))


def _broadcast(name: str) -> _Question[bytes]:
    return _Question("GET", f"{_of(name)}/broadcast", lambda response: response.content)


def _send(name: str, message: bytes) -> _Question[bool]:
    return _Question("POST", f"{_of(name)}/message", lambda _: True, content=message, late=False)


class Client:
    """The service at `url`, asked with an API key.

    `timeout` in seconds is for each attempt; `retries` is how often a request is repeated at most. One
    client keeps its connections and may be used by several threads. `transport` is handed to httpx.
    Where nobody can wait, choose both small, and show a default of your own on `ServiceError`.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 10.0,
        retries: int = 5,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._retries = max(retries, 0)
        self._http = httpx.Client(
            base_url=url, headers=_headers(key), timeout=timeout, transport=transport
        )

    def decide(
        self,
        experiment: str,
        *,
        person: str | None = None,
        context: Any = None,
        request: str | None = None,
    ) -> Decision:
        """A decision for one person.

        `person` is a stable name of hers, of which the service keeps a keyed hash only. `context` is
        what the experiment's problem declares, as lists or arrays; nan and infinity, which JSON does not
        have, are sent as null. `request` is a key of your own, such as an order number: asked with
        it again, the service repeats its decision while the round is open.
        """
        return self._ask(_decide(experiment, person, context, request))

    def reward(self, decision: Decision | str, value: Any) -> bool:
        """Say how it went, by the decision or its ticket; a list of numbers where a set was chosen.

        False where the round had closed. If an earlier attempt of this call went unanswered, its reward
        may have been recorded before the round closed: False does not tell.
        """
        return self._ask(_reward(decision, value))

    def skip(self, decision: Decision | str) -> bool:
        """Say that no reward will come. To say nothing does the same, later."""
        return self._ask(_reward(decision, None))

    def experiments(self) -> list[dict[str, Any]]:
        """What is public of every experiment."""
        return self._ask(_experiments())

    def experiment(self, name: str) -> dict[str, Any]:
        """What is public of one experiment: its recipe, its guarantee, its counts, what it released."""
        return self._ask(_experiment(name))

    def ledger(self, name: str, after: int = -1) -> list[dict[str, Any]]:
        """The entries of an experiment's ledger with numbers above `after`; all, unless given."""
        entries: list[dict[str, Any]] = []
        while found := self._ask(_ledger(name, after)):
            entries += found
            after += len(found)
        return entries

    def broadcast(self, name: str) -> bytes:
        """Local model: what the server sends to everybody; `Person` reads it."""
        return self._ask(_broadcast(name))

    def send(self, name: str, message: bytes) -> bool:
        """Local model: a person's message, noise included; False where its round had closed."""
        return self._ask(_send(name, message))

    def _ask(self, question: _Question[Result]) -> Result:
        failure: Exception | None = None
        for tried in range(self._retries + 1):
            response = None
            try:
                response = self._http.request(question.method, question.path, **question.options())
            except NO_ANSWER as error:
                failure = error
            pause = _pause_after(response, tried)
            if pause is None or tried == self._retries:
                break
            time.sleep(pause)
        if response is None:
            raise _no_answer(tried + 1, failure) from failure
        return question.answer(response)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient:
    """`Client` for programs that use asyncio or trio: the same methods, to be awaited.

    Twenty requests at most are on their way at once; others wait for their turn.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 10.0,
        retries: int = 5,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._retries = max(retries, 0)
        # The time that httpx takes to find a free connection grows with all who wait for one.
        self._turns = anyio.Semaphore(AT_ONCE)
        self._http = httpx.AsyncClient(
            base_url=url,
            headers=_headers(key),
            timeout=timeout,
            limits=httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE),
            transport=transport,
        )

    async def decide(
        self,
        experiment: str,
        *,
        person: str | None = None,
        context: Any = None,
        request: str | None = None,
    ) -> Decision:
        """As `Client.decide`."""
        return await self._ask(_decide(experiment, person, context, request))

    async def reward(self, decision: Decision | str, value: Any) -> bool:
        """As `Client.reward`."""
        return await self._ask(_reward(decision, value))

    async def skip(self, decision: Decision | str) -> bool:
        """As `Client.skip`."""
        return await self._ask(_reward(decision, None))

    async def experiments(self) -> list[dict[str, Any]]:
        """As `Client.experiments`."""
        return await self._ask(_experiments())

    async def experiment(self, name: str) -> dict[str, Any]:
        """As `Client.experiment`."""
        return await self._ask(_experiment(name))

    async def ledger(self, name: str, after: int = -1) -> list[dict[str, Any]]:
        """As `Client.ledger`."""
        entries: list[dict[str, Any]] = []
        while found := await self._ask(_ledger(name, after)):
            entries += found
            after += len(found)
        return entries

    async def broadcast(self, name: str) -> bytes:
        """As `Client.broadcast`."""
        return await self._ask(_broadcast(name))

    async def send(self, name: str, message: bytes) -> bool:
        """As `Client.send`."""
        return await self._ask(_send(name, message))

    async def _ask(self, question: _Question[Result]) -> Result:
        failure: Exception | None = None
        for tried in range(self._retries + 1):
            response = None
            try:
                async with self._turns:
                    response = await self._http.request(
                        question.method, question.path, **question.options()
                    )
            except NO_ANSWER as error:
                failure = error
            pause = _pause_after(response, tried)
            if pause is None or tried == self._retries:
                break
            await anyio.sleep(pause)
        if response is None:
            raise _no_answer(tried + 1, failure) from failure
        return question.answer(response)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _headers(key: str) -> dict[str, str]:
    # A key read from a file often ends with its line, and would then be shown in an error of httpx.
    return {"authorization": f"Bearer {key.strip()}", "accept": "application/json"}
