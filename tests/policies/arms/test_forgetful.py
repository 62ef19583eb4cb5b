"""Policies that use an arm's last batch only: by hand, against textbook versions, their guarantees."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import dpbandits as dpb
from dpbandits.engine import Streams
from dpbandits.engine.loop import compiled_for
from dpbandits.policies.testing import rehearse
from dpbandits.privacy.calibration import laplace_epsilon

MEANS = np.array([0.8, 0.5, 0.2])
BUDGETS = [dpb.PureDP(0.5), dpb.PureDP(4.0), dpb.GaussianDP(2.0), dpb.NonPrivate()]


def _rewards(rounds: int) -> np.ndarray:
    """Continuous, so that no two indices are ever equal."""
    return np.clip(np.random.default_rng(5).normal(MEANS, 0.3, (rounds, 3)), 0, 1)


def _actions(policy: dpb.Policy, rewards: np.ndarray) -> list[int]:
    learner = rehearse(policy, dpb.Arms(3, horizon=len(rewards)), seed=9)
    actions = []
    for row in rewards:
        actions.append(learner.select())
        learner.update(actions[-1], row[actions[-1]])
    return actions


def _noisy_mean(values: list[float], epsilon: float, noise: np.random.Generator) -> float:
    return (sum(values) + (noise.laplace(0, 1 / epsilon) if epsilon < math.inf else 0.0)) / len(values)


def _textbook_lazy_ucb(rewards: np.ndarray, epsilon: float, noise: np.random.Generator) -> list[int]:
    mean: dict[int, float] = {}
    size: dict[int, int] = {}
    actions: list[int] = []
    buffer: dict[int, list[float]] = {0: [], 1: [], 2: []}
    for t, row in enumerate(rewards, start=1):
        if t <= 3:
            arm = t - 1
        else:
            index = [
                mean[i] + math.sqrt(3 * math.log(t) / size[i]) + 3 * math.log(t) / (epsilon * size[i])
                for i in range(3)
            ]
            arm = int(np.argmax(index))
        actions.append(arm)
        buffer[arm].append(row[arm])
        if len(buffer[arm]) == 2 * size.get(arm, 0.5):
            size[arm] = len(buffer[arm])
            mean[arm] = _noisy_mean(buffer[arm], epsilon, noise)
            buffer[arm] = []
    return actions


@pytest.mark.parametrize("privacy", BUDGETS, ids=str)
def test_lazy_ucb_is_the_textbook_algorithm_on_the_same_noise(privacy: dpb.Budget) -> None:
    rewards, noise = _rewards(3000), Streams.of(9).noise
    expected = _textbook_lazy_ucb(rewards, laplace_epsilon(privacy), noise)
    assert _actions(dpb.arms.LazyUCB(privacy=privacy), rewards) == expected
    assert len(set(expected[1000:])) > 1


class FakeNoise:
    """Adds a fixed number of scales."""

    def __init__(self, shift: float) -> None:
        self.shift, self.asked = shift, 0

    def laplace(self, loc: float, scale: float) -> float:
        self.asked += 1
        return loc + self.shift * scale


def test_the_index_of_lazy_ucb_by_hand() -> None:
    public, secret = dpb.arms.LazyUCB(privacy=dpb.PureDP(0.5)).begin(dpb.Arms(2))
    noise: Any = FakeNoise(0.25)
    explore = np.random.default_rng(1)
    played = []
    for action, reward in ((0, 1.0), (1, 0.0), (0, 1.0), (0, math.nan)):
        public.release(secret, noise)
        played.append(public.select(None, explore))
        public.observe(secret, None, action, reward)
    assert played[:2] == [0, 1]
    public.release(secret, noise)
    public.select(None, explore)
    # Three releases; arm 0 knows its last two decisions only: 1 and a missing reward, counted ½.
    assert noise.asked == 3 and list(public.size) == [2, 1] and list(public.turns.length) == [4, 2]
    log = math.log(5)
    assert public.mean == pytest.approx([(1.5 + 0.5) / 2, 0.5])
    assert public.score == pytest.approx(
        [1.0 + math.sqrt(3 * log / 2) + 3 * log / (0.5 * 2), 0.5 + math.sqrt(3 * log) + 3 * log / 0.5]
    )


def _know(public: Any, sizes: tuple[int, ...], means: tuple[float, ...]) -> None:
    """As if the last batches of all arms had been of these sizes and means."""
    public.turns.unknown[0], public.turns.plays[:] = 0, sizes
    public.size[:], public.mean[:] = sizes, means


def _chance_of_first(one: Any, two: Any) -> float:
    return float(integrate.quad(lambda x: one.pdf(x) * two.cdf(x), 0, 1)[0])


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_lazy_beta_thompson_samples_the_raised_posterior(epsilon: float) -> None:
    """4,000 choices between two arms: within 5 standard errors, wrong with probability 6·10⁻⁷; the
    posterior that is not raised is off by more where there is noise.
    """
    privacy = dpb.NonPrivate() if math.isinf(epsilon) else dpb.PureDP(epsilon)
    public, _ = dpb.arms.LazyBetaThompson(privacy=privacy).begin(dpb.Arms(2))
    public.round[0] = 99
    _know(public, (64, 32), (0.55, 0.4))
    public.tail[:] = public.noise_scale / public.size
    explore = np.random.default_rng(4)
    choose = type(public).select
    first = sum(choose(public, None, explore) == 0 for _ in range(4000)) / 4000

    def chance(raised: float) -> float:
        laws = []
        for n, x in ((64, 0.55), (32, 0.4)):
            p = min(1.0, x + raised * 3 * math.log(100) / (epsilon * n))
            laws.append(stats.beta(p * n + 1, (1 - p) * n + 1))
        return _chance_of_first(*laws)

    expected = chance(1.0)
    error = math.sqrt(expected * (1 - expected) / 4000)
    assert abs(first - expected) < 5 * error
    assert math.isinf(epsilon) or abs(first - chance(0.0)) > 10 * error


def test_states_of_the_same_names_keep_their_own_compiled_verbs() -> None:
    """Numba's dispatcher tells named tuples apart by name; these two are both called `Public`."""
    first, own = dpb.arms.LazyUCB(privacy=dpb.PureDP(1.0)).begin(dpb.Arms(2))
    second, other = dpb.arms.LazyBetaThompson(privacy=dpb.PureDP(1.0)).begin(dpb.Arms(2))
    assert type(first).__name__ == type(second).__name__ and first._fields == second._fields
    for public in (first, second):
        public.round[0] = 50
        _know(public, (1, 1), (0.5, 0.6))
    explore = np.random.default_rng(1)
    ucb = {compiled_for(first).decide(first, own, None, explore, explore) for _ in range(50)}
    sampled = {compiled_for(second).decide(second, other, None, explore, explore) for _ in range(50)}
    assert ucb == {1} and sampled == {0, 1}


