"""What an experiment declares: every wrong term is refused by its field, in one sentence."""

import json
from contextlib import suppress
from typing import Any

import pytest
from desks import example_terms, local_policies, trusted_policies
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpbandits.service.terms import FIELDS, InvalidTerms, Terms, actions_of, check_label

GOOD = {"name": "headline", "privacy": "eps=1", "actions": ["calm", "loud"]}
LINEAR = {"kind": "LinearContexts", "dim": 3}
FIXED = {"kind": "LinearActions", "features": [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]}

WRONG: list[tuple[str, dict[str, Any]]] = [
    ("name", {"name": ""}),
    ("name", {"name": "Headline"}),
    ("name", {"name": "-x"}),
    ("name", {"name": "a b"}),
    ("name", {"name": "x" * 65}),
    ("name", {"name": "a\n"}),
    ("name", {"name": 5}),
    ("name", {"name": None}),
    ("", {"colour": "blue"}),
    ("", {"seed": 1}),
    ("", {"x" * 1000: 1}),
    ("privacy", {"privacy": "much"}),
    ("privacy", {"privacy": "1"}),
    ("privacy", {"privacy": "eps=-1"}),
    ("privacy", {"privacy": "eps=nan"}),
    ("privacy", {"privacy": 1.0}),
    ("actions", {"actions": []}),
    ("actions", {"actions": "calm"}),
    ("actions", {"actions": {"calm": 1}}),
    ("actions", {"actions": ["calm", 2]}),
    ("actions", {"actions": ["calm", ""]}),
    ("actions", {"actions": ["calm", "calm"]}),
    ("actions", {"actions": ["calm", "x" * 201]}),
    ("actions", {"actions": ["calm", "lo\nud"]}),
    ("actions", {"problem": {"kind": "Arms", "arms": 3}}),
    ("actions", {"problem": LINEAR, "privacy": "mu=1"}),
    ("actions", {"problem": FIXED, "privacy": "mu=1"}),
    ("problem", {"actions": ["one"]}),
    ("problem", {"problem": 5}),
    ("problem", {"problem": ["Arms"]}),
    ("problem", {"problem": {}}),
    ("problem", {"problem": {"kind": "Nothing"}}),
    ("problem", {"problem": {"kind": "Arms", "arms": 2, "colour": 1}}),
    ("problem", {"problem": {"kind": "Arms", "arms": "two"}}),
    ("problem", {"problem": {"kind": ["Arms"]}}),
    ("policy", {"policy": "nothing"}),
    ("policy", {"policy": "tree-lin-ucb"}),
    ("policy", {"policy": "noise-aware-imed:block=x"}),
    ("policy", {"policy": "tree-ucb"}),  # without a horizon
    ("policy", {"policy": 7}),
    ("trust", {"trust": "nobody"}),
    ("trust", {"trust": 1}),
    ("trust", {"policy": "noise-aware-imed", "trust": "local"}),
    ("in_flight", {"in_flight": 1}),
    ("in_flight", {"in_flight": 0}),
    ("in_flight", {"in_flight": 2.5}),
    ("in_flight", {"in_flight": True}),
    ("in_flight", {"in_flight": "many"}),
    ("in_flight", {"in_flight": 10**12}),
    ("in_flight", {"in_flight": None}),
    ("patience", {"patience": 0}),
    ("patience", {"patience": -1.0}),
    ("patience", {"patience": True}),
    ("patience", {"patience": "long"}),
    ("patience", {"patience": float("nan")}),
    ("patience", {"patience": float("inf")}),
    ("patience", {"patience": [5]}),
    ("rounds_per_person", {"rounds_per_person": 0}),
    ("rounds_per_person", {"rounds_per_person": "one"}),
    ("rounds_per_person", {"rounds_per_person": 10**9}),
    ("horizon", {"horizon": 0}),
    ("horizon", {"horizon": 1.5}),
    ("horizon", {"horizon": [1]}),
    ("population", {"population": ""}),
    ("population", {"population": "readers"}),  # who are not told apart
    ("population", {"population": 3}),
    ("population", {"population": "a\x00b"}),
    ("expected_people", {"expected_people": 0}),
    ("expected_people", {"expected_people": 10**10}),
    ("expected_people", {"expected_people": "many"}),
]


