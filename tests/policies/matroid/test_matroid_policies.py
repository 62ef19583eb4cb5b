"""Policies for matroids: their guarantees by number, their formulas by hand, and what they earn."""

import dataclasses
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.audit import replay
from dpbandits.engine.streams import run_seed
from dpbandits.errors import BudgetNotAccepted, InvalidInput
from dpbandits.experiments.chandak.setting import TABLE_2
from dpbandits.policies import matroid
from dpbandits.policies.matroid.focused_matroid_ucb import _reach
from dpbandits.policies.testing import rehearse
from dpbandits.testing import check_policy, example_policies
from dpbandits.testing.driving import drive, state_bytes

pytestmark = pytest.mark.slow

ALL = [policy for name in matroid.__all__ for policy in example_policies(getattr(matroid, name))]
PRINTED = [dpb.matroids.PrivateMatroidUCB, dpb.matroids.PrivateMatroidThompson]


def name(policy: dpb.Policy) -> str:
    return f"{policy.name()}-{policy.privacy}"


@pytest.mark.parametrize("kind", PRINTED)
@pytest.mark.parametrize(
    ("budget", "cost"), [(dpb.PureDP(0.5), 7 / 3), (dpb.GaussianDP(1.0), 1.5275252)]
)
def test_the_printed_first_round_costs_all_items_over_the_rank(
    kind: type[dpb.matroids.PrivateMatroidUCB], budget: dpb.Budget, cost: float
) -> None:
    """L = 7 and K = 3: (7/3)ε under ε-DP, √(7/3)μ under μ-GDP; without that round the budget itself."""
    problem = TABLE_2.problem(None)
    printed = kind(privacy=budget, calibration="paper")
    found = replay(printed, problem, rounds=8)
    held = printed.guarantee(problem).budget
    assert found.passed and found.cost == pytest.approx(cost * budget.size)
    assert held.size == pytest.approx(cost * budget.size)
    default = kind(privacy=budget)
    found = replay(default, problem, rounds=8)
    assert found.passed and found.cost == pytest.approx(budget.size)
    assert default.guarantee(problem).budget == budget


def test_the_look_is_the_printed_round_0() -> None:
    """After it t = 1, so that the index has ln K; without it the second round has ln 2K."""
    problem = TABLE_2.problem(None)
    two = dpb.PureDP(2.0)
    printed = dpb.matroids.PrivateMatroidUCB(privacy=two, calibration="paper")
    for policy, t in ((printed, 1.0), (dpb.matroids.PrivateMatroidUCB(privacy=two), 2.0)):
        learner = policy.start(problem, seed=1)
        for _ in range(2):
            items = learner.select()
            learner.update(items, [0.5] * items.size)
        public, spread = learner._public, 3.0 * math.log(3.0 * t)
        seen = public.plays > 0
        bonus = math.sqrt(spread) * public.width + spread * public.tail
        assert public.score[seen] == pytest.approx((public.mean + bonus)[seen])


@pytest.mark.parametrize("kind", [dpb.matroids.MatroidUCB, dpb.matroids.MatroidThompson])
def test_rivals_may_begin_with_a_look_as_well(kind: Any) -> None:
    problem = TABLE_2.problem(None)
    learner = kind(first_round="look").start(problem, seed=1)
    for size in (7, 3, 3):
        items = learner.select()
        assert items.size == size
        learner.update(items, [0.5] * size)
    assert kind().start(problem, seed=1).select().size == 3
    with pytest.raises(InvalidInput, match="first_round"):
        kind(first_round="glance")


def test_the_guarantee_protects_a_rounds_vector() -> None:
    problem = TABLE_2.problem(None)
    said = str(dpb.FocusedMatroidUCB(privacy=dpb.PureDP(2.0)).guarantee(problem))
    assert "one round's vector of rewards" in said and "the matroid" in said
    one_reward = dpb.NoiseAwareIMED(privacy=dpb.PureDP(2.0)).guarantee(dpb.Arms(3))
    with pytest.raises(dpb.errors.NotComparable):
        one_reward.implies(dpb.FocusedMatroidUCB(privacy=dpb.PureDP(2.0)).guarantee(problem))


