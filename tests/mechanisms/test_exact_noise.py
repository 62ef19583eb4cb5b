"""Exact noise on a grid, and generators that cannot be worked out from one another."""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from scipy import stats
from seed_attack import noise_from_explore

import dpbandits as dpb
from dpbandits.audit import replay
from dpbandits.engine.streams import Streams, learner_seed
from dpbandits.errors import InvalidInput
from dpbandits.mechanisms import exact
from dpbandits.mechanisms.exact import ExactNoise, discrete_gaussian, discrete_laplace, grid
from dpbandits.testing.driving import state_bytes

pytestmark = pytest.mark.slow

Law = Callable[[Any, int], int]
# Chance that a right sampler fails a test here.
FALSE_ALARM = 1e-6


def probabilities(law: Law, scale: int) -> tuple[np.ndarray, np.ndarray]:
    """The whole numbers that matter and their exact probabilities."""
    values = np.arange(-40 * scale, 40 * scale + 1)
    heights = (
        np.exp(-np.abs(values) / scale)
        if law is discrete_laplace
        else np.exp(-(values**2) / (2 * scale**2))
    )
    return values, heights / math.fsum(heights)


def fits(drawn: np.ndarray, law: Law, scale: int) -> float:
    """The p-value of a chi-square test; cells with fewer than 20 expected are joined into two tails."""
    values, expected = probabilities(law, scale)
    expected = expected * drawn.size
    inner = np.flatnonzero(expected >= 20.0)
    low, high = values[inner[0]], values[inner[-1]]
    counts = [
        np.sum(drawn < low),
        *(np.sum(drawn == v) for v in range(low, high + 1)),
        np.sum(drawn > high),
    ]
    wanted = [expected[: inner[0]].sum(), *expected[inner], expected[inner[-1] + 1 :].sum()]
    return float(stats.chisquare(counts, wanted).pvalue)


def many(law: Law, scale: int, runs: int = 200_000) -> np.ndarray:
    draws = _drawer(law)(np.random.default_rng(5), scale, np.empty(runs, np.int64))
    return np.asarray(draws)


def _drawer(law: Law) -> Any:
    @numba.njit
    def draw(generator: Any, scale: int, out: Any) -> Any:
        for i in range(out.size):
            out[i] = law(generator, scale)
        return out

    return draw


@pytest.mark.parametrize("scale", [1, 3, 10])
@pytest.mark.parametrize("law", [discrete_laplace, discrete_gaussian])
def test_whole_numbers_have_their_exact_probabilities(law: Law, scale: int) -> None:
    drawn = many(law, scale)
    assert fits(drawn, law, scale) > FALSE_ALARM
    # The control: the other law, and the right one rounded from floating point, do not pass.
    other = discrete_gaussian if law is discrete_laplace else discrete_laplace
    assert fits(many(other, scale), law, scale) < FALSE_ALARM
    generator = np.random.default_rng(6)
    floats = (generator.laplace if law is discrete_laplace else generator.normal)(0.0, scale, drawn.size)
    if scale == 1:
        assert fits(np.rint(floats).astype(int), law, scale) < FALSE_ALARM


@pytest.mark.parametrize(("name", "law"), [("laplace", "laplace"), ("normal", "norm")])
def test_draws_have_the_law_of_their_scale(name: str, law: str) -> None:
    noise = ExactNoise(np.random.default_rng(1))
    drawn = getattr(noise, name)(3.0, 2.0, 100_000)
    width = 2.0 * (1.0 + 2.0**-10)
    assert stats.kstest(drawn, law, (3.0, width)).pvalue > FALSE_ALARM
    assert stats.kstest(drawn, law, (3.0, 0.95 * width)).pvalue < FALSE_ALARM  # the control


