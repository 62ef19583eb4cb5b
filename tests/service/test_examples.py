"""The examples run: with curl, with the client, and in a browser, against a small stand-in."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import opened
from needed import program

from dpbandits.service.run import read_experiments

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[2] / "examples" / "service"
KEY = "dpb_example"
LABEL = "a <b>bold</b> headline"


class Site(ThreadingHTTPServer):
    """The service and, under /decisions, a site that passes requests on to it and adds the key."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.decided: list[dict[str, Any]] = []
        self.rewarded: list[dict[str, Any]] = []
        self.came = threading.Event()  # a reward
        self.busy = 0  # times to say so
        self.keys: set[str | None] = set()  # that browsers sent

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        key = self.headers["authorization"]
        if self.path.startswith("/decisions/"):
            self.server.keys.add(key)
            key = f"Bearer {KEY}"
        if key != f"Bearer {KEY}" or self.headers["content-type"] != "application/json":
            self.answer(401, {})
        elif self.server.busy:
            self.server.busy -= 1
            self.answer(503, {})
        elif self.path.endswith("/v1/experiments/headline/decide"):
            self.server.decided.append(sent)
            ticket = f"ticket-{len(self.server.decided)}"
            self.answer(200, {"ticket": ticket, "action": LABEL, "expires": None} | COUNTED)
        else:
            assert self.path.endswith("/v1/reward")
            self.server.rewarded.append(sent)
            self.answer(200, {"recorded": True, "repeated": False})
            self.server.came.set()

    def do_GET(self) -> None:
        name = self.path.removeprefix("/")
        if name in {"index.html", "decide.js"}:
            kind = "text/html" if name == "index.html" else "text/javascript"
            self.answer(200, (EXAMPLES / name).read_bytes(), kind)
        elif self.path.startswith("/v1/experiments/headline/ledger?after="):
            self.answer(200, {"entries": [{"number": 0}] if self.path.endswith("=-1") else []})
        elif self.path == "/v1/experiments/headline":
            self.answer(200, {"name": "headline"})
        else:
            self.answer(204, b"")

    def answer(self, status: int, value: Any, kind: str = "application/json") -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


COUNTED = {"counted": True, "repeated": False}


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        site.shutdown()
        thread.join()


def run(site: Site, *command: object, key: str = KEY) -> subprocess.CompletedProcess[str]:
    settings = os.environ | {"KEY": key, "URL": site.url}
    return subprocess.run(
        [str(part) for part in command],
        env=settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_with_curl(site: Site) -> None:
    program("curl")
    done = run(site, EXAMPLES / "decide.sh", "headline", "0.5")
    assert done.returncode == 0, done.stderr
    (asked,) = site.decided
    assert len(asked["request"]) == 32
    assert site.rewarded == [{"ticket": "ticket-1", "reward": 0.5}]
    assert '{"name": "headline"}' in done.stdout and f"{site.url}/" in done.stdout


def test_curl_tries_again(site: Site) -> None:
    program("curl")
    site.busy = 1
    done = run(site, EXAMPLES / "decide.sh")
    assert done.returncode == 0, done.stderr
    assert len(site.decided) == len(site.rewarded) == 1


def test_curl_stops_at_a_refusal(site: Site) -> None:
    program("curl")
    done = run(site, EXAMPLES / "decide.sh", key="dpb_wrong")
    assert done.returncode != 0
    assert "401" in done.stderr and "dpb_wrong" not in done.stdout + done.stderr
    assert site.decided == site.rewarded == []


def test_with_the_client(site: Site) -> None:
    done = run(site, sys.executable, EXAMPLES / "reader.py", "headline", "3")
    assert done.returncode == 0, done.stderr
    assert len({asked["request"] for asked in site.decided}) == 3
    assert [sent["ticket"] for sent in site.rewarded] == ["ticket-1", "ticket-2", "ticket-3"]
    assert {sent["reward"] for sent in site.rewarded} <= {0.0, 1.0}
    assert f"3 × {LABEL}" in done.stdout


def test_the_client_says_what_is_wrong(site: Site) -> None:
    done = run(site, sys.executable, EXAMPLES / "reader.py", key="dpb_wrong")
    assert done.returncode == 1
    assert done.stderr.startswith("unreadable (401)") and "Traceback" not in done.stderr


def test_a_click_in_a_browser(site: Site, browser: "Browser") -> None:
    with opened(browser, f"{site.url}/index.html") as page:
        page.wait_for_function("text => headline.textContent === text", arg=LABEL)
        assert page.locator("b").count() == 0  # a label is not HTML
        with page.expect_response("**/v1/reward") as answer:
            page.click("#headline")
        assert answer.value.ok
        answer.value.finished()
        page.click("#headline")
        page.goto("about:blank")
    assert site.rewarded == [{"ticket": "ticket-1", "reward": 1}]
    assert site.keys == {None}


@pytest.fixture
def page(browser: "Browser") -> "Iterator[Page]":
    """A page that may complain."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


def test_a_page_that_is_left(site: Site, page: "Page") -> None:
    page.goto(f"{site.url}/index.html")
    page.wait_for_function("text => headline.textContent === text", arg=LABEL)
    page.goto("about:blank")
    assert site.came.wait(10)
    assert site.rewarded == [{"ticket": "ticket-1", "reward": 0}]


def test_a_page_without_a_decision_stays_as_it_is(site: Site, page: "Page") -> None:
    site.busy = 1
    with page.expect_console_message(lambda said: "no decision (503)" in said.text):
        page.goto(f"{site.url}/index.html")
    assert page.inner_text("#headline") == "Today's story"


def test_the_experiments_can_be_served() -> None:
    (terms,) = read_experiments(EXAMPLES / "experiments.toml")
    assert terms.name == "headline" and terms.problem.rounds_per_person is None


def test_the_page_is_short_and_holds_no_key() -> None:
    script = (EXAMPLES / "decide.js").read_text()
    assert len(script.splitlines()) <= 35
    assert "dpb_" not in script and "authorization" not in script.lower()
