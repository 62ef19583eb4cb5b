"""What leaves the service without a key is public, field by field (I9): all routes are walked.

A field is public because `View` or `Moment` says why, because it is of a ledger's entry, or because it
is one of the few in the tables below. Anything else fails, and so does what depends on rewards before
they were released.
"""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import httpx
import msgspec
import pytest
from live_service import LiveService, live_service

import dpbandits as dpb
from dpbandits.policies.released import Released
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.service.entries import BODIES, Entry, Population, Reading, Terms
from dpbandits.service.refusals import CATALOGUE
from dpbandits.service.views import Moment, View

pytestmark = pytest.mark.slow

# What a place may hold: a value, fields by name, or anything where all of it was declared beforehand.
VALUE, DECLARED = "value", "declared"
Shape = str | dict[str, Any]


def shape_of_struct(kind: Any) -> Shape:
    """The fields of a ledger's entry, as `dpbandits verify` reads it."""
    parts: dict[str, Any] = {
        field.name: VALUE for field in msgspec.structs.fields(kind) if field.name != "body"
    }
    records = {"policy", "problem", "guarantee", "budgets", "together", "spent"}
    inner = {"terms": Terms, "population": Population, "released": Reading}
    for name in parts:
        if name in records:
            parts[name] = GUARANTEE if name == "guarantee" else DECLARED
        elif name in inner and kind is not Terms:
            parts[name] = shape_of_struct(inner[name])
    return parts


def shape_of_tagged(kind: Any) -> Shape:
    """The fields of a dataclass, each of which says why it is public."""
    parts: dict[str, Any] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        assert get_origin(hint) is Annotated, f"{kind.__name__}.{name} does not say why it is public"
        inner = get_args(hint)[0]
        held = get_args(inner) or (inner,)
        if dict in (inner, get_origin(inner)):
            parts[name] = DECLARED
        elif Guarantee in held:
            parts[name] = GUARANTEE
        elif Released in held:
            parts[name] = shape_of_struct(Reading)
        elif Moment in held:
            parts[name] = shape_of_tagged(Moment)
        else:
            parts[name] = VALUE
    return parts


# It follows from the recipes alone.
GUARANTEE: Shape = {
    **dict.fromkeys((field.name for field in dataclasses.fields(Guarantee)), VALUE),
    "budget": DECLARED,
    "sentence": VALUE,
}
VIEW = shape_of_tagged(View)
assert isinstance(VIEW, dict)
ANSWERS: dict[str, Shape] = {
    "/v1/experiments": {"experiments": {name: VIEW[name] for name in VIEW if name != "history"}},
    "/v1/experiments/{name}": VIEW,
    "/v1/experiments/{name}/ledger": {"entries": shape_of_struct(Entry)},
    "/health": {"healthy": VALUE},  # whether the process answers
    "/ready": {"ready": VALUE},  # whether it decides
}
METRICS = {  # counts of decisions and of time
    "dpbandits_ready",
    "dpbandits_info",
    "dpbandits_decisions",
    "dpbandits_closed_rounds",
    "dpbandits_open_rounds",
    "dpbandits_rounds_left",
    "dpbandits_generation",
}


def untagged(value: Any, shape: Shape, place: str = "") -> Iterator[str]:
    """Where there is something that nobody has said to be public."""
    if shape == DECLARED:
        return
    if isinstance(value, list):
        for one in value:
            yield from untagged(one, shape, place)
    elif isinstance(value, dict) and isinstance(shape, dict):
        for name, inner in value.items():
            if name == "body" and "previous" in shape:  # of an entry
                yield from untagged(inner, shape_of_struct(BODIES[value["kind"]]), f"{place}.body")
            elif name in shape:
                yield from untagged(inner, shape[name], f"{place}.{name}")
            else:
                yield f"{place}.{name}"
    elif isinstance(value, dict) or not (shape == VALUE or value is None):
        yield place


def untagged_metrics(page: str) -> list[str]:
    found = re.findall(r"^(\w+)(?:\{(\w+)=[^,\n]*\})? \S+$", page, re.MULTILINE)
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    assert len(found) == len(lines), page  # a label, or none
    return [
        name
        for name, label in found
        if name not in METRICS or label not in ("", "version" if "info" in name else "experiment")
    ]


# The services


