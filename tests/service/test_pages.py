"""The page: nothing breaks out of it, and people can read it, on any screen."""

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations, pairwise
from threading import Thread
from typing import Any

import numpy as np
import pytest
import sample_views
from browser import SIZES, opened
from numpy.typing import NDArray
from playwright.sync_api import Browser
from sample_views import Sample

import dpbandits as dpb
from dpbandits.service.ledger import verify
from dpbandits.service.pages import CSP, render
from dpbandits.service.pictures import COLOURS

pytestmark = pytest.mark.slow

# Every text against what is behind it, as WCAG 2 computes it.
CONTRASTS = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = rgb => {
    const linear = c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
    const [r, g, b] = rgb.slice(0, 3).map(c => linear(c / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.body.querySelectorAll('*')]
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .map(e => {
      const style = getComputedStyle(e), own = e.tagName === 'text' ? style.fill : style.color;
      const pair = [light(parse(own)), light(behind(e))].sort((a, b) => b - a);
      return [(pair[0] + .05) / (pair[1] + .05), e.textContent.trim().slice(0, 40)];
    });
}"""


def shown(*samples: Sample, standby: bool = False) -> str:
    entries = {view.name: ledger for view, ledger in samples}
    views = [view for view, _ in samples]
    return render(views, entries=entries, standby=standby, version="1.2.3").decode()


class Outline(HTMLParser):
    """Tags with their attributes; each must be closed where it may be."""

    VOID = ("meta", "link")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text.append(data)


def text_of(page: str) -> str:
    return " ".join(" ".join(Outline(page).text).split())


@pytest.fixture(scope="module")
def samples() -> dict[str, Sample]:
    return {make.__name__: make() for make in sample_views.ALL}


def test_the_samples_are_what_a_service_would_show(samples: dict[str, Sample]) -> None:
    for view, entries in samples.values():
        verdict = verify(entries)
        assert verdict.decided <= view.decided and verdict.state == view.state


def test_nothing_breaks_out(samples: dict[str, Sample]) -> None:
    page = shown(*samples.values())
    outline = Outline(page)
    assert outline.open == []
    kinds = {tag for tag, _ in outline.tags}
    assert not kinds & {"script", "img", "iframe", "form", "input", "object", "b", "i"}
    for tag, attributes in outline.tags:
        assert not {name for name in attributes if name == "style" or name.startswith("on")}, tag
        for name in ("href", "src"):
            where = attributes.get(name)
            assert where is None or where.startswith(("#", "/v1/", "data:,")), where
    text = text_of(page)
    assert "<b>bold</b><script>alert(1)</script>" in text and "<i>people</i>" in text


def test_the_policy_allows_the_style_and_nothing_else(samples: dict[str, Sample]) -> None:
    style = re.search(r"<style>(.*?)</style>", shown(), re.DOTALL)
    assert style is not None
    hashed = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert CSP.startswith("default-src 'none';") and f"style-src 'sha256-{hashed}';" in CSP
    assert "unsafe" not in CSP and "http" not in CSP


# What people with one kind of cone missing see (Machado et al. 2009), in linear light.
SEEN = {
    "all cones": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = [[0.434, 0.376, 0.190], [0.2126, 0.7152, 0.0722], [0.018, 0.109, 0.873]]  # white is 1, 1, 1


def lab(colour: str, seen: Any) -> NDArray[np.float64]:
    """In a space where distances are about as they look: 2 is the least that is seen at all."""
    values = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255.0
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(np.asarray(TO_XYZ) @ np.clip(np.asarray(seen) @ linear, 0.001, 1.0))
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


@pytest.mark.parametrize("seen", SEEN.values(), ids=SEEN)
@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_are_told_apart_by_the_colour_blind(scheme: int, seen: Any) -> None:
    found = re.findall(r"--c\d: (#\w{6})", shown())
    assert len(found) == 2 * (COLOURS + 1)
    colours = found[scheme * (COLOURS + 1) :][: COLOURS + 1]
    apart = [np.linalg.norm(lab(a, seen) - lab(b, seen)) for a, b in combinations(colours, 2)]
    assert min(apart) > 15.0
    # Neighbours in the picture more so.
    assert min(np.linalg.norm(lab(a, seen) - lab(b, seen)) for a, b in pairwise(colours)) > 20.0
    assert np.linalg.norm(lab("#44a796", SEEN["no green"]) - lab("#c66a7a", SEEN["no green"])) < 15.0


def test_arms(samples: dict[str, Sample]) -> None:
    view, entries = samples["arms"]
    page = shown(samples["arms"])
    text = text_of(page)
    assert str(view.guarantee) in text and "Running" in text and "1-GDP privacy budget" in text
    assert "Continue to payment leads; at least" in text and "Get it retired" in text
    assert "6,000 of 20,000 rounds" in text and "all of 1-GDP" in text
    assert "both experiments on shoppers" in text
    assert "Share of decisions over time" in text and entries[-1]["hash"] in text
    assert "/v1/experiments/checkout-button/ledger" in page
    assert page.count('class="dot"') == 5


def test_why_something_is_not_shown(samples: dict[str, Sample]) -> None:
    joint = text_of(shown(samples["joint"]))
    assert "may tell the context of the person" in joint and "Share of decisions" not in joint
    assert "The released parameters" in joint and "parameter 3" in joint
    silent = text_of(shown(samples["silent"]))
    assert "releases nothing but its decisions" in silent and "What was decided" in silent
    assert "Stopped" in silent and "Stopped after 3,000 decisions" in silent
    bare = text_of(shown(samples["bare"]))
    assert "not private" in bare and "no guarantee" in bare and "Abandoned: the keyring was lost" in bare


def test_other_models(samples: dict[str, Sample]) -> None:
    view, entries = samples["arms"]
    policy = dpb.local.LocalUCB(privacy=dpb.PureDP(1.0))
    guarantee = policy.guarantee(dpb.Arms(5))
    local = replace(view, policy=policy.to_dict(), guarantee=guarantee, shares=None)
    text = text_of(shown((local, entries)))
    assert "people decide on their own devices" in text and "Share of decisions" not in text
    pairs = text_of(shown(samples["pairs"]))
    assert "context 1, 2" in pairs and "Context and action" in pairs
    actions = text_of(shown(samples["actions"]))
    assert "What is known of each action" in actions and "second row leads" in actions
    odd = replace(view, labels=(), deadline=None, retired=(), population=None)
    assert "3 leads; at least" in text_of(shown((odd, [])))
    assert "Open for" not in text_of(shown((odd, [])))


def test_sets_and_many_arms(samples: dict[str, Sample]) -> None:
    text = text_of(shown(samples["matroid"]))
    assert "What is known of each item" in text and "lead; at least" in text
    view, entries = samples["matroid"]
    assert view.released is not None
    large = replace(view, released=replace(view.released, leading=tuple(range(20))))
    assert "Local, 6, 7, 12 more lead; at least" in text_of(shown((large, entries))).replace(" ,", ",")
    many = shown(samples["many"])
    assert "18 more" in text_of(many) and many.count('scope="row"') == 30
    # The most frequent come first.
    counts = re.findall(r'<td class="number">([\d,]+)<span class="also">', many)
    numbers = [int(count.replace(",", "")) for count in counts]
    assert len(numbers) == 30 and numbers == sorted(numbers, reverse=True)


def test_a_page_stays_a_page() -> None:
    count = 50_000
    large = sample_views.sample(
        "large",
        dpb.LazyThompson(privacy=dpb.PureDP(1.0)),
        dpb.Arms(count),
        labels=[str(number) for number in range(count)],
        reward=lambda action, chance: 1.0,
        rounds=1,
        pages=1,
    )
    page = shown(large)
    assert page.count('scope="row"') == 100 and len(page) < 150_000
    assert "49,988 more" in text_of(page) and "And 49,900 more" in text_of(page)


def test_parts_are_of_the_decisions_that_were_counted(samples: dict[str, Sample]) -> None:
    view, entries = samples["silent"]
    later = text_of(shown((replace(view, decided=9000), entries)))
    before = text_of(shown((view, entries)))
    parts = [re.findall(r"(\d+) %", text) for text in (before, later)]
    assert parts[0] == parts[1] and abs(sum(map(int, parts[0])) - 100) <= 1


def test_an_action_that_was_just_added(samples: dict[str, Sample]) -> None:
    view, entries = samples["arms"]
    assert view.shares is not None
    added = replace(view, labels=(*view.labels, "Pay"), shares=(*view.shares, 0))
    page = shown((added, entries))
    assert page.count('class="dot"') == 5 and page.count('scope="row"') == 6
    assert "Pay nothing yet" in text_of(page)


def test_before_anything_is_known(samples: dict[str, Sample]) -> None:
    fresh = text_of(shown(samples["fresh"]))
    assert "nothing of 0.5-DP" in fresh and "nothing yet" in fresh and "1 entry " in fresh
    assert "3 rounds each" in fresh and "<code>person</code>" in shown(samples["fresh"])
    view, entries = samples["fresh"]
    unpublished = text_of(shown((replace(view, released=None, shares=None, as_of=0), entries)))
    assert "Nothing is published yet" in unpublished
    assert "releases nothing" not in unpublished and "1970" not in unpublished
    empty = text_of(shown(standby=True))
    assert "Nothing to decide yet" in empty and "/v1/experiments" in empty and "stands by" in empty
    assert "stands by" not in text_of(shown())


def test_a_ledger_of_thousands_is_not_all_on_the_page(samples: dict[str, Sample]) -> None:
    view, entries = samples["arms"]
    assert shown((view, entries)).count("<code>") < 20


@pytest.fixture(scope="module")
def site(samples: dict[str, Sample]) -> Iterator[str]:
    """All samples, and an empty service, over HTTP."""
    pages = {"/": shown(*samples.values()), "/empty": shown(standby=True)}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-security-policy", CSP)
            self.end_headers()
            self.wfile.write(pages[self.path].encode())

        def log_message(self, format: str, *values: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", ["/", "/empty"])
def test_it_can_be_read_in_a_browser(
    browser: Browser, site: str, path: str, size: str, dark: bool
) -> None:
    with opened(browser, f"{site}{path}", size=size, dark=dark) as page:
        for summary in page.locator("summary").all():
            summary.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
        found = page.evaluate(CONTRASTS)
        assert len(found) > 5
        assert [(ratio, text) for ratio, text in found if ratio < 4.5] == []
        page.evaluate("document.querySelector('h1').style.color = 'dimgrey'")  # the control
        page.evaluate("document.querySelector('h1').style.background = 'grey'")
        assert [text for ratio, text in page.evaluate(CONTRASTS) if ratio < 4.5] == ["Experiments"]
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (
            sum(map(int, re.findall(r"\d+", ground))) < 384
        ) == dark  # its own colours, not one scheme


def test_pictures_are_where_the_numbers_are(browser: Browser, site: str) -> None:
    """The dot of a mean of about ½ is in the middle of its strip, at any width."""
    for size in SIZES:
        with opened(browser, site, size=size) as page:
            row = page.locator("#e1 tr.leads")
            mean = float(row.locator("td.number").first.inner_text().split()[0])
            strip, dot = row.locator("td.strip svg").bounding_box(), row.locator(".dot").bounding_box()
            assert strip is not None and dot is not None
            place = (dot["x"] + dot["width"] / 2 - strip["x"]) / strip["width"]
            assert place == pytest.approx(0.02 + 0.96 * mean, abs=0.005)
