"""Lower bounds against values worked out by hand, against their definitions, and against each other."""

import inspect
import itertools
import math

import numpy as np
import pytest
import scipy

import dpbandits as dpb
from dpbandits import limits
from dpbandits.errors import InvalidInput
from dpbandits.experiments.chandak.setting import TABLE_2
from dpbandits.limits import (
    Law,
    bounded_divergence,
    burnetas_katehakis,
    conjectured_order,
    imed_level,
    joint_minimax,
    known_limit,
    lai_robbins,
    least_pulls,
    local_minimax,
    private_arms_regret,
    regret_without_disasters,
    standard_privacy_regret,
    talebi_proutiere,
)
from dpbandits.policies.arms.shared.divergences import bernoulli_kl, private_kl
from dpbandits.privacy.budgets import Budget
from dpbandits.worlds import BernoulliArms, LoggedArms, MatroidArms, TruncatedExponentialArms

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 50.0)


def coin(mean: float) -> Law:
    """The law of a Bernoulli arm."""
    return Law(np.array([0.0, 1.0]), np.array([1.0 - mean, mean]))


def test_lai_robbins_by_hand() -> None:
    # kl(¼, ½) = ln 2 − H(¼) = ¼ ln ½ + ¾ ln (3/2).
    divergence = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert lai_robbins((0.5, 0.25)) == pytest.approx(0.25 / divergence)
    assert lai_robbins((0.5, 0.25, 0.5, 0.25)) == pytest.approx(0.5 / divergence)
    # d_1(.1, .5) = −.1 − ln(½ + 1/(2e)); at a small ε it is nearly εΔ, so each arm costs nearly 1/ε.
    private = -0.1 - math.log(0.5 + 0.5 / math.e)
    assert lai_robbins((0.1, 0.5), 1.0) == pytest.approx(0.4 / private)
    assert lai_robbins(MEANS, 1e-6) == pytest.approx(4e6, rel=1e-4)


def test_where_all_arms_are_alike_or_none_can_be_better_nothing_is_claimed() -> None:
    for means in ((0.3, 0.3), (0.3, 1.0)):
        assert lai_robbins(means) == lai_robbins(means, 0.1) == 0.0
        assert known_limit(BernoulliArms(means), dpb.PureDP(1.0)) is None
    assert burnetas_katehakis([coin(0.3), coin(1.0)], 0.1) == 0.0


def test_limits_fall_with_epsilon_to_those_without_privacy() -> None:
    matroid = dpb.matroids.UniformMatroid(5, 2)
    laws = [Law(np.array([0.0, 0.5, 1.0]), np.array([1.0 - m, m / 2, m / 2])) for m in (0.2, 0.6)]
    epsilons = (*EPSILONS, math.inf)
    for found in (
        [lai_robbins(MEANS, epsilon) for epsilon in epsilons],
        [burnetas_katehakis(laws, epsilon) for epsilon in epsilons],
        [talebi_proutiere(matroid, MEANS, epsilon) for epsilon in epsilons],
    ):
        assert all(high >= low * (1 - 1e-9) for high, low in itertools.pairwise(found))
        assert found[0] > 2 * found[-1] and found[-2] == pytest.approx(found[-1])
    for minimax in (joint_minimax, local_minimax):
        bounds = [minimax(10**7, 5, epsilon) for epsilon in (1e-6, 1e-5, *EPSILONS)]
        assert bounds == sorted(bounds, reverse=True) and bounds[0] > 2 * bounds[-1]
        assert bounds[-1] == joint_minimax(10**7, 5)


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0, math.inf])
def test_of_coins_the_divergence_of_all_laws_is_that_of_coins(epsilon: float) -> None:
    for x, y in ((0.1, 0.5), (0.4, 0.5), (0.02, 0.9), (0.0, 0.3)):
        assert bounded_divergence(coin(x), y, epsilon) == pytest.approx(private_kl(x, y, epsilon))
    assert bounded_divergence(coin(0.4), 0.5) == pytest.approx(bernoulli_kl(0.4, 0.5))


