"""What a budget means, what it implies, and that printed is delivered."""

import dataclasses
import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpbandits.errors import InvalidInput, NotImplied
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpbandits.recipes import Recipe

pytestmark = pytest.mark.filterwarnings("error")

spread = st.floats(-6.0, 3.0).map(lambda x: 10.0**x) | st.just(1e12)
deltas = (
    st.floats(-300.0, -0.01).map(lambda x: 10.0**x)
    | st.floats(0.01, 0.99)
    | st.floats(2.0, 6.0).map(lambda x: 1.0 - 10.0**-x)
)
nearly_one = st.floats(6.0, 15.0).map(lambda x: 1.0 - 10.0**-x)
orders = st.floats(-3.0, 6.0).map(lambda x: 1.0 + 10.0**x)
held = (
    spread.map(PureDP)
    | st.builds(ApproxDP, spread | st.just(0.0), deltas)
    | spread.map(GaussianDP)
    | spread.map(ZeroConcentratedDP)
    | st.builds(RenyiDP, orders, spread)
)
EVERY = [
    PureDP(0.1),
    ApproxDP(0.0, 1e-300),
    GaussianDP(2),
    ZeroConcentratedDP(0.5),
    RenyiDP(8, 1 / 3),
    NonPrivate(),
]


@pytest.mark.parametrize("budget", EVERY)
def test_json_round_trip(budget: Budget) -> None:
    assert Recipe.from_json(budget.to_json()) == budget
    assert Budget.from_json(budget.to_json()).to_json() == budget.to_json()


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(1.0, 4.886554), (2.0, 10.997), (5.0, 35.566), (10.0, 96.717)]
)
def test_gaussian_golden_values(mu: float, epsilon: float) -> None:
    found = GaussianDP(mu).implies(ApproxDP, delta=1e-6)
    assert isinstance(found, ApproxDP) and found.delta == 1e-6
    assert found.epsilon == pytest.approx(epsilon, abs=5e-7 if mu == 1.0 else 5e-4)
    assert GaussianDP(mu).delta_at(found.epsilon) == pytest.approx(1e-6, rel=1e-9)


def test_pure_golden_value() -> None:
    assert PureDP(1.0).implies(GaussianDP).size == pytest.approx(1.232, abs=5e-4)


@given(held, deltas | nearly_one)
@example(ApproxDP(20.876799446380275, 0.06950956652512463), 0.9999996370824544)
@settings(max_examples=400)
def test_epsilon_is_on_the_safe_side_and_least(budget: Budget, delta: float) -> None:
    epsilon = budget.epsilon_at(delta)
    if isinstance(budget, ApproxDP) and delta < budget.delta:
        assert epsilon == math.inf
        return
    assert budget.delta_at(epsilon) <= delta
    # Least: a hair less ε passes δ, or comes within rounding of it (near ε = 0).
    assert epsilon == 0.0 or budget.delta_at(epsilon * (1.0 - 2e-9)) > delta * (1.0 - 1e-9)


@given(held, st.floats(-16.0, -1.0))
@settings(max_examples=300)
def test_epsilon_is_safe_just_below_delta_at_zero(budget: Budget, s: float) -> None:
    delta = budget.delta_at(0.0) * (1.0 - 10.0**s)
    epsilon = budget.epsilon_at(delta)
    assert epsilon == math.inf or budget.delta_at(epsilon) <= delta


@given(held, spread, st.floats(1e-6, 3.0))
@settings(max_examples=200)
def test_delta_falls_with_epsilon(budget: Budget, epsilon: float, step: float) -> None:
    at_zero, here = budget.delta_at(0.0), budget.delta_at(epsilon)
    assert 0.0 <= budget.delta_at(epsilon * (1.0 + step)) <= here * (1.0 + 1e-9)
    assert here <= at_zero * (1.0 + 1e-9) and at_zero <= 1.0


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.3, 1e-3), (5.0, 0.2), (1e-6, 1e-9)])
def test_approximate_curve_is_that_of_its_worst_mechanism(epsilon: float, delta: float) -> None:
    # Reveal everything with probability δ, else randomized response: Σ max(0, p − e^at q).
    budget = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    p = mp.mpf(1) / (1 + mp.exp(-mp.mpf(epsilon)))
    one = [mp.mpf(delta), mp.mpf(0), (1 - mp.mpf(delta)) * p, (1 - mp.mpf(delta)) * (1 - p)]
    other = [one[1], one[0], one[3], one[2]]
    for share in (0.0, 0.1, 0.5, 0.999, 1.0, 1.5):
        at = mp.mpf(share * epsilon)
        true = sum(max(mp.mpf(0), a - mp.exp(at) * b) for a, b in zip(one, other, strict=True))
        found = budget.delta_at(share * epsilon)
        assert found == pytest.approx(float(true), rel=1e-9, abs=1e-30)
        if share < 1.0:
            assert budget.epsilon_at(found) == pytest.approx(share * epsilon, abs=1e-9 * epsilon)


