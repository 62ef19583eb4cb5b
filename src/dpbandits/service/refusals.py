"""Every way in which the service says no: one HTTP problem each (RFC 9457), from a closed catalogue.

An answer says what was wrong and what to do, and never repeats what was sent: requests hold data of
people, and answers end up in logs.
"""

import json
import math
import traceback
from dataclasses import dataclass
from typing import Literal

Code = Literal[
    "malformed",
    "no-key",
    "unknown-key",
    "out-of-scope",
    "no-such-experiment",
    "no-such-decision",
    "no-such-route",
    "wrong-method",
    "timeout",
    "rewarded-differently",
    "horizon-reached",
    "ticket-from-the-future",
    "exists",
    "stopped",
    "cannot-change",
    "closed",
    "too-large",
    "invalid",
    "invalid-context",
    "invalid-reward",
    "no-person",
    "too-many",
    "head-too-large",
    "failed",
    "busy",
    "not-ready",
    "standby",
]


@dataclass(frozen=True)
class Problem:
    """One kind of refusal: its status, what happened, what to do, and when to come back (in seconds)."""

    status: int
    title: str
    detail: str
    retry_after: int | None = None


CATALOGUE: dict[Code, Problem] = {
    "malformed": Problem(
        400, "Not an HTTP request", "Send HTTP/1.1; what arrived could not be read as a request."
    ),
    "no-key": Problem(401, "No API key", "Send the header `Authorization: Bearer <key>`."),
    "unknown-key": Problem(
        401,
        "Unknown API key",
        "Check that the key is whole, or ask an administrator for a new one.",
    ),
    "out-of-scope": Problem(
        403, "Key out of scope", "Use a key whose scopes and experiments include this request."
    ),
    "no-such-experiment": Problem(
        404, "No such experiment", "Check the name against those that GET /v1/experiments lists."
    ),
    "no-such-decision": Problem(
        404, "No such decision", "Send the ticket exactly as this service answered it to a decision."
    ),
    "no-such-route": Problem(404, "No such address", "See GET /openapi.json for what there is."),
    "wrong-method": Problem(
        405,
        "Wrong method",
        "Use a method that GET /openapi.json lists for this address.",
    ),
    "timeout": Problem(
        408, "The request took too long", "Send the whole request at once; it is safe to repeat it."
    ),
    "rewarded-differently": Problem(
        409, "Already rewarded", "The first reward counts; this decision has one of another value."
    ),
    "horizon-reached": Problem(
        409,
        "The horizon is reached",
        "The guarantee ends at the declared horizon; go on with a successor of the experiment.",
    ),
    "ticket-from-the-future": Problem(
        409,
        "Ticket from the future",
        "The database is older than this decision; tell whoever runs the service.",
    ),
    "exists": Problem(409, "The name is taken", "Choose another name; names are never used twice."),
    "stopped": Problem(
        409, "The experiment has ended", "It decides no more; ask for its successor, or start a new one."
    ),
    "cannot-change": Problem(
        409,
        "This cannot be changed",
        "The experiment's policy or state does not allow it; start a successor with what you want.",
    ),
    "closed": Problem(
        410,
        "The round is closed",
        "Its time or its turn is over; ask for a new decision, with a new request key.",
    ),
    "too-large": Problem(
        413, "The body is too large", "Send a smaller body; 64 KiB is the usual limit."
    ),
    "invalid": Problem(
        422, "Invalid request", "Send a JSON object with the fields that GET /openapi.json lists."
    ),
    "invalid-context": Problem(
        422,
        "Invalid context",
        "Send `context` in the type and shape that the experiment's problem declares, or leave it out.",
    ),
    "invalid-reward": Problem(
        422,
        "Invalid reward",
        "Send `reward` as a finite number, as a list with one for each chosen label, or as null.",
    ),
    "no-person": Problem(
        422,
        "No person named",
        "This experiment tells people apart: send `person`, a stable name of whoever is decided for.",
    ),
    "too-many": Problem(429, "Too many requests", "Send fewer requests a second with this key.", 1),
    "head-too-large": Problem(
        431, "The head is too large", "Send a shorter address and fewer or shorter headers."
    ),
    "failed": Problem(
        500,
        "The service failed",
        "Repeat with the same request key; report it if it fails again.",
    ),
    "busy": Problem(503, "The service is busy", "Repeat the request, with the same request key.", 1),
    "not-ready": Problem(
        503,
        "The service is not ready",
        "It is starting or recovering; repeat with the same request key.",
        1,
    ),
    "standby": Problem(
        503, "This is a standby", "Another process decides; repeat with the same request key.", 1
    ),
}

STATUS_NEEDS = {401: (b"www-authenticate", b"Bearer")}  # what RFC 9110 demands beside a status


class Refusal(Exception):
    """One refused request, by its code in the catalogue.

    `detail` replaces the catalogue's sentence; it must never contain what was sent. `retry_after` is in
    seconds, rounded up. `allow` names the methods that an address takes.

    >>> Refusal("closed").status
    410
    >>> Refusal("busy", retry_after=2.5).headers()[-1]
    (b'retry-after', b'3')
    """

    def __init__(
        self, code: Code, *, detail: str | None = None, retry_after: float | None = None, allow: str = ""
    ) -> None:
        problem = CATALOGUE[code]
        self.code = code
        self.status = problem.status
        self.title = problem.title
        self.detail = problem.detail if detail is None else detail
        self.retry_after = problem.retry_after if retry_after is None else max(1, math.ceil(retry_after))
        self.allow = allow
        super().__init__(f"{self.title}: {self.detail}")

    def body(self) -> bytes:
        """The problem document."""
        problem = {
            "type": f"urn:dpbandits:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        return json.dumps(problem, ensure_ascii=False).encode()

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers that go with the body."""
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", b"%d" % len(self.body())),
            (b"cache-control", b"no-store"),
        ]
        if self.status in STATUS_NEEDS:
            headers.append(STATUS_NEEDS[self.status])
        if self.allow:
            headers.append((b"allow", self.allow.encode()))
        if self.retry_after is not None:
            headers.append((b"retry-after", b"%d" % self.retry_after))
        return headers


def trace_of(error: BaseException) -> str:
    """Where an error came from, for a log: without its words, which may repeat what was sent."""
    return "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