def test_the_divergence_of_all_laws_is_the_minimum_it_is_defined_by() -> None:
    """By a solver over the chances of Z and Q; what it finds is feasible, so never below the minimum."""
    law, best, epsilon = Law(np.array([0.0, 0.4, 1.0]), np.array([0.5, 0.4, 0.1])), 0.6, 0.8

    def cost(point: np.ndarray) -> float:  # Z = P + up − down, so that Σ up is the total variation
        up, down, q = np.split(point, 3)
        z = np.maximum(law.chances + up - down, 1e-300)
        return float(epsilon * 0.5 * (up + down).sum() + np.sum(z * np.log(z / q)))

    rules = [
        {"type": "eq", "fun": lambda point: point[6:].sum() - 1.0},
        {"type": "eq", "fun": lambda point: (point[:3] - point[3:6]).sum()},
        {"type": "ineq", "fun": lambda point: point[6:] @ law.values - best},
        {"type": "ineq", "fun": lambda point: law.chances + point[:3] - point[3:6] - 1e-12},
    ]
    start = np.array([0.01, 0.01, 0.1, 0.1, 0.01, 0.01, 0.2, 0.3, 0.5])
    found = scipy.optimize.minimize(
        cost, start, bounds=[(0.0, 1.0)] * 6 + [(1e-9, 1.0)] * 3, constraints=rules, method="SLSQP"
    )
    assert found.success
    assert bounded_divergence(law, best, epsilon) == pytest.approx(found.fun, rel=1e-4)
    assert bounded_divergence(law, best, epsilon) < 0.9 * bounded_divergence(law, best)


def test_other_laws_tell_more_than_coins_of_the_same_mean() -> None:
    """So the limit of arms of exponential laws is below that of Bernoulli arms."""
    world = TruncatedExponentialArms((0.1, 1.0, 5.0))
    for budget in (dpb.PureDP(0.5), dpb.NonPrivate()):
        found, coins = known_limit(world, budget), known_limit(BernoulliArms(world.arm_means()), budget)
        assert found is not None and coins is not None and 0.2 * coins.rate < found.rate < coins.rate
    # The quadrature is that of the law, however steep: its mean is known.
    for rate in (0.1, 10.0, 1e4):
        (law, _) = limits.known._laws(TruncatedExponentialArms((rate, 1.0)))
        assert law.mean == pytest.approx(1.0 / rate - 1.0 / math.expm1(min(rate, 700.0)))


def test_a_log_of_clicks_is_bernoulli_arms() -> None:
    log = LoggedArms(("a", "b"), ((0.0, 5.0), (0.0, 5.0)), ((3.0, 1.0), (2.0, 2.0)), (0.0, 5.0))
    for budget in (dpb.PureDP(0.3), dpb.NonPrivate()):
        found, coins = known_limit(log, budget), known_limit(BernoulliArms((0.25, 0.5)), budget)
        assert found is not None and coins is not None
        assert found.rate == pytest.approx(coins.rate) and found.name == coins.name