@pytest.mark.parametrize(("field", "change"), WRONG, ids=lambda one: str(one)[:60])
def test_a_wrong_term_is_refused_by_its_field(field: str, change: dict[str, Any]) -> None:
    with pytest.raises(InvalidTerms) as refused:
        Terms.read(GOOD | change)
    assert refused.value.field == field
    sentence = str(refused.value)
    assert sentence and "\n" not in sentence and len(sentence) < 2000


def test_every_field_is_refused_for_something() -> None:
    assert {field for field, _ in WRONG} == {*FIELDS, ""}


@pytest.mark.parametrize("given", [None, [], "headline", 5])
def test_what_is_no_table_is_refused(given: Any) -> None:
    with pytest.raises(InvalidTerms, match="a table of its terms"):
        Terms.read(given)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3))
def test_anything_at_all_is_read_or_refused_as_invalid(change: dict[str, Any]) -> None:
    terms = None
    with suppress(InvalidTerms):
        terms = Terms.read(GOOD | change)
    assert terms is None or Terms.from_dict(terms.to_dict()) == terms


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"patience": "none", "in_flight": 50},
        {"rounds_per_person": 3, "expected_people": 500, "population": "visitors"},
        {"policy": "tree-ucb", "horizon": 10_000, "privacy": "mu=1"},
        {"trust": "local"},
        {"problem": {"kind": "Arms", "arms": 2, "capacity": 9}},
        {"problem": LINEAR, "privacy": "mu=1", "actions": None},
        {"problem": FIXED, "privacy": "mu=1", "actions": ["a", "b", "c"]},
    ],
    ids=str,
)
def test_terms_come_back_from_the_database_as_they_were(change: dict[str, Any]) -> None:
    terms = Terms.read({k: v for k, v in (GOOD | change).items() if v is not None})
    again = Terms.from_dict(json.loads(json.dumps(terms.to_dict())))
    assert again == terms and again.guarantee == terms.guarantee
    assert Terms.read(dict(again.declared)) == terms


@pytest.mark.parametrize("policy", trusted_policies() + local_policies(), ids=lambda one: one.name())
def test_the_recipe_of_every_policy_comes_back(policy: Any) -> None:
    terms = example_terms(policy)
    assert Terms.from_dict(json.loads(json.dumps(terms.to_dict()))) == terms


def test_what_is_not_declared_has_a_default() -> None:
    terms = Terms.read(GOOD)
    assert (terms.in_flight, terms.patience, terms.population) == (10_000, 600.0, None)
    assert terms.labels == ("calm", "loud") and terms.label(1) == "loud" and terms.label(7) == 7
    assert not terms.is_local and not terms.asks_who and terms.shows_actions


def test_decisions_are_counted_where_they_are_public_and_only_there() -> None:
    central = Terms.read({"name": "a", "privacy": "mu=1", "problem": FIXED})
    joint = Terms.read({"name": "a", "privacy": "mu=1", "problem": LINEAR})
    local = Terms.read(GOOD | {"trust": "local"})
    assert (central.shows_actions, joint.shows_actions, local.shows_actions) == (True, False, False)
    assert actions_of(central.problem) == 3 and actions_of(joint.problem) is None


def test_a_successor_is_on_the_people_of_the_first() -> None:
    first = Terms.read(GOOD)
    second = Terms.read(GOOD | {"name": "headline-2", "population": "headline", "rounds_per_person": 1})
    assert first.is_on("headline") and second.is_on("headline") and not first.is_on(None)
    assert not first.is_on("visitors")


@pytest.mark.parametrize("label", ["", "x" * 201, "a\tb", "\x00", "\u202e", 5, None, ["a"]])
def test_what_cannot_be_a_label_is_refused(label: Any) -> None:
    with pytest.raises(InvalidTerms, match="a label is a printable text"):
        check_label(label)


@pytest.mark.parametrize("label", ["a", "x" * 200, "größe 2 <b>", "日本", " "])
def test_any_other_text_is_one(label: str) -> None:
    check_label(label)
