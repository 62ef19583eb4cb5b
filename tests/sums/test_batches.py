"""Batched sums: streamed equals dense, and what is declared is the brute-force worst case."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from dpbandits.privacy.budgets import ApproxDP, Budget, GaussianDP, NonPrivate, PureDP
from dpbandits.sums.batches import release_batch, start_batches, toeplitz_root


class FixedNoise:
    """Standard draws given beforehand; remembers the locations."""

    def __init__(self, standard: np.ndarray) -> None:
        self.standard: list[float] = standard.ravel().tolist()
        self.locations: list[float] = []

    def normal(self, loc: float, scale: float) -> float:
        self.locations.append(loc)
        return loc + scale * self.standard.pop(0)

    laplace = normal

    def binomial(self, n: int, p: float) -> int:
        raise AssertionError("a sum is released by no coin")


def dense_noise(batches: int, block: int) -> np.ndarray:
    """The matrix that turns the standard draws into the noise of the prefix sums, over c·σ."""
    weights, matrix = toeplitz_root(block), np.zeros((batches, batches))
    for k in range(batches):
        for j in range(k + 1):
            last = min(k, (j // block + 1) * block - 1)  # a finished block's noise is carried on
            matrix[k, j] = weights[last - j]
    return matrix


@pytest.mark.parametrize("block", [1, 2, 3, 5, 16, 64])
@pytest.mark.parametrize("batches", [1, 2, 15, 16, 17, 33])
def test_streamed_equals_dense(block: int, batches: int) -> None:
    rng = np.random.default_rng(1)
    data, standard = rng.normal(size=(batches, 3)), rng.normal(size=(batches, 3))
    public, secret = start_batches(2, 3, 1.5, GaussianDP(0.7), block=block)
    noise, found, variance = FixedNoise(standard), [], []
    for row in data:
        secret.open[1] += row
        release_batch(public, secret, 1, noise)
        found.append(public.total[1].copy())
        variance.append(public.variance[1])
    matrix = dense_noise(batches, block)
    root = toeplitz_root(block)
    scale = 1.5 / 0.7 * math.sqrt(root @ root)
    np.testing.assert_allclose(found, data.cumsum(0) + scale * matrix @ standard, atol=1e-10)
    np.testing.assert_allclose(variance, scale**2 * (matrix**2).sum(1), rtol=1e-12)
    assert not public.total[0].any() and not secret.open.any()


@pytest.mark.parametrize("block", [2, 16, 64])
def test_the_declared_mu_is_the_worst_case_over_all_batches(block: int) -> None:
    """Shift one datum by the sensitivity, force the results, and add up what the locations moved."""
    batches, worst = 2 * block, 0.0
    results = np.random.default_rng(2).normal(size=batches)
    for moved in range(batches):
        locations = []
        for value in (0.0, 1.0):
            public, secret = start_batches(1, 1, 1.0, GaussianDP(1.0), block=block)
            forced = Forced(results)
            for k in range(batches):
                secret.open[0, 0] = value if k == moved else 0.0
                release_batch(public, secret, 0, forced)
            locations.append(np.array(forced.locations))
        cost = math.sqrt((((locations[1] - locations[0]) / public.scale) ** 2).sum())
        assert cost <= 1.0 + 1e-9
        worst = max(worst, cost)
    assert worst == pytest.approx(1.0, abs=1e-9)


class Forced(FixedNoise):
    """Returns the same results whatever the location."""

    def normal(self, loc: float, scale: float) -> float:
        self.locations.append(loc)
        return self.standard.pop(0)


def test_the_root_squares_to_prefix_sums_and_has_the_known_norms() -> None:
    root = toeplitz_root(64)
    np.testing.assert_allclose(np.convolve(root, root)[:64], 1.0, rtol=1e-12)
    for length, norm in ((16, 1.394), (64, 1.5456)):
        part = toeplitz_root(length)
        assert math.sqrt(part @ part) == pytest.approx(norm, abs=5e-4)


@pytest.mark.parametrize(
    ("budget", "law"),
    [(PureDP(0.5), ("laplace", (0, 4.0))), (GaussianDP(0.5), ("norm", (0, 4.0)))],
)
def test_independent_batches_have_the_declared_law(budget: Budget, law: Any) -> None:
    """Kolmogorov–Smirnov at 1e-6 accepts the scale and rejects 1.5 times as much and as little."""
    public, secret = start_batches(1, 4000, 2.0, budget, cumulative=False)
    release_batch(public, secret, 0, np.random.default_rng(3))
    name, (centre, scale) = law
    assert kstest(public.last[0], name, (centre, scale)).pvalue > 1e-6
    for wrong in (scale / 1.5, scale * 1.5):
        assert kstest(public.last[0], name, (centre, wrong)).pvalue < 1e-6


def test_scales_follow_the_budget() -> None:
    def scale(budget: Budget, **options: Any) -> float:
        return start_batches(1, 1, 1.0, budget, **options)[0].scale

    assert scale(PureDP(2.0)) == 0.5 and scale(NonPrivate()) == 0.0
    assert scale(GaussianDP(2.0), cumulative=False) == 0.5
    assert scale(GaussianDP(2.0), block=16) == pytest.approx(0.5 * 1.39423, rel=1e-4)
    assert scale(ApproxDP(1.0, 1e-6), block=1) == pytest.approx(4.224679, rel=1e-6)
    # Pure DP never factorizes: the L1 norm of a column would cost 4.48 for 16 batches.
    assert scale(PureDP(2.0), block=16) == 0.5