@pytest.mark.parametrize("policy", ALL, ids=name)
def test_bases_are_played_and_loops_are_not(policy: dpb.Policy) -> None:
    problem, seed = TABLE_2.problem(None), run_seed(1, 0)
    learner = rehearse(policy, problem, seed=seed)
    for items in set(drive(learner, TABLE_2, seed, 300).actions):
        assert len(items) == 3 and problem.matroid.independent(items)
    loop = problem.matroid.loops[0]
    sums = getattr(learner._public, "batches", None) or getattr(learner._public, "tree", None)
    if sums is not None:
        # It never spends anything: nothing was ever released for it.
        assert sums.total[loop, 0] == 0.0 and sums.variance[loop] == 0.0
        assert np.all(np.delete(sums.total[:, 0], loop) != 0.0)


@pytest.mark.parametrize("policy", ALL, ids=name)
def test_the_first_round_favours_no_item(policy: dpb.TrustedPolicy) -> None:
    """Any 2 of 8 items: each in a quarter of 400 first rounds, within 5 standard errors (5·10⁻⁶)."""
    problem = dpb.MatroidBases(dpb.matroids.UniformMatroid(8, 2))
    first = Counter(
        int(item) for seed in range(400) for item in policy.start(problem, seed=seed).select()
    )
    error = math.sqrt(400 * 0.25 * 0.75)
    assert all(abs(first[item] - 100) < 5 * error for item in range(8)), first


def test_the_printed_index_by_hand() -> None:
    """U = w̃ + √(3 ln(Kt)/T) + 3 ln(Kt)/(ε₀T), with w̃ of the last batch alone."""
    policy = dpb.matroids.PrivateMatroidUCB(privacy=dpb.PureDP(2.0))
    learner = policy.start(TABLE_2.problem(None), seed=1)
    drive(learner, TABLE_2, run_seed(1, 0), 200)
    learner.select()
    public = learner._public
    log = 3.0 * math.log(3 * 201)
    for item in range(6):
        plays = int(public.plays[item])
        assert plays == 2 ** int(public.batches.released[item] - 1)
        mean = float(public.batches.last[item, 0]) / plays + 0.5
        assert public.score[item] == pytest.approx(mean + math.sqrt(log / plays) + log * 1.5 / plays)
    assert public.batches.scale == 1.5  # K/ε


def test_klucb_and_tree_index_by_hand() -> None:
    learner = dpb.matroids.MatroidKLUCB().start(TABLE_2.problem(None), seed=1)
    drive(learner, TABLE_2, run_seed(1, 0), 100)
    learner.select()
    public, level = learner._public, math.log(101) + 3 * math.log(math.log(101))
    for item in range(6):
        x, q, plays = public.mean[item], public.score[item], public.plays[item]
        kl = sum(a * math.log(a / b) for a, b in ((x, q), (1 - x, 1 - q)) if a > 0)
        assert plays * kl == pytest.approx(level, rel=1e-6)
    tree = dpb.matroids.CombinatorialTreeUCB(privacy=dpb.PureDP(3.0), calibration="paper")
    learner = tree.start(TABLE_2.problem(None), seed=1)
    drive(learner, TABLE_2, run_seed(1, 0), 100)
    learner.select()
    public, log = learner._public, math.log(101)
    for item in range(6):
        plays = int(public.plays[item])
        mean = min(max(float(public.tree.total[item, 0]) + plays / 2, 0.0), plays) / plays
        bonus = math.sqrt(1.5 * log / plays) + 12 * 3 * log**3 / (3.0 * plays)
        assert public.score[item] == pytest.approx(mean + bonus)


