"""The curves against mpmath at 60 digits, against dp-accounting, and in the corners."""

import itertools
import math

import mpmath as mp
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from dp_accounting.rdp.rdp_privacy_accountant import compute_delta, compute_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbandits.privacy import curves

pytestmark = pytest.mark.filterwarnings("error")

MUS = [1e-6, 3e-4, 0.02, 0.3, 0.999, 1.0, 1.001, 2.5, 17.0, 120.0, 1e3]
EPSILONS = [1e-6, 1e-3, 0.1, 1.0, 8.0, 100.0, 1e3]
DELTAS = [1e-300, 1e-100, 1e-30, 1e-12, 1e-6, 1e-2, 0.3, 0.9, 1 - 1e-6]
spread = st.floats(-6.0, 3.0).map(lambda x: 10.0**x)
deltas = st.floats(-300.0, -0.01).map(lambda x: 10.0**x) | st.floats(0.01, 0.999)


def gaussian(epsilon: float, mu: float) -> mp.mpf:
    """δ(ε; μ), with digits to spare for a difference that is a fraction μ² of its terms or more."""
    with mp.workdps(60 + 2 * abs(int(math.log10(mu)))):
        e, m = mp.mpf(epsilon), mp.mpf(mu)
        return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


def concentrated(epsilon: float, rho: float) -> mp.mpf:
    """δ of ρ-zCDP: the best order is where the derivative (2α − 1)ρ − ε + ln(1 − 1/α) is 0."""
    e, r = mp.mpf(epsilon), mp.mpf(rho)
    low, high = mp.mpf(-200), mp.mpf(200)
    for _ in range(150):
        s = (low + high) / 2
        gap = mp.exp(s)
        high, low = (s, low) if (2 * gap + 1) * r - e - mp.log1p(1 / gap) > 0 else (high, s)
    log_delta = gap * ((1 + gap) * r - e - mp.log1p(1 / gap)) - mp.log1p(gap)
    return min(mp.exp(log_delta), mp.sqrt(-mp.expm1(-r)))


def close(found: float, true: mp.mpf, rel: float = 1e-9) -> bool:
    return bool(abs(found - true) <= rel * abs(true))


@pytest.mark.parametrize("mu", MUS)
def test_gaussian_delta_is_exact(mu: float) -> None:
    tail = [mu * (a + mu / 2.0) for a in (-8.0, -1.0, -0.1, 0.0, 0.4, 3.0, 12.0, 29.9, 30.1, 36.0)]
    checked = 0
    for epsilon in [0.0, *EPSILONS, *(e for e in tail if e > 0.0)]:
        true, found = gaussian(epsilon, mu), curves.gaussian_log_delta(epsilon, mu)
        if 1e-300 < true < 1 - mp.mpf("1e-30"):
            checked += 1
            # To nine digits of δ, and of 1 − δ where that is the smaller one.
            assert abs(found - mp.log(true)) <= 1e-9 * min(1, -mp.log(true))
        else:
            assert found < -690.0 if true < 0.5 else -1e-29 < found <= 0.0
    assert checked >= 7


@pytest.mark.parametrize("mu", MUS[:-3])
@pytest.mark.parametrize("share", [1e-16, 1e-15, 1e-13, 1e-11, 1e-9, 1e-6, 0.01])
def test_gaussian_epsilon_is_safe_just_below_delta_at_zero(mu: float, share: float) -> None:
    delta = float(gaussian(0.0, mu)) * (1.0 - share)
    epsilon = curves.gaussian_epsilon(math.log(delta), mu)
    assert gaussian(epsilon, mu) <= delta
    assert gaussian(epsilon * (1 - 1e-9), mu) > delta * (1 - 1e-9)


@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_epsilon_and_mu_are_tight_and_safe(delta: float) -> None:
    shy = mp.mpf(delta) * (1 - mp.mpf("1e-9"))
    for mu in MUS:
        epsilon = curves.gaussian_epsilon(math.log(delta), mu)
        assert gaussian(epsilon, mu) <= delta
        # Near ε = 0 a change of δ by 1e-9 of itself moves ε by more than that.
        assert epsilon == 0.0 or gaussian(epsilon * (1 - 1e-9), mu) > shy
    for epsilon in [0.0, *EPSILONS, 1e12]:
        mu = curves.gaussian_mu(epsilon, math.log(delta))
        assert gaussian(epsilon, mu) <= delta < gaussian(epsilon, mu * (1 + 1e-9))


# dp-accounting subtracts two probabilities; below μ = 0.1 that costs it the ninth digit.
@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0, 20.0, 300.0, 1e3])
@pytest.mark.parametrize("a", [-2.0, 0.0, 1.0, 5.0, 20.0, 36.0])
def test_gaussian_delta_agrees_with_dp_accounting(mu: float, a: float) -> None:
    epsilon = max(0.0, mu * (a + mu / 2.0))
    theirs = GaussianPrivacyLoss(1.0 / mu).get_delta_for_epsilon(epsilon)
    assert math.exp(curves.gaussian_log_delta(epsilon, mu)) == pytest.approx(theirs, rel=1e-9)


@given(spread, spread, st.floats(1e-9, 3.0))
@settings(max_examples=300)
def test_gaussian_delta_is_monotone(epsilon: float, mu: float, step: float) -> None:
    here = curves.gaussian_log_delta(epsilon, mu)
    slack = 1e-13 * (1.0 + abs(here)) * (1.0 + mu)
    assert curves.gaussian_log_delta(epsilon * (1.0 + step), mu) <= here + slack
    assert curves.gaussian_log_delta(epsilon, mu * (1.0 + step)) >= here - slack


