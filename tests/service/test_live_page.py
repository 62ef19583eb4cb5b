"""The page of a service at work, in a real browser: wide and narrow, light and dark."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import SIZES, opened
from live_service import LiveService, live_service

import dpbandits as dpb

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

HTML = "<b>bold</b> & <script>alert(1)</script>"
LONG = "A headline that goes on and on, as headlines seldom do, until it meets the edge of a phone"
EXPERIMENTS: list[dict[str, Any]] = [
    {
        "name": "headline",
        "privacy": "eps=2",
        "actions": ["calm", HTML, LONG],
        "in_flight": 4,
    },
    {
        "name": "newsletter",
        "privacy": "eps=1",
        "policy": "tree-ucb",
        "actions": ["weekly", "daily"],
        "in_flight": 4,
        "horizon": 10_000,
        "rounds_per_person": 3,
        "population": "readers",
    },
    {
        "name": "pairs",
        "problem": {
            "kind": "KernelContexts",
            "kernel": {"kind": "SquaredExponential", "length_scale": 0.5},
            "contexts": [[0.1], [0.9]],
            "actions": [[0.1], [0.5], [0.9]],
        },
        "actions": ["left", "middle", "right"],
        "in_flight": 4,
    },
    {
        "name": "basket",
        "privacy": "eps=2",
        "actions": ["tea", "milk", "rye", "jam", "salt"],
        "problem": {
            "kind": "MatroidBases",
            "matroid": {"kind": "UniformMatroid", "items": 5, "most": 2},
        },
        "in_flight": 4,
    },
    {"name": "survey", "privacy": "eps=1", "actions": ["yes", "no"], "trust": "local"},
]
WORTH = {"calm": 0.3, HTML: 0.7, "weekly": 0.6, "daily": 0.4, "left": 0.2, "middle": 0.9, "tea": 0.9}


def use(service: LiveService, rounds: int) -> None:
    """Some hundred people, who like some things better than others."""
    asked: dict[str, Callable[[int], dict[str, Any]]] = {
        "headline": lambda _: {},
        "newsletter": lambda place: {"person": f"reader {place}"},
        "pairs": lambda place: {"context": place % 2},
        "basket": lambda _: {},
    }
    chance = random.Random(1)

    def decide(name: str) -> None:
        for place in range(rounds):
            made = client.decide(name, **asked[name](place))
            liked = [WORTH.get(one, 0.2) for one in made.action] if name == "basket" else None
            client.reward(made, liked or float(chance.random() < WORTH.get(made.action, 0.3)))

    def answer() -> None:
        policy = dpb.Policy.from_dict(client.experiment("survey")["policy"])
        assert isinstance(policy, dpb.local.LocalPolicy)
        for _ in range(rounds // 4):
            person = policy.person(dpb.Arms(2), client.broadcast("survey"))
            person.select()
            client.send("survey", person.report(float(chance.random() < 0.5)))

    with service.client() as client, ThreadPoolExecutor() as pool:
        for one in [*(pool.submit(decide, name) for name in asked), pool.submit(answer)]:
            one.result()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    with live_service(tmp_path_factory.mktemp("page"), EXPERIMENTS) as running:
        for _ in range(2):
            use(running, 60)
            running.restart()  # folds, and publishes a page
        running.begin(
            name="over", privacy="eps=1", actions=["a", "b"], rounds_per_person=1, population="readers"
        )
        running.http.post("/v1/experiments/over/stop").raise_for_status()
        yield running


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_page(
    service: LiveService, browser: "Browser", tmp_path: Path, size: str, dark: bool
) -> None:
    picture = tmp_path / f"{size}-{'dark' if dark else 'light'}.png"
    with opened(browser, service.url, size=size, dark=dark, picture=picture) as page:
        cards = page.locator("article.card")
        assert cards.count() == len(EXPERIMENTS) + 1
        for card in cards.all():
            sentence = card.locator(".guarantee")
            assert sentence.is_visible() and "-DP" in sentence.inner_text()
        headline = page.locator("article", has_text="headline").first
        assert headline.get_by_text(HTML).first.is_visible()  # as text
        assert page.locator("article b, script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
        ledger = headline.locator("details.ledger")
        assert not ledger.locator("table").is_visible()
        ledger.locator("summary").click()
        assert ledger.locator("table").is_visible()
        assert ledger.locator("tbody tr").count() >= 4
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
    assert picture.stat().st_size > 20_000


def test_shares_only_where_they_are_public(service: LiveService, browser: "Browser") -> None:
    with opened(browser, service.url) as page:
        for name, shown in (("headline", True), ("basket", True), ("pairs", False), ("survey", False)):
            card = page.locator("article", has=page.get_by_role("heading", name=name, exact=True))
            assert card.locator("svg.stack").count() == int(shown), name
            heading = card.locator(".rows").get_by_text("Decisionsas of the last page")  # in two lines
            assert heading.count() == int(shown), name


def test_rounds_are_told_of_where_there_are_any(service: LiveService, browser: "Browser") -> None:
    with opened(browser, service.url) as page:
        for name, told in (("headline", True), ("survey", False), ("over", False)):
            card = page.locator("article", has=page.get_by_role("heading", name=name, exact=True))
            assert (card.get_by_text("Open at once").count() == 1) == told, name
            assert (card.get_by_text("Messages", exact=True).count() == 1) == (name == "survey"), name


def test_the_page_asks_for_nothing_else(service: LiveService, browser: "Browser") -> None:
    context = browser.new_context()
    page, asked = context.new_page(), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(service.url)
    page.get_by_text("the same as JSON").click()
    context.close()
    assert [url.removeprefix(service.url) for url in asked if not url.startswith("data:")] == [
        "/",
        "/v1/experiments",
    ]


def test_an_empty_service(tmp_path: Path, browser: "Browser") -> None:
    with live_service(tmp_path) as service, opened(browser, service.url, size="phone") as page:
        assert page.get_by_text("Nothing to decide yet").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"]["width"]