def _textbook_elimination(
    rewards: np.ndarray, epsilon: float, scale: float, noise: np.random.Generator
) -> list[int]:
    beta, alive, epoch = 1 / len(rewards), [0, 1, 2], 0
    actions: list[int] = []
    while len(actions) < len(rewards):
        if len(alive) == 1:
            actions += alive * (len(rewards) - len(actions))
            break
        epoch += 1
        eight, four = (math.log(f * len(alive) * epoch**2 / beta) for f in (8, 4))
        gap = 2.0**-epoch
        pulls = math.ceil(scale * max(32 * eight / gap**2, 8 * four / (epsilon * gap))) + 1
        start = len(actions)
        actions += alive * pulls
        means = {}
        for arm in alive:
            own = [t for t in range(start, min(len(actions), len(rewards))) if actions[t] == arm]
            if len(own) == pulls:
                means[arm] = _noisy_mean(list(rewards[own, arm]), epsilon, noise)
        if len(actions) < len(rewards):
            width = 2 * math.sqrt(eight / (2 * pulls)) + 2 * four / (epsilon * pulls)
            alive = [arm for arm in alive if max(means.values()) - means[arm] <= width]
    return actions[: len(rewards)]


@pytest.mark.parametrize("scale", [1.0, 0.1])
@pytest.mark.parametrize("privacy", BUDGETS, ids=str)
def test_elimination_is_the_textbook_algorithm_on_the_same_noise(
    privacy: dpb.Budget, scale: float
) -> None:
    rewards, noise = _rewards(8000), Streams.of(9).noise
    expected = _textbook_elimination(rewards, laplace_epsilon(privacy), scale, noise)
    policy = dpb.arms.SuccessiveElimination(privacy=privacy, epoch_scale=scale)
    assert _actions(policy, rewards) == expected
    assert 2 not in expected[-500:]


