"""Everything that may be sent to a service by mistake or on purpose, over real sockets.

Each is answered as designed, nothing of what was sent comes back or is logged, and the service decides
on as before.
"""

import json
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from live_service import LiveService, live_service

if TYPE_CHECKING:
    from postgres import Postgres

MARKER = "zqx-marker-xqz"  # in everything that is sent
DECIDE = "/v1/experiments/headline/decide"
EXPERIMENTS: list[dict[str, Any]] = [
    {"name": "headline", "privacy": "eps=1", "actions": ["calm", "loud"]},
    {"name": "capped", "privacy": "eps=1", "actions": ["a", "b"], "rounds_per_person": 2},
    {"name": "narrow", "privacy": "eps=1", "actions": ["a", "b"], "in_flight": 2},
    {
        "name": "sets",
        "privacy": "eps=1",
        "problem": {
            "kind": "MatroidBases",
            "matroid": {"kind": "UniformMatroid", "items": 4, "most": 2},
        },
    },
    {"name": "grown", "privacy": "eps=1", "problem": {"kind": "Arms", "arms": 2, "capacity": 3}},
    {"name": "local", "privacy": "eps=1", "actions": ["a", "b"], "trust": "local"},
]


@dataclass
class Target:
    """A service, with keys of every sort."""

    service: LiveService
    keys: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        new = self.service.new_key
        self.keys = {
            "admin": self.service.admin,
            "decide": new("decider", "decide"),
            "reward": new("rewarder", "reward"),
            "metrics": new("watcher", "metrics"),
            "elsewhere": new("elsewhere", "decide", "reward", experiments=["narrow"]),
            "some": new("some", "admin", experiments=["headline"]),
            "revoked": new("revoked", "decide"),
        }
        assert self.service.http.delete("/v1/keys/revoked").status_code == 200

    def ask(self, request: bytes, timeout: float = 10.0) -> bytes:
        """Send it; all that comes back until the service closes the connection."""
        with socket.create_connection(("127.0.0.1", self.service.port), timeout) as connection:
            with suppress(BrokenPipeError, ConnectionResetError):  # refused while it was being sent
                connection.sendall(request)
            answer = b""
            with suppress(ConnectionResetError):
                while piece := connection.recv(65_536):
                    answer += piece
            return answer

    def decide(self, experiment: str = "headline", **asked: Any) -> dict[str, Any]:
        """As one should."""
        body = {"request": str(time.perf_counter_ns()), **asked}
        answer = self.service.http.post(f"/v1/experiments/{experiment}/decide", json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def ticket(self, experiment: str = "headline", **asked: Any) -> str:
        """Of a fresh decision."""
        return str(self.decide(experiment, **asked)["ticket"])

    def check_alive(self, within: float = 1.0) -> None:
        """It decides, soon, and has not said what it was sent."""
        took = list[float]()  # twice at most: others may use this machine, too
        while len(took) < 2 and not (took and took[0] < within):
            began = time.perf_counter()
            self.decide()
            took.append(time.perf_counter() - began)
        assert min(took) < within
        assert MARKER not in self.service.said


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("misuse")
    with live_service(folder, EXPERIMENTS) as service:
        yield Target(service)


# How a request is made: from the target, since most need a key of it, and some a ticket.

Make = Callable[[Target], bytes]
_CLOSE = b"connection: close"


def request(
    method: str, path: str, body: bytes = b"", *headers: bytes, key: str | None = "admin"
) -> Make:
    """One that is as HTTP has it, but for what is put into it."""

    def make(target: Target) -> bytes:
        lines = [f"{method} {path} HTTP/1.1".encode(), b"host: x", b"x-note: " + MARKER.encode()]
        if key is not None:
            lines.append(b"authorization: Bearer " + target.keys.get(key, key).encode())
        if body:
            lines.append(b"content-length: %d" % len(body))
        return b"\r\n".join([*lines, *headers, _CLOSE, b"", body])

    return make


def decide(body: Any, *headers: bytes, to: str = "headline", key: str | None = "admin") -> Make:
    return request("POST", f"/v1/experiments/{to}/decide", _json(body), *headers, key=key)


def decide_with(**values: Any) -> Make:
    """A decision that is right but for these fields."""
    return decide({"request": MARKER + str(time.perf_counter_ns()), **values})


def reward(value: Any, *, of: str = "headline", key: str | None = "admin", **asked: Any) -> Make:
    """A reward of a fresh decision; `value` is JSON as text."""

    def make(target: Target) -> bytes:
        body = f'{{"ticket": "{target.ticket(of, **asked)}", "reward": {value}}}'
        return request("POST", "/v1/reward", body.encode(), key=key)(target)

    return make


def reward_by(ticket: Any) -> Make:
    """A reward by a ticket that was not given out."""
    return request("POST", "/v1/reward", _json({"ticket": ticket, "reward": 1}))


def reward_by_changed(change: Callable[[str], str]) -> Make:
    """A reward by a ticket that was given out otherwise."""
    return lambda target: reward_by(change(target.ticket()))(target)


def begin(**terms: Any) -> Make:
    """An experiment that cannot begin."""
    terms = {"name": "other", "privacy": "eps=1", "actions": ["a", MARKER]} | terms
    present = {name: value for name, value in terms.items() if value is not None}
    return request("POST", "/v1/experiments", _json(present))


def begin_on(problem: Any, **terms: Any) -> Make:
    return begin(problem=problem, actions=None, population=MARKER, **terms)


def post(path: str, body: Any = None, key: str | None = "admin") -> Make:
    return request("POST", path, b"" if body is None else _json(body), key=key)


def get(path: str, *headers: bytes, key: str | None = None) -> Make:
    return request("GET", path, b"", *headers, key=key)


def raw(*lines: bytes) -> Make:
    """Lines of a head as they are, and the end of it."""
    note = b"x-note: " + MARKER.encode()
    return lambda target: b"\r\n".join([*lines, note, b"", b""]).replace(
        b"KEY", target.keys["admin"].encode()
    )


def raw_decide(headers: list[bytes], body: bytes) -> Make:
    """A decision whose framing is odd."""
    lines = [b"POST " + DECIDE.encode() + b" HTTP/1.1", b"host: x", b"authorization: Bearer KEY"]
    return lambda target: b"\r\n".join([*lines, *headers, _CLOSE, b"", body]).replace(
        b"KEY", target.keys["admin"].encode()
    )


def _json(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def late(target: Target) -> bytes:
    """A reward for a round that later ones have closed."""
    ticket = target.ticket("narrow")
    for _ in range(3):
        target.decide("narrow")
    return reward_by(ticket)(target)


def again_later(target: Target) -> bytes:
    """A decision under the key of a round that is closed."""
    key = str(time.perf_counter_ns())
    target.decide("narrow", request=key)
    for _ in range(3):
        target.decide("narrow")
    return decide({"request": key}, to="narrow")(target)


def rewarded_differently(target: Target) -> bytes:
    ticket = target.ticket()
    given = target.service.http.post("/v1/reward", json={"ticket": ticket, "reward": 0})
    assert given.status_code == 200
    return reward_by(ticket)(target)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def deep_recipe(depth: int) -> dict[str, Any]:
    matroid: dict[str, Any] = {"kind": "UniformMatroid", "items": 4, "most": 2}
    for _ in range(depth):
        matroid = {"kind": "TruncatedMatroid", "matroid": matroid, "most": 2}
    return {"kind": "MatroidBases", "matroid": matroid}


def kernel(contexts: int, **others: Any) -> dict[str, Any]:
    grid = [[place / contexts] for place in range(contexts)]
    shape = {"kind": "SquaredExponential", "length_scale": 0.1}
    return {"kind": "KernelContexts", "kernel": shape, "contexts": grid, "actions": grid, **others}


_FINE = {"request": MARKER}
_CHUNKED = b"transfer-encoding: chunked"
_BIG = 70_000
_SQL = f"'; drop table experiments; -- {MARKER}"
_HTML = f"<script>alert('{MARKER}')</script>"
_ABSURD = 10**400

# What it is, how it is made, and the status and the code of the answer.
CASES: dict[str, tuple[Make, int, str]] = {
    # Bodies that are no request
    "nothing": (decide(b""), 422, "invalid"),
    "no JSON": (decide(f"request={MARKER}".encode()), 422, "invalid"),
    "JSON cut short": (decide(_json(_FINE)[:-1]), 422, "invalid"),
    "JSON and more": (decide(_json(_FINE) + b" x"), 422, "invalid"),
    "two objects": (decide(2 * _json(_FINE)), 422, "invalid"),
    "a list": (decide([_FINE]), 422, "invalid"),
    "a text": (decide(MARKER), 422, "invalid"),
    "a number": (decide(7), 422, "invalid"),
    "null": (decide(None), 422, "invalid"),
    "deep JSON": (decide(nested(30_000)), 422, "invalid"),
    "a deep field": (decide(b'{"request": ' + nested(30_000) + b"}"), 422, "invalid"),
    "a deep context": (
        decide(b'{"request": "x", "context": ' + nested(700) + b"}"),
        422,
        "invalid-context",
    ),
    "invalid UTF-8": (decide(b'{"request": "' + MARKER.encode() + b'\xff"}'), 422, "invalid"),
    "UTF-16": (decide(json.dumps(_FINE).encode("utf-16")), 422, "invalid"),
    "a byte order mark": (decide(b"\xef\xbb\xbf" + _json(_FINE)), 422, "invalid"),
    "a lone surrogate": (decide(b'{"request": "\\ud800 ' + MARKER.encode() + b'"}'), 422, "invalid"),
    "a null byte": (decide(b'{"request": "x\0' + MARKER.encode() + b'"}'), 422, "invalid"),
    "a form": (
        decide(b"request=" + MARKER.encode(), b"content-type: application/x-www-form-urlencoded"),
        422,
        "invalid",
    ),
    "compressed": (decide(b"\x1f\x8b\x08" + MARKER.encode(), b"content-encoding: gzip"), 422, "invalid"),
    "too large": (decide({"request": MARKER + _BIG * "x"}), 413, "too-large"),
    # Fields
    "no request key": (decide({"person": MARKER}), 422, "invalid"),
    "request key null": (decide({"request": None, "person": MARKER}), 422, "invalid"),
    "request key a number": (decide({"request": 7}), 422, "invalid"),
    "request key a list": (decide({"request": [MARKER]}), 422, "invalid"),
    "request key empty": (decide({"request": ""}), 422, "invalid"),
    "request key long": (decide({"request": MARKER + 120 * "x"}), 422, "invalid"),
    "an unknown field": (decide_with(**{MARKER: 1}), 422, "invalid"),
    "a seed": (decide_with(seed=1), 422, "invalid"),
    "NaN": (decide(b'{"request": "x", "context": NaN}'), 422, "invalid"),
    "Infinity": (decide(b'{"request": "x", "context": -Infinity}'), 422, "invalid"),
    "1e999": (decide(b'{"request": "x", "context": [1e999]}'), 422, "invalid"),
    "a context where there is none": (decide_with(context=[0.5]), 422, "invalid-context"),
    "a context of text": (decide_with(context=MARKER), 422, "invalid-context"),
    "a context of objects": (decide_with(context=[{MARKER: 1}]), 422, "invalid-context"),
    "a context beyond numbers": (decide_with(context=_ABSURD), 422, "invalid-context"),
    "a ragged context": (decide_with(context=[[1], [2, 3]]), 422, "invalid-context"),
    "people are not told apart": (decide_with(person=MARKER), 422, "invalid"),
    "nobody": (decide(_FINE, to="capped"), 422, "no-person"),
    "person a number": (decide({**_FINE, "person": 7}, to="capped"), 422, "invalid"),
    "person empty": (decide({**_FINE, "person": ""}, to="capped"), 422, "invalid"),
    "person long": (decide({**_FINE, "person": 300 * "x" + MARKER}, to="capped"), 422, "invalid"),
    "a decision for the local model": (decide(_FINE, to="local"), 422, "invalid"),
    "a key whose round is closed": (again_later, 410, "closed"),
    # Rewards
    "a forged ticket": (reward_by("AAABAAAAAAAA" + 20 * "A"), 404, "no-such-decision"),
    "a changed ticket": (
        reward_by_changed(lambda ticket: ticket[:11] + "zz" + ticket[13:]),
        404,
        "no-such-decision",
    ),
    "a ticket cut short": (reward_by_changed(lambda ticket: ticket[:-1]), 404, "no-such-decision"),
    "a ticket too long": (reward_by_changed(lambda ticket: ticket + "A"), 404, "no-such-decision"),
    "a ticket with padding": (
        reward_by_changed(lambda ticket: ticket[:-1] + "="),
        404,
        "no-such-decision",
    ),
    "a ticket of text": (reward_by(MARKER), 404, "no-such-decision"),
    "a ticket beyond ASCII": (reward_by(32 * "é"), 404, "no-such-decision"),
    "a ticket of SQL": (reward_by(_SQL), 404, "no-such-decision"),
    "ticket a number": (reward_by(7), 422, "invalid"),
    "ticket null": (reward_by(None), 422, "invalid"),
    "ticket a list": (reward_by([MARKER]), 422, "invalid"),
    "no ticket": (post("/v1/reward", {"reward": 1, "note": MARKER}), 422, "invalid"),
    "no reward": (post("/v1/reward", {"ticket": MARKER}), 422, "invalid"),
    "late": (late, 410, "closed"),
    "another reward": (rewarded_differently, 409, "rewarded-differently"),
    "reward a text": (reward(f'"{MARKER}"'), 422, "invalid-reward"),
    "reward a number as text": (reward('"1"'), 422, "invalid-reward"),
    "reward an object": (reward(f'{{"{MARKER}": 1}}'), 422, "invalid-reward"),
    "reward a list": (reward("[1]"), 422, "invalid-reward"),
    "reward deep": (reward(nested(700).decode()), 422, "invalid-reward"),
    "reward NaN": (reward("NaN"), 422, "invalid"),
    "reward 1e999": (reward("1e999"), 422, "invalid"),
    "reward a number of 5,000 digits": (reward("9" * 5000), 422, "invalid"),
    "rewards too few": (reward("[1]", of="sets"), 422, "invalid-reward"),
    "rewards too many": (reward("[1, 1, 1]", of="sets"), 422, "invalid-reward"),
    "rewards one of them null": (reward("[1, null]", of="sets"), 422, "invalid-reward"),
    "rewards one of them text": (reward(f'[1, "{MARKER}"]', of="sets"), 422, "invalid-reward"),
    "rewards in lists": (reward("[[1, 1]]", of="sets"), 422, "invalid-reward"),
    "one reward for a set": (reward("1", of="sets"), 422, "invalid-reward"),
    # Keys
    "no key": (decide(_FINE, key=None), 401, "no-key"),
    "an empty key": (decide(_FINE, key=""), 401, "unknown-key"),
    "an unknown key": (decide(_FINE, key="dpb_" + MARKER), 401, "unknown-key"),
    "a long key": (decide(_FINE, key=8000 * "x" + MARKER), 401, "unknown-key"),
    "a key beyond ASCII": (decide(_FINE, key="dpb_é" + MARKER), 401, "unknown-key"),
    "a revoked key": (decide(_FINE, key="revoked"), 401, "unknown-key"),
    "a password": (decide(_FINE, b"authorization: Basic " + MARKER.encode(), key=None), 401, "no-key"),
    "a key in the address": (post(f"{DECIDE}?key={MARKER}", _FINE, key=None), 401, "no-key"),
    "a cookie": (decide(_FINE, b"cookie: key=" + MARKER.encode(), key=None), 401, "no-key"),
    "deciding with a key for rewards": (decide(_FINE, key="reward"), 403, "out-of-scope"),
    "rewarding with a key for decisions": (reward("1", key="decide"), 403, "out-of-scope"),
    "a key for another experiment": (decide(_FINE, key="elsewhere"), 403, "out-of-scope"),
    "rewarding another experiment": (reward("1", key="elsewhere"), 403, "out-of-scope"),
    "beginning with a key for decisions": (post("/v1/experiments", {}, "decide"), 403, "out-of-scope"),
    "an administrator of some": (post("/v1/keys", {"name": MARKER}, "some"), 403, "out-of-scope"),
    "a broadcast without a key": (get("/v1/experiments/local/broadcast"), 401, "no-key"),
    "metrics with a key for rewards": (get("/metrics", key="reward"), 403, "out-of-scope"),
    "metrics with an unknown key": (get("/metrics", key=MARKER), 401, "unknown-key"),
    # Addresses
    "no such experiment": (decide(_FINE, to=MARKER), 404, "no-such-experiment"),
    "no such page": (get(f"/{MARKER}"), 404, "no-such-route"),
    "upwards": (get(f"/v1/experiments/../../{MARKER}"), 404, "no-such-route"),
    "upwards, encoded": (get("/v1/experiments/%2e%2e%2f%2e%2e%2fetc%2fpasswd"), 404, "no-such-route"),
    "deciding upwards": (decide(_FINE, to="../headline"), 404, "no-such-experiment"),
    "deciding for a slash": (decide(_FINE, to="headline%2f" + MARKER), 404, "no-such-experiment"),
    "deciding for nothing": (decide(_FINE, to=""), 404, "no-such-experiment"),
    "deciding for a null byte": (decide(_FINE, to="%00" + MARKER), 404, "no-such-experiment"),
    "deciding for no UTF-8": (decide(_FINE, to="%ff%fe"), 404, "no-such-experiment"),
    "deciding for a smile": (decide(_FINE, to="%F0%9F%98%80"), 404, "no-such-experiment"),
    "deciding for a bad escape": (decide(_FINE, to="%zz" + MARKER), 404, "no-such-experiment"),
    "deciding for SQL": (decide(_FINE, to="'%20or%201=1"), 404, "no-such-experiment"),
    "deciding for HTML": (decide(_FINE, to="%3Cb%3E" + MARKER), 404, "no-such-experiment"),
    "deciding for a long name": (decide(_FINE, to=8000 * "x"), 404, "no-such-experiment"),
    "deciding for capitals": (decide(_FINE, to="HEADLINE"), 404, "no-such-experiment"),
    "a long name": (get(f"/v1/experiments/{8000 * 'x'}{MARKER}"), 404, "no-such-experiment"),
    "a name of HTML": (get(f"/v1/experiments/%3Cb%3E{MARKER}"), 404, "no-such-experiment"),
    "a slash at the end": (get("/v1/experiments/"), 404, "no-such-route"),
    "two slashes": (get(f"//{MARKER}/v1/experiments"), 404, "no-such-route"),
    "another server's address": (get(f"http://{MARKER}/v1/x"), 404, "no-such-route"),
    "an address too long": (get("/" + 20_000 * "x" + MARKER), 431, "head-too-large"),
    "a ledger after text": (get(f"/v1/experiments/headline/ledger?after={MARKER}"), 422, "invalid"),
    "a ledger after much": (get(f"/v1/experiments/headline/ledger?after={_ABSURD}"), 422, "invalid"),
    "a ledger before it": (get("/v1/experiments/headline/ledger?after=-2"), 422, "invalid"),
    "a ledger of no entries": (get("/v1/experiments/headline/ledger?limit=0"), 422, "invalid"),
    "a whole ledger": (get("/v1/experiments/headline/ledger?limit=1e9"), 422, "invalid"),
    "a ledger of nothing": (get(f"/v1/experiments/{MARKER}/ledger"), 404, "no-such-experiment"),
    # Methods
    "looking at a decision": (get(f"{DECIDE}?{MARKER}", key="admin"), 405, "wrong-method"),
    "looking at a reward": (get("/v1/reward", key="admin"), 405, "wrong-method"),
    "putting an experiment": (request("PUT", "/v1/experiments/headline"), 405, "wrong-method"),
    "deleting an experiment": (request("DELETE", "/v1/experiments/headline"), 405, "wrong-method"),
    "deleting decisions": (request("DELETE", DECIDE), 405, "wrong-method"),
    "patching": (request("PATCH", "/v1/keys/admin"), 405, "wrong-method"),
    "posting to health": (post("/health", {MARKER: 1}), 405, "wrong-method"),
    "options": (request("OPTIONS", "/v1/experiments"), 405, "wrong-method"),
    "options of all": (request("OPTIONS", "*"), 404, "no-such-route"),
    "tracing": (request("TRACE", "/v1/experiments"), 405, "wrong-method"),
    "a tunnel": (raw(b"CONNECT example.org:443 HTTP/1.1", b"host: x", _CLOSE), 400, "malformed"),
    "a method of one's own": (request(MARKER.upper(), "/"), 400, "malformed"),
    # What is no HTTP, or odd HTTP
    "an upgrade": (decide(_FINE, b"upgrade: websocket", b"connection: upgrade"), 422, "invalid"),
    "no HTTP": (lambda _: MARKER.encode() + b"\r\n\r\n", 400, "malformed"),
    "TLS": (lambda _: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + 40 * b"x", 400, "malformed"),
    "HTTP/2": (lambda _: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "malformed"),
    "HTTP/9": (raw(b"GET / HTTP/9.9", b"host: x"), 400, "malformed"),
    "a header without a colon": (raw(b"GET /health HTTP/1.1", MARKER.encode()), 400, "malformed"),
    "a blank before a colon": (raw(b"GET /health HTTP/1.1", b"host : x"), 400, "malformed"),
    "a null byte in a header": (raw(b"GET /health HTTP/1.1", b"x: a\0b"), 400, "malformed"),
    "headers without end": (
        raw(b"GET / HTTP/1.1", *(b"x-%d: %s" % (n, MARKER.encode()) for n in range(2000))),
        431,
        "head-too-large",
    ),
    "a length of text": (raw_decide([b"content-length: x"], b"{}"), 400, "malformed"),
    "a negative length": (raw_decide([b"content-length: -1"], b"{}"), 400, "malformed"),
    "a length with a sign": (raw_decide([b"content-length: +2"], b"{}"), 400, "malformed"),
    "two lengths": (
        raw_decide([b"content-length: 2", b"content-length: 3"], b"{}x"),
        400,
        "malformed",
    ),
    "a length beyond numbers": (
        raw_decide([b"content-length: " + 30 * b"9"], b"{}"),
        400,
        "malformed",
    ),
    "a length of gigabytes": (raw_decide([b"content-length: 9999999999"], b"{}"), 413, "too-large"),
    "length and chunks": (
        raw_decide([b"content-length: 2", _CHUNKED], b"2\r\n{}\r\n0\r\n\r\n"),
        400,
        "malformed",
    ),
    "chunks of another sort": (
        raw_decide([b"transfer-encoding: x" + MARKER.encode()], b"{}"),
        400,
        "malformed",
    ),
    "chunks named twice": (
        raw_decide([b"transfer-encoding: chunked, identity"], b"2\r\n{}\r\n0\r\n\r\n"),
        400,
        "malformed",
    ),
    "a chunk of no size": (raw_decide([_CHUNKED], MARKER.encode() + b"\r\n"), 400, "malformed"),
    "a chunk of gigabytes": (raw_decide([_CHUNKED], b"fffffffff\r\n" + _BIG * b"x"), 413, "too-large"),
    "chunks without end": (
        raw_decide([_CHUNKED], 7000 * b"a\r\n0123456789\r\n"),
        413,
        "too-large",
    ),
    "chunks that are no JSON": (
        raw_decide([_CHUNKED], b"e;x=y\r\n" + MARKER.encode() + b"\r\n0\r\n\r\n"),
        422,
        "invalid",
    ),
    # Terms
    "no terms": (post("/v1/experiments", {}), 422, "invalid"),
    "terms in a list": (post("/v1/experiments", [MARKER]), 422, "invalid"),
    "an unknown term": (begin(**{MARKER: 1}), 422, "invalid"),
    "a seed declared": (begin(seed=1), 422, "invalid"),
    "a name that is taken": (begin(name="headline"), 409, "exists"),
    "a name of SQL": (begin(name=_SQL), 422, "invalid"),
    "a name of HTML declared": (begin(name=_HTML), 422, "invalid"),
    "a long name declared": (begin(name=65 * "x"), 422, "invalid"),
    "a name upwards": (begin(name="../x"), 422, "invalid"),
    "a name of numbers": (begin(name=7), 422, "invalid"),
    "labels alike": (begin(actions=[MARKER, MARKER]), 422, "invalid"),
    "labels that do not print": (begin(actions=["a", "b\u202e\n\0"]), 422, "invalid"),
    "labels too long": (begin(actions=["a", 201 * "x"]), 422, "invalid"),
    "labels of numbers": (begin(actions=[1, 2]), 422, "invalid"),
    "labels as text": (begin(actions=MARKER), 422, "invalid"),
    "one label": (begin(actions=[MARKER]), 422, "invalid"),
    "more labels than arms": (begin(problem={"kind": "Arms", "arms": 3}), 422, "invalid"),
    "a budget of text": (begin(privacy=MARKER), 422, "invalid"),
    "a budget of nothing": (begin(privacy="eps=0"), 422, "invalid"),
    "a negative budget": (begin(privacy="eps=-1"), 422, "invalid"),
    "a budget that is no number": (begin(privacy="eps=nan"), 422, "invalid"),
    "an endless budget": (begin(privacy="eps=1e999"), 422, "invalid"),
    "an unknown policy": (begin(policy=MARKER), 422, "invalid"),
    "a policy of SQL": (begin(policy=_SQL), 422, "invalid"),
    "an unknown trust": (begin(trust=MARKER), 422, "invalid"),
    "no room in flight": (begin(in_flight=1), 422, "invalid"),
    "room beyond measure": (begin(in_flight=_ABSURD), 422, "invalid"),
    "no patience": (begin(patience=0), 422, "invalid"),
    "patience of text": (begin(patience=MARKER), 422, "invalid"),
    "a horizon backwards": (begin(horizon=-1), 422, "invalid"),
    "a horizon beyond measure": (begin(horizon=_ABSURD), 422, "invalid"),
    "people beyond measure": (begin(expected_people=_ABSURD), 422, "invalid"),
    "gigabytes of people": (begin(rounds_per_person=255, expected_people=10**9), 422, "invalid"),
    "a population that does not print": (begin(population="\0"), 422, "invalid"),
    "an unknown problem": (begin_on({"kind": MARKER}), 422, "invalid"),
    "a problem that is a policy": (begin_on({"kind": "TreeUCB"}), 422, "invalid"),
    "a problem of lists": (begin_on([MARKER]), 422, "invalid"),
    "a problem of a list's kind": (begin_on({"kind": [MARKER]}), 422, "invalid"),
    "a billion arms": (begin_on({"kind": "Arms", "arms": 10**9}), 422, "invalid"),
    "arms of text": (begin_on({"kind": "Arms", "arms": MARKER}), 422, "invalid"),
    "ragged actions": (begin_on({"kind": "LinearActions", "features": [[1], [1, 2]]}), 422, "invalid"),
    "recipes in recipes": (begin_on(deep_recipe(400)), 422, "invalid"),
    "a matroid of a billion": (
        begin_on(
            {
                "kind": "MatroidBases",
                "matroid": {"kind": "UniformMatroid", "items": 10**9, "most": 2},
            }
        ),
        422,
        "invalid",
    ),
    "gigabytes of kernels": (
        begin_on(kernel(300, max_rank=1000), privacy="eps=1,delta=1e-6"),
        422,
        "invalid",
    ),
    "a kernel of billions": (begin_on(kernel(2000)), 422, "invalid"),
    # Other acts
    "stopping nothing": (post(f"/v1/experiments/{MARKER}/stop"), 404, "no-such-experiment"),
    "a successor of nothing": (
        post(f"/v1/experiments/{MARKER}/successor", {"name": "x"}),
        404,
        "no-such-experiment",
    ),
    "a successor of itself": (post("/v1/experiments/headline/successor", {}), 422, "invalid"),
    "a successor that is there": (
        post("/v1/experiments/headline/successor", {"name": "capped"}),
        409,
        "exists",
    ),
    "a successor of other terms": (
        post("/v1/experiments/headline/successor", {"name": "x", "before": MARKER}),
        422,
        "invalid",
    ),
    "adding where there is no room": (
        post("/v1/experiments/headline/actions", {"label": MARKER}),
        409,
        "cannot-change",
    ),
    "adding without labels": (
        post("/v1/experiments/grown/actions", {"label": MARKER}),
        409,
        "cannot-change",
    ),
    "adding a label of lists": (
        post("/v1/experiments/headline/actions", {"label": [MARKER]}),
        422,
        "invalid",
    ),
    "adding what does not print": (
        post("/v1/experiments/headline/actions", {"label": MARKER + "\n"}),
        422,
        "invalid",
    ),
    "retiring nothing": (
        post(f"/v1/experiments/headline/actions/{MARKER}/retire"),
        409,
        "cannot-change",
    ),
    "retiring from the local model": (
        post("/v1/experiments/local/actions/a/retire"),
        409,
        "cannot-change",
    ),
    "an unknown act": (post(f"/v1/experiments/headline/actions/calm/{MARKER}"), 404, "no-such-route"),
    "a key without scopes": (post("/v1/keys", {"name": MARKER, "scopes": []}), 422, "invalid"),
    "a key of unknown scopes": (post("/v1/keys", {"name": "x", "scopes": [MARKER]}), 422, "invalid"),
    "a key of a taken name": (post("/v1/keys", {"name": "admin", "scopes": ["decide"]}), 409, "exists"),
    "a key without a name": (post("/v1/keys", {"name": "", "scopes": ["decide"]}), 422, "invalid"),
    "a key of a name that does not print": (
        post("/v1/keys", {"name": MARKER + "\0", "scopes": ["decide"]}),
        422,
        "invalid",
    ),
    "a key of a backward rate": (
        post("/v1/keys", {"name": MARKER, "scopes": ["decide"], "rate": -1}),
        422,
        "invalid",
    ),
    "a key of a rate in text": (
        post("/v1/keys", {"name": MARKER, "scopes": ["decide"], "rate": "fast"}),
        422,
        "invalid",
    ),
    "revoking no key": (request("DELETE", f"/v1/keys/{MARKER}"), 404, "no-such-route"),
    "revoking a null byte": (request("DELETE", f"/v1/keys/%00{MARKER}"), 404, "no-such-route"),
    # The local model
    "a broadcast of another model": (
        get("/v1/experiments/headline/broadcast", key="decide"),
        422,
        "invalid",
    ),
    "a message to another model": (
        post("/v1/experiments/headline/message", MARKER),
        422,
        "invalid",
    ),
    "an empty message": (post("/v1/experiments/local/message"), 422, "invalid"),
    "a message of text": (post("/v1/experiments/local/message", MARKER.encode()), 422, "invalid"),
    "a message of bytes": (post("/v1/experiments/local/message", bytes(range(256))), 422, "invalid"),
    "a deep message": (post("/v1/experiments/local/message", nested(30_000)), 422, "invalid"),
    "a message of numbers": (
        post("/v1/experiments/local/message", {"broadcast": _ABSURD, "ticket": MARKER}),
        422,
        "invalid",
    ),
    "a large message": (post("/v1/experiments/local/message", _BIG * b"x"), 413, "too-large"),
}

# Odd, and served.
SERVED: dict[str, Make] = {
    "the last of two fields counts": decide(
        b'{"request": "7", "request": "%d"}' % time.perf_counter_ns()
    ),
    "an escaped null byte": decide(b'{"request": "\\u0000 %s"}' % MARKER.encode()),
    "SQL": decide_with(request=_SQL),
    "HTML": decide_with(request=_HTML),
    "a smile": decide_with(request="\U0001f600"),
    "a person of HTML": decide({"request": _HTML, "person": _HTML}, to="capped"),
    "plain text": decide(_FINE, b"content-type: text/plain"),
    "a query": post(f"{DECIDE}?{MARKER}={MARKER}", _FINE),
    "a name in escapes": decide(_FINE, to="%68eadline"),
    "100-continue": decide(_FINE, b"expect: 100-continue"),
    "expecting something else": decide(_FINE, b"expect: " + MARKER.encode()),
    "another client's address": decide(_FINE, b"x-forwarded-for: " + MARKER.encode()),
    "an origin": decide(_FINE, b"origin: https://" + MARKER.encode()),
    "in chunks": raw_decide([_CHUNKED], b'e\r\n{"request": "x\r\n3\r\n-1"\r\n1\r\n}\r\n0\r\n\r\n'),
    "reward true": reward("true"),
    "reward beyond the range": reward("-1e300"),
    "reward a number of 400 digits": reward("9" * 400),
    "rewards of 400 digits": reward(f"[{'9' * 400}, 1]", of="sets"),
    "reward null": reward("null"),
    "rewards null": reward("null", of="sets"),
}


def problem_of(answer: bytes) -> tuple[int, str]:
    """Status and code, of one problem document and nothing else."""
    head, body = answer.split(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert b"content-type: application/problem+json" in lines
    told = json.loads(body)
    assert set(told) == {"type", "title", "status", "detail"}
    assert lines[0].split()[1] == b"%d" % told["status"]
    return told["status"], told["type"].removeprefix("urn:dpbandits:problem:")


def check_silent(answer: bytes) -> None:
    assert MARKER.encode() not in answer and MARKER.encode().upper() not in answer


@pytest.mark.parametrize("case", CASES)
def test_misuse(target: Target, case: str) -> None:
    make, status, code = CASES[case]
    answer = target.ask(make(target))
    assert problem_of(answer) == (status, code)
    check_silent(answer)
    target.check_alive()


@pytest.mark.parametrize("case", SERVED)
def test_odd_but_served(target: Target, case: str) -> None:
    answer = target.ask(SERVED[case](target))
    assert answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").startswith(b"HTTP/1.1 200 "), answer
    check_silent(answer)
    target.check_alive()


def test_there_are_many_cases() -> None:
    assert len(CASES) + len(SERVED) >= 200


def test_methods_that_are_taken_are_named(target: Target) -> None:
    for make, method in ((get(DECIDE), b"POST"), (request("PUT", "/health"), b"GET")):
        assert b"\r\nallow: " + method + b"\r\n" in target.ask(make(target)).lower().replace(
            method.lower(), method
        )


def test_heads_without_bodies(target: Target) -> None:
    answer = target.ask(request("HEAD", "/v1/experiments")(target))
    assert answer.startswith(b"HTTP/1.1 405 ") and answer.endswith(b"\r\n\r\n")


def test_pipelining(target: Target) -> None:
    def one(number: int, close: bool) -> bytes:
        made = decide({"request": f"{MARKER}-{number}"})(target)
        return made if close else made.replace(b"\r\n" + _CLOSE, b"")

    answer = target.ask(b"".join(one(number, number == 9) for number in range(10)))
    assert answer.count(b"HTTP/1.1 200 ") == 10
    answer = target.ask(b"".join(one(number, False) for number in range(200)))
    assert answer.count(b"HTTP/1.1 200 ") <= 40  # the connection was closed, and the others not begun
    check_silent(answer)
    target.check_alive()


def test_a_second_request_in_a_body_is_not_seen(target: Target) -> None:
    inner = post("/v1/experiments/headline/stop")(target)
    outer = request("POST", DECIDE, inner)(target)
    assert problem_of(target.ask(outer)) == (422, "invalid")
    target.check_alive()


def test_half_a_request(target: Target) -> None:
    whole = decide(_FINE)(target)
    for length in (1, 20, len(whole) - 1):
        with socket.create_connection(("127.0.0.1", target.service.port)) as connection:
            connection.sendall(whole[:length])
    target.check_alive()


def test_a_rate(target: Target) -> None:
    key = target.service.new_key("slow", "decide", rate=0.001)
    answers = [target.ask(decide({"request": str(n)}, key=key)(target)) for n in range(12)]
    assert [answer.split()[1] for answer in answers] == 10 * [b"200"] + 2 * [b"429"]
    assert problem_of(answers[-1]) == (429, "too-many")
    wait = int(answers[-1].lower().split(b"retry-after: ")[1].split()[0])
    assert 900 < wait <= 1000
    target.check_alive()


def test_a_rate_of_nearly_nothing(target: Target) -> None:
    key = target.service.new_key("slowest", "decide", rate=1e-320)
    answers = [target.ask(decide({"request": str(n)}, key=key)(target)) for n in range(11)]
    assert problem_of(answers[-1]) == (429, "too-many")
    assert b"retry-after: 86400\r\n" in answers[-1].lower()


def test_fifty_at_once_with_one_key(target: Target) -> None:
    body = {"request": MARKER + "-fifty"}
    with ThreadPoolExecutor(50) as pool, httpx.Client(base_url=target.service.url) as client:
        headers = {"authorization": f"Bearer {target.keys['decide']}"}
        asked = [pool.submit(client.post, DECIDE, json=body, headers=headers) for _ in range(50)]
        answers = [one.result().json() for one in asked]
    assert len({answer["ticket"] for answer in answers}) == 1
    assert len({answer["action"] for answer in answers}) == 1
    assert sorted(answer["repeated"] for answer in answers) == [False] + 49 * [True]


@pytest.mark.slow
def test_slow_requests(target: Target) -> None:
    whole = decide(_FINE)(target)

    def part(length: int) -> bytes:
        return target.ask(whole[:length])

    with ThreadPoolExecutor(20) as pool:
        silent = pool.submit(part, 0)
        heads = [pool.submit(part, 30) for _ in range(9)]
        bodies = [pool.submit(part, len(whole) - 3) for _ in range(9)]
        for _ in range(20):  # while they wait
            target.check_alive()
            time.sleep(0.05)
        answers = [one.result() for one in (*heads, *bodies)]
    assert silent.result() == b""
    for answer in answers:
        assert problem_of(answer) == (408, "timeout")
        check_silent(answer)


@pytest.mark.slow
def test_misuse_on_postgres(tmp_path: Path, postgres: "Postgres") -> None:
    with live_service(tmp_path, EXPERIMENTS, database=postgres.new_database()) as service:
        target = Target(service)
        for case, (make, status, code) in CASES.items():
            assert problem_of(target.ask(make(target))) == (status, code), case
        for case, make in SERVED.items():
            assert b" 200 OK\r\n" in target.ask(make(target)), case
        target.check_alive()


@pytest.mark.slow
def test_terms_that_take_long_keep_nobody_waiting(target: Target) -> None:
    """A graph whose rank takes minutes; meanwhile others decide, and the service can be stopped."""
    edges = [[place, place + 1] for place in range(4000)]
    graph = {"kind": "MatroidBases", "matroid": {"kind": "GraphicMatroid", "edges": edges}}
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(target.ask, begin_on(graph)(target), 30.0)
        time.sleep(0.5)
        assert problem_of(target.ask(begin(name="second")(target))) == (503, "busy")
        waited = []
        while not slow.done():
            began = time.perf_counter()
            target.check_alive(within=5.0)  # two threads share the interpreter
            waited.append(time.perf_counter() - began)
            time.sleep(0.05)
        answer = slow.result()
    assert problem_of(answer) == (503, "busy")
    check_silent(answer)
    assert b"retry-after: 5\r\n" in answer.lower()
    assert statistics.median(waited) < 0.5
    target.service.restart()  # while it is still being made ready
    target.check_alive()


@pytest.mark.slow
def test_a_state_of_gigabytes_is_refused(target: Target) -> None:
    before = target.service.memory()
    make = begin_on({"kind": "LinearContexts", "dim": 1000}, privacy="eps=1,delta=1e-6")
    assert problem_of(target.ask(make(target))) == (422, "invalid")
    assert target.service.memory() < before + 100.0


@pytest.mark.slow
def test_memory_does_not_grow(target: Target) -> None:
    makes = [*(case[0] for case in CASES.values()), *SERVED.values()]

    def use(times: int) -> None:
        for _ in range(times):
            for answer in pool.map(lambda make: target.ask(make(target)), makes):
                check_silent(answer)

    with ThreadPoolExecutor(8) as pool:
        use(10)  # caches fill, and the allocator finds its size
        before = target.service.memory()
        use(20)
        grown = target.service.memory() - before
    assert grown < 5.0, f"{grown:.1f} MB"
    target.check_alive()