def test_of_matroids_each_item_is_held_to_the_one_it_can_replace() -> None:
    """Of two groups, one item each: .4 can replace .5 only, and .1 only .9; item 4 is in no basis."""
    matroid = dpb.matroids.PartitionMatroid((0, 0, 1, 1, 2), (1, 1, 0))
    means = (0.5, 0.4, 0.9, 0.1, 0.99)
    expected = 0.1 / private_kl(0.4, 0.5, 0.2) + 0.8 / private_kl(0.1, 0.9, 0.2)
    assert talebi_proutiere(matroid, means, 0.2) == pytest.approx(expected)
    found = known_limit(MatroidArms(matroid, means), dpb.PureDP(0.2))
    assert found is not None and found.rate == pytest.approx(expected)
    # The same by trying all exchanges, on a graph in which edges close circles of several lengths.
    edges = ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3), (3, 4), (4, 0))
    graph, weights = dpb.matroids.GraphicMatroid(edges), (0.9, 0.8, 0.3, 0.7, 0.2, 0.4, 0.6, 0.5)
    best, total = graph.best_basis(weights), 0.0
    for item in set(range(8)) - set(best):
        others = [o for o in best if graph.independent([item, *(b for b in best if b != o)])]
        low = min(weights[other] for other in others)
        total += (low - weights[item]) / private_kl(weights[item], low, 0.2)
    assert talebi_proutiere(graph, weights, 0.2) == pytest.approx(total)
    # One item of several is an arm.
    assert talebi_proutiere(dpb.matroids.UniformMatroid(5, 1), MEANS, 0.3) == lai_robbins(MEANS, 0.3)
    # 4 items, bases of 2, Δ = .5, ε = .1: 1/Δ + K/ε = 22.
    assert conjectured_order(4, 2, 0.5, 0.1, 7) == pytest.approx(4 * math.log(7) * 22)


def test_minimax_forms_by_hand() -> None:
    # T = 3·10⁶, d = 5: Δ = √(3·4/(16·3·10⁶)) = 1/2000, TΔ/8 · e^(−½).
    assert joint_minimax(3 * 10**6, 5) == pytest.approx(1500 / 8 * math.exp(-0.5))
    # ε = 10⁻⁵: Δ = 4/(2εT).
    assert joint_minimax(3 * 10**6, 5, 1e-5) == pytest.approx(4 / (16e-5) * math.exp(-0.5))
    # ε = ln 2: e^ε − 1 = 1; with T = 2·10⁶ and d = 5, Δ = √(4/(2·2·10⁶)) = 1/1000.
    local = local_minimax(2 * 10**6, 5, math.log(2.0))
    assert local == pytest.approx(2000 / 8 * math.exp(-0.5))
    assert local_minimax(10**8, 5, 0.01) > 30 * joint_minimax(10**8, 5)
    # With few rounds Δ = ¼: T/32 · e^(−½), below all that can be lost.
    assert joint_minimax(2, 5, 0.01) == local_minimax(2, 5, 0.01) == pytest.approx(math.exp(-0.5) / 16)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 5.0])
def test_private_messages_tell_laws_apart_no_better_than_the_proofs_say(epsilon: float) -> None:
    """Randomised response about coins of means p and q: KL ≤ ε|p − q| and ≤ (e^ε − 1)² (p − q)²."""

    def message(mean: float) -> float:
        return 0.5 + (mean - 0.5) * math.tanh(0.5 * epsilon)

    pairs = [(p, q) for p in np.linspace(0.0, 1.0, 11) for q in np.linspace(0.0, 1.0, 11) if p != q]
    told = np.array([bernoulli_kl(message(p), message(q)) for p, q in pairs])
    apart = np.array([abs(p - q) for p, q in pairs])
    assert np.all(told <= epsilon * apart * (1 + 1e-9))
    assert np.all(told <= math.expm1(epsilon) ** 2 * apart**2 * (1 + 1e-9))
    # Neither is loose everywhere: at a large ε the one is nearly reached, at a small one half the other.
    if epsilon == 5.0:
        assert np.any(told > 0.9 * epsilon * apart)
    if epsilon == 0.01:
        assert np.any(told > 0.49 * math.expm1(epsilon) ** 2 * apart**2)


def test_what_is_conjectured_is_said_to_be() -> None:
    private, twin = (known_limit(TABLE_2, held) for held in (dpb.PureDP(1.0), dpb.NonPrivate()))
    assert private is not None and twin is not None
    assert "Conjectured by Chandak, Hu & Hegde, not proved" in private.sentence
    assert "onjecture" not in twin.sentence


