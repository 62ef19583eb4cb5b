"""Pages in a real browser: the system's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

SIZES: dict[str, ViewportSize] = {
    "desktop": {"width": 1280, "height": 800},
    "phone": {"width": 390, "height": 844},
}
_QUIET = [  # no request but those of the page under test
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    """The program, under the names that systems give it."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def launched(program: str) -> Iterator[Browser]:
    """The browser, without its sandbox only where it would refuse to start: as root."""
    arguments = [*_QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class Complaints(list[str]):
    """What a browser says against a page: errors, what its policy forbids, requests that failed."""

    def listen(self, page: Page) -> None:
        """Collect all that `page` gives cause for from now on."""
        page.on(
            "console", lambda said: self.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.append(str(error)))
        page.on("requestfailed", lambda request: self.append(f"{request.url}: {request.failure}"))


@contextmanager
def opened(
    browser: Browser, url: str, *, size: str = "desktop", dark: bool = False, picture: Path | None = None
) -> Iterator[Page]:
    """The page at `url`; afterwards, a picture of all of it, and an error if the browser complained."""
    context = browser.new_context(viewport=SIZES[size], color_scheme="dark" if dark else "light")
    try:
        page, complaints = context.new_page(), Complaints()
        complaints.listen(page)
        page.goto(url)
        yield page
        if picture is not None:
            page.screenshot(path=picture, full_page=True)
        assert not complaints, complaints
    finally:
        context.close()
