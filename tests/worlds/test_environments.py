"""Worlds: right means, right law, common random numbers."""

import numpy as np
import pytest
from scipy.stats import kstest

import dpbandits as dpb
from dpbandits.engine import Streams
from dpbandits.errors import InvalidInput

RATES = (0.1, 1.0, 2.0, 5.0, 10.0)


def rewards(environment: dpb.worlds.Environment, action: int, rounds: int, seed: int = 1) -> np.ndarray:
    world, chance = environment.world(), Streams.of(seed).chance
    pay = type(world).pay
    return np.array([pay(world, None, action, chance) for _ in range(rounds)])


def test_truncated_exponential_means_are_the_papers() -> None:
    means = dpb.worlds.TruncatedExponentialArms(RATES).arm_means()
    np.testing.assert_allclose(means, [0.492, 0.418, 0.343, 0.193, 0.1], atol=5e-4)


@pytest.mark.parametrize("arm", range(5))
def test_truncated_exponential_law(arm: int) -> None:
    """Kolmogorov–Smirnov at 1e-6 accepts the law, and rejects that of a rate 1.3 times as large."""
    drawn = rewards(dpb.worlds.TruncatedExponentialArms(RATES), arm, 20_000)
    assert drawn.min() >= 0.0 and drawn.max() <= 1.0

    def law(rate: float) -> float:
        return float(kstest(drawn, lambda x: np.expm1(-rate * x) / np.expm1(-rate)).pvalue)

    assert law(RATES[arm]) > 1e-6
    if RATES[arm] >= 1.0:  # a rate of 0.1 is nearly uniform, and so is one of 0.13
        assert law(1.3 * RATES[arm]) < 1e-6


def test_bernoulli_law() -> None:
    """The mean of 20 000 draws is within 5 standard deviations (error below 1e-6)."""
    drawn = rewards(dpb.worlds.BernoulliArms((0.3, 0.6)), 0, 20_000)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert abs(drawn.mean() - 0.3) < 5 * np.sqrt(0.21 / 20_000) < abs(drawn.mean() - 0.6)


@pytest.mark.parametrize(
    "environment",
    [dpb.worlds.BernoulliArms((0.2, 0.5)), dpb.worlds.TruncatedExponentialArms((5.0, 1.0))],
)
def test_the_same_chances_whatever_is_chosen(environment: dpb.worlds.Environment) -> None:
    # Both are monotone in this round's one uniform, so the better arm never pays less.
    low, high = (rewards(environment, action, 500) for action in (0, 1))
    assert (high >= low).all() and (high > low).any()


def test_uniform_regret_is_that_of_uniform_play() -> None:
    assert dpb.worlds.BernoulliArms((0.8, 0.5, 0.2)).uniform_regret() == pytest.approx(0.3)


@pytest.mark.parametrize("means", [(), (0.5,), (0.5, 1.2), (0.5, float("nan")), "ab", 3, (0.5, None)])
def test_bad_means_are_refused(means: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match="means"):
        dpb.worlds.BernoulliArms(means)


@pytest.mark.parametrize("rates", [(), (1.0,), (1.0, 0.0), (1.0, float("inf"))])
def test_bad_rates_are_refused(rates: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match="rates"):
        dpb.worlds.TruncatedExponentialArms(rates)