def test_known_limits_say_for_what_they_are() -> None:
    world = BernoulliArms(MEANS)
    private, gaussian = known_limit(world, dpb.PureDP(0.1)), known_limit(world, dpb.GaussianDP(1.0))
    twin, lax = known_limit(world, dpb.NonPrivate()), known_limit(world, dpb.PureDP(30.0))
    assert private is not None and gaussian is not None and twin is not None and lax is not None
    assert private.name == "0.1-DP" and lax.name == gaussian.name == twin.name == "without privacy"
    assert private.rate > gaussian.rate == twin.rate == pytest.approx(lax.rate)
    assert private.at([1, 10**5]) == pytest.approx([0.0, lai_robbins(MEANS, 0.1) * math.log(10**5)])
    for one in (private, gaussian, twin):
        assert "asymptotic: at a given t one may be below" in one.sentence
    assert "None larger is known" in gaussian.sentence and "larger" not in twin.sentence
    # Of a given world with contexts nothing is known.
    assert known_limit(dpb.worlds.SphereContexts(), dpb.PureDP(1.0)) is None


def test_a_policy_that_learns_is_not_far_below_the_limit() -> None:
    """DP-IMED, whose constant is the limit's, is within a factor of two of it on an easy instance.

    Error rate: the mean of 40 runs is about the limit, with a standard error below a tenth of it (of 80
    runs with other seeds none was below .8 of it), so that a half is five standard errors away: 10⁻⁶.
    """
    world, rounds = BernoulliArms((0.9, 0.1)), 300_000
    policy = dpb.arms.PrivateIMED(privacy=dpb.PureDP(0.1))
    trace = dpb.simulate(policy, world, rounds, 40, seed=18, progress=False)
    limit = known_limit(world, dpb.PureDP(0.1))
    assert limit is not None
    assert float(trace.regret("private-imed")[:, -1].mean()) > 0.5 * float(limit.at(rounds))


def test_the_price_of_no_disasters_by_hand() -> None:
    # kl(¼, 1 − ¼) = ½ ln 3; kl(¼, ½) as above.
    divergence = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    price = 0.15 * 0.5 * math.log(3.0) / divergence
    assert regret_without_disasters((0.4, 0.25), 0.25, 0.1) == pytest.approx(price)
    assert regret_without_disasters((0.25, 0.4, 0.25), 0.25, 0.1) == pytest.approx(2.0 * price)
    prices = [regret_without_disasters(MEANS, lost, 0.05) for lost in (0.4, 0.1, 1e-3, 1e-6)]
    assert all(less < more for less, more in itertools.pairwise(prices))
    prices = [regret_without_disasters(MEANS, 1e-6, gap) for gap in (0.125, 0.1, 0.05, 0.01)]
    assert all(less < more for less, more in itertools.pairwise(prices))
    # A coin decides which arm is the best: half of all runs may be lost for nothing.
    assert regret_without_disasters(MEANS, 0.5, 0.05) == 0.0
    assert regret_without_disasters((0.98, 0.5), 1e-6, 0.05) == 0.0  # nothing is as good as 1.03
    with pytest.raises(InvalidInput, match=r"must lead by at least the gap, 0\.2"):
        regret_without_disasters(MEANS, 1e-6, 0.2)


def test_the_level_of_imed_by_hand() -> None:
    """Numbers that were found by other means; and one arm whose plays are written down."""
    expected: dict[Budget, int] = {dpb.PureDP(0.1): 253, dpb.PureDP(0.25): 121, dpb.PureDP(4.0): 52}
    expected |= {dpb.NonPrivate(): 52}
    expected |= {dpb.GaussianDP(0.25): 89, dpb.GaussianDP(1.0): 56, dpb.GaussianDP(5.0): 52}
    for budget, level in expected.items():
        assert imed_level(MEANS, 100_000, budget) == pytest.approx(level, abs=0.6), str(budget)
    # At 40 plays of an arm at ¼ against ½, T is 40·exp(40 kl).
    rounds = round(40 * math.exp(40 * bernoulli_kl(0.25, 0.5)))
    assert imed_level((0.25, 0.5), rounds, dpb.NonPrivate()) == pytest.approx(0.25 * 40, rel=1e-3)
    assert imed_level((0.5, 0.5), 1000, dpb.NonPrivate()) == 0.0
    assert imed_level((0.5, 0.499), 100, dpb.NonPrivate()) <= 0.1  # never more than all rounds cost


