"""Policies on binary trees: their definitions by hand, their schedules, their guarantees."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.audit.recording import RecordingNoise, Steer
from dpbandits.engine import Streams
from dpbandits.engine.streams import run_seed
from dpbandits.errors import InvalidInput
from dpbandits.policies.arms import hybrid_thompson, tree_thompson
from dpbandits.policies.arms.shared.sampling import beta_sample
from dpbandits.policies.testing import rehearse
from dpbandits.privacy.calibration import Calibration

FIVE = dpb.Arms(5, horizon=100_000)


def reward_of(arm: int, pull: int) -> float:
    """Rewards without ties."""
    return (math.sin(12.9898 * (arm + 1) + 78.233 * pull) * 43758.5453) % 1.0 * (0.9 - 0.2 * arm)


class NoNoise:
    """Every result is its location; remembers the scales."""

    def __init__(self) -> None:
        self.scales: list[float] = []

    def laplace(self, location: float, scale: float) -> float:
        self.scales.append(float(scale))
        return location


def play(policy: dpb.Policy, problem: dpb.Arms, rounds: int, seed: Any = 1) -> list[int]:
    learner, pulls, actions = rehearse(policy, problem, seed=seed), [0] * problem.arms, []
    for _ in range(rounds):
        action = learner.select()
        learner.update(action, reward_of(action, pulls[action]))
        pulls[action] += 1
        actions.append(action)
    return actions


def scales_drawn(policy: dpb.Policy, problem: dpb.Arms, rounds: int) -> set[tuple[str, float]]:
    """Kind and scale of every draw in a run."""
    public, secret = policy.begin(problem)
    noise = RecordingNoise(np.random.default_rng(0), Steer())
    explore = np.random.default_rng(1)
    release, select, observe = (getattr(type(public), name) for name in ("release", "select", "observe"))
    for _ in range(rounds):
        release(public, secret, noise)
        observe(public, secret, None, select(public, None, explore), 1.0)
    return {(draw.kind, float(draw.scale)) for draw in noise.draws}


@pytest.mark.parametrize("confidence", ["theory", "chernoff"])
def test_tree_ucb_without_noise_is_the_textbook_rule(confidence: Any) -> None:
    sums, counts, expected = [0.0] * 3, [0] * 3, []
    for t in range(1, 501):
        if t <= 3:
            arm = t - 1
        elif confidence == "theory":
            arm = max(
                range(3), key=lambda a: sums[a] / counts[a] + math.sqrt(2 * math.log(t) / counts[a])
            )
        else:
            arm = max(
                range(3),
                key=lambda a: (sums[a] + math.sqrt(sums[a] * math.log(t)) + math.log(t)) / counts[a],
            )
        sums[arm] += reward_of(arm, counts[arm])
        counts[arm] += 1
        expected.append(arm)
    policy = dpb.arms.TreeUCB(privacy=dpb.NonPrivate(), confidence=confidence)
    assert play(policy, dpb.Arms(3), 500) == expected
    assert len(set(expected[100:])) > 1


@pytest.mark.parametrize("kind", [dpb.arms.TreeThompson, dpb.arms.HybridThompson])
def test_thompson_without_noise_is_beta_thompson_sampling(kind: type[dpb.Policy]) -> None:
    seed = run_seed(1, 0)
    explore = Streams.of(seed).explore
    sums, counts, expected = [0.0] * 3, [0] * 3, []
    for t in range(300):
        if t < 3 and kind is dpb.arms.HybridThompson:
            arm = t
        else:
            arm = int(
                np.argmax(
                    [beta_sample(s + 1, n - s + 1, explore) for s, n in zip(sums, counts, strict=True)]
                )
            )
        sums[arm] += reward_of(arm, counts[arm])
        counts[arm] += 1
        expected.append(arm)
    assert play(kind(privacy=dpb.NonPrivate()), dpb.Arms(3), 300, seed) == expected


def test_tree_ucb_by_hand_with_noise() -> None:
    public, secret = dpb.arms.TreeUCB(privacy=dpb.PureDP(1.0)).begin(dpb.Arms(2, horizon=9))

    class Fixed:
        """Every draw is 3 above its location, except the second."""

        drawn = 0

        def laplace(self, location: float, scale: float) -> float:
            assert scale == 3.0  # seven leaves, three levels
            self.drawn += 1
            return location + (3.0 if self.drawn != 2 else -3.0)

    noise: Any = Fixed()
    for arm, reward in ((0, 1.0), (1, 0.0)):
        public.release(secret, noise)
        assert public.select(None, None) == arm
        public.observe(secret, None, arm, reward)
    public.release(secret, noise)
    gamma = math.log(9) ** 2 * math.log(2 * 9 * math.log(9) / 0.1)
    assert public.select(None, np.random.default_rng(0)) == 0
    # r is 4 and −3 as released, 1 and 0 once back in [0, n].
    width = math.sqrt(2 * math.log(3))
    assert public.score == pytest.approx([1 + width + gamma, width + gamma])


@pytest.mark.parametrize("horizon", [34, 35, 36, 1026, 1027, 1028, 1029])
@pytest.mark.parametrize("calibration", ["exact", "paper"])
def test_the_noise_of_a_node(horizon: int, calibration: Calibration) -> None:
    problem, parts = dpb.Arms(3, horizon=horizon), 3 if calibration == "paper" else 1
    levels = math.floor(math.log2(horizon - 3)) + 1
    policy = dpb.arms.TreeUCB(privacy=dpb.PureDP(0.5), calibration=calibration)
    ((kind, scale),) = scales_drawn(policy, problem, 20)
    assert kind == "laplace" and scale == pytest.approx(parts * levels / 0.5)
    policy = dpb.arms.TreeUCB(privacy=dpb.GaussianDP(0.5), calibration=calibration)
    ((kind, scale),) = scales_drawn(policy, problem, 20)
    assert kind == "normal" and scale == pytest.approx(math.sqrt(parts * levels) / 0.5)


def test_the_printed_constants() -> None:
    paper: dict[str, Any] = {"privacy": dpb.PureDP(1.0), "calibration": "paper"}
    # algorithms.md: Γ = 6,500 at k = 5, T = 10⁴, ε = 1, γ = 0.1; m = 15,945 and Γ = 879,000 at T = 10⁵.
    assert dpb.arms.TreeUCB(**paper).bonus(dpb.Arms(5, horizon=10_000)) == pytest.approx(6508, abs=1)
    thompson = dpb.arms.TreeThompson(**paper)
    assert thompson.gap_batch(FIVE) == math.ceil(192 * 5 * math.log2(100_000)) == 15946
    assert thompson.pulls_unit(FIVE) == pytest.approx(879_000, rel=1e-3)
    assert thompson.plays_uniform_below(FIVE) == 5 * (15946 + math.ceil(4 * thompson.pulls_unit(FIVE)))
    # ε₀ = ε instead of ε/(2k): the noise of μ̂ is 2k times smaller, and m with it.
    assert dpb.arms.TreeThompson(privacy=dpb.PureDP(1.0)).gap_batch(FIVE) == math.ceil(
        96 * math.log2(100_000)
    )


@pytest.mark.parametrize("horizon", [100, 10_000, 10**6, 10**9])
@pytest.mark.parametrize("arms", [2, 5, 50])
def test_the_bonus_covers_the_noise_of_all_rounds(arms: int, horizon: int) -> None:
    """Chernoff: L Laplace(L/ε) draws sum to more than Γ with probability below γ/(kT)."""
    bonus = dpb.arms.TreeUCB(privacy=dpb.PureDP(1.0)).bonus(dpb.Arms(arms, horizon=horizon))
    levels = (horizon - arms).bit_length()
    exponent = max(
        tilt * bonus / levels + levels * math.log1p(-(tilt**2)) for tilt in np.linspace(0.1, 0.95)
    )
    assert exponent > math.log(2 * arms * horizon / 0.1)


def test_each_split_reports_what_it_really_gives() -> None:
    def budget(policy: dpb.Policy) -> dpb.Budget:
        return policy.guarantee(FIVE).budget

    one, mu, approx = dpb.PureDP(1.0), dpb.GaussianDP(1.0), dpb.ApproxDP(1.0, 1e-6)
    assert budget(dpb.arms.TreeUCB(privacy=one)) == budget(dpb.arms.TreeThompson(privacy=one)) == one
    assert budget(dpb.arms.TreeUCB(privacy=one, calibration="paper")) == dpb.PureDP(0.2)
    assert budget(dpb.arms.TreeThompson(privacy=one, calibration="paper")) == dpb.PureDP(0.1)
    split = budget(dpb.arms.TreeThompson(privacy=mu, calibration="paper"))
    assert isinstance(split, dpb.GaussianDP) and split.mu == pytest.approx(math.sqrt(0.1))
    assert budget(dpb.arms.TreeUCB(privacy=approx)) == approx
    weaker = budget(dpb.arms.TreeUCB(privacy=approx, calibration="paper"))
    assert isinstance(weaker, dpb.ApproxDP) and weaker.epsilon < 0.5


def test_the_theory_bonus_plays_in_turn_as_long_as_declared_and_not_much_longer() -> None:
    policy = dpb.arms.TreeUCB(privacy=dpb.PureDP(1.0))
    problem = dpb.Arms(3, horizon=3000)
    until = policy.plays_uniform_below(problem)
    assert until == 3 * 29
    actions = np.array(play(policy, problem, 3000))
    assert np.bincount(actions[:until]).tolist() == [until // 3] * 3
    assert np.ptp(np.bincount(actions)) > 100


def test_the_phases_of_tree_thompson() -> None:
    policy = dpb.arms.TreeThompson(privacy=dpb.PureDP(1.0), constant=0.02)
    problem = dpb.Arms(3, horizon=2000)
    public, secret = policy.begin(problem)
    noise, explore = NoNoise(), np.random.default_rng(0)
    means, gaps = (0.95, 0.55, 0.0), [1.0]
    actions: list[int] = []
    for _ in range(2000):
        public.release(secret, noise)
        if public.gap[0] != gaps[-1]:
            gaps.append(float(public.gap[0]))
            if public.clock[0] == tree_thompson.GAP:
                assert len(actions) == 3 * sum(
                    math.ceil(policy._batch_unit(problem) / g**2) for g in gaps[:-1]
                )
            else:
                pulls = math.ceil(policy.pulls_unit(problem) / gaps[-1] ** 2)
                started, begun = len(actions), len(actions) + 3 * pulls
                assert not public.plays.any()  # n counts from here on: the trees are empty
        action = public.select(None, explore)
        public.observe(secret, None, action, means[action])
        actions.append(action)
    assert gaps == [1.0, 0.5, 0.25] and public.clock[0] == tree_thompson.THOMPSON
    assert all(sorted(actions[t : t + 3]) == [0, 1, 2] for t in range(0, begun, 3))
    assert public.plays.sum() == 2000 - started
    # Phase 2 was one leaf, every later reward one more; the last is due.
    assert int(public.tree.leaves.sum()) == 3 + 2000 - begun - 1
    assert public.reward / public.plays == pytest.approx(means, abs=2e-3)


def test_the_experiment_mode() -> None:
    experiment = dpb.arms.TreeThompson(privacy=dpb.PureDP(1.0), gap_phase=False)
    problem = dpb.Arms(3, horizon=1000)
    actions = play(dataclasses.replace(experiment, burn_in=7), problem, 200)
    assert (
        actions[:21] == actions[:3] * 7
        and sorted(actions[:3]) == [0, 1, 2]
        and len(set(np.bincount(actions[21:]))) > 1
    )
    # Five standard deviations of 17 nodes of Laplace(17); never more than half of the rounds.
    assert experiment.pulls(FIVE) == math.ceil(5 * 17 * math.sqrt(2 * 17))
    assert experiment.pulls(problem) == 1000 // 6
    with pytest.raises(InvalidInput, match="gap_phase=False"):
        dpb.arms.TreeThompson(privacy=dpb.PureDP(1.0), burn_in=3)


@pytest.mark.parametrize("privacy", [dpb.PureDP(1e-3), dpb.GaussianDP(1e-3)], ids=str)
def test_noise_far_beyond_the_rewards_is_survived(privacy: dpb.Budget) -> None:
    for policy in (
        dpb.arms.TreeUCB(privacy=privacy, confidence="chernoff"),
        dpb.arms.TreeThompson(privacy=privacy, gap_phase=False, burn_in=2),
        dpb.arms.HybridThompson(privacy=privacy),
    ):
        assert set(play(policy, dpb.Arms(3, horizon=300), 300)) == {0, 1, 2}


def test_hybrid_thompson_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    public, secret = dpb.arms.HybridThompson(privacy=dpb.PureDP(2.0)).begin(dpb.Arms(2))
    asked = []

    def beta_sample(wins: float, losses: float, explore: None) -> float:
        asked.append((wins, losses))
        return 1.0 - 0.1 * (len(asked) % 2)

    monkeypatch.setattr(hybrid_thompson, "beta_sample", beta_sample)

    noise = NoNoise()
    for t in range(1, 403):
        public.release(secret, noise)
        action = public.select(None, None)
        assert action == (t - 1 if t <= 2 else 1)
        public.observe(secret, None, action, 0.25)
    # Trees of 1, 2, 4 leaves: a root of 1/ε; then roots of 2/ε, inner nodes of 2r/ε.
    assert noise.scales[1:8] == [0.5, 1.0, 1.0, 2.0, 2.0, 2.0, 1.0]
    plays = 400.0
    shift = 6 * math.sqrt(8 * math.log(plays + 1) * math.log(402)) / 2.0
    assert shift < 0.75 * plays
    assert asked[-1] == pytest.approx((plays / 4 + shift + 1, 0.75 * plays - shift + 1))


def test_tree_policies_keep_learning_beyond_the_horizon() -> None:
    problem = dpb.Arms(3, horizon=50)
    for policy in (
        dpb.arms.TreeUCB(privacy=dpb.PureDP(50.0)),
        dpb.arms.TreeThompson(privacy=dpb.PureDP(50.0), gap_phase=False),
    ):
        assert play(policy, problem, 1000).count(0) > 500
