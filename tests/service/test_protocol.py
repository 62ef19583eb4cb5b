"""Requests that are too large, too slow or no requests at all, over real sockets against uvicorn."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from dpbandits.service.protocol import MOST_PIPELINED, guarded

pytestmark = pytest.mark.slow

SECONDS = 0.6  # limits of the server under test
HEAD, BODY = 2_000, 5_000
PART = 10**6 * b"x"
LONG = 20 * len(PART)  # more than the buffers of a connection hold


class Echo:
    """Reads the body and answers with its length; `/early` and `/late` do not wait for it.

    `/long` answers at length, in parts; `/halting` waits between head and body, `/broken` ends there.
    """

    def __init__(self) -> None:
        self.release = threading.Event()
        self.reset()

    def reset(self) -> None:
        self.started = self.disconnected = self.done = 0
        self.release.clear()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.started += 1
        size = 0
        while scope["path"] not in {"/early", "/late"}:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected += 1
                return
            size += len(message["body"])
            if not message["more_body"]:
                break
        if scope["path"] == "/slow":
            await asyncio.to_thread(self.release.wait, 10)
        if scope["path"] == "/late":
            await asyncio.sleep(2 * SECONDS)
        if scope["path"] == "/long":
            await self.answer_at_length(send)
            return
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]}
        )
        if scope["path"] == "/halting":
            await asyncio.to_thread(self.release.wait, 10)
        if scope["path"] != "/broken":
            await send({"type": "http.response.body", "body": b"%5d" % size})
        self.done += 1

    async def answer_at_length(self, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(LONG // len(PART)):
            await send({"type": "http.response.body", "body": PART, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        self.done += 1

    def settle(self, started: int = 0) -> None:
        """Wait until no request is left in here: we may hear of an end before the application does.

        And until so many `started`: an answer may even come before its application begins.
        """
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and (
            self.started < started or self.done + self.disconnected < self.started
        ):
            time.sleep(0.01)


class Running:
    """uvicorn on a free port, in a thread."""

    def __init__(self, loop: Any) -> None:
        self.app = Echo()
        protocol = guarded(
            head_bytes=HEAD,
            head_seconds=SECONDS,
            body_bytes=BODY,
            body_seconds=SECONDS,
            answer_seconds=SECONDS,
        )
        config = uvicorn.Config(
            self.app,
            http=protocol,
            loop=loop,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
        )
        self.server = uvicorn.Server(config)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listener]})

    def __enter__(self) -> "Running":
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.app.release.set()
        self.server.should_exit = True
        self.thread.join()
        self.listener.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(self.listener.getsockname(), timeout=5)

    def ask(self, *pieces: bytes, pause: float = 0.0) -> bytes:
        """All that comes back on one connection until the server closes it."""
        with self.connect() as connection:
            for piece in pieces:
                try:
                    connection.sendall(piece)
                except (BrokenPipeError, ConnectionResetError):
                    break
                time.sleep(pause)
            return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    answer = b""
    while piece := connection.recv(65_536):
        answer += piece
    return answer


def read_until(connection: socket.socket, end: bytes) -> None:
    answer = b""
    while not answer.endswith(end):
        piece = connection.recv(65_536)
        assert piece, answer
        answer += piece


LOOPS: list[Any] = ["asyncio", "uvloop"]


@pytest.fixture(scope="module", params=LOOPS)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    with Running(request.param) as running:
        yield running


@pytest.fixture
def running(server: Running) -> Running:
    server.app.reset()
    return server


def post(path: str, body: bytes = b"", *headers: bytes) -> bytes:
    lines = [
        b"POST %s HTTP/1.1" % path.encode(),
        b"host: x",
        b"content-length: %d" % len(body),
        *headers,
    ]
    return b"\r\n".join([*lines, b"", body])


def get(path: str, *headers: bytes) -> bytes:
    return b"\r\n".join([b"GET %s HTTP/1.1" % path.encode(), b"host: x", *headers, b"", b""])


CLOSE = b"connection: close"


def problem(answer: bytes) -> tuple[int, str]:
    """Status and code of the one problem document that was answered."""
    head, body = answer.split(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert b"content-type: application/problem+json" in lines
    assert b"connection: close" in lines
    assert b"content-length: %d" % len(body) in lines
    said = json.loads(body)
    assert lines[0].startswith(b"http/1.1 %d " % said["status"])
    return said["status"], said["type"].removeprefix("urn:dpbandits:problem:")


def test_what_is_within_the_limits_is_served(running: Running) -> None:
    exact = BODY * b"x"
    assert running.ask(post("/", exact, CLOSE)).endswith(b" 5000")
    head = get("/", CLOSE)
    padded = get("/", CLOSE, b"x: " + (HEAD - len(head) - 5) * b"x")
    assert len(padded) == HEAD
    assert running.ask(padded).endswith(b"    0")
    chunked = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    assert running.ask(chunked, b"3\r\nabc\r\n", b"0\r\n\r\n").endswith(b"    3")


def test_several_requests_on_one_connection(running: Running) -> None:
    many = [post("/", n * b"x") for n in range(30)] + [post("/", b"", CLOSE)]
    whole = running.ask(b"".join(many))
    assert whole.count(b"HTTP/1.1 200") == 31
    assert b"   29HTTP/1.1 200" in whole
    with running.connect() as connection:
        for _ in range(10):  # each within the limits, all together beyond them
            connection.sendall(post("/", BODY // 2 * b"x"))
            read_until(connection, b" 2500")


def test_a_head_is_sent_with_its_body(running: Running) -> None:
    with running.connect() as connection:
        connection.sendall(get("/halting"))
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        running.app.release.set()
        assert connection.recv(65_536).endswith(b"\r\n\r\n    0")


def test_a_head_without_a_body_is_sent(running: Running) -> None:
    with running.connect() as connection:
        for _ in range(2):  # the connection stays open
            connection.sendall(get("/").replace(b"GET", b"HEAD"))
            read_until(connection, b"\r\n\r\n")
    assert running.ask(get("/broken")).endswith(b"content-length: 5\r\n\r\n")


def test_who_asks_whether_to_go_on_is_told_before_the_answer(running: Running) -> None:
    with running.connect() as connection:
        connection.sendall(post("/", b"abc", b"expect: 100-continue", CLOSE)[:-3])
        read_until(connection, b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.sendall(b"abc")
        assert read_all(connection).endswith(b"    3")


def test_a_byte_at_a_time_is_served_if_it_is_quick(running: Running) -> None:
    request = post("/", b"abc", CLOSE)
    with running.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request:
            connection.sendall(bytes([byte]))
        assert read_all(connection).endswith(b"    3")


@pytest.mark.parametrize(
    "request_bytes",
    [
        get("/", b"x: " + HEAD * b"x"),
        get("/" + HEAD * "x"),
        get("/", *(HEAD // 4 * [b"a: b"])),
        b"GET / HTTP/1.1\r\nx: " + 1_000_000 * b"x",  # never ends
        b"GET /" + 1_000_000 * b"x",
        HEAD * b"\r\n",
    ],
    ids=["header", "address", "headers", "endless header", "endless address", "blank lines"],
)
def test_a_head_too_large(running: Running, request_bytes: bytes) -> None:
    assert problem(running.ask(request_bytes)) == (431, "head-too-large")
    assert running.app.started == 0


def test_a_body_that_says_it_is_too_large_is_not_begun(running: Running) -> None:
    assert problem(running.ask(post("/", (BODY + 1) * b"x"))) == (413, "too-large")
    # Not even asked for: a client that waits for "100 Continue" is told at once.
    expecting = b"POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 1000000\r\n\r\n"
    assert problem(running.ask(expecting)) == (413, "too-large")
    assert running.app.started == 0


CHUNKED = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "body",
    [
        1_000 * (b"a\r\n" + 10 * b"x" + b"\r\n"),
        b"%x\r\n" % 10**6 + 10**6 * b"x",
        b"3;" + 10**6 * b"x",
        b"0\r\nx: " + 10**6 * b"x",
    ],
    ids=["many chunks", "one chunk", "extension", "trailer"],
)
def test_a_body_too_large_that_does_not_say_so(running: Running, body: bytes) -> None:
    assert problem(running.ask(CHUNKED, body)) == (413, "too-large")
    running.app.settle(started=1)
    assert running.app.started == running.app.disconnected == 1


@pytest.mark.parametrize(
    "sent",
    [b"G", b"GET / HTTP/1.1\r\nhost: x\r\n", post("/", b"abc")[:-1], CHUNKED, b"\r\n"],
    ids=["a letter", "half a head", "half a body", "no chunk", "blank line"],
)
def test_silence_in_the_middle_of_a_request(running: Running, sent: bytes) -> None:
    start = time.monotonic()
    assert problem(running.ask(sent)) == (408, "timeout")
    assert time.monotonic() - start > 0.9 * SECONDS


def test_an_application_that_answers_after_a_refusal_is_not_heard(running: Running) -> None:
    with running.connect() as connection:
        connection.sendall(post("/late", b"abc")[:-1])
        assert problem(read_all(connection)) == (408, "timeout")
        running.app.settle()  # our end stays open meanwhile, or it could not be heard anyway
    assert running.app.started == running.app.done == 1


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\nx: ", CHUNKED + b"fff\r\n"], ids=["head", "body"])
def test_dripping(running: Running, start: bytes) -> None:
    drops = 40 * [b"x"]  # would take ten times as long as is allowed
    began = time.monotonic()
    assert problem(running.ask(start, *drops, pause=SECONDS / 4)) == (408, "timeout")
    assert time.monotonic() - began < 8 * SECONDS


def test_the_clock_starts_anew_for_the_body(running: Running) -> None:
    request = post("/", b"abc", CLOSE)
    head, body = request[:-3], request[-3:]
    # Two thirds of the time for the head, two thirds of it for the body.
    answer = running.ask(head[:5], head[5:] + body[:1], body[1:], pause=SECONDS * 2 / 3)
    assert answer.endswith(b"    3")


def test_a_connection_on_which_nothing_is_sent_is_closed(running: Running) -> None:
    start = time.monotonic()
    assert running.ask() == b""
    assert 0.9 * SECONDS < time.monotonic() - start < 5 * SECONDS


def test_blank_lines_do_not_keep_a_connection_open(running: Running) -> None:
    with running.connect() as connection:
        connection.sendall(get("/"))
        read_until(connection, b"    0")
        connection.sendall(b"\r\n")
        start = time.monotonic()
        assert read_all(connection) == b""  # what it was answered last is not contradicted
        assert time.monotonic() - start < 5 * SECONDS


def test_an_answered_request_cannot_drip_its_body_for_ever(running: Running) -> None:
    with running.connect() as connection:
        connection.sendall(post("/early", 1_000 * b"x")[:-500])
        read_until(connection, b"    0")
        start = time.monotonic()
        assert read_all(connection) == b""
        assert time.monotonic() - start < 5 * SECONDS


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",  # TLS
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\nabc",
        b"GET /\xff HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_what_is_no_request(running: Running, sent: bytes) -> None:
    answer = running.ask(sent)
    assert problem(answer) == (400, "malformed")
    assert b"99999" not in answer and b"hello" not in answer


def test_answers_stay_in_order(running: Running) -> None:
    """A refusal is never sent in the place of an answer that is still due before it."""
    with running.connect() as connection:
        connection.sendall(get("/slow") + b"nonsense\r\n\r\n")
        time.sleep(0.1)
        running.app.release.set()
        assert b"malformed" not in read_all(connection)


def test_who_waits_for_us_is_not_blamed(running: Running) -> None:
    with running.connect() as connection:
        connection.sendall(get("/slow"))
        time.sleep(0.1)
        connection.sendall(post("/", b"abc", CLOSE)[:-1])  # pipelined: reading is paused
        time.sleep(2.5 * SECONDS)
        connection.sendall(b"c")
        running.app.release.set()
        answer = read_all(connection)
        assert answer.count(b"HTTP/1.1 200") == 2
        assert answer.endswith(b"    3")


def test_a_long_queue_of_pipelined_requests_is_cut(running: Running) -> None:
    assert running.ask(get("/slow") + 10 * MOST_PIPELINED * get("/")) == b""
    assert running.app.started <= 1
    running.app.release.set()


def test_a_long_answer_may_be_read_slowly_but_not_never(running: Running) -> None:
    with running.connect() as connection:
        connection.sendall(get("/long", CLOSE))
        size, start = 0, time.monotonic()
        while piece := connection.recv(10**6):
            size += len(piece)
            time.sleep(SECONDS / 10)
        assert size > LONG
        assert time.monotonic() - start > 2 * SECONDS
    running.app.reset()
    with running.connect() as connection:
        connection.sendall(get("/long"))
        time.sleep(0.1)
        start = time.monotonic()
        running.app.settle()
        assert running.app.done == 1 and time.monotonic() - start < 5 * SECONDS
        assert len(read_all(connection)) < LONG


def test_an_upgrade_is_served_as_a_request(running: Running) -> None:
    upgrade = get("/", b"connection: upgrade", b"upgrade: h2c")
    with running.connect() as connection:
        connection.sendall(upgrade)
        read_until(connection, b"    0")


@pytest.mark.parametrize("loop", LOOPS)
def test_the_server_stops_with_connections_open(loop: Any) -> None:
    with Running(loop) as running:
        waiting = [running.connect() for _ in range(3)]
        waiting[1].sendall(b"GET / HT")
        waiting[2].sendall(post("/", b"abc")[:-1])
        time.sleep(0.05)
        start = time.monotonic()
    assert time.monotonic() - start < 3
    for connection in waiting:
        connection.close()