@pytest.mark.parametrize("name", ["laplace", "normal"])
def test_draws_lie_on_the_grid_and_are_alike_compiled(name: str) -> None:
    source: dict[str, Any] = {}
    lines = (
        "def draw(noise, out):",
        " for i in range(out.size):",
        f"  out[i] = noise.{name}(0.1 * i, 0.7)",
    )
    exec("\n".join(lines), source)
    plain, compiled = np.empty(300), np.empty(300)
    source["draw"](ExactNoise(np.random.default_rng(2)), plain)
    numba.njit(source["draw"])(ExactNoise(np.random.default_rng(2)), compiled)
    assert np.array_equal(plain, compiled)
    together = getattr(ExactNoise(np.random.default_rng(2)), name)(0.1 * np.arange(300), 0.7)
    assert np.array_equal(plain, together)
    units = plain / grid(0.7)
    assert np.allclose(units, np.rint(units), rtol=0.0, atol=1e-6 * np.abs(units).max() / 2**30)
    # Which last bits a number has tells nothing about where it was drawn: it is k·g, rounded once.
    assert np.array_equal(plain, np.rint(units) * grid(0.7))


def test_without_noise_a_number_is_left_alone() -> None:
    noise = ExactNoise(np.random.default_rng(1))
    assert noise.normal(0.1, 0.0) == 0.1 == noise.laplace(0.1, 0.0)


def test_a_location_that_moves_by_its_sensitivity_costs_no_more_than_was_asked() -> None:
    """The exact cost in units of the grid, at random places and for every budget the policies allow."""
    chance = np.random.default_rng(3)
    for budget in 2.0 ** np.arange(-8.0, 7.0):
        scale = 1.0 / budget
        for _ in range(300):
            here = float(chance.uniform(-1e6, 1e6) * min(1.0, scale))
            places = [exact.place(x, scale, 0) / grid(scale) for x in (here, here + 1.0, here - 1.0)]
            moved = max(abs(places[0] - place) for place in places[1:])
            assert round(moved) / 2**30 <= budget
    # The control: without the margin it would cost more.
    assert (round(moved) * (1 + 2.0**-10) + 1) / 2**30 > budget


@pytest.mark.parametrize("scale", [8, 64])
def test_the_discrete_gaussian_keeps_the_trade_off_of_a_slightly_narrower_one(scale: int) -> None:
    """μ-GDP for shift/s·(1 + η), η being the part of the width left for it, here scaled by (2³⁰/s)²."""
    _, mass = probabilities(discrete_gaussian, scale)
    above, below = np.cumsum(mass[::-1])[::-1], np.cumsum(mass) - mass  # P[Z ≥ j], P[Z < j]
    for shift in (1, scale // 2, scale, 3 * scale):
        mu = shift / scale
        points = zip(above[shift:], below[:-shift], strict=True)  # to be told apart by Z ≥ j
        kept = [(a, b) for a, b in points if 1e-12 < a < 1.0 - 1e-12 and b > 1e-12]
        widest = max(stats.norm.isf(a) - stats.norm.ppf(b) for a, b in kept)
        assert widest <= mu * (1.0 + 2.0 / scale**2)
        assert widest > mu * (1.0 - 2.0 / scale**2)  # and it is no narrower: the bound means something


def test_a_learner_without_a_seed_draws_exactly_unless_told_otherwise() -> None:
    arms = dpb.Arms(3, horizon=1000)
    imed = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0))
    assert imed.start(arms).noise == "exact"
    assert imed.start(arms, noise="float").noise == "float" == imed.start(arms, seed=1).noise
    assert imed.start(arms, seed=1, noise="exact").noise == "exact"
    linear = dpb.LinearContexts(2, horizon=1000)
    for policy in (
        dpb.linear.FactorizedLinUCB(privacy=dpb.GaussianDP(1.0)),
        dpb.linear.TreeLinUCB(privacy=dpb.ApproxDP(1.0, 0.1), noise="wishart"),
        dpb.linear.BatchedLinUCB(privacy=dpb.GaussianDP(1e-3)),
    ):
        assert policy.start(linear).noise == "float"
        with pytest.raises(InvalidInput, match="cannot draw exact noise"):
            policy.start(linear, noise="exact")
    with pytest.raises(InvalidInput, match="expected noise to be one of 'exact', 'float'"):
        imed.start(arms, noise="best")  # type: ignore[arg-type]