def experiments(suffix: str = "") -> list[dict[str, Any]]:
    pairs = {
        "kind": "KernelContexts",
        "kernel": {"kind": "SquaredExponential", "length_scale": 0.5},
        "contexts": [[0.1], [0.9]],
        "actions": [[0.1], [0.5]],
    }
    return [
        {"name": "central" + suffix, "privacy": "eps=1", "actions": ["x", "y"], "in_flight": 4},
        {
            "name": "joint" + suffix,
            "problem": pairs,
            "actions": ["x", "y"],
            "in_flight": 4,
        },
        {"name": "local" + suffix, "privacy": "eps=1", "actions": ["x", "y"], "trust": "local"},
    ]


def use(service: LiveService, rewards: list[Any], suffix: str = "") -> None:
    """The same decisions each time, with these rewards; "silence" is none."""
    with service.client() as client:
        for place, reward in enumerate(rewards):
            for name, context in (("central", None), ("joint", place % 2)):
                made = client.decide(name + suffix, context=context, request=str(place))
                if reward != "silence":
                    assert client.reward(made, reward)


def send_local(service: LiveService, count: int) -> None:
    with service.client() as client:
        policy = dpb.Policy.from_dict(client.experiment("local")["policy"])
        assert isinstance(policy, dpb.local.LocalPolicy)
        for _ in range(count):
            person = policy.person(dpb.Arms(2), client.broadcast("local"))
            person.select()
            client.send("local", person.report(1.0))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveService]:
    """With experiments of every kind, that have pages; one that was changed, and one that has ended."""
    with live_service(tmp_path_factory.mktemp("public"), experiments()) as running:
        use(running, 20 * [1.0, 0.0, "silence", None])
        send_local(running, 10)
        shelf = {"kind": "Arms", "arms": 2, "capacity": 3}
        running.begin(name="shelf", privacy="eps=1", actions=["a", "b"], problem=shelf)
        assert running.http.post("/v1/experiments/shelf/actions", json={"label": "c"}).is_success
        readers = {"rounds_per_person": 1, "population": "readers"}
        running.begin(name="ended", privacy="eps=1", actions=["a", "b"], **readers)
        assert running.http.post("/v1/experiments/ended/stop").is_success
        running.restart()  # folds, and publishes pages
        yield running


NAMES = ("central", "joint", "local", "shelf", "ended")


@pytest.fixture(scope="module")
def stranger(service: LiveService) -> Iterator[httpx.Client]:
    """Somebody without a key."""
    with httpx.Client(base_url=service.url, timeout=30) as client:
        yield client


def routes(stranger: httpx.Client) -> list[tuple[str, str]]:
    paths = stranger.get("/openapi.json").json()["paths"]
    return [(path, method) for path, methods in paths.items() for method in methods]


def addresses(path: str) -> list[str]:
    """All that a route stands for."""
    filled = path.replace("{label}", "x").replace("{act}", "retire")
    return [filled.replace("{name}", name) for name in NAMES] if "{name}" in path else [filled]


def test_all_that_leaves_without_a_key_is_tagged(stranger: httpx.Client) -> None:
    answered, seen = set(), set()
    for path, method in routes(stranger):
        for address in addresses(path):
            answer = stranger.request(method, address)
            if answer.status_code == 401:
                assert answer.json()["detail"] == CATALOGUE["no-key"].detail
            elif path == "/metrics":
                assert untagged_metrics(answer.text) == []
                answered.add(path)
            else:
                assert answer.status_code == 200, (path, answer.text)
                assert list(untagged(answer.json(), ANSWERS[path])) == [], path
                answered.add(path)
                if path.endswith("ledger"):
                    seen |= {entry["kind"] for entry in answer.json()["entries"]}
    assert answered == set(ANSWERS) | {"/metrics"}
    assert seen == {"opened", "page", "resumed", "changed", "stopped"}  # none was abandoned


def test_what_is_not_in_the_list_of_routes_is_no_secret(stranger: httpx.Client) -> None:
    assert set(stranger.get("/openapi.json").json()) == {"openapi", "info", "paths", "components"}
    page = stranger.get("/")  # made of views and entries: tests/service/test_pages.py
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")


