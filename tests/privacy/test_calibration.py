"""Noise scales: golden values, dp-accounting, and a release costs what it was calibrated to."""

import math

import pytest
from dp_accounting import get_epsilon_gaussian, get_sigma_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbandits.errors import BudgetNotAccepted, InvalidInput, NotImplied
from dpbandits.privacy.budgets import (
    GAUSSIAN_KINDS,
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpbandits.privacy.calibration import (
    gaussian_release,
    gaussian_scale,
    laplace_release,
    laplace_scale,
)
from dpbandits.privacy.curves import laplace_mu, pure_mu

pytestmark = pytest.mark.filterwarnings("error")

spread = st.floats(-6.0, 3.0).map(lambda x: 10.0**x) | st.just(1e12)
deltas = st.floats(-300.0, -0.01).map(lambda x: 10.0**x)
gaussian_kinds = (
    spread.map(GaussianDP)
    | st.builds(ApproxDP, spread, deltas)
    | spread.map(ZeroConcentratedDP)
    | st.builds(RenyiDP, st.floats(1.001, 1e6), spread)
)


@pytest.mark.parametrize(("delta", "sigma"), [(0.1, 1.085878), (1e-6, 4.224679)])
def test_gaussian_golden_values(delta: float, sigma: float) -> None:
    assert gaussian_scale(1.0, ApproxDP(1.0, delta)) == pytest.approx(sigma, abs=5e-7)


# Below ε = 0.01 dp-accounting's log1p(−e^(y − x)) cancels: at ε = 1e-6 it is off by up to 8e-8.
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 7.0, 50.0, 1e3])
@pytest.mark.parametrize("delta", [1e-300, 1e-50, 1e-12, 1e-6, 1e-2, 0.5, 0.9])
def test_gaussian_scale_agrees_with_dp_accounting(epsilon: float, delta: float) -> None:
    sigma = gaussian_scale(1.0, ApproxDP(epsilon, delta))
    # Never less noise than theirs, but for the error they allow themselves.
    assert sigma == pytest.approx(get_sigma_gaussian(epsilon, delta), rel=1e-9)
    back = gaussian_release(1.0, sigma).epsilon_at(delta)
    assert back == pytest.approx(get_epsilon_gaussian(sigma, delta), rel=1e-9)


@given(st.floats(1e-3, 1e3), gaussian_kinds)
@settings(max_examples=300)
def test_a_gaussian_release_costs_what_was_asked(sensitivity: float, budget: Budget) -> None:
    scale = gaussian_scale(sensitivity, budget)
    assert gaussian_release(sensitivity, scale).within(budget) == budget
    with pytest.raises(NotImplied):
        gaussian_release(sensitivity, scale * 0.999).within(budget)
    assert gaussian_scale(2.0 * sensitivity, budget) == 2.0 * scale
    assert type(budget) in GAUSSIAN_KINDS


@given(st.floats(1e-3, 1e3), spread)
@settings(max_examples=200)
def test_a_laplace_release_costs_what_was_asked(sensitivity: float, size: float) -> None:
    pure = laplace_release(sensitivity, laplace_scale(sensitivity, PureDP(size)))
    assert pure.within(PureDP(size)) == PureDP(size)
    as_gaussian = laplace_release(sensitivity, laplace_scale(sensitivity, GaussianDP(size)))
    assert laplace_mu(as_gaussian.epsilon) == pytest.approx(size, rel=1e-9)
    # Randomized response at that ε would cost more, so the Laplace formula is worth having.
    assert pure_mu(as_gaussian.epsilon) > size


@pytest.mark.parametrize(("mu", "epsilon"), [(1.0, 0.966), (2.0, 2.296), (5.0, 8.777)])
def test_laplace_golden_values(mu: float, epsilon: float) -> None:
    assert 1.0 / laplace_scale(1.0, GaussianDP(mu)) == pytest.approx(epsilon, abs=5e-4)
    assert laplace_mu(epsilon) == pytest.approx(mu, abs=1e-3)


def test_no_budget_and_no_sensitivity_mean_no_noise() -> None:
    for scale in (gaussian_scale, laplace_scale):
        assert scale(3.0, NonPrivate()) == 0.0
        assert scale(0.0, GaussianDP(1.0)) == 0.0


def test_noise_that_cannot_meet_the_budget_is_refused() -> None:
    with pytest.raises(NotImplied, match="no Gaussian noise suffices for 1-DP"):
        gaussian_scale(1.0, PureDP(1.0))
    for budget in (ApproxDP(1.0, 1e-6), ZeroConcentratedDP(1.0), RenyiDP(2.0, 1.0)):
        with pytest.raises(BudgetNotAccepted, match="ε-DP or μ-GDP"):
            laplace_scale(1.0, budget)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "1", True])
def test_bad_sensitivities_and_scales_are_named(bad: float) -> None:
    for scale in (gaussian_scale, laplace_scale):
        for budget in (GaussianDP(1.0), NonPrivate()):
            with pytest.raises(InvalidInput, match="expected sensitivity"):
                scale(bad, budget)
    for release in (gaussian_release, laplace_release):
        with pytest.raises(InvalidInput, match="expected scale"):
            release(1.0, bad)
        with pytest.raises(InvalidInput, match="expected scale > 0"):
            release(1.0, 0.0)


def test_noise_that_would_be_lost_is_refused() -> None:
    """Half the least number is 0: that would be no noise at all."""
    for scale, budget in (
        (gaussian_scale, GaussianDP(5.0)),
        (laplace_scale, PureDP(5.0)),
        (laplace_scale, GaussianDP(5.0)),
    ):
        for sensitivity in (5e-324, 1e-310):
            with pytest.raises(InvalidInput, match="cannot be drawn"):
                scale(sensitivity, budget)
        assert scale(1e-300, budget) > 0.0 == scale(0.0, budget)
    for scale, budget in ((gaussian_scale, GaussianDP(1e-10)), (laplace_scale, PureDP(1e-10))):
        with pytest.raises(InvalidInput, match="cannot be drawn"):
            scale(1e300, budget)
