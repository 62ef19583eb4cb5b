"""What is public: every field says why, and JSON can tell all of it."""

import dataclasses
import json
import math
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
import sample_views

import dpbandits as dpb
from dpbandits.service.ledger import page_body
from dpbandits.service.views import MOMENTS, Moment, View, history
from dpbandits.testing import example_environment


@pytest.mark.parametrize("kind", [View, Moment])
def test_every_field_says_why_it_is_public(kind: Any) -> None:
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        assert get_origin(hints[field.name]) is Annotated, field.name
        reason = get_args(hints[field.name])[1]
        assert reason[0].isupper() and reason.endswith(".") and len(reason) > 20, field.name


def test_a_view_is_told_as_json() -> None:
    view, _ = sample_views.fresh()
    told = json.loads(json.dumps(view.to_dict(), allow_nan=False))
    assert set(told) == {field.name for field in dataclasses.fields(View)}
    assert told["released"]["mean"] == [None, None] and "guarantee" not in told["released"]
    assert told["guarantee"]["sentence"] == str(view.guarantee)
    assert told["labels"] == ["on", "off"] and told["shares"] == [0, 0] and told["history"] == []


def test_a_view_of_what_releases_nothing() -> None:
    view, entries = sample_views.silent(rounds=30)
    told = json.loads(json.dumps(view.to_dict(), allow_nan=False))
    assert told["released"] is None and told["state"] == "stopped"
    last = told["history"][-1]
    assert last["mean"] is None and sum(last["shares"]) == last["decided"] == 30
    assert told["ledger_entries"] == len(entries) and told["ledger_head"] == entries[-1]["hash"]


def page(number: int, **told: Any) -> dict[str, Any]:
    counts = {"decided": number, "closed": number, "epoch": 1, "generation": 1}
    return {"kind": "page", "at": number, "body": {**counts, "released": None, "shares": None, **told}}


def test_a_history_is_made_of_pages() -> None:
    assert history([]) == ()
    resumed = {"kind": "resumed", "at": 2, "body": {"epoch": 2, "version": "1"}}
    moments = history([page(1), resumed, page(3, shares=[1, 2])])
    assert [(one.at, one.shares) for one in moments] == [(1, None), (3, (1, 2))]


@pytest.mark.parametrize("count", [MOMENTS - 1, MOMENTS, MOMENTS + 1, 10_000])
def test_a_long_history_keeps_its_ends(count: int) -> None:
    moments = history([page(number) for number in range(count)])
    times = [one.at for one in moments]
    assert len(moments) == min(count, MOMENTS) and (times[0], times[-1]) == (0, count - 1)
    assert times == sorted(set(times))


def test_values_in_rows_follow_each_other() -> None:
    world = example_environment(dpb.problems.KernelContexts)
    policy, problem = dpb.kernels.KernelThompson(privacy=dpb.GaussianDP(1.0)), world.problem(100)
    released = policy.start(problem, seed=1).released()
    assert released is not None and released.mean.ndim == 2
    body = page_body(decided=0, closed=0, epoch=1, generation=1, released=released, shares=None)
    (moment,) = history([{"kind": "page", "at": 1, "body": json.loads(json.dumps(body))}])
    assert moment.mean is not None and len(moment.mean) == released.mean.size
    for told, meant in zip(moment.mean, released.mean.ravel(), strict=True):
        assert told == meant or (math.isnan(told) and math.isnan(meant))
    json.dumps(moment.to_dict(), allow_nan=False)
