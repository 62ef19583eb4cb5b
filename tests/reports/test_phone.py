"""Reports as they look on a phone."""

from pathlib import Path

import pytest
from browser import opened
from playwright.sync_api import Browser
from typer.testing import CliRunner

from dpbandits.cli.main import app

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("privacy", ["eps=0.1,1,none", "eps=1"])
def test_a_report_fits_a_phone(tmp_path: Path, browser: Browser, privacy: str) -> None:
    """What is wider than the page moves within it, and letters of pictures stay readable."""
    page = tmp_path / "page.html"
    words = ["compare", "lazy-ucb", "private-imed", "--rounds", "300", "--runs", "2"]
    done = CliRunner().invoke(app, [*words, "--privacy", privacy, "--report", str(page)])
    assert done.exit_code == 0, done.output
    with opened(browser, page.as_uri(), size="phone") as seen:
        assert seen.evaluate("document.documentElement.scrollWidth") == 390
        table = seen.locator("div.wide").first
        assert table.evaluate("one => one.scrollWidth > one.clientWidth"), "nothing was too wide"
        table.evaluate("one => one.scrollTo(999, 0)")
        first = seen.locator("td").first.bounding_box()
        assert first is not None and 0 <= first["x"] < 30, "the name of a row stays where it is"
        drawn = seen.locator("svg").first
        points = float(drawn.get_attribute("width", timeout=1000)[:-2])  # type: ignore[index]
        assert drawn.evaluate("one => one.getBoundingClientRect().width") >= 0.74 * points