class ByHand:
    """The rule of `FocusedMatroidUCB` under ε-DP, as its docstring says it, on all sets of items."""

    def __init__(self, problem: dpb.MatroidBases, policy: dpb.FocusedMatroidUCB) -> None:
        self.problem = problem
        self.fed, self.first = policy.schedule(problem)
        assert isinstance(policy.privacy, dpb.PureDP)
        self.margin = math.inf if policy.margin is None else policy.margin
        self.caution = policy.caution
        self.scale = self.fed / policy.privacy.epsilon
        self.batches: dict[int, list[tuple[int, float]]] = {i: [] for i in range(problem.items)}

    def mean_and_doubt(self, item: int) -> tuple[float, float, float]:
        """The mean weighted by precision, its variance and the scale of its largest Laplace draw."""
        batches, b = self.batches[item], self.scale
        weights = [n / (n / 4 + 2 * b * b) for n, _ in batches]
        total = sum(a * n for a, (n, _) in zip(weights, batches, strict=True))
        mean = sum(a * s for a, (_, s) in zip(weights, batches, strict=True)) / total
        squares = sum(a * a * n for a, (n, _) in zip(weights, batches, strict=True))
        variance = 0.25 * squares / total**2 + 2 * b * b * sum(a * a for a in weights) / total**2
        return mean, variance, b * max(weights) / total

    def check(self, done: int, fed: list[int], played: list[int]) -> None:
        """Of the hopeful basis the items in most doubt are fed (equals are equal), then by the mean."""
        items, index, known = range(self.problem.items), [], []
        for item in items:
            known.append(self.mean_and_doubt(item) if self.batches[item] else (0.0, 0.0, 0.0))
            mean, doubt, tail = known[-1]
            log = self.caution * math.log(1 + done / max(1, sum(n for n, _ in self.batches[item])))
            level = math.log((done + 1e5) / 1.5)
            reach = math.sqrt(2 * doubt * level)
            if 2 * tail**2 * level > doubt:
                reach = tail * level + doubt / (2 * tail)
            width = max(math.sqrt(log * doubt), log * tail, reach - self.margin)
            index.append(min(max(mean, 0.0), 1.0) + width)
        hopeful = self.problem.matroid.best_basis(index)
        assert set(fed) <= set(hopeful)
        most = sorted((known[item][1] for item in hopeful), reverse=True)[: self.fed]
        assert sorted((known[item][1] for item in fed), reverse=True) == pytest.approx(most)
        weights = [1e9 if item in fed else known[item][0] for item in items]
        assert tuple(sorted(played)) == self.problem.matroid.best_basis(weights)


@pytest.mark.parametrize("margin", [None, 0.1, 0.045])
def test_the_focused_rule_by_hand(margin: float | None) -> None:
    policy = dpb.FocusedMatroidUCB(privacy=dpb.PureDP(2.0), fed=2, first_batch=3, margin=margin)
    problem, chance = TABLE_2.problem(None), np.random.default_rng(5)
    learner, hand = policy.start(problem, seed=3), ByHand(problem, policy)
    compared, chosen_at, before = 0, 0, np.zeros(7)
    for done in range(400):
        items = learner.select()
        public = learner._public
        for item in range(7):
            if public.plays[item] > sum(n for n, _ in hand.batches[item]):
                length = int(public.plays[item]) - sum(n for n, _ in hand.batches[item])
                total = float(public.batches.total[item, 0])
                hand.batches[item].append((length, total - before[item] + length / 2))
                before[item], chosen_at = total, done
        if done >= chosen_at + max(1, int(0.03 * chosen_at)):
            chosen_at = done
        if chosen_at == done and all(hand.batches[item] for item in range(6)):
            hand.check(done, items[:2].tolist(), items.tolist())
            compared += 1
        learner.update(items, (chance.random(3) < np.array(TABLE_2.means)[items]).astype(float))
    assert compared > 50


