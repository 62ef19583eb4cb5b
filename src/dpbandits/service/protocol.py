"""How large and how slow a request may be: uvicorn with httptools limits neither.

Bytes are handed to the parser in pieces no longer than what is still allowed, so that a limit holds
whatever the parser keeps to itself. A request that arrives whole never sets a timer.
"""

from asyncio import BaseTransport, TimerHandle, Transport
from http import HTTPStatus
from typing import Any, ClassVar, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dpbandits.service.refusals import Refusal

MOST_PIPELINED = 32  # requests that wait for the answers before theirs: each holds memory
LINGER = 1.0  # seconds in which a refused client may read its answer before the connection is cut


# What is being sent on a connection; limits are listed in this order.
NONE, HEAD, BODY, ANSWER = range(4)


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on bytes and seconds, for the head and for the body as sent."""

    most_bytes: ClassVar[tuple[int, int, int]]
    most_seconds: ClassVar[tuple[float, float, float, float]]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.stage = NONE
        self.seen = 0  # bytes of this stage
        self.timer: TimerHandle | None = None
        self.refusal: Refusal | None = None
        self.stuck: TimerHandle | None = None
        self.answers: _Answers

    # What the transport calls

    def connection_made(self, transport: BaseTransport) -> None:
        """Wait for the first byte, but not for ever."""
        super().connection_made(cast(Transport, transport))
        self.answers = _Answers(self.transport)
        self._watch()

    def connection_lost(self, error: Exception | None) -> None:
        """No timer outlives its connection."""
        self._enter(NONE)
        self.resume_writing()
        super().connection_lost(error)

    def pause_writing(self) -> None:
        """A long answer waits to be read: not for ever, since it is held in memory."""
        super().pause_writing()
        self.stuck = self.loop.call_later(self.most_seconds[ANSWER], self.transport.abort)

    def resume_writing(self) -> None:
        """It was read."""
        super().resume_writing()
        if self.stuck is not None:
            self.stuck.cancel()
            self.stuck = None

    def data_received(self, data: bytes) -> None:
        """Parse as much as the limits allow."""
        while data and self.refusal is None:
            if self.stage == NONE:
                self._enter(HEAD)
            room = self.most_bytes[self.stage] - self.seen
            piece, data = data[:room], data[room:]
            self.seen += len(piece)
            super().data_received(piece)
            if self.stage != NONE and self.seen >= self.most_bytes[self.stage]:
                self._refuse(Refusal("head-too-large" if self.stage == HEAD else "too-large"))
        if self.stage != NONE and self.timer is None:
            self._watch()

    # What the parser calls; an exception ends its work

    def on_message_begin(self) -> None:
        """A head begins, perhaps right after another request."""
        super().on_message_begin()
        if self.stage == NONE:
            self._enter(HEAD)

    def on_headers_complete(self) -> None:
        """Nothing has been started yet: refuse here a body that says itself that it is too large."""
        self._enter(BODY)
        if int(dict(self.headers).get(b"content-length", 0)) > self.most_bytes[BODY]:
            self.refusal = Refusal("too-large")
            raise self.refusal
        super().on_headers_complete()
        self.cycle.transport = cast(Transport, self.answers)
        if len(self.pipeline) > MOST_PIPELINED:
            self.refusal = Refusal("too-many")
            raise self.refusal

    def on_message_complete(self) -> None:
        """A whole request is here."""
        super().on_message_complete()
        self._enter(NONE)

    def on_response_complete(self) -> None:
        """An answer to HEAD has no body that its head would be sent with."""
        self.answers.flush()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What uvicorn does when the parser fails, which is also how our own refusals surface."""
        self._refuse(self.refusal or Refusal("malformed"))

    # Time

    def _enter(self, stage: int) -> None:
        self.stage, self.seen = stage, 0
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _watch(self) -> None:
        self.timer = self.loop.call_later(self.most_seconds[self.stage], self._expire)

    def _expire(self) -> None:
        if self.flow.read_paused:  # it is we who do not listen
            self._watch()
        elif self.stage == NONE:  # an answer to nothing would be taken for one to what comes next
            self.transport.close()
        else:
            self._refuse(Refusal("timeout"))

    # Answers

    def _refuse(self, refusal: Refusal) -> None:
        """Answer where that is possible, and close. What still comes is not parsed."""
        self.refusal = refusal
        self._enter(NONE)
        if self.transport.is_closing():
            return
        if not self._may_answer():
            self.transport.close()
            return
        if self.cycle is not None:  # an application that waits for the rest of the body
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write(_as_http(refusal))
        # Closing at once, with bytes unread, would reset the connection, and the answer would be lost.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.timer = self.loop.call_later(LINGER, self.transport.close)

    def _may_answer(self) -> bool:
        """Whether the next answer due on this connection is that to the request being read."""
        if self.cycle is None or self.cycle.scope is not self.scope:
            return self.cycle is None or self.cycle.response_complete
        return not self.cycle.response_started and not self.pipeline


class _Answers:
    """Where answers are written: a head waits for its body, since a call of the kernel costs more than
    all else that is done to send them.
    """

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: Transport) -> None:
        self._transport, self._head = transport, b""

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 100 "):
            self._head = data
            return
        self._transport.write(data)

    def flush(self) -> None:
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()


def _as_http(refusal: Refusal) -> bytes:
    """The whole answer, as bytes on the connection."""
    lines = [b"HTTP/1.1 %d %s" % (refusal.status, HTTPStatus(refusal.status).phrase.encode())]
    lines += [name + b": " + value for name, value in refusal.headers()]
    lines += [b"connection: close", b"", refusal.body()]
    return b"\r\n".join(lines)


def guarded(
    *,
    head_bytes: int = 16_384,
    head_seconds: float = 5.0,
    body_bytes: int = 65_536,
    body_seconds: float = 5.0,
    answer_seconds: float = 20.0,
) -> type[GuardedProtocol]:
    """A protocol for `uvicorn.Config(http=…)` that answers 431, 413 and 408, and closes.

    Sizes are as sent: a body in chunks counts with its framing. A connection on which nothing is sent is
    closed after `head_seconds`; one on which an answer is not read, after `answer_seconds`.
    """

    class Guarded(GuardedProtocol):
        most_bytes: ClassVar = (0, head_bytes, body_bytes)
        most_seconds: ClassVar = (head_seconds, head_seconds, body_seconds, answer_seconds)

    return Guarded