@given(deltas, spread, st.floats(1e-9, 3.0))
@settings(max_examples=150)
def test_solved_values_are_monotone(delta: float, size: float, step: float) -> None:
    log_delta, smaller, larger = (
        math.log(delta),
        math.log(delta) * (1.0 + step),
        size * (1.0 + step),
    )
    up, down = 1.0 + 1e-11, 1.0 - 1e-11
    epsilon = curves.gaussian_epsilon(log_delta, size)
    assert curves.gaussian_epsilon(log_delta, larger) >= epsilon * down
    assert curves.gaussian_epsilon(smaller, size) >= epsilon * down
    mu = curves.gaussian_mu(size, log_delta)
    assert curves.gaussian_mu(larger, log_delta) >= mu * down
    assert curves.gaussian_mu(size, smaller) <= mu * up
    epsilon = curves.concentrated_epsilon(size, log_delta)
    assert curves.concentrated_epsilon(larger, log_delta) >= epsilon * down
    assert curves.concentrated_epsilon(size, smaller) >= epsilon * down


def test_nothing_overflows_far_outside() -> None:
    sizes = [5e-324, 1e-200, 1e-12, 1.0, 2.0, 1e12, 1e18, 1e150, 1e300]
    for x, y in itertools.product(sizes, sizes):
        for log_delta in (-744.0, -1.0, -1e-16):
            found = [
                curves.gaussian_log_delta(x, y),
                curves.gaussian_epsilon(log_delta, y),
                curves.gaussian_mu(x, log_delta),
                curves.concentrated_log_delta(y, x),
                curves.concentrated_epsilon(y, log_delta),
                curves.pure_mu(x),
                curves.pure_renyi(1.0 + y, x) if y >= 1e-12 else 0.0,
                curves.laplace_mu(x),
            ]
            assert not any(math.isnan(value) for value in found)
            assert found[0] <= 0.0 and found[3] <= 0.0 and min(found[1:3] + found[4:]) >= 0.0
    assert curves.gaussian_log_delta(1e18, 2.0) == pytest.approx(-1e36 / 8.0)
    assert curves.gaussian_epsilon(math.log(1e-6), 1e160) == math.inf


# They drop the bound at orders below 1.01, and from α = 10³ their exponent loses the ninth digit.
@given(st.floats(-1.9, 3.0), spread, spread, deltas)
@settings(max_examples=300)
def test_renyi_conversion_agrees_with_dp_accounting(
    s: float, divergence: float, epsilon: float, delta: float
) -> None:
    order = 1.0 + 10.0**s
    theirs, _ = compute_epsilon([order], [divergence], delta)
    # What is left after the terms cancel has the rounding of the terms.
    terms = divergence + (math.log(order) - math.log(delta)) / (order - 1.0) + 1.0 / order
    ours = curves.renyi_epsilon(order, divergence, math.log(delta))
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-11 * terms)
    # Their 1 − e^−γ cancels for small γ.
    theirs, _ = compute_delta([order], [max(divergence, 1e-3)], epsilon)
    ours = math.exp(curves.renyi_log_delta(order, max(divergence, 1e-3), epsilon))
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("rho", [5e-13, 1e-4, 0.02, 0.5, 3.0, 50.0, 5e5, 5e23])
def test_concentrated_curve_is_exact(rho: float) -> None:
    for delta in DELTAS:
        epsilon = curves.concentrated_epsilon(rho, math.log(delta))
        assert concentrated(epsilon, rho) <= delta
        assert epsilon == 0.0 or concentrated(epsilon * (1 - 1e-9), rho) > delta * (1 - 1e-9)
        if rho < 1e6:
            found = math.exp(curves.concentrated_log_delta(rho, epsilon))
            assert close(found, concentrated(epsilon, rho))


@pytest.mark.parametrize("x", [1e-15, 1e-9, 1e-6, 1e-3, 0.1, 0.999, 1.001, 3.0, 40.0, 1e3])
def test_pure_and_laplace_are_exact(x: float) -> None:
    e = mp.mpf(x)
    pure, laplace = mp.mpf(curves.pure_mu(x)), mp.mpf(curves.laplace_mu(x))
    # Compared as logarithms of probabilities above ε = 1 and as excess over ½ below it.
    for mu, inside in ((pure, mp.tanh(e / 2)), (laplace, -mp.expm1(-e / 2))):
        assert close(mp.erf(mu / mp.sqrt(8)), inside)
        assert close(mp.log(mp.erfc(mu / mp.sqrt(8))), mp.log(1 - inside))
    assert close(curves.laplace_epsilon(x), -2 * mp.log(mp.erfc(e / mp.sqrt(8))))


@pytest.mark.parametrize("mu", [1e-3, 0.5, 1.0, 2.0, 5.0, 20.0])
def test_one_laplace_release_is_gaussian(mu: float) -> None:
    top = mp.mpf(curves.laplace_epsilon(mu))
    for i in range(101):
        epsilon = top * i / 100
        # δ of the Laplace mechanism is 1 − e^((ε' − ε)/2) below its ε.
        assert -mp.expm1((epsilon - top) / 2) <= gaussian(epsilon, mu) * (1 + 1e-12)
    assert close(float(gaussian(0, mu)), -mp.expm1(-top / 2))