@pytest.mark.parametrize(("doubt", "tail"), [(1.0, 0.0), (1.0, 0.1), (1.0, 0.4), (1.0, 1.0), (0.1, 1.0)])
def test_a_mean_is_beyond_its_reach_as_seldom_as_the_level_says(doubt: float, tail: float) -> None:
    """10⁶ draws at level e⁻⁵; six standard errors are 5 % of that (10⁻⁹ for each of the ten bounds)."""
    chance, level, draws = np.random.default_rng(11), 5.0, 1_000_000
    deviation = chance.normal(0.0, math.sqrt(doubt), draws) + chance.laplace(0.0, tail or 1e-300, draws)
    often = float(np.mean(deviation > _reach(doubt, tail, level))) / math.exp(-level)
    assert 0.05 < often < 1.05


def test_with_a_margin_an_item_dropped_by_bad_luck_is_found_again() -> None:
    """Item 0 pays nothing in its first batch and 1 ever after; the others pay ½."""
    problem = dpb.MatroidBases(dpb.matroids.UniformMatroid(5, 2))
    found = {}
    for margin in (None, 0.05):
        policy = dpb.FocusedMatroidUCB(privacy=dpb.PureDP(4.0), fed=1, first_batch=8, margin=margin)
        found[margin] = 0
        for seed in range(12):
            learner, times = policy.start(problem, seed=seed, compiled=False), 0
            for done in range(1500):
                items = learner.select()
                times += items[0] == 0
                first = float(times > 8) if items[0] == 0 else float(done % 2)
                learner.update(items, [first, float(done % 2)])
            found[margin] += bool(times > 200)
    assert found[None] <= 3 and found[0.05] >= 9, found


def test_a_short_run_is_not_insured() -> None:
    policy = dpb.FocusedMatroidUCB(privacy=dpb.PureDP(2.0))
    guarded = dataclasses.replace(policy, growth=0.3, caution=0.5, margin=0.04)
    for horizon, expected in ((None, guarded), (20_001, guarded), (20_000, policy)):
        found = dpb.recommend(TABLE_2.problem(horizon), dpb.PureDP(2.0))
        assert found.policy == expected
        assert ("With a margin" in found.reason) == (expected is guarded)


@pytest.mark.parametrize("budget", [dpb.PureDP(1.0), dpb.GaussianDP(1.0)], ids=str)
def test_the_guard_keeps_every_promise(budget: dpb.Budget) -> None:
    """Replay, saves, rounds in flight; also with margins at which it decides in so few rounds."""
    for margin in (0.045, 2.0, 6.0):
        policy = dpb.FocusedMatroidUCB(privacy=budget, growth=0.3, caution=0.5, margin=margin)
        check_policy(policy, TABLE_2)


def test_rewards_that_are_not_fed_are_not_read() -> None:
    problem = TABLE_2.problem(None)
    policy = dpb.FocusedMatroidUCB(privacy=dpb.PureDP(1.0), fed=1, first_batch=2)
    one, other = (policy.start(problem, seed=3) for _ in range(2))
    for index in range(200):
        reward = float(index % 3 == 0)
        one.update(one.select(), [reward, 1.0, 1.0])
        other.update(other.select(), [reward, 0.0, 0.0])
    assert state_bytes(one) == state_bytes(other)


@pytest.mark.parametrize(
    ("budget", "rank", "schedule"),
    [
        (dpb.PureDP(2.0), 17, (4, 32)),
        (dpb.PureDP(2.0), 3, (2, 16)),
        (dpb.PureDP(0.01), 4, (1, 1600)),
        (dpb.PureDP(1e12), 4, (4, 4)),
        (dpb.GaussianDP(1.0), 17, (17, 50)),
        (dpb.NonPrivate(), 17, (17, 4)),
    ],
)
def test_defaults_of_the_focused_rule(budget: dpb.Budget, rank: int, schedule: tuple[int, int]) -> None:
    problem = dpb.MatroidBases(dpb.matroids.UniformMatroid(30, rank))
    assert dpb.FocusedMatroidUCB(privacy=budget).schedule(problem) == schedule


