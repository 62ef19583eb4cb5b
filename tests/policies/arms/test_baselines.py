"""The policies that are not private: against their textbook definitions, and what they draw."""

import math

import numpy as np
import pytest
from scipy import stats

import dpbandits as dpb
from dpbandits.policies.arms.shared.sampling import beta_sample


def _textbook_ucb1(rewards: np.ndarray) -> list[int]:
    rounds, arms = rewards.shape
    got: list[list[float]] = [[] for _ in range(arms)]
    actions = []
    for t in range(rounds):
        index = [
            np.mean(own) + np.sqrt(2 * np.log(t) / len(own)) if own else 1e9 - arm
            for arm, own in enumerate(got)
        ]
        actions.append(int(np.argmax(index)))
        got[actions[-1]].append(rewards[t, actions[-1]])
    return actions


def test_ucb1_is_the_textbook_algorithm() -> None:
    rewards = np.random.default_rng(1).random((800, 4)) ** [1.0, 1.5, 2.0, 3.0]
    learner = dpb.arms.UCB1().start(dpb.Arms(4), seed=1)
    actions = []
    for row in rewards:
        actions.append(learner.select())
        learner.update(actions[-1], row[actions[-1]])
    assert actions == _textbook_ucb1(rewards)
    assert len(set(actions[100:])) > 1  # the bonus still matters


def test_ucb1_counts_a_missing_reward_as_one_half() -> None:
    public, secret = dpb.arms.UCB1().begin(dpb.Arms(2))
    noise = explore = np.random.default_rng(1)
    for reward in (1.0, math.nan, 0.0):
        public.release(secret, noise)
        public.observe(secret, None, public.select(None, explore), reward)
    assert list(public.tally.plays) == [2, 1]
    public.release(secret, noise)
    public.select(None, explore)
    bonus = math.sqrt(2 * math.log(3))
    assert public.score == pytest.approx([0.5 + bonus / math.sqrt(2), 0.5 + bonus])


def test_beta_thompson_counts_successes_and_tosses_a_coin_for_fractions() -> None:
    """The tosses of 4,000 rewards of 0.3: within 5 standard errors, wrong with probability 6·10⁻⁷."""
    counts = {}
    for reward in (0.0, 1.0, 0.3, math.nan):
        public, secret = dpb.BetaThompson().begin(dpb.Arms(2))
        explore = np.random.default_rng(2)
        for _ in range(4000):
            public.observe(secret, None, 1, reward)
            public.release(secret, explore)
            public.select(None, explore)
        assert (public.wins[0], public.losses[0]) == (1, 1)
        assert public.wins[1] + public.losses[1] == 4002
        counts[reward] = public.wins[1] - 1
    assert counts[0.0] == 0 and counts[1.0] == 4000
    missing = next(value for reward, value in counts.items() if math.isnan(reward))
    for share, wins in ((0.3, counts[0.3]), (0.5, missing)):
        assert abs(wins - 4000 * share) < 5 * math.sqrt(4000 * share * (1 - share))


def test_a_fraction_is_tossed_once() -> None:
    public, secret = dpb.BetaThompson().begin(dpb.Arms(2))
    explore = np.random.default_rng(2)
    public.observe(secret, None, 1, 1.0)
    for _ in range(3):
        public.release(secret, explore)
        public.select(None, explore)
    assert list(public.wins) == [1, 2] and list(public.losses) == [1, 1]


@pytest.mark.parametrize(("wins", "losses"), [(1, 1), (1, 7), (2.5, 1), (40, 60), (30_000.5, 9)])
def test_beta_samples_have_the_right_law(wins: float, losses: float) -> None:
    """Kolmogorov–Smirnov on 4,000 draws at 10⁻⁵; the control, one failure more, is rejected there."""
    explore = np.random.default_rng(3)
    draws = [beta_sample(wins, losses, explore) for _ in range(4000)]
    assert stats.kstest(draws, stats.beta(wins, losses).cdf).pvalue > 1e-5
    other = stats.beta(wins, losses + 0.2 * max(losses, 1))
    assert stats.kstest(draws, other.cdf).pvalue < 1e-5


def test_uniform_play_is_uniform() -> None:
    """χ² on 10,000 decisions at 10⁻⁵."""
    learner = dpb.arms.UniformArms().start(dpb.Arms(7), seed=1)
    actions = []
    for _ in range(10_000):
        actions.append(learner.select())
        learner.update(actions[-1], float(actions[-1] == 0))
    assert stats.chisquare(np.bincount(actions, minlength=7)).pvalue > 1e-5
