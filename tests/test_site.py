"""The documentation site: made anew, followed link by link, searched and looked at."""

import fcntl
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import SIZES, opened

import dpbandits as dpb
from dpbandits.experiments import FIGURES
from dpbandits.policies import policy_kinds

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from sitemaking.links import clicks, faults, read_site  # noqa: E402
from sitemaking.measured import leaderboard_rows, measured  # noqa: E402
from sitemaking.reference import MODULES, homes, is_policy, public_names  # noqa: E402
from sitemaking.running import BLOCK, run_page  # noqa: E402

TUTORIALS = ("news-page", "email-test", "film-shelf", "dose", "survey")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once, whatever the number of processes that run tests: the others wait for the first."""
    base = tmp_path_factory.getbasetemp()  # of this process; the folder above it is of this run
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "done").exists():
            made = subprocess.run(
                [sys.executable, "docs/make_site.py", str(shared)],
                cwd=ROOT,
                capture_output=True,
                text=True,
            )
            (shared / "done").write_text(made.stderr if made.returncode else "")
    assert not (said := (shared / "done").read_text()), said
    return shared / "site"


def test_every_page_is_made_and_all_links_lead_somewhere(site: Path) -> None:
    assert len(read_site(site)) > 100
    assert not list(faults(site))


def test_a_broken_link_and_a_foreign_resource_are_found(tmp_path: Path) -> None:
    """The control."""
    (tmp_path / "there.html").write_text("<p id='here'></p>")
    (tmp_path / "index.html").write_text(
        "<a href='gone.html'></a><a href='there.html#nowhere'></a><a href='there.html#here'></a>"
        "<script src='https://example.org/x.js'></script><img src='gone.png'>"
    )
    found = sorted(faults(tmp_path))
    assert len(found) == 4 and all(one.startswith("index.html") for one in found)


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*['\"]?(?:https?:)?//", sheet.read_text()), sheet.name


def _everything() -> Iterator[tuple[str, str]]:
    """What a reader may look for, and the anchor that it has."""
    home = homes()
    for name in MODULES:
        module = importlib.import_module(name)
        for public in public_names(module):
            what = getattr(module, public)
            if is_policy(what):
                family = next(
                    one
                    for one in ("arms", "linear", "matroids", "kernels")
                    if public in getattr(dpb, one).__all__
                )
                yield f"{name}.{public}", f"dpbandits.{family}.{public}"
            elif not inspect.ismodule(what):
                yield f"{name}.{public}", f"{home[id(what)]}.{public}"
    for figure in FIGURES:
        yield figure, figure
    for policy, kind in policy_kinds().items():
        for option in kind.options():
            yield f"{policy}:{option.name}", f"{policy}-{option.name.replace('_', '-')}"


def test_everything_is_at_most_three_clicks_away(site: Path) -> None:
    """By the links in the text of pages alone, so that no menu has to be opened."""
    pages, away = read_site(site), clicks(site)
    near = {anchor for page, count in away.items() if count <= 3 for anchor in pages[page].anchors}
    sought = dict(_everything())
    assert len(sought) > 300
    assert not [name for name, anchor in sought.items() if anchor not in near]
    for kind in (*policy_kinds(), "noise-aware-imed"):
        assert away[f"reference/policies/{kind}.html"] <= 3
    assert {
        "cli.html",
        "reference/api/dpbandits.errors.html",
        "reference/api/dpbandits.worlds.html",
    } <= set(away)


def test_what_was_measured_is_what_the_leaderboards_say(site: Path) -> None:
    rows = leaderboard_rows((ROOT / "docs/reproduction.md").read_text())
    found = 0
    for policy in policy_kinds():
        page = unescape((site / f"reference/policies/{policy}.html").read_text())
        for row in measured(policy, rows)[1]:
            assert all(cell in page for cell in row.cells.values()), policy
            found += 1
    assert found > 40
    when, (row,) = measured("noise-aware-imed", rows)
    assert when == "at ε = 1" and row.guarantee == "1-DP" and "±" in row.cells["5 arms"]
    assert measured("no-such-policy", rows) == ("", [])


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_ends_with_a_picture_and_the_guarantee(site: Path, name: str) -> None:
    page = unescape((site / f"tutorials/{name}.html").read_text())
    assert (site / f"_images/{name}.svg").read_text().count("<path") > 10
    text = page[page.index("The guarantee") :]
    assert re.search(r"are \(?1(?:, 1e-\d)?\)?-DP|is 1-DP", text)


def test_a_page_shows_what_its_blocks_print(tmp_path: Path) -> None:
    page = "# A\n\n```python\nx = 2\n```\n\n```python\nprint(x + 1)\n```\n\nEnd.\n"
    made = run_page(page, tmp_path)
    assert made.count("```text\n3\n```") == 1 and made.endswith("End.\n")
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", tmp_path)


def test_all_examples_of_the_site_are_run_somewhere() -> None:
    """Pages whose blocks the site runs, and those that other tests run; no page has others."""
    run_here = {"start.md", "choosing-epsilon.md", *(f"tutorials/{name}.md" for name in TUTORIALS)}
    run_elsewhere = {
        "adapters.md",
        "audits.md",
        "capacity.md",
        "identification.md",
        "offline.md",
        "own-data.md",
        "sweeps.md",
    }
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "build" not in path.parts]
    found = {str(path.relative_to(ROOT / "docs")) for path in pages if BLOCK.search(path.read_text())}
    generated = {"limits.md"}  # of docstrings, whose examples are doctests
    assert found == run_here | run_elsewhere | generated


@pytest.mark.parametrize("name", ["audits.md", "sweeps.md"])
def test_examples_of_how_to_pages_run(name: str, tmp_path: Path) -> None:
    run_page((ROOT / "docs" / name).read_text(), tmp_path)


@pytest.mark.parametrize(
    ("query", "leads_to"),
    [
        ("NoiseAwareIMED", "reference/policies/noise-aware-imed.html"),
        ("TooLate", "reference/api/dpbandits.errors.html"),
        ("postgresql", "service.html"),
        ("rounds_per_person", "choosing-epsilon.html"),
    ],
)
def test_search_works_from_the_disk(site: Path, browser: "Browser", query: str, leads_to: str) -> None:
    with opened(browser, f"{(site / 'search.html').as_uri()}?q={query}") as seen:
        seen.locator("#search-results li a").first.wait_for(timeout=20_000)
        found = seen.locator("#search-results li a").evaluate_all("all => all.map(one => one.href)")
    assert any(leads_to in one for one in found), found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    "page",
    [
        "index",
        "choosing-epsilon",
        "tutorials/news-page",
        "reference/policies/noise-aware-imed",
        "reference/api/dpbandits",
        "reproduction/arms-leaderboard",
        "gallery",
    ],
)
def test_pages_fit_phone_and_desktop(
    site: Path, browser: "Browser", page: str, size: str, dark: bool
) -> None:
    with opened(browser, (site / f"{page}.html").as_uri(), size=size, dark=dark) as seen:
        assert seen.evaluate("document.documentElement.scrollWidth") == SIZES[size]["width"]
        paper = seen.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", paper)[:3]))
        assert brightness < 150 if dark else brightness > 700