@pytest.fixture(scope="module")
def table_2() -> dict[str, Any]:
    """20 runs of 10⁴ rounds; the standard errors are below 0.002, so 1 % is 10 of them."""
    two = dpb.PureDP(2.0)
    policies = {
        "OMM": dpb.matroids.MatroidUCB(),
        "CTS": dpb.matroids.MatroidThompson(),
        "DPUCB-MAT": dpb.matroids.PrivateMatroidUCB(privacy=two, calibration="paper"),
        "DPTS-MAT": dpb.matroids.PrivateMatroidThompson(privacy=two, calibration="paper"),
        "recommended": dpb.recommend(TABLE_2.problem(10_000), two).policy,
    }
    trace = dpb.simulate(policies, TABLE_2, 10_000, 20, seed=0, progress=False)
    return {label: 2.15 - trace.regret(label)[:, -1] / 10_000 for label in policies}


@pytest.mark.parametrize(("label", "goal"), [("OMM", 2.138), ("DPUCB-MAT", 2.037), ("DPTS-MAT", 2.090)])
def test_the_published_policies_earn_what_they_did(
    table_2: dict[str, Any], label: str, goal: float
) -> None:
    assert table_2[label].mean() == pytest.approx(goal, rel=0.01)


def test_the_recommended_policy_earns_more_than_those_without_privacy(table_2: dict[str, Any]) -> None:
    mine = table_2["recommended"]
    assert mine.mean() >= 2.1455
    for rival in ("OMM", "CTS"):
        error = math.hypot(*(x.std(ddof=1) / math.sqrt(20) for x in (mine, table_2[rival])))
        assert mine.mean() > table_2[rival].mean() + 4.753 * error
    assert mine.min() > table_2["DPTS-MAT"].max()


def test_recommendations_say_when_there_is_too_little() -> None:
    problem = dpb.MatroidBases(dpb.matroids.UniformMatroid(100, 17), horizon=20_000)
    assert "expect little" not in dpb.recommend(problem, dpb.PureDP(2.0)).reason
    assert "expect little" in dpb.recommend(problem, dpb.PureDP(0.05)).reason
    assert isinstance(dpb.recommend(problem, dpb.NonPrivate()).policy, dpb.FocusedMatroidUCB)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="MatroidUCB is for MatroidBases"):
        dpb.matroids.MatroidUCB().start(dpb.Arms(3))
    with pytest.raises(InvalidInput, match="UCB1 is for Arms"):
        dpb.arms.UCB1().start(TABLE_2.problem(None))
    with pytest.raises(BudgetNotAccepted):
        dpb.matroids.PrivateMatroidUCB(privacy=dpb.ApproxDP(1.0, 1e-6))
    with pytest.raises(InvalidInput, match="for ε-DP"):
        dpb.matroids.CombinatorialTreeUCB(privacy=dpb.GaussianDP(1.0), calibration="paper")
    for wrong in (
        {"fed": 0},
        {"first_batch": 0},
        {"growth": 0.0},
        {"caution": -1.0},
        {"margin": -0.1},
        {"block": 0},
    ):
        with pytest.raises(InvalidInput):
            dpb.FocusedMatroidUCB(privacy=dpb.PureDP(1.0), **wrong)
    with pytest.raises(InvalidInput):
        dpb.matroids.MatroidThompson(prior="cauchy")  # type: ignore[arg-type]


def test_the_command_line_knows_matroids() -> None:
    from typer.testing import CliRunner

    from dpbandits.cli.main import app

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, list(arguments))
        return result.exit_code, result.output + str(result.exception or "")

    assert "focused-matroid-ucb" in run("recommend", "--items", "9", "--rank", "3", "--no-simulation")[1]
    said = run("recommend", "--items", "9", "--privacy", "mu=1", "--no-simulation")[1]
    assert "one round's vector" in " ".join(said.split())
    assert "needs its path" in run("compare", "--env", "movie-ratings")[1]