def test_a_budget_too_small_for_its_draws_is_not_drawn_exactly() -> None:
    """As a review priced them: with so many draws rounding would cost more than the width pays for."""
    for mu, horizon in ((0.005, 10**9), (0.005, 10**13), (1.0, 10**15)):
        policy = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(mu), prepulls=0)
        assert "grid" in policy.refuses_exact_noise(dpb.Arms(2, horizon=horizon))
    assert not dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)).refuses_exact_noise(
        dpb.Arms(2, horizon=10**6)
    )
    many = dpb.MatroidBases(dpb.matroids.UniformMatroid(2000, 1000))
    assert dpb.matroids.CombinatorialTreeUCB(privacy=dpb.PureDP(0.0041)).refuses_exact_noise(many)
    returning = dpb.Arms(2, rounds_per_person=10_000)
    assert dpb.NoiseAwareIMED(privacy=dpb.PureDP(0.00408)).refuses_exact_noise(returning)
    assert dpb.arms.LazyUCB(privacy=dpb.PureDP(1e8)).refuses_exact_noise(
        dpb.Arms(2)
    )  # sums would be cut off


def test_a_replay_counts_the_draws_that_a_round_moves() -> None:
    class Modest(dpb.NoiseAwareIMED):
        abstract = True

        def draws_of_one(self, problem: Any) -> float:
            return 1.0

    policy = Modest(privacy=dpb.GaussianDP(1.0), first_batch=2, growth=0.25, block=3)
    options: Any = {"rounds": 48, "thorough": False, "exact": True}
    assert "draws moved, of 1" in str(replay(policy, dpb.Arms(3), **options))
    honest = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0), first_batch=2, growth=0.25, block=3)
    assert replay(honest, dpb.Arms(3), **options).passed


@pytest.mark.parametrize("compiled", [False, True])
def test_released_sums_are_multiples_of_the_grid(compiled: bool) -> None:
    policy = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0), first_batch=2)
    learner = policy.start(dpb.Arms(2), seed=4, noise="exact", compiled=compiled)
    for _ in range(40):
        learner.update(learner.select(), 1.0 / 3.0)
    last = learner._public.batches.last.ravel() / grid(1.0)
    assert learner._public.batches.released.sum() > 3
    assert np.array_equal(last, np.rint(last))


def test_a_learner_with_exact_noise_decides_alike_compiled_and_after_a_snapshot() -> None:
    from dpbandits.policies.saving import restore, snapshot

    policy = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0), first_batch=2)
    learners = [policy.start(dpb.Arms(3), seed=4, noise="exact", compiled=c) for c in (False, True)]
    secret = policy.start(dpb.Arms(3))
    twin = restore(snapshot(secret))
    assert twin.noise == "exact"
    for pair in (learners, [secret, twin]):
        for n in range(200):
            assert len({learner.select() for learner in pair}) == 1
            for learner in pair:
                learner.skip() if n % 7 == 0 else learner.update(learner._rounds.open[0].action, 1.0)
        assert state_bytes(pair[0]) == state_bytes(pair[1])
    secret.renew()
    assert secret._streams.noise.random() != twin._streams.noise.random()


def test_a_users_own_children_of_a_seed_are_not_the_learners() -> None:
    root = np.random.SeedSequence(7)
    mine = {np.random.default_rng(child).random() for child in root.spawn(5)}
    for seed in (7, np.random.SeedSequence(7)):
        assert not mine & {one.random() for one in Streams.of(learner_seed(seed))}
    assert mine & {one.random() for one in Streams.of(7)}  # the control: without a key of our own


def test_the_generator_is_chacha20() -> None:
    """The first block of key 0 and counter 0, as published (RFC 7539, appendix A.1, vector 1)."""
    from randomgen import ChaCha

    words = ChaCha(key=0, rounds=20).random_raw(8).astype("<u8").tobytes()
    assert words.hex() == (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )


def test_the_state_of_explore_does_not_give_the_noise_away() -> None:
    """The attack works on seeded streams, the control; on a learner's own it has nothing to go on."""
    entropy = int.from_bytes(bytes(range(1, 17)), "little")  # four words, as from the operating system
    streams = Streams.of(entropy)
    expected = Streams.of(entropy).noise.random()
    for _ in range(5):
        streams.explore.random()
    assert noise_from_explore(streams.explore, 5).random() == expected
    learner = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)).start(dpb.Arms(3))
    states = [one.bit_generator.state for one in learner._streams]
    assert all("ChaCha" in state["bit_generator"] for state in states)
    keys = {bytes(state["state"]["keysetup"]) for state in states}
    assert len(keys) == 3
    with pytest.raises((KeyError, TypeError, ValueError)):
        noise_from_explore(learner._streams.explore, 0)