def test_controls(stranger: httpx.Client) -> None:
    """The inventory finds what is not tagged, wherever it is."""
    view, shape = stranger.get("/v1/experiments/central").json(), ANSWERS["/v1/experiments/{name}"]
    assert list(untagged(view, shape)) == []
    assert list(untagged({**view, "rewards": 7}, shape)) == [".rewards"]
    view["released"]["sum"] = [1.0]
    view["guarantee"]["seed"] = 1
    view["history"][0]["reward"] = 0.5
    view["closed"] = {"with": 3, "without": 4}
    places = {".released.sum", ".guarantee.seed", ".history.reward", ".closed"}
    assert set(untagged(view, shape)) == places
    ledger = stranger.get("/v1/experiments/central/ledger").json()
    ledger["entries"][1]["body"]["rewarded"] = 3
    ledger["entries"][0]["body"]["terms"]["seed"] = 3
    ledger["entries"][0]["secret"] = "x"
    found = set(untagged(ledger, ANSWERS["/v1/experiments/{name}/ledger"]))
    assert found == {
        ".entries.body.rewarded",
        ".entries.body.terms.seed",
        ".entries.secret",
    }
    assert untagged_metrics('dpbandits_rewards{experiment="x"} 3.0\n') == ["dpbandits_rewards"]
    assert untagged_metrics('dpbandits_decisions{action="x"} 3.0\n') == ["dpbandits_decisions"]

    @dataclasses.dataclass
    class Loose:
        mean: float

    with pytest.raises(AssertionError, match=r"Loose\.mean does not say why"):
        shape_of_tagged(Loose)


@pytest.mark.parametrize("name", ["joint", "local"])
def test_no_shares_where_they_may_tell_a_context(stranger: httpx.Client, name: str) -> None:
    view = stranger.get(f"/v1/experiments/{name}").json()
    assert view["shares"] is None and view["history"]
    assert all(moment["shares"] is None for moment in view["history"])
    entries = stranger.get(f"/v1/experiments/{name}/ledger").json()["entries"]
    pages = [entry["body"] for entry in entries if entry["kind"] == "page"]
    assert pages and all(page["shares"] is None for page in pages)
    assert stranger.get("/v1/experiments/central").json()["shares"] is not None  # where they do not


# What depends on rewards

_VARIES = {"at", "as_of", "hash", "previous", "signature", "key", "ledger_head"}
_TIMES = re.compile(r"[0-9a-f]{12,}|[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9:]+)?|[0-9]{2}:[0-9]{2}(:[0-9]{2})?")


def without_times(value: Any) -> Any:
    """The same without times, hashes and signatures."""
    if isinstance(value, dict):
        return {name: "*" if name in _VARIES else without_times(inner) for name, inner in value.items()}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def seen_by_a_stranger(service: LiveService, names: list[str]) -> dict[str, Any]:
    """All that can be had without a key."""
    seen: dict[str, Any] = {}
    with httpx.Client(base_url=service.url, timeout=30) as stranger:
        for name in names:
            for path in (f"/v1/experiments/{name}", f"/v1/experiments/{name}/ledger"):
                seen[path] = without_times(stranger.get(path).json())
        listed = stranger.get("/v1/experiments").json()["experiments"]
        seen["list"] = [without_times(one) for one in listed if one["name"] in names]
        seen["metrics"] = [
            line
            for line in stranger.get("/metrics").text.splitlines()
            if any(f'"{name}"' in line for name in names)
        ]
        cards = re.findall(r"<article.*?</article>", stranger.get("/").text, re.DOTALL)
        seen["cards"] = [
            _TIMES.sub("*", card) for card in cards if any(f">{name}<" in card for name in names)
        ]
    return seen


def test_nothing_depends_on_rewards_before_they_are_released(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    ones: list[Any] = 12 * [1.0]
    others: list[Any] = 2 * [0.0, None, "silence", "silence", 0.25, 1.0]
    with live_service(folders[0]) as first, live_service(folders[1]) as second:
        for attempt in range(5):
            suffix = f"-{attempt}"
            declared = experiments(suffix)[:2]
            names = [one["name"] for one in declared]
            for service, rewards in ((first, ones), (second, others)):
                for terms in declared:
                    service.begin(**terms)
                use(service, rewards, suffix)
            seen = [seen_by_a_stranger(service, names) for service in (first, second)]
            if not any("page" in str(one[f"/v1/experiments/{names[0]}/ledger"]) for one in seen):
                break  # else the clock was quicker, and a page shows what was released
        else:
            pytest.fail("it took too long each time")
        assert seen[0]["cards"] and len(seen[0]["metrics"]) >= 8
        assert seen[0][f"/v1/experiments/{names[1]}"]["closed"] == 8  # four are open
        assert seen[0] == seen[1]
