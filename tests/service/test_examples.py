"""The examples run: with curl, with the client, and in a browser, against a small stand-in."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING, Any

import pytest
from browser import opened
from needed import program
from postgres import free_port

from dpbandits.service.run import read_experiments

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[2] / "examples" / "service"
KEY = "dpb_example"
LABEL = "a <b>bold</b> headline"
DECIDE = "/v1/experiments/headline/decide"


class StandIn(ThreadingHTTPServer):
    """The service, as far as examples use it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.decided: list[dict[str, Any]] = []
        self.rewarded: list[dict[str, Any]] = []
        self.came = threading.Event()  # a reward
        self.busy = 0  # times to say so
        self.asks_who = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        key, kind = self.headers["authorization"], self.headers["content-type"]
        if key != f"Bearer {KEY}" or kind != "application/json":
            self.answer(401, {})
        elif self.server.busy:
            self.server.busy -= 1
            self.answer(503, {})
        elif self.path == DECIDE and bool(sent.get("person")) != self.server.asks_who:
            self.answer(422, {"detail": "It is the person."})
        elif self.path == DECIDE:
            self.server.decided.append(sent)
            ticket = f"ticket-{len(self.server.decided)}"
            self.answer(200, {"ticket": ticket, "action": LABEL, "expires": None} | COUNTED)
        else:
            assert self.path == "/v1/reward"
            self.server.rewarded.append(sent)
            self.answer(200, {"recorded": True, "repeated": False})
            self.server.came.set()

    def do_GET(self) -> None:
        if self.path.startswith("/v1/experiments/headline/ledger?after="):
            self.answer(200, {"entries": [{"number": 0}] if self.path.endswith("=-1") else []})
        else:
            assert self.path == "/v1/experiments/headline"
            rounds = 1 if self.server.asks_who else None
            self.answer(200, {"name": "headline", "problem": {"rounds_per_person": rounds}})

    def answer(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


COUNTED = {"counted": True, "repeated": False}


@pytest.fixture
def service() -> Iterator[StandIn]:
    with StandIn() as service:
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield service
        service.shutdown()
        thread.join()


@pytest.fixture
def site(service: StandIn) -> Iterator[str]:
    """The example's site in front of it; its address."""
    settings = os.environ | {"KEY": KEY, "URL": service.url, "PORT": str(free_port())}
    command = [sys.executable, str(EXAMPLES / "site.py")]
    with subprocess.Popen(command, env=settings, stdout=PIPE, stderr=DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def run(
    service: StandIn, *command: object, key: str = KEY, **more: str
) -> subprocess.CompletedProcess[str]:
    settings = os.environ | {"KEY": key, "URL": service.url} | more
    return subprocess.run(
        [str(part) for part in command],
        env=settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_with_curl(service: StandIn) -> None:
    program("curl")
    done = run(service, EXAMPLES / "decide.sh", "headline", "0.5", PERSON="anna")
    assert done.returncode == 0, done.stderr
    (asked,) = service.decided
    assert len(asked["request"]) == 32 and asked["person"] == "anna"
    assert service.rewarded == [{"ticket": "ticket-1", "reward": 0.5}]
    assert '{"name": "headline"' in done.stdout and f"{service.url}/" in done.stdout


def test_curl_tries_again(service: StandIn) -> None:
    program("curl")
    service.busy, service.asks_who = 1, False
    done = run(service, EXAMPLES / "decide.sh")
    assert done.returncode == 0, done.stderr
    assert len(service.decided) == len(service.rewarded) == 1


def test_curl_stops_at_a_refusal(service: StandIn) -> None:
    program("curl")
    done = run(service, EXAMPLES / "decide.sh", key="dpb_wrong")
    assert done.returncode != 0
    assert "401" in done.stderr and "dpb_wrong" not in done.stdout + done.stderr
    assert service.decided == service.rewarded == []


def test_curl_says_what_is_wrong(service: StandIn) -> None:
    program("curl")
    done = run(service, EXAMPLES / "decide.sh")
    assert done.returncode == 1
    assert "422" in done.stderr and "It is the person." in done.stderr


@pytest.mark.parametrize("asks_who", [True, False], ids=["told-apart", "not-told-apart"])
def test_with_the_client(service: StandIn, asks_who: bool) -> None:
    service.asks_who = asks_who
    done = run(service, sys.executable, EXAMPLES / "reader.py", "headline", "3")
    assert done.returncode == 0, done.stderr
    assert len({asked["request"] for asked in service.decided}) == 3
    assert len({asked.get("person") for asked in service.decided}) == (3 if asks_who else 1)
    assert [sent["ticket"] for sent in service.rewarded] == ["ticket-1", "ticket-2", "ticket-3"]
    assert {sent["reward"] for sent in service.rewarded} <= {0.0, 1.0}
    assert f"3 × {LABEL}" in done.stdout


def test_the_client_says_what_is_wrong(service: StandIn) -> None:
    done = run(service, sys.executable, EXAMPLES / "reader.py", key="dpb_wrong")
    assert done.returncode == 1
    assert done.stderr.startswith("unreadable (401)") and "Traceback" not in done.stderr


def test_a_click_in_a_browser(service: StandIn, site: str, browser: "Browser") -> None:
    with opened(browser, site) as page:
        page.wait_for_function("text => headline.textContent === text", arg=LABEL)
        assert page.locator("b").count() == 0  # a label is not HTML
        with page.expect_response("**/v1/reward") as answer:
            page.click("#headline")
        assert answer.value.ok
        answer.value.finished()
        page.click("#headline")
        page.goto("about:blank")
    assert service.rewarded == [{"ticket": "ticket-1", "reward": 1}]


def test_the_site_says_who_it_is(service: StandIn, site: str, page: "Page") -> None:
    def visit() -> str:
        page.goto(site)
        page.wait_for_function("text => headline.textContent === text", arg=LABEL)
        return str(service.decided[-1]["person"])

    first = visit()
    assert visit() == first
    page.context.clear_cookies()
    assert visit() != first
    made_up = {"name": "visitor", "value": "the-queen", "url": site}
    page.context.add_cookies([made_up])  # type: ignore[list-item]
    assert visit() not in (first, "the-queen")


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    """A page that may complain."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


def test_a_page_that_is_left(service: StandIn, site: str, page: "Page") -> None:
    page.goto(site)
    page.wait_for_function("text => headline.textContent === text", arg=LABEL)
    page.goto("about:blank")
    assert service.came.wait(10)
    assert service.rewarded == [{"ticket": "ticket-1", "reward": 0}]


def test_a_page_without_a_decision_stays_as_it_is(service: StandIn, site: str, page: "Page") -> None:
    service.busy = 10
    with page.expect_console_message(lambda said: "no decision (503)" in said.text):
        page.goto(site)
    assert page.inner_text("#headline") == "Today's story"


def test_the_experiments_can_be_served() -> None:
    (terms,) = read_experiments(EXAMPLES / "experiments.toml")
    assert terms.name == "headline" and terms.problem.rounds_per_person == 1


def test_the_page_is_short_and_holds_no_key() -> None:
    script = (EXAMPLES / "decide.js").read_text()
    assert len(script.splitlines()) <= 35
    assert "dpb_" not in script and "authorization" not in script.lower()
