"""NoiseAwareIMED and LazyThompson: the index against simulation, the estimate by hand."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpbandits as dpb
from dpbandits.policies.arms.shared.estimates import foreseen, start_estimates, update_estimate
from dpbandits.policies.arms.shared.evidence import evidence_against, log_erfcx
from dpbandits.privacy.budgets import PureDP
from dpbandits.sums.batches import release_batch, start_batches


def tail(n: int, x: float, q: float, deviation: float) -> float:
    """P[Binomial(n, q) + N(0, deviation²) ≤ n·x] by summing over the binomial."""
    k = np.arange(n + 1)
    return float(binom.pmf(k, n, q) @ norm.cdf((n * x - k) / deviation))


@pytest.mark.parametrize("n", [20, 200, 2000])
@pytest.mark.parametrize(("x", "q"), [(0.4, 0.5), (0.1, 0.5), (0.02, 0.05), (0.7, 0.75), (-0.1, 0.3)])
@pytest.mark.parametrize("deviation", [1.0, 5.0, 20.0])
def test_the_evidence_is_minus_the_log_of_the_tail(n: int, x: float, q: float, deviation: float) -> None:
    probability = tail(n, x, q, deviation)
    if probability < 1e-280:
        return
    exact = -math.log(2.0 * probability)
    found = evidence_against(n, x, q, deviation**2, 0.0, 0.0)
    # A saddlepoint approximation: a few hundredths, and better in proportion far out.
    assert found == pytest.approx(exact, abs=0.15, rel=0.02)


def test_the_evidence_with_laplace_noise_against_simulation() -> None:
    """P estimated from 400 000 draws; 5 standard errors on the log (error below 1e-6)."""
    rng, n, q, b, m = np.random.default_rng(1), 100, 0.5, 3.0, 4
    released = rng.binomial(n, q, 400_000) + rng.laplace(0, b, (400_000, m)).sum(1)
    for x in (0.45, 0.35, 0.3):
        share = (released <= n * x).mean()
        error = math.sqrt((1 - share) / (share * 400_000))
        found = evidence_against(float(n), x, q, 0.0, b, float(m))
        assert abs(found + math.log(2 * share)) < 5 * error + 0.2
    assert evidence_against(float(n), 0.3, q, 0.0, 0.0, 0.0) > found + 2  # noise is evidence lost


def test_the_evidence_at_the_edges() -> None:
    assert evidence_against(50.0, 0.5, 0.5, 1.0, 0.0, 0.0) == 0.0
    assert evidence_against(50.0, 0.6, 0.5, 1.0, 0.0, 0.0) == 0.0
    # Nothing but noise: x = 0 against q, without noise, is n·ln(1/(1−q)) less the ½ of the test.
    assert evidence_against(30.0, 0.0, 0.2, 0.0, 0.0, 0.0) == pytest.approx(
        -30 * math.log(0.8), abs=0.01
    )
    for q in (0.0, 1e-12, 1.0):
        for x in (-0.5, 0.0, 0.3):
            for b, m in ((0.0, 0.0), (2.0, 3.0)):
                value = evidence_against(40.0, x, q, 4.0, b, m)
                assert value >= -0.7 and math.isfinite(value)


def test_log_erfcx() -> None:
    from scipy.special import erfcx

    for x in (0.0, 0.1, 1.0, 5.0, 9.999, 10.001, 30.0, 1e4):
        assert log_erfcx(x) == pytest.approx(math.log(erfcx(x)), rel=1e-6, abs=1e-12)


def test_the_weighted_estimate_by_hand() -> None:
    batches, _ = start_batches(1, 1, 1.0, PureDP(0.5))  # scale 2
    known = start_estimates(1)
    weights, lengths, sums = [], (8, 24), (5.0, 9.0)
    plays, total = 0, 0.0
    for length, value in zip(lengths, sums, strict=True):
        before, plays = total, plays + length
        total += value - length / 2
        batches.total[0, 0] = total
        update_estimate(known, batches, 0, plays, length, before)
        weights.append(length / (length / 4 + 2 * 4.0))
    a = np.array(weights)
    n, s = np.array(lengths), np.array(sums)
    effective = (a @ n) ** 2 / (a**2 @ n)
    assert known.mean[0] == pytest.approx(a @ s / (a @ n))
    assert known.weight[0] == pytest.approx(effective)
    # Its noise variance: Σ a²·2b² over (Σ a n)², however it is put together.
    variance = (known.variance[0] + 2 * known.draws[0] * known.tail[0] ** 2) / effective**2
    assert variance == pytest.approx(2 * 4.0 * (a @ a) / (a @ n) ** 2)
    # Far out the draw of the largest weight matters, and the fourth cumulant is kept: 12·Σ scale⁴.
    scales = 2.0 * a * effective / (a @ n)
    assert known.tail[0] == pytest.approx(scales.max())
    assert known.draws[0] * known.tail[0] ** 4 == pytest.approx((scales**4).sum())


@pytest.mark.parametrize("budget", [PureDP(0.5), dpb.GaussianDP(0.5)])
def test_what_is_foreseen_is_what_comes(budget: dpb.Budget) -> None:
    batches, buffers = start_batches(1, 1, 1.0, budget, block=3)
    known, noise, plays = start_estimates(1), np.random.default_rng(1), 0
    for length in (8, 24, 5, 40, 7):
        before = batches.total[0, 0]
        expected = foreseen(known, batches, 0, plays, length)
        plays += length
        release_batch(batches, buffers, 0, noise)
        update_estimate(known, batches, 0, plays, length, before)
        found = known.weight[0], known.variance[0], known.tail[0], known.draws[0]
        assert found == pytest.approx(expected)


def test_several_laplace_draws_are_weighed_exactly_enough() -> None:
    """Three draws of scales 1, ½ and ¼ of 20, beside a fourth of 8: R within 0.2 of 2·10⁶ draws' share.

    Where the share is 1e-4 its error is 7 %; all four thresholds together fail by chance in 1e-6.
    """
    rng, n, q, scales = np.random.default_rng(2), 400, 0.5, np.array([20.0, 10.0, 5.0, 8.0])
    released = rng.binomial(n, q, 2_000_000) + (rng.laplace(0, 1, (2_000_000, 4)) * scales).sum(1)
    draws = (scales**4).sum() / scales.max() ** 4
    rest = 2 * ((scales**2).sum() - draws * scales.max() ** 2)
    for x in (0.4, 0.3, 0.2, 0.15):
        share = (released <= n * x).mean()
        error = math.sqrt((1 - share) / (share * released.size))
        found = evidence_against(float(n), x, q, rest, scales.max(), draws)
        assert abs(found + math.log(2 * share)) < 5 * error + 0.2
        # One common scale, as many draws as make up the variance: the control is wrong far out.
        common = (scales**2).sum() / scales.max() ** 2
        coarse = evidence_against(float(n), x, q, 0.0, scales.max(), common)
    assert abs(coarse + math.log(2 * share)) > 5 * error + 0.2


@pytest.mark.parametrize(
    ("budget", "first"),
    [
        (dpb.PureDP(1.0), 26),
        (dpb.PureDP(0.1), 260),
        (dpb.PureDP(10.0), 12),
        (dpb.GaussianDP(1.0), 20),
        (dpb.GaussianDP(5.0), 4),
        (dpb.NonPrivate(), 4),
    ],
)
def test_the_schedule_is_a_function_of_the_budget(budget: dpb.Budget, first: int) -> None:
    assert dpb.NoiseAwareIMED(privacy=budget).schedule() == (first, 1.0)


def test_first_batches_come_in_random_order() -> None:
    """Of 200 learners 20 to 60 begin with each of five arms: by chance otherwise in less than 1e-4."""
    policy, problem = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), dpb.Arms(5)
    first = [policy.start(problem, seed=seed).select() for seed in range(200)]
    counts = np.bincount(first, minlength=5)
    assert counts.min() >= 20 and counts.max() <= 60
    learner, seen = policy.start(problem, seed=1), []
    for _ in range(5 * 26):
        arm = learner.select()
        learner.update(arm, 0.5)
        seen.append(arm)
    # Each to the end of its first batch, and then another.
    assert all(len(set(seen[at : at + 26])) == 1 for at in range(0, 130, 26)) and len(set(seen)) == 5


def test_rare_rewards_ask_for_longer_batches_under_pure_dp() -> None:
    def longest(policy: dpb.NoiseAwareIMED, reward: float) -> int:
        learner, arms = policy.start(dpb.Arms(20), seed=1), []
        for _ in range(2000):
            arms.append(learner.select())
            learner.update(arms[-1], reward)
        return int(np.bincount(arms).max()) if len(set(arms)) == 20 else 2000

    assert longest(dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), 0.0) > 2 * 26
    assert longest(dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0)), 0.0) < 2000


def choice(caution: float, arms: dict[str, tuple[float, int]], usual_lead: float = 0.4) -> int:
    """The arm that is chosen after one released batch of each, of this mean and length."""
    policy = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0), caution=caution, usual_lead=usual_lead)
    public, _ = policy.begin(dpb.Arms(len(arms)))
    for arm, (mean, plays) in enumerate(arms.values()):
        public.turns.plays[arm] = plays
        public.batches.total[arm, 0] = (mean - 0.5) * plays
        update_estimate(public.estimates, public.batches, arm, plays, plays, 0.0)
    public.turns.unknown[0] = 0
    return int(public.select(None, np.random.default_rng(1)))


def log_odds(mean: float) -> float:
    return math.log(mean / (1 - mean))


def leads(third: float, plays: int, scale: float) -> float:
    """W of the low arm, by hand: how far half the lead over the third is beyond 0.4, on its variance."""
    lead = log_odds(0.6) - log_odds(third)
    variance = (plays * third * (1 - third) + 2 * scale**2) / (plays * third * (1 - third)) ** 2
    return min(7.0, max(0.0, lead / 2 - 0.4) ** 2 / (2 * variance / 4))


@pytest.mark.parametrize(
    ("third", "plays", "low", "leader", "binding"),
    [
        (0.42, 20_000, 60, 50_000, "narrow"),  # the others are as close as usual: nothing is added
        (0.32, 400, 60, 50_000, "narrow"),  # a little farther behind
        (0.2, 20_000, 30, 200, "wide"),  # surely far behind: the most that counts
    ],
)
def test_the_guard_asks_for_as_much_evidence_as_is_said(
    third: float, plays: int, low: int, leader: int, binding: str
) -> None:
    """The doubtful arm is chosen exactly if less than c + ln((t + 10⁵)/K) speaks against it, by hand."""
    arms = {"leader": (0.6, leader), "low": (0.3, low), "other": (third, plays)}
    trail = leads(third, plays, 1.0)
    assert (trail == 0.0) == (third == 0.42) and (trail == 7.0) == (third == 0.2)
    wide = 1 / (1 + math.exp(-log_odds(0.6) - 0.52))
    narrow = 0.65  # 0.05 above

    def speaks(mean: float) -> float:
        return evidence_against(float(low), 0.3, mean, 0.0, 1.0, 1.0)

    against = {"narrow": speaks(narrow) + trail, "wide": speaks(wide) + 2.0 + math.log(low * 0.52**2)}
    assert min(against, key=lambda name: against[name]) == binding
    enough = against[binding] - math.log((leader + low + plays + 1e5) / 3)
    assert choice(enough - 1e-6, arms) == 0
    assert choice(enough + 1e-6, arms) == 1
    # The index alone would have left it alone: it asks for ln n of the leader, and no lead.
    assert speaks(0.6) + math.log(low) + 1.0 > math.log(leader)


def test_where_no_lead_is_usual_an_arm_that_may_lead_narrowly_is_looked_for() -> None:
    """`usual_lead=3`: whatever the third arm is, as much is asked for as with two that are level."""
    for third in (0.2, 0.32):
        arms = {"leader": (0.6, 50_000), "low": (0.3, 60), "other": (third, 20_000)}
        asked = evidence_against(60.0, 0.3, 0.65, 0.0, 1.0, 1.0) - math.log((70_060 + 1e5) / 3)
        assert choice(asked + 1e-6, arms, usual_lead=3.0) == 1
        assert choice(asked - 1e-6, arms, usual_lead=3.0) == 0
        # The control: by default more is known, and it is left alone.
        assert choice(asked + 1e-6, arms) == 0


def test_an_arm_that_is_far_behind_is_left_alone() -> None:
    assert choice(5.2, {"leader": (0.6, 50_000), "low": (0.3, 2000), "lower": (0.2, 400)}) == 0


def test_regret_at_equal_privacy() -> None:
    """100 runs: within 4 standard errors of the goals, and 30 times below the paper's algorithm."""
    world = dpb.worlds.BernoulliArms((0.75, 0.625, 0.5, 0.375, 0.25))
    policies: dict[str, dpb.Policy] = {
        "imed 1-GDP": dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0)),
        "imed 1-DP": dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)),
        "thompson 1-GDP": dpb.LazyThompson(privacy=dpb.GaussianDP(1.0)),
        "paper": dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)),
    }
    trace = dpb.simulate(policies, world, 100_000, 100, seed=5, progress=False)
    final = {x: trace.regret(x)[:, -1] for x in policies}
    for label, goal in (("imed 1-GDP", 66), ("imed 1-DP", 84), ("thompson 1-GDP", 90)):
        assert final[label].mean() < goal + 4 * final[label].std() / 10
    assert final["paper"].mean() > 30 * final["imed 1-GDP"].mean()


def test_a_horizon_that_is_too_short_is_told() -> None:
    found = dpb.recommend(dpb.Arms(20, horizon=1000), dpb.PureDP(0.1))
    assert "little better than uniform play" in found.reason
    assert "uniform" not in dpb.recommend(dpb.Arms(5, horizon=10**6), dpb.PureDP(1.0)).reason
    with pytest.raises(dpb.errors.InvalidInput, match="expected a problem such as"):
        dpb.recommend("arms", dpb.PureDP(1.0))  # type: ignore[call-overload]
