"""The tests that compare a GPU with the processor: what they accept, and what they notice."""

import numpy as np
import pytest
from agreement import disagreements

from dpbandits import PureDP, simulate
from dpbandits.engine.loop import Ledger, compiled_for
from dpbandits.engine.philox import philox_key, start_philox
from dpbandits.policies.arms import NoiseAwareIMED
from dpbandits.worlds import BernoulliArms

_WORLD = BernoulliArms((0.8, 0.6, 0.5, 0.3))


def _sample(seed: int, size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(seed).gamma(2.0, size=size)


def test_samples_of_one_law_agree() -> None:
    for seed in range(20):
        assert disagreements(_sample(seed, 1000), _sample(seed + 100, 16_384)) == []


def test_constants_agree_up_to_rounding() -> None:
    assert disagreements(np.full(100, 0.3), np.full(200, 0.1 + 0.2)) == []
    assert "means 0.3 and 0.31" in disagreements(np.full(100, 0.3), np.full(200, 0.31))


def test_a_sample_that_misses_the_rare_case_agrees() -> None:
    """One run in 500 goes wrong: of 1000 often none, or five, does."""
    draw = np.random.default_rng
    for seed in range(200):
        one, other = (draw(seed + size).binomial(1, 0.002, size) for size in (1000, 16_384))
        assert disagreements(one.astype(float), other.astype(float)) == []


def test_control_each_difference_is_noticed() -> None:
    one, other = _sample(1, 2000), _sample(2, 16_384)
    assert any(text.startswith("means") for text in disagreements(one, other + 0.25))
    assert any(text.startswith("variances") for text in disagreements(one, 2.0 + 1.3 * (other - 2.0)))
    mirrored = 2.0 * other.mean() - other  # the same mean and variance
    assert "quantiles" in disagreements(one, mirrored)


@pytest.mark.slow
def test_philox_and_numpy_play_with_one_law_and_another_budget_does_not() -> None:
    """On the processor: the loop that GPUs play too, with the generator that it has there."""
    policy, grid = NoiseAwareIMED(privacy=PureDP(1.0)), np.array([1000])
    found = []
    for run in range(1000):
        states = *policy.begin(_WORLD.problem(1000)), _WORLD.world()
        streams = tuple(start_philox(philox_key(5), run, stream) for stream in range(3))
        ledger = Ledger.on(grid)
        compiled_for(states[0], states[2]).run(*states, streams, ledger, 1000)
        found.append(ledger.curves[-1, 0])
    for budget, same in ((1.0, True), (2.0, False)):
        other = simulate(
            {"it": NoiseAwareIMED(privacy=PureDP(budget))}, _WORLD, 1000, 1000, seed=6, progress=False
        )
        assert (disagreements(np.array(found), other.regret("it")[:, -1]) == []) is same
