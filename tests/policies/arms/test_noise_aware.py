"""NoiseAwareIMED and LazyThompson: the index against simulation, the estimate by hand."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpbandits as dpb
from dpbandits.policies.arms.noise_aware_imed import evidence_against, log_erfcx
from dpbandits.policies.arms.shared.estimates import start_estimates, update_estimate
from dpbandits.privacy.budgets import PureDP
from dpbandits.sums.batches import start_batches


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
        assert abs(found + math.log(2 * share)) < 5 * error + 0.1
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
    variance = 2 * known.draws[0] * known.tail[0] ** 2 / effective**2
    assert variance == pytest.approx(2 * 4.0 * (a @ a) / (a @ n) ** 2)


@pytest.mark.parametrize(
    ("budget", "first", "growth", "grace"),
    [
        (dpb.PureDP(1.0), 16, 0.5, 1.0),
        (dpb.PureDP(0.1), 160, 0.5, 2.0),
        (dpb.PureDP(0.05), 320, 0.5, 2.5),
        (dpb.PureDP(10.0), 4, 0.5, 1.0),
        (dpb.GaussianDP(1.0), 16, 0.25, 1.5),
        (dpb.GaussianDP(5.0), 8, 0.25, 1.5),
        (dpb.NonPrivate(), 8, 0.25, 1.5),
    ],
)
def test_the_schedule_is_a_function_of_the_budget(
    budget: dpb.Budget, first: int, growth: float, grace: float
) -> None:
    assert dpb.NoiseAwareIMED(privacy=budget).schedule() == (first, growth, grace)


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
    for label, goal in (("imed 1-GDP", 78), ("imed 1-DP", 98), ("thompson 1-GDP", 90)):
        assert final[label].mean() < goal + 4 * final[label].std() / 10
    assert final["paper"].mean() > 30 * final["imed 1-GDP"].mean()


def test_a_horizon_that_is_too_short_is_told() -> None:
    found = dpb.recommend(dpb.Arms(20, horizon=1000), dpb.PureDP(0.1))
    assert "little better than uniform play" in found.reason
    assert "uniform" not in dpb.recommend(dpb.Arms(5, horizon=10**6), dpb.PureDP(1.0)).reason
    with pytest.raises(dpb.errors.InvalidInput, match="expected a problem such as"):
        dpb.recommend("arms", dpb.PureDP(1.0))  # type: ignore[call-overload]
