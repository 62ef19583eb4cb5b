"""The client against a service that loses answers, is busy, refuses, or is something else altogether."""

import ast
import asyncio
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx
import numpy as np
import pytest

from dpbandits import client as module
from dpbandits.client import AsyncClient, Client, Decision, ServiceError
from dpbandits.service.refusals import Code, Refusal

EXPIRES = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
Fault = Callable[["Service", httpx.Request], httpx.Response]


class Service:
    """What the service does with decisions and rewards, behind as many faults as are asked for."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.requests: list[httpx.Request] = []
        self.decided: dict[str, str] = {}  # request key → ticket
        self.rewards: dict[str, Any] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.faults.pop(0)(self, request) if self.faults else self.serve(request)

    def serve(self, request: httpx.Request) -> httpx.Response:
        match request.method, request.url.raw_path.decode().split("/")[2:]:
            case "POST", ["experiments", _, "decide"]:
                return self.decide(json.loads(request.content))
            case "POST", ["reward"]:
                return self.reward(json.loads(request.content))
            case "GET", ["experiments"]:
                return httpx.Response(200, json={"experiments": [{"name": "headline"}]})
            case "GET", ["experiments", name]:
                return httpx.Response(200, json={"name": name})
            case "GET", ["experiments", "headline", ledger] if ledger.startswith("ledger?after="):
                first = int(ledger.removeprefix("ledger?after=")) + 1
                entries = [{"number": number} for number in range(first, 5)]
                return httpx.Response(200, json={"entries": entries[:2]})  # no more at a time
            case "GET", ["experiments", "headline", "broadcast"]:
                return httpx.Response(200, content=b"\x00\xff broadcast")
            case "POST", ["experiments", "headline", "message"]:
                return httpx.Response(200, json={})
        return problem("no-such-route")

    def decide(self, asked: dict[str, Any]) -> httpx.Response:
        repeated = asked["request"] in self.decided
        ticket = self.decided.setdefault(asked["request"], f"ticket-{len(self.decided)}")
        said = {"ticket": ticket, "action": "blue", "expires": "2030-01-02T03:04:05Z", "counted": True}
        return httpx.Response(200, json=said | {"repeated": repeated, "ledger": "abc"})

    def reward(self, sent: dict[str, Any]) -> httpx.Response:
        first = self.rewards.setdefault(sent["ticket"], sent["reward"])
        if first != sent["reward"]:
            return problem("rewarded-differently")
        return httpx.Response(200, json={"recorded": True, "repeated": False})


def problem(code: Code, **options: Any) -> httpx.Response:
    refusal = Refusal(code, **options)
    return httpx.Response(refusal.status, headers=refusal.headers(), content=refusal.body())


def lost_on_the_way_there(service: Service, request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def lost_on_the_way_back(service: Service, request: httpx.Request) -> httpx.Response:
    service.serve(request)
    raise httpx.ReadTimeout("late", request=request)


def cut_off(service: Service, request: httpx.Request) -> httpx.Response:
    service.serve(request)
    raise httpx.RemoteProtocolError("half an answer", request=request)


def refusing(code: Code, **options: Any) -> Fault:
    return lambda service, request: problem(code, **options)


def saying(status: int, content: bytes = b"", **headers: str) -> Fault:
    return lambda service, request: httpx.Response(status, content=content, headers=headers)


class Both:
    """The methods of one of the two clients, called alike."""

    def __init__(self, kind: str, service: Service) -> None:
        self.kind, self.service = kind, service

    def __call__(self, method: str, *arguments: Any, **options: Any) -> Any:
        transport = httpx.MockTransport(self.service)
        if self.kind == "sync":
            with Client("https://service.test", "dpb_key", transport=transport) as client:
                return getattr(client, method)(*arguments, **options)

        async def ask() -> Any:
            async with AsyncClient("https://service.test", "dpb_key", transport=transport) as client:
                return await getattr(client, method)(*arguments, **options)

        return asyncio.run(ask())


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, service: Service) -> Both:
    return Both(request.param, service)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the client would have slept, each time."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(anyio, "sleep", sleep)
    return slept


def refused(ask: Both, *arguments: Any, **options: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        ask(*arguments, **options)
    return caught.value


def test_a_decision_and_its_reward(ask: Both, service: Service) -> None:
    decision = ask("decide", "headline", person="anna", context=[1, 2.5])
    sent = json.loads(service.requests[0].content)
    assert decision == Decision(
        experiment="headline",
        request=sent["request"],
        ticket="ticket-0",
        action="blue",
        expires=EXPIRES,
        counted=True,
        repeated=False,
        ledger="abc",
    )
    assert sent == {"request": decision.request, "person": "anna", "context": [1, 2.5]}
    assert service.requests[0].headers["authorization"] == "Bearer dpb_key"
    assert ask("reward", decision, 1.0) is True
    assert ask("reward", "another", [0.0, np.float64(1.0)]) is True
    assert ask("skip", "third") is True
    assert service.rewards == {"ticket-0": 1.0, "another": [0.0, 1.0], "third": None}


def test_keys_of_requests_are_fresh_unless_given(ask: Both, service: Service) -> None:
    first, second = ask("decide", "headline"), ask("decide", "headline")
    assert first.request != second.request and first.ticket != second.ticket
    third = ask("decide", "headline", request="order 7")
    again = ask("decide", "headline", request="order 7")
    assert third.request == "order 7" and not third.repeated
    assert again.repeated and again.ticket == third.ticket


def test_what_is_public(ask: Both) -> None:
    assert ask("experiments") == [{"name": "headline"}]
    assert ask("experiment", "headline") == {"name": "headline"}
    assert [entry["number"] for entry in ask("ledger", "headline")] == [0, 1, 2, 3, 4]
    assert [entry["number"] for entry in ask("ledger", "headline", after=2)] == [3, 4]
    assert ask("ledger", "headline", after=4) == []


def test_the_local_model(ask: Both, service: Service) -> None:
    assert ask("broadcast", "headline") == b"\x00\xff broadcast"
    assert ask("send", "headline", b"\x01\x02") is True
    assert service.requests[-1].content == b"\x01\x02"
    assert service.requests[-1].headers["content-type"] == "application/octet-stream"
    service.faults = [refusing("closed")]
    assert ask("send", "headline", b"\x01\x02") is False


@pytest.mark.parametrize(
    ("context", "sent"),
    [
        (np.arange(6.0).reshape(2, 3), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]),
        (np.int64(3), 3),
        ((np.float32(0.5), [np.array([1])]), [0.5, [[1]]]),
        (np.array([1.0, np.nan, -np.inf]), [1.0, None, None]),
    ],
)
def test_arrays_are_sent_as_lists(ask: Both, service: Service, context: Any, sent: Any) -> None:
    ask("decide", "headline", context=context)
    assert json.loads(service.requests[0].content)["context"] == sent


def test_a_reward_that_is_no_number_is_not_sent(ask: Both, service: Service) -> None:
    with pytest.raises(ValueError, match="JSON"):
        ask("reward", "ticket", np.nan)
    assert service.requests == []


def test_names_are_quoted(ask: Both, service: Service) -> None:
    ask("decide", "a/b?c#d é")
    assert service.requests[0].url.raw_path == b"/v1/experiments/a%2Fb%3Fc%23d%20%C3%A9/decide"


FAULTS: dict[str, Fault] = {
    "no connection": lost_on_the_way_there,
    "answer lost": lost_on_the_way_back,
    "answer cut off": cut_off,
    "busy": refusing("busy"),
    "standby": refusing("standby"),
    "too many": refusing("too-many"),
    "bad gateway": saying(502, b"<html>nginx</html>"),
    "gateway timeout": saying(504),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_decision_is_repeated_with_the_same_key_and_made_once(
    ask: Both, service: Service, pauses: list[float], fault: str
) -> None:
    service.faults = [FAULTS[fault]] * 3
    decision = ask("decide", "headline", person="anna")
    assert len(service.requests) == 4 and len(pauses) == 3
    assert {json.loads(request.content)["request"] for request in service.requests} == {decision.request}
    assert list(service.decided) == [decision.request]
    assert decision.ticket == "ticket-0"


def test_every_fault_at_once(ask: Both, service: Service) -> None:
    service.faults = list(FAULTS.values())[:5]
    assert ask("reward", "ticket", 0.5) is True
    assert len({request.content for request in service.requests}) == 1
    assert service.rewards == {"ticket": 0.5}


def test_a_service_that_does_not_answer(ask: Both, service: Service) -> None:
    service.faults = [lost_on_the_way_there] * 9
    error = refused(ask, "decide", "headline")
    assert (error.status, error.code) == (None, "no-answer")
    assert "tried 6 times (ConnectError)" in str(error)
    assert isinstance(error.__cause__, httpx.ConnectError)
    assert len(service.requests) == 6


def test_a_service_that_stays_busy(ask: Both, service: Service) -> None:
    service.faults = [lost_on_the_way_back] + [refusing("not-ready")] * 9
    error = refused(ask, "decide", "headline")
    assert (error.status, error.code) == (503, "not-ready")
    assert error.detail == Refusal("not-ready").detail
    assert len(service.requests) == 6


@pytest.mark.parametrize("last", [lost_on_the_way_there, refusing("busy")])
def test_an_old_answer_is_not_taken_for_the_last(ask: Both, service: Service, last: Fault) -> None:
    service.faults = [refusing("busy"), lost_on_the_way_there, refusing("busy"), lost_on_the_way_there]
    service.faults += [lost_on_the_way_there, last]
    assert refused(ask, "decide", "headline").code == (
        "no-answer" if last is lost_on_the_way_there else "busy"
    )


def test_pauses_grow_and_are_not_all_alike(ask: Both, service: Service, pauses: list[float]) -> None:
    for _ in range(10):
        service.faults = [lost_on_the_way_there] * 6
        refused(ask, "decide", "headline")
    assert len(pauses) == 50
    for tried in range(5):
        slept = pauses[tried::5]
        assert 0.1 * 2**tried <= min(slept) < max(slept) <= 0.2 * 2**tried


def test_retry_after_is_honoured(ask: Both, service: Service, pauses: list[float]) -> None:
    service.faults = [refusing("too-many", retry_after=7)]
    ask("decide", "headline")
    assert 7 < pauses[0] <= 7.2


@pytest.mark.parametrize("header", ["soon", "-1", "nan", "1e9", "²", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_a_retry_after_that_is_no_number_is_ignored(
    ask: Both, service: Service, pauses: list[float], header: str
) -> None:
    reply = httpx.Response(503, headers=[(b"retry-after", header.encode("latin-1"))])
    service.faults = [lambda service, request: reply]
    ask("decide", "headline")
    assert 0.1 <= pauses[0] <= 0.2


def test_nobody_waits_for_an_hour(ask: Both, service: Service, pauses: list[float]) -> None:
    service.faults = [refusing("busy", retry_after=3600)]
    assert refused(ask, "decide", "headline").code == "busy"
    assert pauses == []


def test_a_closed_round(ask: Both, service: Service) -> None:
    service.faults = [refusing("closed")] * 3
    assert ask("reward", "ticket", 1.0) is False
    assert ask("skip", "ticket") is False
    # A decision whose round has closed is an error: there is nothing to show.
    assert refused(ask, "decide", "headline", request="order 7").code == "closed"
    assert len(service.requests) == 3


@pytest.mark.parametrize(
    "code",
    [
        "unknown-key",
        "out-of-scope",
        "no-such-experiment",
        "horizon-reached",
        "invalid-context",
        "failed",
    ],
)
def test_what_is_refused_is_not_repeated(ask: Both, service: Service, code: Code) -> None:
    service.faults = [refusing(code)]
    error = refused(ask, "decide", "headline")
    refusal = Refusal(code)
    assert (error.status, error.code, error.detail) == (refusal.status, code, refusal.detail)
    assert str(error) == f"{code} ({refusal.status}): {refusal.detail}"
    assert len(service.requests) == 1


def test_another_reward_is_refused(ask: Both) -> None:
    assert ask("reward", "ticket", 1.0) and ask("reward", "ticket", 1.0)
    assert refused(ask, "reward", "ticket", 0.0).code == "rewarded-differently"


GARBAGE = [
    b"",
    b"<html>Welcome to nginx</html>",
    b"{",
    b"null",
    b"[]",
    b"3",
    b'"text"',
    b"{}",
    b'{"ticket": "t"}',
    b'{"ticket": "t", "action": 1, "expires": "soon", "counted": true, "repeated": false}',
    b"\xff\xfe",
]


@pytest.mark.parametrize("content", GARBAGE)
@pytest.mark.parametrize("status", [200, 404, 500])
def test_garbage(ask: Both, service: Service, content: bytes, status: int) -> None:
    service.faults = [saying(status, content)] * 3
    for question in (("decide", "headline"), ("reward", "ticket", 1.0)):
        error = refused(ask, *question)
        assert (error.status, error.code) == (status, "unreadable")
        assert "nginx" not in str(error)


@pytest.mark.parametrize("content", [b"", b"<html>", b"null", b"3", b"[]"])
def test_garbage_instead_of_what_is_public(ask: Both, service: Service, content: bytes) -> None:
    for question in (("experiments",), ("experiment", "headline"), ("ledger", "headline")):
        service.faults = [saying(200, content)]
        assert refused(ask, *question).code == "unreadable"


def test_a_redirect_does_not_take_the_key_elsewhere(ask: Both, service: Service) -> None:
    service.faults = [saying(307, location="https://elsewhere.test/")]
    assert refused(ask, "decide", "headline").status == 307
    assert len(service.requests) == 1


def test_a_key_from_a_file_may_end_with_its_line(service: Service) -> None:
    with Client("https://service.test", "dpb_key\n", transport=httpx.MockTransport(service)) as client:
        client.experiments()
        assert "dpb_key" not in repr(client)
    assert service.requests[0].headers["authorization"] == "Bearer dpb_key"


def test_no_retries_is_one_attempt(service: Service) -> None:
    service.faults = [refusing("busy")]
    client = Client(
        "https://service.test/prefix", "key", retries=0, transport=httpx.MockTransport(service)
    )
    with client, pytest.raises(ServiceError, match="busy"):
        client.decide("headline")
    assert service.requests[0].url.path == "/prefix/v1/experiments/headline/decide"
    assert len(service.requests) == 1


def test_many_at_once_take_turns(service: Service) -> None:
    """Made before there is an event loop, as a module does."""
    under_way = most = 0

    async def handle(request: httpx.Request) -> httpx.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return service(request)

    client = AsyncClient("https://service.test", "key", transport=httpx.MockTransport(handle))

    async def ask() -> list[Decision]:
        async with client:
            return await asyncio.gather(*(client.decide("headline") for _ in range(100)))

    assert len({decision.ticket for decision in asyncio.run(ask())}) == 100
    assert most == module.AT_ONCE


def test_both_clients_have_the_same_methods() -> None:
    def public(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient)


def test_the_file_stands_alone() -> None:
    """It may be copied to a place where only httpx is installed."""
    tree = ast.parse(Path(module.__file__).read_text())
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module
            imported.add(node.module.split(".")[0])
    assert "httpx" in imported and "dpbandits" not in imported
    # anyio is a requirement of httpx.
    assert imported - {"httpx", "anyio"} <= set(sys.stdlib_module_names)