@given(st.builds(ApproxDP, spread | st.just(0.0), deltas))
@settings(max_examples=300)
def test_gaussian_that_suffices_implies_what_was_wanted(wanted: ApproxDP) -> None:
    enough = wanted.to_gaussian()
    assert enough.delta_at(wanted.epsilon) <= wanted.delta
    assert GaussianDP(enough.mu * (1.0 + 1e-9)).delta_at(wanted.epsilon) > wanted.delta


@given(held)
@settings(max_examples=400)
def test_calibrated_to_it_is_exactly_it(wanted: Budget) -> None:
    assert wanted.within(wanted) is wanted
    if isinstance(wanted, PureDP):
        return
    enough = wanted.to_gaussian()
    assert enough.within(wanted) is wanted
    with pytest.raises(NotImplied, match="weaker"):
        GaussianDP(enough.mu * 1.001).within(wanted)


@given(spread, st.floats(1.001, 1e6))
@settings(max_examples=200)
def test_what_is_printed_follows_from_what_is_held(size: float, order: float) -> None:
    """Rounded to the private side: ε, δ, μ, ρ and γ up, the order α down."""
    held = RenyiDP(order, size)
    printed = [float(part) for part in str(held).removesuffix("-RDP").strip("()").split(",")]
    assert printed[0] <= order * (1 + 1e-11) and printed[1] >= size * (1 - 1e-11)
    assert printed == pytest.approx([order, size], rel=1.1e-3)
    assert float(str(PureDP(size)).removesuffix("-DP")) >= size * (1 - 1e-11)


def test_a_hair_more_than_asked_for_is_not_what_was_asked_for() -> None:
    assert str(RenyiDP(8.9999, 1.0)) == "(8.999, 1)-RDP"
    assert str(PureDP(1.0 + 1e-10)) == "1.001-DP" and str(PureDP(1.0 + 1e-15)) == "1-DP"
    assert str(PureDP(1.23456e-310)) == "1.235e-310-DP"
    with pytest.raises(NotImplied, match="weaker"):
        GaussianDP(1.0 + 1e-10).within(GaussianDP(1.0))


def test_within_states_the_slack() -> None:
    assert GaussianDP(0.5).within(GaussianDP(1.0)) == GaussianDP(0.5)
    slack = GaussianDP(0.5).within(ApproxDP(4.0, 1e-6))
    assert slack == ApproxDP(GaussianDP(0.5).epsilon_at(1e-6), 1e-6) and slack.size < 4.0
    assert GaussianDP(0.5).within(RenyiDP(2.0, 1.0)) == RenyiDP(2.0, 0.25)
    assert PureDP(1.0).within(NonPrivate()) == PureDP(1.0)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-2, 0.5, 1.0, 4.0, 30.0, 800.0])
def test_pure_implies_what_randomized_response_shows(epsilon: float) -> None:
    e = mp.mpf(epsilon)
    p, q = 1 / (1 + mp.exp(-e)), 1 / (1 + mp.exp(e))
    rho = PureDP(epsilon).implies(ZeroConcentratedDP).size
    for gap in np.geomspace(1e-6, 1e6, 241):
        with mp.workdps(60):
            g = mp.mpf(gap)
            divergence = mp.log(p * mp.exp(g * e) + q * mp.exp(-g * e)) / g
        assert divergence <= (1 + g) * rho * (1 + 1e-12)
        found = PureDP(epsilon).implies(RenyiDP, order=1.0 + gap).size
        # The order 1 + gap is itself rounded, by up to 1e-16 of gap.
        assert found == pytest.approx(float(divergence), rel=2e-9)
    # Tight: as the order goes to 1 the bound is reached.
    assert float(p * e - q * e) == pytest.approx(rho, rel=1e-9)


