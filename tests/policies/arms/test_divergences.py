"""Bernoulli divergences and their bounds, against their definitions by brute force."""

import math

import mpmath
import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import entropy

from dpbandits.policies.arms.shared.divergences import (
    bernoulli_kl,
    kl_upper,
    private_kl,
    private_kl_upper,
)

MEANS = (0.0, 1e-6, 0.03, 0.3, 0.5, 0.77, 0.999, 1.0)
EPSILONS = (0.01, 0.1, 1.0, 4.887, 50.0, math.inf)
LEVELS = (1e-6, 1e-3, 0.05, 0.7, 5.0, 40.0)
unit = st.floats(0.0, 1.0)


def brute_private_kl(x: float, y: float, epsilon: float) -> float:
    """The least of ε|z − x| + kl(z, y) over a fine grid of z between x and y, ends included."""
    grid = np.linspace(x, y, 20_001)
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.where(grid == x, 0.0, epsilon * np.abs(grid - x))
    return float(
        np.min(cost + entropy([grid, 1.0 - grid], [np.full_like(grid, y), 1.0 - y + 0.0 * grid]))
    )


@pytest.mark.parametrize("x", MEANS)
@pytest.mark.parametrize("y", MEANS)
def test_kl_is_scipys_relative_entropy(x: float, y: float) -> None:
    expected = float(entropy([x, 1.0 - x], [y, 1.0 - y]))
    assert bernoulli_kl(x, y) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_kl_at_the_ends() -> None:
    assert bernoulli_kl(0.0, 0.0) == bernoulli_kl(1.0, 1.0) == 0.0
    assert bernoulli_kl(0.0, 0.5) == bernoulli_kl(1.0, 0.5) == math.log(2.0)
    assert bernoulli_kl(0.5, 0.0) == bernoulli_kl(0.5, 1.0) == bernoulli_kl(0.0, 1.0) == math.inf


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("x", MEANS)
@pytest.mark.parametrize("y", MEANS)
def test_private_kl_is_the_minimum_it_is_defined_by(x: float, y: float, epsilon: float) -> None:
    found, brute = private_kl(x, y, epsilon), brute_private_kl(x, y, epsilon)
    if math.isinf(brute):
        assert found == math.inf
    else:
        # The grid can only be too large, and by little: the cost is smooth at its minimum.
        assert found <= brute * (1.0 + 1e-9) + 1e-12
        assert found >= brute * (1.0 - 1e-4) - 1e-12


def test_private_kl_by_hand() -> None:
    # z = .5/(e·.5 + .5) = 1/(1 + e) = .2689 lies above .1 and below .4.
    assert private_kl(0.1, 0.5, 1.0) == pytest.approx(-0.1 - math.log(0.5 + 0.5 / math.e), rel=1e-14)
    assert private_kl(0.4, 0.5, 1.0) == bernoulli_kl(0.4, 0.5)
    assert private_kl(0.4, 1.0, 2.0) == pytest.approx(1.2)
    assert private_kl(0.4, 0.4, 2.0) == 0.0


@given(unit, unit, st.floats(1e-3, 100.0))
@example(2e-9, 0.0, 20.0)
@example(7.632223656610671e-11, 1.7594251553635006e-24, 19.533370119910806)
def test_private_kl_is_bounded_by_both_of_its_parts(x: float, y: float, epsilon: float) -> None:
    found = private_kl(x, y, epsilon)
    assert -1e-15 <= found <= min(bernoulli_kl(x, y), epsilon * abs(x - y)) * (1.0 + 1e-9) + 1e-15


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_private_kl_looks_alike_from_both_ends(epsilon: float) -> None:
    for x, y in ((0.25, 0.5), (0.125, 0.875), (0.0, 0.75), (0.25, 1.0)):
        assert private_kl(x, y, epsilon) == pytest.approx(private_kl(1.0 - x, 1.0 - y, epsilon))


def test_private_kl_of_means_near_an_end_is_exact() -> None:
    """The parts of the formula are near ε there, and nearly cancel."""
    for x, y, epsilon in ((2e-9, 0.0, 20.0), (2e-9, 1e-18, 20.0), (7.6e-11, 1.8e-24, 19.5)):
        log_mass = mpmath.log(y + (1 - mpmath.mpf(y)) * mpmath.exp(-epsilon))
        exact = float(-epsilon * (1 - mpmath.mpf(x)) - log_mass)
        assert private_kl(x, y, epsilon) == pytest.approx(exact, rel=1e-14)


@given(st.floats(0.0, 0.999), st.floats(1e-8, 50.0))
def test_kl_upper_is_where_the_level_is_reached(x: float, level: float) -> None:
    q = kl_upper(x, level)
    assert x < q <= 1.0
    # kl itself is only known to rounding, which a flat kl turns into an error of q.
    slack = 1e-14 + 1e-15 / (q - x)
    assert bernoulli_kl(x, max(x, q - slack)) <= level * (1.0 + 1e-9)
    assert q + slack >= 1.0 or bernoulli_kl(x, q + slack) >= level * (1.0 - 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("x", MEANS)
def test_the_private_upper_bound_is_the_last_mean_within_the_level(
    x: float, level: float, epsilon: float
) -> None:
    low, high = x, 1.0
    if private_kl(x, 1.0, epsilon) <= level:
        low = 1.0
    else:
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if private_kl(x, middle, epsilon) <= level else (low, middle)
    assert private_kl_upper(x, level, epsilon) == pytest.approx(low, abs=1e-9)


def test_upper_bounds_by_hand() -> None:
    # kl(0, q) = −ln(1 − q).
    assert kl_upper(0.0, math.log(4.0)) == pytest.approx(0.75, abs=1e-14)
    assert kl_upper(1.0, 3.0) == private_kl_upper(1.0, 3.0, 1.0) == 1.0
    assert kl_upper(0.3, 0.0) == private_kl_upper(0.3, 0.0, 1.0) == 0.3
    assert kl_upper(0.5, 1e3) == 1.0
    # −.1 − ln(1 − q(1 − 1/e)) = level has q = .5 at the level of the test above.
    assert private_kl_upper(0.1, -0.1 - math.log(0.5 + 0.5 / math.e), 1.0) == pytest.approx(0.5)
    # ε(1 − x) is enough evidence against 1, and kl never is.
    assert private_kl_upper(0.4, 1.21, 2.0) == 1.0 > kl_upper(0.4, 1.21)


def test_compiled_and_plain_are_alike_to_the_last_bit() -> None:
    @numba.njit(error_model="numpy")
    def both(x: float, level: float, epsilon: float) -> tuple[float, float, float]:
        return kl_upper(x, level), private_kl(x, level, epsilon), private_kl_upper(x, level, epsilon)

    rng = np.random.default_rng(0)
    for x, level, epsilon in rng.random((3000, 3)) * (1.0, 1.0, 8.0):
        plain = kl_upper(x, level), private_kl(x, level, epsilon), private_kl_upper(x, level, epsilon)
        assert both(x, level, epsilon) == plain
