"""A guarantee carries its conditions, survives JSON and compares only with its like."""

import dataclasses
import json

import pytest

from dpbandits.errors import NotComparable
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit


def guarantee(budget: Budget, horizon: int | None = None) -> Guarantee:
    return Guarantee(
        budget=budget, unit=Unit.REWARD, trust=Trust.CENTRAL, horizon=horizon, status="proved"
    )


FULL = Guarantee(
    budget=GaussianDP(1.0),
    unit=Unit.ROUND,
    trust=Trust.JOINT,
    horizon=50_000,
    public=("the number of rounds", "who takes part"),
    status="claimed",
)


def test_the_sentence_carries_every_condition() -> None:
    assert str(FULL) == (
        "The decisions for everyone else together are 1-GDP, so (4.887, 1e-6)-DP, under "
        "replacement of one person's context and reward, up to round 50,000, if each person takes "
        "part in one round and the seed stays secret; public by declaration: the number of rounds, "
        "who takes part; claimed, not proved."
    )
    assert str(guarantee(PureDP(0.5))) == (
        "All decisions together are 0.5-DP under replacement of one reward, for any number of "
        "rounds, if each person takes part in one round and the seed stays secret."
    )


PROTECTED = {
    Trust.CENTRAL: "All decisions together are ",
    Trust.JOINT: "The decisions for everyone else together are ",
    Trust.LOCAL: "Every message a person sends is ",
}


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("trust", Trust)
def test_unit_and_trust_are_in_the_sentence(unit: Unit, trust: Trust) -> None:
    text = str(Guarantee(budget=ApproxDP(1.0, 1e-6), unit=unit, trust=trust))
    assert f"replacement of {unit.value}," in text and "(1, 1e-6)-DP" in text
    assert text.startswith(PROTECTED[trust]) and text.endswith("; claimed, not proved.")


def test_no_guarantee_says_why() -> None:
    nothing = guarantee(NonPrivate())
    assert not nothing.is_private and guarantee(PureDP(1.0)).is_private
    assert str(nothing) == "No privacy guarantee: none was asked for."
    why = dataclasses.replace(nothing, reason="it needs a declared horizon")
    assert str(why) == "No privacy guarantee: it needs a declared horizon."


@pytest.mark.parametrize(
    "budget",
    [PureDP(0.1), ApproxDP(1.0, 1e-9), GaussianDP(2.0), ZeroConcentratedDP(0.5), RenyiDP(8.0, 0.5)],
)
def test_json_round_trip(budget: Budget) -> None:
    for promise in (dataclasses.replace(FULL, budget=budget), guarantee(budget)):
        record = json.loads(json.dumps(promise.to_dict()))
        assert record["sentence"] == str(promise)
        assert Guarantee.from_dict(record) == promise
    # The sentence is made from the fields, so nobody can save a different one.
    assert str(Guarantee.from_dict(record | {"sentence": "perfectly private"})) == str(promise)


@pytest.mark.parametrize("unit", [Unit.ROUND, Unit.REWARD_VECTOR])
def test_different_things_do_not_compare(unit: Unit) -> None:
    one, other = guarantee(PureDP(1.0)), dataclasses.replace(guarantee(PureDP(1.0)), unit=unit)
    for pair in ((one, other), (other, one)):
        with pytest.raises(NotComparable, match=r"one reward .* protect different things"):
            pair[0].implies(pair[1])
    local = dataclasses.replace(one, trust=Trust.LOCAL)
    with pytest.raises(NotComparable, match=r"\(central\).*\(local\)"):
        one.implies(local)


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        (PureDP(0.5), PureDP(1.0)),
        (PureDP(1.0), GaussianDP(1.24)),
        (PureDP(1.0), ApproxDP(1.0, 1e-6)),
        (GaussianDP(1.0), ApproxDP(4.8866, 1e-6)),
        (GaussianDP(1.0), ZeroConcentratedDP(0.5)),
        (ZeroConcentratedDP(0.5), RenyiDP(8.0, 4.0)),
        (ApproxDP(1.0, 1e-6), ApproxDP(1.0, 1e-5)),
        (RenyiDP(8.0, 1.0), NonPrivate()),
    ],
)
def test_the_stronger_implies_the_weaker_but_not_back(stronger: Budget, weaker: Budget) -> None:
    assert guarantee(stronger).implies(guarantee(weaker))
    assert guarantee(stronger).implies(guarantee(stronger))
    # zCDP of ρ = μ²/2 is as large as μ-GDP, but it does not imply it.
    assert not guarantee(weaker).implies(guarantee(stronger))


def test_too_small_a_budget_or_horizon_does_not_follow() -> None:
    assert not guarantee(PureDP(1.0)).implies(guarantee(GaussianDP(1.23)))
    assert not guarantee(GaussianDP(1.0)).implies(guarantee(ApproxDP(4.886, 1e-6)))
    forever, long, short = (guarantee(PureDP(1.0), horizon) for horizon in (None, 1000, 10))
    assert forever.implies(long) and long.implies(short) and forever.implies(forever)
    assert not short.implies(long) and not long.implies(forever)
    assert short.implies(guarantee(NonPrivate()))


def test_more_public_facts_or_no_proof_make_it_weaker() -> None:
    plain = guarantee(PureDP(1.0))
    public = dataclasses.replace(plain, public=("the contexts",))
    claimed = dataclasses.replace(plain, status="claimed")
    for weaker in (public, claimed):
        assert plain.implies(weaker) and weaker.implies(weaker) and not weaker.implies(plain)