def test_elimination_keeps_nothing_once_one_arm_is_left() -> None:
    policy = dpb.arms.SuccessiveElimination(privacy=dpb.PureDP(1.0))
    public, secret = policy.begin(dpb.Arms(2, horizon=1000))
    public.alive[0], public.short[0] = 1, -1
    noise: Any = FakeNoise(0.0)
    for _ in range(5):
        public.release(secret, noise)
        arm = public.select(None, np.random.default_rng(1))
        public.observe(secret, None, arm, 1.0)
    assert noise.asked == 0 and not secret.open.any()


@given(
    mu=st.floats(1e-3, 1e4),
    horizon=st.integers(1, 10**9),
    draws_scale=st.floats(1e-3, 1e3),
)
def test_limited_draws_never_cost_more_than_the_budget(
    mu: float, horizon: int, draws_scale: float
) -> None:
    policy = dpb.arms.ThompsonUCB(privacy=dpb.GaussianDP(mu), draws_scale=draws_scale)
    problem = dpb.Arms(3, horizon=horizon)
    draws, variance = policy.scales(problem)
    held = policy.guarantee(problem).budget
    assert isinstance(held, dpb.GaussianDP)
    assert draws >= 1 and variance >= 1.0 / max(mu * mu, 1.0)
    assert held.mu == pytest.approx(math.sqrt(draws / variance), rel=1e-8)
    assert held.mu <= mu * (1 + 1e-9)
    if variance > 1.0:
        assert held == policy.privacy


def test_the_family_of_the_paper() -> None:
    """At μ² = c₀(√T ln^1.5 T)^(1−α) the draws are c₀T^(½(1−α)) ln^(½(3−α)) T and v is ln^α T."""
    horizon, log = 100_000, math.log(100_000)
    for alpha in (0.1, 0.5, 0.9):
        mu = math.sqrt(2.0 * (math.sqrt(horizon) * log**1.5) ** (1 - alpha))
        policy = dpb.arms.ThompsonUCB(privacy=dpb.GaussianDP(mu), draws_scale=2.0)
        draws, variance = policy.scales(dpb.Arms(5, horizon=horizon))
        assert draws == int(2.0 * horizon ** (0.5 * (1 - alpha)) * log ** (0.5 * (3 - alpha)))
        assert variance == pytest.approx(log**alpha, rel=1.0 / draws)


class CountingNoise:
    """A generator that remembers around which value, and how widely, it drew."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(8)
        self.asked: list[tuple[float, float]] = []

    def normal(self, loc: float, scale: float) -> float:
        self.asked.append((float(loc), float(scale)))
        return float(self.generator.normal(loc, scale))


def test_each_epoch_is_drawn_from_at_most_so_often_and_its_largest_draw_used_again() -> None:
    policy = dpb.arms.ThompsonUCB(privacy=dpb.GaussianDP(1.5))
    problem = dpb.Arms(3, horizon=2000)
    draws, variance = policy.scales(problem)
    public, secret = policy.begin(problem)
    noise: Any = CountingNoise()
    rewards = _rewards(2000)
    reused = 0
    for row in rewards:
        public.release(secret, noise)
        arm = public.select(None, np.random.default_rng(1))
        if public.unknown[0] == 0:
            for one in np.flatnonzero(public.drawn == draws):
                reused += public.sample[one] == public.highest[one]
        public.observe(secret, None, arm, row[arm])
    assert reused > 500
    # Every epoch has its own mean (rewards are continuous): count the draws around each.
    counts: dict[tuple[float, float], int] = {}
    for asked in noise.asked:
        counts[asked] = counts.get(asked, 0) + 1
    assert max(counts.values()) == draws and len(counts) > 10
    costs = [count / (scale * round(variance / scale**2)) ** 2 for (_, scale), count in counts.items()]
    # The replay audit reaches the budget; here an arm's first epoch may end before all its draws.
    assert 0.75 < math.sqrt(max(costs)) <= 1.5 * (1 + 1e-9)
