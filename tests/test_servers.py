"""What other tests rely on: PostgreSQL comes back after all that is done to it; pages are seen."""

import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
import sqlalchemy as sa
from needed import missing
from postgres import Postgres

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow


def _written(url: str) -> list[int]:
    """What another client finds."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        return [row[0] for row in connection.execute("select n from kept order by n")]


@pytest.mark.parametrize(
    "interrupt",
    [
        lambda cluster: cluster.restart(),
        lambda cluster: cluster.restart("immediate"),
        lambda cluster: (cluster.kill(), cluster.start()),
        lambda cluster: cluster.kill(),  # the next new_database() starts it
    ],
    ids=["fast", "immediate", "kill", "left down"],
)
def test_postgres_keeps_what_was_committed(
    postgres: Postgres, interrupt: Callable[[Postgres], object]
) -> None:
    url = postgres.new_database()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("create table kept (n integer)"))
        connection.execute(sa.text("insert into kept values (1), (2)"))
    with engine.connect() as open_one:
        open_one.execute(sa.text("insert into kept values (3)"))
        interrupt(postgres)
        with pytest.raises(sa.exc.OperationalError):
            open_one.execute(sa.text("select 1"))
        open_one.invalidate()  # the server may have said good-bye: no rollback on a lost connection
    engine.dispose()
    assert postgres.new_database() != url
    assert _written(url) == [1, 2]


def test_postgres_can_be_away_and_asks_for_a_password(postgres: Postgres) -> None:
    url = postgres.new_database()
    plain = url.replace("+psycopg", "")
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(plain.replace("@", "wrong@")).close()
    postgres.stop()
    assert not postgres.is_running
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(plain).close()
    postgres.start()
    psycopg.connect(plain).close()


def test_databases_are_apart(postgres: Postgres) -> None:
    first, second = postgres.new_database(), postgres.new_database()
    with psycopg.connect(first.replace("+psycopg", "")) as connection:
        connection.execute("create table kept (n integer)")
    with pytest.raises(psycopg.errors.UndefinedTable):
        _written(second)


def test_a_removed_cluster_leaves_nothing() -> None:
    from postgres import find_postgres

    programs = find_postgres() or missing("PostgreSQL")
    cluster = Postgres(programs)
    cluster.start()
    cluster.remove()
    assert not cluster.folder.exists() and not cluster.is_running


PAGE = b"""<!doctype html><html lang=en><meta name=viewport content="width=device-width">
<link rel=icon href="data:,"><style>body{background:#fff}
@media (prefers-color-scheme:dark){body{background:#000}}</style>
<title>A page</title><h1>Hello</h1><p style="height:2000px">long</html>"""
FORBIDDEN = PAGE.replace(b"<h1>", b"<script>document.title = 'changed'</script><h1>")


class _Pages(http.server.BaseHTTPRequestHandler):
    """Two pages under a policy that allows no script."""

    def do_GET(self) -> None:
        body = FORBIDDEN if self.path == "/forbidden" else PAGE
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
        self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("size", "width"), [("desktop", 1280), ("phone", 390)])
@pytest.mark.parametrize(("dark", "background"), [(False, "rgb(255, 255, 255)"), (True, "rgb(0, 0, 0)")])
def test_a_page_is_seen_as_people_see_it(
    browser: "Browser", site: str, tmp_path: Path, size: str, width: int, dark: bool, background: str
) -> None:
    from browser import opened

    picture = tmp_path / "page.png"
    with opened(browser, site, size=size, dark=dark, picture=picture) as page:
        assert page.title() == "A page" and page.locator("h1").inner_text() == "Hello"
        assert page.evaluate("innerWidth") == width
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG") and int.from_bytes(data[16:20], "big") == width
    assert int.from_bytes(data[20:24], "big") > 2000  # all of it, not only what the window shows


def test_what_the_pages_policy_forbids_is_an_error(browser: "Browser", site: str) -> None:
    from browser import opened

    with (
        pytest.raises(AssertionError, match="Content Security Policy"),
        opened(browser, f"{site}/forbidden"),
    ):
        pass


@pytest.mark.parametrize(
    ("required", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_what_is_missing_is_skipped_only_where_it_may_be(
    monkeypatch: pytest.MonkeyPatch, required: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("DPBANDITS_REQUIRE_SERVICES", required)
    with pytest.raises(outcome, match="A server is not installed"):
        missing("A server")