def test_a_policy_that_forgets_nothing_pays_the_price() -> None:
    """Of 4,000 runs of an even race to a fixed number of plays, regret and losses are on the right side.

    Plays that a normal approximation gives for a share of losses are checked against the bound, which
    they must exceed; with a tenth of them (the control) losses are far more than the share.
    """
    rng, means, gap, lost = np.random.default_rng(5), (0.5, 0.4), 0.1, 0.01

    def share_lost(plays: int) -> float:
        sums = rng.binomial(plays, means, size=(4000, 2))
        return float((sums[:, 1] >= sums[:, 0]).mean())

    plays = math.ceil(scipy.stats.norm.isf(lost) ** 2 * 0.5 / gap**2)
    assert share_lost(plays) < 2.0 * lost  # 5.6 deviations above it
    assert share_lost(plays // 10) > 10.0 * lost
    assert 0.1 * plays > regret_without_disasters(means, lost, gap)


def test_claim_13_by_hand() -> None:
    assert standard_privacy_regret(100, math.log(3.0)) == pytest.approx(50.0)
    assert standard_privacy_regret(100, math.log(2.0), 0.25) == pytest.approx(50.0)
    # No pair (p, q) that the constraints allow costs less, and some pair costs just that.
    epsilon, delta = 0.7, 0.1
    p, q = np.meshgrid(np.linspace(0, 1, 1001), np.linspace(0, 1, 1001))
    grown = math.exp(epsilon)
    allowed = (p <= grown * q + delta + 1e-9) & (1 - q <= grown * (1 - p) + delta + 1e-9)
    least = (1 - p + q)[allowed].min()
    assert standard_privacy_regret(1, epsilon, delta) == pytest.approx(least, abs=3e-3)


def test_claim_14_and_corollary_15_by_hand() -> None:
    n = 10**9
    assert least_pulls(n, 0.01, 0.2) == pytest.approx(math.log(n) / 0.2)
    assert private_arms_regret(n, 0.01, (0.2, 0.4, 0.2)) == pytest.approx(3 * math.log(n) / 2.0)
    # Where the proof does not reach, nothing is claimed.
    assert least_pulls(10**8, 1.0, 0.1) == 0.0 < least_pulls(10**9, 1.0, 0.1)
    assert private_arms_regret(10**8, 1.0, (0.1, 0.1)) == 0.0


def test_every_limit_is_documented() -> None:
    for name in limits.__all__:
        assert len(inspect.getdoc(getattr(limits, name)) or "") > 60, name


@pytest.mark.parametrize(
    "call",
    [
        lambda: lai_robbins(()),
        lambda: lai_robbins((0.5, 1.2)),
        lambda: lai_robbins((0.5, 0.2), 0.0),
        lambda: lai_robbins((0.5, 0.2), math.nan),
        lambda: bounded_divergence(coin(0.5), 1.5),
        lambda: burnetas_katehakis([]),
        lambda: talebi_proutiere(dpb.matroids.UniformMatroid(3, 1), (0.1, 0.2)),
        lambda: talebi_proutiere(dpb.matroids.UniformMatroid(2, 1), (0.1, 1.2)),
        lambda: conjectured_order(4, 2, 0.0, 1.0, 10),
        lambda: joint_minimax(0, 5),
        lambda: joint_minimax(10, 5, -1.0),
        lambda: local_minimax(10, 1, 1.0),
        lambda: standard_privacy_regret(10, 1.0, 2.0),
        lambda: least_pulls(10, 0.0, 0.1),
    ],
)
def test_bad_arguments_are_refused(call: object) -> None:
    with pytest.raises(dpb.errors.InvalidInput):
        call()  # type: ignore[operator]