NOT_IMPLIED: list[Callable[[], object]] = [
    lambda: ApproxDP(1.0, 1e-6).implies(GaussianDP),
    lambda: ApproxDP(1.0, 1e-6).implies(PureDP),
    lambda: ApproxDP(1.0, 1e-6).implies(ZeroConcentratedDP),
    lambda: ApproxDP(1.0, 1e-6).implies(ApproxDP, delta=1e-7),
    lambda: GaussianDP(1.0).implies(PureDP),
    lambda: GaussianDP(1e160).implies(ApproxDP, delta=1e-6),
    lambda: ZeroConcentratedDP(1.0).implies(GaussianDP),
    lambda: RenyiDP(2.0, 1.0).implies(ZeroConcentratedDP),
    lambda: RenyiDP(2.0, 1.0).implies(RenyiDP, order=3.0),
    lambda: NonPrivate().implies(GaussianDP),
    lambda: NonPrivate().delta_at(1.0),
    lambda: PureDP(1.0).to_gaussian(),
    lambda: PureDP(1.0 + 1e-8).within(PureDP(1.0)),
]


@pytest.mark.parametrize("ask", NOT_IMPLIED)
def test_what_does_not_follow_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(NotImplied):
        ask()


def test_the_ladder_of_implications() -> None:
    assert GaussianDP(3.0).implies(ZeroConcentratedDP) == ZeroConcentratedDP(4.5)
    assert GaussianDP(3.0).implies(RenyiDP, order=4.0) == RenyiDP(4.0, 18.0)
    assert ZeroConcentratedDP(0.5).implies(RenyiDP, order=4.0) == RenyiDP(4.0, 2.0)
    assert RenyiDP(4.0, 2.0).implies(RenyiDP, order=2.0) == RenyiDP(2.0, 2.0)
    assert RenyiDP(4.0, 2.0).implies(RenyiDP) == RenyiDP(4.0, 2.0)
    assert ApproxDP(1.0, 1e-6).implies(ApproxDP) == ApproxDP(1.0, 1e-6)
    assert PureDP(1.0).implies(NonPrivate) == NonPrivate()
    # A weaker definition never gives a better (ε, δ).
    for weaker in (GaussianDP, ZeroConcentratedDP):
        assert PureDP(1.0).implies(weaker).epsilon_at(1e-6) > 1.0
    assert ZeroConcentratedDP(0.5).epsilon_at(1e-6) > GaussianDP(1.0).epsilon_at(1e-6)


BAD: list[tuple[str, Callable[[object], object], list[object]]] = [
    ("epsilon", lambda x: PureDP(x), [0.0, -1.0]),  # type: ignore[arg-type]
    ("epsilon", lambda x: ApproxDP(x, 1e-6), [-1.0]),  # type: ignore[arg-type]
    ("delta", lambda x: ApproxDP(1.0, x), [0.0, 1.0, 2.0, -0.1]),  # type: ignore[arg-type]
    ("mu", lambda x: GaussianDP(x), [0.0, -1.0]),  # type: ignore[arg-type]
    ("rho", lambda x: ZeroConcentratedDP(x), [0.0, -1.0]),  # type: ignore[arg-type]
    ("order", lambda x: RenyiDP(x, 1.0), [1.0, 0.5]),  # type: ignore[arg-type]
    ("divergence", lambda x: RenyiDP(2.0, x), [0.0, -1.0]),  # type: ignore[arg-type]
    ("epsilon", lambda x: GaussianDP(1.0).delta_at(x), [-1e-9]),  # type: ignore[arg-type]
    ("delta", lambda x: PureDP(1.0).epsilon_at(x), [0.0, 1.0]),  # type: ignore[arg-type]
    ("order", lambda x: PureDP(1.0).implies(RenyiDP, order=x), [1.0]),  # type: ignore[arg-type]
]
NEVER: list[object] = [math.nan, math.inf, -math.inf, "1", True, None, [1.0]]


@pytest.mark.parametrize(("name", "make", "values"), BAD)
def test_bad_input_is_named_in_one_sentence(
    name: str, make: Callable[[object], object], values: list[object]
) -> None:
    for value in [*values, *NEVER]:
        with pytest.raises(InvalidInput) as caught:
            make(value)
        message = str(caught.value)
        asked = value is None and message == "state the order: implies(RenyiDP, order=8)"
        assert asked or (message.startswith(f"expected {name} ") and str(value) in message)
        assert "\n" not in message


def test_budgets_are_frozen_and_ask_for_what_they_need() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PureDP(1.0).epsilon = 2.0  # type: ignore[misc]
    with pytest.raises(InvalidInput, match="state the delta"):
        GaussianDP(1.0).implies(ApproxDP)
    with pytest.raises(InvalidInput, match="state the order"):
        GaussianDP(1.0).implies(RenyiDP)
