"""Linear policies: their algebra, confidence sets, regularisers, input, and the textbook they follow."""

import dataclasses
import math
import warnings
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2, chisquare, kstest

import dpbandits as dpb
from dpbandits.audit import replay
from dpbandits.engine import Streams, leaves, state_bytes, static_size
from dpbandits.engine.loop import Ledger, compiled_for
from dpbandits.engine.streams import run_seed
from dpbandits.errors import BudgetNotAccepted, InvalidInput, UnusableFeatures
from dpbandits.mechanisms.gram import unpack
from dpbandits.mechanisms.wishart import wishart_dof
from dpbandits.policies.linear.shared.algebra import cholesky, eigen, invert, norm_bound
from dpbandits.policies.linear.shared.choosing import (
    RADIUS,
    _norm,
    most_promising,
    most_promising_of_all,
)
from dpbandits.policies.linear.shared.confidence import estimate
from dpbandits.policies.linear.shared.rows import GRID, grid_row
from dpbandits.policies.linear.shared.tiles import LANES, _square, put, start_tile
from dpbandits.policies.linear.shared.trees import leaf_waits
from dpbandits.policies.linear.tree_contextual_ucb import row_change
from dpbandits.policies.linear.tree_lin_ucb import (
    PaddedWishart,
    _draw_padding,
    _read_wishart,
    _restate,
)
from dpbandits.policies.testing import rehearse
from dpbandits.privacy.calibration import Calibration
from dpbandits.problems.linear import Rewards
from dpbandits.sums.binary_tree import finish_leaf, merge_leaf
from dpbandits.testing import check_policy

pytestmark = pytest.mark.slow

MU = dpb.GaussianDP(1.0)
PAPER = dpb.ApproxDP(1.0, 0.1)


# Algebra.


def _symmetric(dim: int, seed: int) -> Any:
    matrix = np.random.default_rng(seed).normal(size=(dim, dim))
    return matrix + matrix.T


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 20, 40, 41, 65])
def test_eigenvectors_are_those_of_numpy(dim: int) -> None:
    matrix = _symmetric(dim, dim)
    for many in (False, True):
        values, vectors = np.zeros(dim), np.zeros((dim, dim))
        eigen(matrix.copy(), values, vectors, many)
        assert np.sort(values) == pytest.approx(np.linalg.eigvalsh(matrix), abs=1e-10)
        assert vectors @ np.diag(values) @ vectors.T == pytest.approx(matrix, abs=1e-10)
        assert vectors.T @ vectors == pytest.approx(np.eye(dim), abs=1e-12)


@pytest.mark.parametrize("kind", ["zero", "diagonal", "nearly diagonal", "one direction", "equal"])
def test_eigenvectors_of_large_matrices_that_are_special(kind: str) -> None:
    dim, row = 50, np.random.default_rng(1).normal(size=50)
    matrix = {
        "zero": np.zeros((dim, dim)),
        "diagonal": np.diag(row),
        "nearly diagonal": np.diag(row) + 1e-157 * np.outer(row, row),
        "one direction": np.outer(row, row),
        "equal": np.full((dim, dim), -2.0),
    }[kind]
    values, vectors = np.zeros(dim), np.zeros((dim, dim))
    eigen(matrix.copy(), values, vectors)
    assert vectors @ np.diag(values) @ vectors.T == pytest.approx(matrix, abs=1e-10)
    assert vectors.T @ vectors == pytest.approx(np.eye(dim), abs=1e-12)


@pytest.mark.parametrize("dim", [1, 3, 40])
def test_inverse_and_determinant_are_those_of_numpy(dim: int) -> None:
    matrix = _symmetric(dim, dim) / 10.0
    matrix = matrix @ matrix
    lower, inverse, axes = np.zeros((dim, dim)), np.zeros((dim, dim)), static_size(dim)
    log_det = cholesky(matrix, 2.0, lower, axes)
    invert(lower, inverse, axes)
    whole = matrix + 2.0 * np.eye(dim)
    assert log_det == pytest.approx(np.linalg.slogdet(whole)[1], rel=1e-10)
    assert inverse == pytest.approx(np.linalg.inv(whole), abs=1e-10)
    assert norm_bound(inverse, axes) >= np.linalg.eigvalsh(inverse).max() - 1e-12


def test_a_matrix_that_is_not_positive_has_no_factor() -> None:
    assert math.isnan(cholesky(np.diag([1.0, -2.0]), 1.0, np.zeros((2, 2)), np.zeros(2)))
    assert not math.isnan(cholesky(np.diag([1.0, -2.0]), 2.5, np.zeros((2, 2)), np.zeros(2)))


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 30), st.floats(0.0, 10.0))
@settings(max_examples=60)
def test_the_shortcut_chooses_like_the_full_score(seed: int, dim: int, count: int, width: float) -> None:
    draw = np.random.default_rng(seed)
    features, mean, root = draw.normal(size=(count, dim)), draw.normal(size=dim), _symmetric(dim, seed)
    shape = root @ root
    score = features @ mean + width * np.sqrt(np.einsum("ki,ij,kj->k", features, shape, features))
    reach, none = norm_bound(shape, mean), start_tile(dim)
    chosen = most_promising(features, mean, shape, width, reach, mean, none, draw)
    assert score[chosen] >= score.max() - 1e-9
    chosen = most_promising_of_all(features, mean, shape, width, static_size(dim), draw)
    assert score[chosen] >= score.max() - 1e-9


@pytest.mark.parametrize("choose", [most_promising, most_promising_of_all])
def test_of_equal_bounds_each_is_as_likely(choose: Any) -> None:
    """Three of five are equal: counts of 3000 choices pass χ² at 1e-6; one of them alone does not."""
    features = np.array([[0.1, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.3], [1.0, 0.0]])
    mean, shape, draw = np.array([0.5, 0.1]), np.eye(2), np.random.default_rng(0)
    counts = np.zeros(5)
    for _ in range(3000):
        if choose is most_promising:
            counts[choose(features, mean, shape, 1.0, 1.0, mean, start_tile(2), draw)] += 1
        else:
            counts[choose(features, mean, shape, 1.0, mean, draw)] += 1
    assert counts[[0, 3]].sum() == 0
    assert chisquare(counts[[1, 2, 4]]).pvalue > 1e-6 > chisquare([3000, 0, 0]).pvalue


@pytest.mark.parametrize("width", [0.0, 0.3, 10.0])
@pytest.mark.parametrize(("dim", "count"), [(24, 3), (25, 70), (27, 64), (30, 33)])
def test_side_by_side_they_choose_like_one_by_one(dim: int, count: int, width: float) -> None:
    """With the same draws for the same ties; and nobody's features stay behind."""
    draw, tile = np.random.default_rng(dim), start_tile(dim)
    assert tile.ndim == 2
    features, mean = np.round(draw.normal(size=(count, dim))), np.round(draw.normal(size=dim))
    features[count // 2] = features[0]  # a tie, where they are best
    mean += features[0]
    root = _symmetric(dim, count) / dim
    shape = root @ root + np.eye(dim)
    given = features, mean, shape, width, norm_bound(shape, mean), mean
    for seed in range(4):
        one, other = np.random.default_rng(seed), np.random.default_rng(seed)
        assert most_promising(*given, np.zeros(0), one) == most_promising(*given, tile, other)
        assert one.random() == other.random()
        assert not tile.any()


@pytest.mark.parametrize("size", [24, 25, 26, 27, 50])
def test_sums_side_by_side_are_those_of_one_by_one(size: int) -> None:
    draw, tile = np.random.default_rng(size), start_tile(size)
    features, shape = draw.normal(size=(LANES, size)), _symmetric(size, size)
    for lane in range(LANES):
        put(tile, lane, features, lane, 0.0)
    _square(tile, LANES - 1, shape)
    norms = [_norm(features, lane, shape, features[0]) for lane in range(LANES)]
    squares = np.sqrt(np.maximum(2.0 * tile[size + 4], 0.0))
    assert squares[:-1].tolist() == norms[:-1]
    assert squares[-1] == 0.0  # not asked for


@pytest.mark.parametrize("policy", [dpb.RandomizedLinUCB(privacy=MU), dpb.linear.LinUCB()], ids=str)
def test_many_features_plain_and_compiled(policy: dpb.Policy) -> None:
    """Where tiles are used, both choose alike and keep the same state."""
    problem, draw = dpb.LinearContexts(26), np.random.default_rng(0)
    learners = [rehearse(policy, problem, seed=1, compiled=compiled) for compiled in (False, True)]
    for number in range(25):
        features = draw.normal(size=(5 + 3 * number, 26)) / 6.0
        plain, compiled = (learner.select(features) for learner in learners)
        assert plain == compiled
        reward = draw.random()
        for learner in learners:
            learner.update(plain, reward)
    states = [state_bytes(learner._public) for learner in learners]
    assert states[0] == states[1]
    assert not learners[0]._public.tile.any() and learners[0]._public.tile.size


# Rows.


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=3, max_size=3),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([1.0, 0.3, 1e-200, 1e200, 7.0]),
)
@settings(max_examples=300)
def test_whatever_comes_in_a_row_is_within_the_bounds_and_on_the_grid(
    features: list[float], reward: float, bound: float
) -> None:
    row = np.zeros(3)
    with np.errstate(all="ignore"):
        value = grid_row(row, np.array([features]), 0, reward, bound, Rewards(bound, 0.3 * bound), GRID)
    steps = row * GRID
    assert (steps == np.rint(steps)).all() and value * GRID == round(value * GRID)
    assert float(steps @ steps) <= GRID * GRID and abs(value) <= 1.0  # exact: whole numbers
    if not (np.isfinite(features).all() and reward == reward):
        assert not row.any() and value == 0.0


# The textbook.


def test_lin_ucb_is_the_textbook() -> None:
    """Action by action, against the inverse of a matrix made anew in every round."""
    draw, problem = np.random.default_rng(1), dpb.LinearContexts(4, max_norm=2.0, max_reward=3.0)
    learner = dpb.LinUCB(regularizer=0.5).start(problem, seed=1, compiled=False)
    gram, moment = 0.5 * np.eye(4), np.zeros(4)
    for t in range(1, 200):
        features = draw.normal(size=(6, 4))
        features *= 2.0 / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 2.0)
        inverse = np.linalg.inv(gram)
        extra = np.linalg.slogdet(gram)[1] - 4 * math.log(0.5)
        beta = math.sqrt(2.0 * math.log(t) + extra) + math.sqrt(0.5)
        widths = np.sqrt(np.einsum("ki,ij,kj->k", features, inverse, features))
        action = learner.select(features)
        assert action == np.argmax(features @ inverse @ moment + beta * widths)
        reward = float(draw.normal())
        learner.update(action, reward)
        z, w = features[action] / 2.0, min(max(reward / 3.0, -1.0), 1.0)
        gram += np.outer(z, z)
        moment += z * w


def test_the_papers_noise_and_the_exact_one() -> None:
    """The values of Shariff & Sheffet's formulas, worked out by hand."""

    def scale(rounds: int, budget: dpb.ApproxDP, calibration: Calibration) -> float:
        policy = dpb.linear.TreeLinUCB(privacy=budget, calibration=calibration)
        public, _ = policy.begin(dpb.LinearContexts(5, horizon=rounds))
        return float(public.tree.inner[0])

    assert scale(50_000_000, PAPER, "paper") == pytest.approx(
        4 * math.sqrt(27) * 2 * math.log(40), rel=1e-12
    )
    assert scale(50_000_000, PAPER, "exact") == pytest.approx(2 * math.sqrt(26) * 1.085878, rel=1e-6)
    assert scale(100_000, dpb.ApproxDP(1.0, 1e-6), "paper") == pytest.approx(
        4 * math.sqrt(18) * 2 * math.log(4e6), rel=1e-12
    )
    policy = dpb.linear.TreeLinUCB(privacy=PAPER, calibration="paper")
    budget = policy.guarantee(dpb.LinearContexts(5, horizon=2**20)).budget
    assert budget == dpb.GaussianDP(math.sqrt(20 / 21) / (4 * math.log(40)))


def test_the_papers_regularisers() -> None:
    """Proposition 11 at n = 2^20, d = 5, α = 1/n, from the printed formulas."""
    public, _ = dpb.linear.TreeLinUCB(privacy=PAPER, calibration="paper").begin(
        dpb.LinearContexts(5, horizon=2**20)
    )
    n, m = 2.0**20, 21.0
    norm = math.sqrt(32) * m * 2 * math.log(40) * (4 * math.sqrt(5) + 2 * math.log(2 * n * n))
    sigma = 4 * math.sqrt(m) * 2 * math.log(40)
    gamma = sigma * math.sqrt(m / norm) * (math.sqrt(5) + math.sqrt(2 * math.log(2 * n * n)))
    for row in public.regularizers:
        assert row == pytest.approx([2 * norm, norm, 3 * norm, gamma], rel=1e-12)


def test_the_papers_regularisers_of_wishart_noise() -> None:
    """Proposition 9 at n = 2^20, d = 5, α = 1/n, from the printed formulas; its γ′ is an upper bound."""
    problem, n, m = dpb.LinearContexts(5, horizon=2**20), 2.0**20, 21
    root, spread = (
        math.sqrt(m * wishart_dof(5, m, PAPER)),
        math.sqrt(5) + math.sqrt(2 * math.log(8 * n * n)),
    )
    tail = math.sqrt(5) + math.sqrt(2 * math.log(2 * n * n))
    low, high = 2 * (root - spread) ** 2, 2 * (root + spread) ** 2
    shared: dict[str, Any] = {"noise": "wishart", "calibration": "paper", "nodes": "all"}
    plain, _ = dpb.linear.TreeLinUCB(privacy=PAPER, shifted=False, **shared).begin(problem)
    moved, _ = dpb.linear.TreeLinUCB(privacy=PAPER, **shared).begin(problem)
    new = 8 * root * spread
    for row in plain.regularizers:
        assert row == pytest.approx([0.0, low, high, math.sqrt(2) * tail], rel=1e-12)
    for row in moved.regularizers:
        gamma = math.sqrt(2) * tail * math.sqrt(low / new)
        assert row == pytest.approx([new - low, new, 2 * new, gamma], rel=1e-9)
        assert gamma < math.sqrt(2) * math.sqrt(root * tail)


# The noise of m nodes in every round.

_PADDED = dpb.linear.TreeLinUCB(privacy=PAPER, noise="wishart", nodes="all")


def _noise_of(nodes: Any, rounds: int, runs: int) -> tuple[Any, int]:
    """xᵀHx/2 for x of length 1 before round `rounds` + 1, where all rows are zero; and m·k."""
    policy, problem = dataclasses.replace(_PADDED, nodes=nodes), dpb.LinearContexts(2, horizon=16)
    found, direction = [], np.array([0.6, 0.8])
    for seed in range(runs):
        learner = policy.start(problem, seed=seed, compiled=False)
        for _ in range(rounds):
            learner.update(learner.select(np.zeros((2, 2))), 0.0)
        learner.select(np.zeros((2, 2)))
        found.append(direction @ learner._public.gram @ direction / 2.0)
    return np.array(found), 4 * int(learner._public.settings.dof)


@pytest.mark.parametrize("rounds", [0, 1, 4, 7, 11])
def test_the_noise_of_all_nodes_has_the_papers_law_in_every_round(rounds: int) -> None:
    """W(L̃²I, mk) with m = 4, whether 0, 1, 2 or 3 nodes are live.

    Five tests at 10⁻⁶ each. Controls: a degree of freedom in 40 less, and noise of live nodes alone.
    """
    drawn, freedom = _noise_of("all", rounds, 300)
    assert kstest(drawn, chi2(freedom).cdf).pvalue > 1e-6
    assert kstest(drawn, chi2(freedom - freedom // 40).cdf).pvalue < 1e-6
    assert rounds == 0 or kstest(_noise_of("live", rounds, 40)[0], chi2(freedom).cdf).pvalue < 1e-6


def test_padding_is_drawn_once_before_the_first_decision() -> None:
    learner = _PADDED.start(dpb.LinearContexts(2, horizon=16), seed=1, compiled=False)
    assert not learner._public.padding.any()
    learner.update(learner.select(np.eye(2)), 1.0)
    first = learner._public.padding.copy()
    assert first.shape == (5, 6) and not first[0].any() and (np.diff(first[:, 0]) > 0.0).all()
    for _ in range(15):
        learner.update(learner.select(np.eye(2)), 1.0)
    assert (learner._public.padding == first).all()


class _NodesWithoutNoise(PaddedWishart):
    """Wrong: padding hides nothing, since it is the same in every round."""

    def release(self, secret: Any, noise: Any) -> None:
        if self.padding[-1, 0] == 0.0:
            _draw_padding(self, secret, noise)
        if leaf_waits(self):
            self.clock[1] = self.clock[0]
            place = merge_leaf(self.tree, secret.leaves, 0)
            self.tree.prefix[0, place + 1] = self.tree.prefix[0, place] + secret.leaves.nodes[0, place]
            finish_leaf(self.tree, 0, place, 0.0)
            _read_wishart(self, self.padding.shape[0] - 1 - int(self.tree.live[0]))
            _restate(self, 0)


class PaddedOnly(dpb.linear.TreeLinUCB):
    """The control of the replay."""

    abstract: ClassVar[bool] = True

    def begin(self, problem: Any) -> Any:
        public, secret = super().begin(problem)
        return _NodesWithoutNoise(*public), secret


def test_padding_in_place_of_a_nodes_own_noise_is_caught() -> None:
    problem = dpb.LinearContexts(2, horizon=16)
    assert replay(_PADDED, problem, rounds=16).private
    wrong = PaddedOnly(privacy=PAPER, noise="wishart", nodes="all")
    assert not replay(wrong, problem, rounds=16).private


# Regularisers are positive, for every number of summed nodes.


class Stepped:
    """A compiled run that can be stopped at any round."""

    def __init__(self, policy: Any, world: Any, rounds: int, seed: int) -> None:
        self.public, self.secret = policy.begin(world.problem(rounds))
        self.world = world.world()
        self.streams = Streams.of(run_seed(seed, 0))
        self.ledger = Ledger.on(np.array([2**62]))
        self.code = compiled_for(self.public, self.world)

    def run(self, stop: int) -> None:
        """Play until so many rounds are done."""
        self.code.run(self.public, self.secret, self.world, self.streams, self.ledger, stop)


def _stops() -> list[int]:
    around = (2**power + shift for power in range(12, 21) for shift in range(-2, 3))
    return [*range(1, 4097), *sorted(set(around) - set(range(4097)))]


@pytest.mark.parametrize(
    ("noise", "nodes"), [("gaussian", "live"), ("wishart", "live"), ("wishart", "all")]
)
def test_v_is_positive_for_every_number_of_nodes(noise: Any, nodes: Any) -> None:
    """At all rounds up to 4096 and around powers of two up to 2^20; α = 10⁻⁶ is the test's error.

    The control is the shift for the most nodes that there can be, on the noise of live nodes alone.
    """
    policy = dpb.linear.TreeLinUCB(privacy=PAPER, noise=noise, nodes=nodes, failure=1e-6)
    stepped = Stepped(policy, dpb.worlds.SphereContexts(), 2**20 + 2, seed=3)
    public, counts, printed = stepped.public, set(), []
    for stop in _stops():
        stepped.run(stop + 1)  # the prefix is released as the round after begins
        live = int(public.tree.live[0]) if public.tree.leaves[0] else 0
        counts.add(live)
        ridge, low = public.regularizers[live, :2]
        # V − G = H, and G has no negative eigenvalue.
        assert np.linalg.eigvalsh(public.gram)[0] + ridge > 0.0
        if live:
            alone = np.zeros((6, 6))
            if noise == "wishart":
                unpack(public.padding[max(len(public.padding) - 1 - live, 0)], alone)
            alone = public.gram - alone[:5, :5]
            printed.append(np.linalg.eigvalsh(alone)[0] + public.regularizers[-1, 0])
        assert low > 0.0
    assert counts >= set(range(1, 21))
    if noise == "wishart":
        assert min(printed) < 0.0


# Confidence sets.

CONFIDENT = [
    dpb.LinUCB(),
    dpb.linear.TreeLinUCB(privacy=MU),
    dpb.linear.TreeLinUCB(privacy=PAPER, noise="wishart"),
    dpb.linear.BatchedLinUCB(privacy=MU),
    dpb.linear.FactorizedLinUCB(privacy=MU),
    dpb.local.LocalLinUCB(privacy=MU),
    _PADDED,
]
_RUNS, _ROUNDS = 400, 1000


@pytest.mark.parametrize("policy", CONFIDENT, ids=lambda policy: type(policy).__name__)
def test_confidence_sets_hold_θ_as_often_as_they_say(policy: Any) -> None:
    """In 400 runs of 1000 rounds, looked at 60 times each, at α = .2 and .05.

    A valid policy fails with probability below 10⁻³ at each α. Sets of a third of the radius must fail.
    """
    for alpha in (0.2, 0.05):
        most = binom.isf(1e-3, _RUNS, alpha)
        missed = _missed(_replaced(policy, alpha), dpb.worlds.SphereContexts(dim=3, actions=4))
        assert missed[0] <= most, f"θ* was missed in {missed[0]} of {_RUNS} runs at α = {alpha}"
        assert missed[1] > most, "the control must fail"


@pytest.mark.parametrize("policy", [CONFIDENT[0], *CONFIDENT[3:5]], ids=lambda one: type(one).__name__)
def test_all_sets_of_arms_hold_their_θ_as_often_as_they_say(policy: Any) -> None:
    """The same for the sets of two arms together, with parameters of their own."""
    most = binom.isf(1e-3, _RUNS, 0.2)
    missed, third = _missed(_replaced(policy, 0.2), dpb.worlds.DisjointContexts(dim=3, arms=2))
    assert missed <= most, f"θ* was missed in {missed} of {_RUNS} runs"
    assert third > most, "the control must fail"


def _replaced(policy: Any, alpha: float) -> Any:
    return dataclasses.replace(policy, failure=alpha)


def _missed(policy: Any, world: Any) -> tuple[int, int]:
    """In how many runs θ* was outside the set at some time, and outside a third of it."""
    stops = np.unique(np.geomspace(2, _ROUNDS, 60).astype(int))
    whole = third = 0
    for run in range(_RUNS):
        stepped = Stepped(policy, world, _ROUNDS, seed=run)
        worst = 0.0
        for stop in stops:
            stepped.run(int(stop))
            worst = max(worst, _distance(stepped))
        whole += worst > 1.0
        third += worst > 1.0 / 3.0
    return whole, third


def _distance(stepped: Stepped) -> float:
    """‖θ* − θ̂‖_V in units of β, the largest of all blocks."""
    public = stepped.public
    blocks, beta = len(public.mean), public.width[:, RADIUS]
    if hasattr(public, "log_det"):
        level, settings = math.log(blocks / public.settings.alpha), public.settings
        beta = settings.sigma * np.sqrt(2.0 * level + public.log_det) + settings.prior
    off = stepped.world.shown.theta.reshape(blocks, -1) - public.mean
    solved = np.linalg.solve(public.shape, off[..., None])[..., 0]
    return float(np.max(np.sqrt(np.einsum("bi,bi->b", off, solved)) / beta))


# Input.


def _learner(**options: Any) -> dpb.Learner:
    return dpb.RandomizedLinUCB(privacy=MU).start(
        dpb.LinearContexts(2, **options), seed=1, compiled=False
    )


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ([1.0, 2.0], "a (K, 2) array"),
        ([[1.0, 2.0, 3.0]], "a (K, 2) array"),
        ([[[1.0, 2.0]]], "a (K, 2) array"),
        ([[1.0], [2.0, 3.0]], "a (K, 2) array"),
        (np.zeros((0, 2)), "at least one action"),
        ("features", "a (K, 2) array"),
        (None, "a (K, 2) array"),
        ([["a", "b"]], "a (K, 2) array"),
    ],
    ids=str,
)
def test_unusable_features_are_refused_and_change_nothing(features: Any, said: str) -> None:
    from dpbandits.testing.driving import state_bytes

    learner = _learner()
    before = state_bytes(learner)
    with pytest.raises(InvalidInput) as refusal:
        learner.select(features)
    assert said in str(refusal.value)
    assert state_bytes(learner) == before and learner.rounds == 0
    with pytest.raises(InvalidInput, match="one thing"):
        learner.select()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_person_without_usable_features_counts_and_is_told_so(bad: float, compiled: bool) -> None:
    """Refused, she would move everybody's batches; false alarm 10⁻⁶."""
    from dpbandits.testing.driving import state_bytes

    policy = dpb.RandomizedLinUCB(privacy=MU, first_batch=2)
    it, nobody = (
        policy.start(dpb.LinearContexts(2), seed=5, compiled=compiled, noise="exact") for _ in range(2)
    )
    for learner in (it, nobody):
        for _ in range(60):
            learner.update(learner.select([[1.0, 0.0], [0.0, 1.0]]), 1.0)
    chosen = []
    for _ in range(600):
        with pytest.warns(UnusableFeatures, match="the round counts"):
            chosen.append(it.select([[1.0, bad], [0.5, 0.5], [0.0, 1.0]]))
        it.update(chosen[-1], 1.0)
        nobody.update(nobody.select(np.zeros((3, 2))), 1.0)
    assert it.rounds == 660 and state_bytes(it) == state_bytes(nobody)  # nothing is learned from her
    assert chisquare(np.bincount(chosen, minlength=3)).pvalue > 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnusableFeatures):
            it.select([[bad, 0.0]])
    assert it.decided == 661  # as an error too, the warning comes when the round is open
    it.skip()


def test_long_features_act_like_their_projection() -> None:
    from dpbandits.testing.driving import state_bytes

    inside, beyond = _learner(), _learner()
    for _ in range(40):
        for learner, size in ((inside, 1.0), (beyond, 1e200)):
            action = learner.select(size * np.array([[0.6, 0.8], [1.0, 0.0]]))
            learner.update(action, size)
    assert state_bytes(inside) == state_bytes(beyond)


@pytest.mark.parametrize("policy", [*CONFIDENT[:5], dpb.RandomizedLinUCB(privacy=MU)], ids=str)
def test_one_action_zero_features_and_changing_sets_are_played(policy: Any) -> None:
    learner = policy.start(dpb.LinearContexts(2, horizon=400), seed=1, compiled=False)
    draw = np.random.default_rng(1)
    for count in [1, 0, 5, 2] * 30:
        features = draw.normal(size=(count, 2)) if count else np.zeros((3, 2))
        action = learner.select(features)
        assert 0 <= action < len(features)
        learner.update(action, 1.0)
    assert learner.select([[1.0, 0.0]]) == 0
    learner.skip()


def test_late_rewards_are_missing_ones() -> None:
    """The next decision closes the round without a reward, and its update is refused."""
    learner = _learner()
    late = learner.decide([[1.0, 0.0]])
    learner.decide([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    with pytest.raises(dpb.errors.TooLate):
        learner.update(late, 1.0)
    assert learner.rounds == 1


@pytest.mark.filterwarnings("error")
def test_no_features_make_a_warning() -> None:
    given = [[0.0, 0.0], [1.7e308, -1.7e308], [5e-324, 0.0], [0.6, 0.8], [1e200, 5e-324]]
    half = math.sqrt(0.5)
    for policy in (dpb.RandomizedLinUCB(privacy=MU), dpb.local.LocalLinUCB(privacy=MU)):
        found = dpb.LinearContexts(2).context(given)[0]
        rehearse(policy, dpb.LinearContexts(2), seed=1).select(given)
        assert found == pytest.approx(
            np.array([[0.0, 0.0], [half, -half], [0.0, 0.0], [0.6, 0.8], [1.0, 0.0]])
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("entry", "ridge"), [(1.0, -50.0), (-3.0, 1e-3), (math.inf, 1.0), (math.nan, -1.0)]
)
def test_a_regulariser_is_raised_until_it_is_enough_or_nothing_is(entry: float, ridge: float) -> None:
    shape = np.zeros((2, 2))
    found = estimate(
        entry * np.eye(2),
        np.ones(2),
        ridge,
        np.zeros(2),
        shape,
        np.zeros((2, 2)),
        np.zeros(2),
        np.zeros(2),
    )
    assert math.isfinite(found) == math.isfinite(entry)
    assert not math.isfinite(entry) or (np.linalg.eigvalsh(shape) > 0.0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: dpb.LinearContexts(0),
        lambda: dpb.LinearContexts(2, max_norm=0.0),
        lambda: dpb.LinearContexts(2, max_norm=1e-310),
        lambda: dpb.LinearContexts(2, max_norm=1e300),
        lambda: dpb.LinearContexts(2, max_reward=math.inf),
        lambda: dpb.LinearContexts(2, arms=1),
        lambda: dpb.LinearActions([[1.0, 0.0]]),
        lambda: dpb.LinearActions([[1.0, 0.0], [1.0]]),
        lambda: dpb.LinearActions([[1.0, 0.0], [math.nan, 1.0]]),
        lambda: dpb.LinearActions([[1.0, 0.0], [2.0, 0.0]]),
        lambda: dpb.LinearActions(3),  # type: ignore[arg-type]
        lambda: dpb.linear.TreeLinUCB(privacy=MU, noise="cauchy"),  # type: ignore[arg-type]
        lambda: dpb.linear.TreeLinUCB(privacy=MU, shifted=False),
        lambda: dpb.linear.TreeLinUCB(privacy=MU, nodes="all"),
        lambda: dpb.linear.TreeLinUCB(privacy=MU, nodes="some"),  # type: ignore[arg-type]
        lambda: dpb.linear.BatchedLinUCB(privacy=MU, shift=1.0),
        lambda: dpb.linear.BatchedLinUCB(privacy=MU, failure=1.0),
        lambda: dpb.RandomizedLinUCB(privacy=MU, blocks=(4, 0)),
        lambda: dpb.LinearActions([[1.0, 0.0], [0.0, 1.0]]).context([1.0]),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(make: Any) -> None:
    with pytest.raises(InvalidInput):
        make()


def test_what_only_some_budgets_can_pay_for_is_refused_for_others() -> None:
    changes: tuple[dict[str, Any], ...] = ({"noise": "wishart"}, {"calibration": "paper"})
    for options in changes:
        with pytest.raises(BudgetNotAccepted, match="ApproxDP"):
            dpb.linear.TreeLinUCB(privacy=MU, **options)


def test_disjoint_arms_take_one_vector() -> None:
    problem = dpb.LinearContexts(2, arms=3)
    (features,) = problem.context([0.6, 0.8])
    assert features.tolist() == [[0.6, 0.8]]
    learner = dpb.RandomizedLinUCB(privacy=MU).start(problem, seed=1, compiled=False)
    assert learner.select([0.6, 0.8]) in range(3)
    for wrong in ([[0.6, 0.8], [0.8, 0.6]], [0.6], [[[0.6, 0.8]]]):
        with pytest.raises(InvalidInput, match="vector of 2"):
            learner.select(wrong)


@pytest.mark.parametrize("policy", [dpb.linear.LinUCB(failure=0.1), dpb.linear.LinThompson()])
def test_blocks_are_least_squares_of_all_arms_together(policy: Any) -> None:
    # θ̂ and V⁻¹ of rows with the context in the block of the arm.
    dim, arms = 3, 4
    learner = policy.start(dpb.LinearContexts(dim, arms=arms), seed=1, compiled=False)
    chance = np.random.default_rng(3)
    gram, moment = np.eye(dim * arms), np.zeros(dim * arms)
    for _ in range(60):
        context, reward = chance.uniform(-0.5, 0.5, dim), chance.uniform(-1.0, 1.0)
        arm = learner.select(context)
        row = np.zeros((arms, dim))
        row[arm] = context
        gram += np.outer(row, row)
        moment += row.ravel() * reward
        learner.update(arm, reward)
    public = learner._public
    np.testing.assert_allclose(public.mean.ravel(), np.linalg.solve(gram, moment), atol=1e-9)
    whole = np.linalg.inv(gram).reshape(arms, dim, arms, dim)
    for arm in range(arms):
        np.testing.assert_allclose(public.shape[arm], whole[arm, :, arm], atol=1e-9)


def test_what_is_known_of_an_arm_is_of_its_own_people() -> None:
    # Without noise and after one batch: arm a pays (a + 1)/4 for the first feature.
    problem = dpb.LinearContexts(2, arms=3)
    for kind in (dpb.RandomizedLinUCB, dpb.linear.BatchedLinUCB, dpb.linear.BatchedLinThompson):
        learner = kind(privacy=dpb.NonPrivate(), first_batch=400).start(problem, seed=1)
        chance = np.random.default_rng(2)
        for _ in range(401):
            context = chance.choice([[1.0, 0.0], [0.0, 1.0]])
            arm = learner.select(context)
            learner.update(arm, (arm + 1) / 4 * context[0])
        released = learner.released()
        assert released is not None
        known = released.mean
        if kind is dpb.linear.BatchedLinUCB:  # whose upper bounds were tied: no arm was left out
            assert (np.diff(known[:, 0]) > 0.0).all()
        np.testing.assert_allclose(known[:, 0], [0.25, 0.5, 0.75], atol=0.08)
        np.testing.assert_allclose(known[:, 1], 0.0, atol=0.02)


EACH_POLICY = (
    dpb.RandomizedLinUCB(privacy=MU, first_batch=5),
    dpb.linear.BatchedLinThompson(privacy=MU, first_batch=5),
    dpb.linear.FactorizedLinUCB(privacy=MU),
    dpb.linear.TreeLinUCB(privacy=MU),
    dpb.linear.TreeLinUCB(privacy=PAPER, noise="wishart"),
    dpb.linear.LinUCB(),
)


@pytest.mark.parametrize("policy", EACH_POLICY, ids=lambda policy: type(policy).__name__)
def test_a_range_of_rewards_is_brought_to_plus_and_minus_one(policy: Any) -> None:
    chance = np.random.default_rng(1)
    plain, ranged = (
        policy.start(problem, seed=1, compiled=False)
        for problem in (
            dpb.LinearContexts(2, horizon=40),
            dpb.LinearContexts(2, horizon=40, reward_range=(3, 5)),
        )
    )
    for _ in range(40):
        features, reward = chance.uniform(-0.6, 0.6, size=(3, 2)), chance.uniform(2.5, 5.5)
        chosen = plain.select(features)
        assert ranged.select(features) == chosen
        plain.update(chosen, reward - 4.0)
        ranged.update(chosen, reward)
    for one, other in ((plain._public, ranged._public), (plain._secret, ranged._secret)):
        for (name, value), (_, same) in zip(leaves(one), leaves(other), strict=True):
            assert "rewards" in name or np.array_equal(value, same), name


def test_a_range_of_rewards_is_declared_once() -> None:
    problem = dpb.LinearContexts(2, reward_range=(0, 1))
    assert problem.rewards == (0.5, 0.5) and dpb.LinearContexts(2).rewards == (1.0, 0.0)
    assert dpb.LinearContexts.from_json(problem.to_json()) == problem
    assert "0 to 1 on rewards" in " ".join(problem.public_facts())
    for wrong in ((1, 0), (0, 0), (0,), (0, 1, 2), (0, math.inf), (0, math.nan), ("a", 1), 3):
        with pytest.raises(InvalidInput, match="reward_range"):
            dpb.LinearContexts(2, reward_range=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"low below high; got \(1.0, 0.0\)"):
        dpb.LinearContexts(2, reward_range=(1, 0))
    with pytest.raises(InvalidInput, match="max_reward or reward_range"):
        dpb.LinearContexts(2, reward_range=(0, 1), max_reward=2.0)


@pytest.mark.parametrize("arms", [2, 1000])
def test_noise_of_arms_is_that_of_one(arms: int) -> None:
    shared = dpb.RandomizedLinUCB(privacy=MU).begin(dpb.LinearContexts(5))[0].batches
    public, secret = dpb.RandomizedLinUCB(privacy=MU, blocks=(4,)).begin(
        dpb.LinearContexts(5, arms=arms)
    )
    assert (public.batches.widths.reshape(arms, -1) == shared.widths).all()
    assert public.batches.total.size == arms * 20 and secret.buffers.open.size == arms * 20


def test_the_noise_of_many_large_arms_fits_into_memory() -> None:
    problem = dpb.LinearContexts(100, arms=1000)
    public, secret = dpb.RandomizedLinUCB(privacy=MU).begin(problem)
    arrays = [value for state in (public, secret) for _, value in leaves(state)]
    assert sum(np.asarray(value).nbytes for value in arrays) < 2**30
    with pytest.raises(InvalidInput, match="the noise of a block takes"):
        dpb.RandomizedLinUCB(privacy=MU, blocks=(512,)).begin(problem)
    many = dpb.LinearContexts(100, arms=7000, horizon=10**6)
    with pytest.raises(InvalidInput, match="a factorized sum takes"):
        dpb.linear.FactorizedLinUCB(privacy=MU).begin(many)
    with pytest.raises(InvalidInput, match="a tree takes"):
        dpb.linear.TreeLinUCB(privacy=MU).begin(many)


def test_wishart_noise_is_not_for_arms() -> None:
    policy = dpb.linear.TreeLinUCB(privacy=PAPER, noise="wishart")
    with pytest.raises(InvalidInput, match="noise='gaussian' for arms"):
        policy.start(dpb.LinearContexts(2, arms=3, horizon=10))


def test_many_features_and_actions_work() -> None:
    draw, problem = np.random.default_rng(1), dpb.LinearContexts(100)
    learner = dpb.RandomizedLinUCB(privacy=MU, first_batch=3).start(problem, seed=1)
    for _ in range(10):
        action = learner.select(draw.normal(size=(1000, 100)))
        learner.update(action, 0.5)
    assert learner.rounds == 10


# Arms with parameters of their own, the public decision set, and the other noise: what the conformance
# suite does not meet by default.

PUBLIC = dpb.worlds.FixedActions(dim=2, actions=3, gap=0.3, public=True)


DISJOINT = dpb.worlds.DisjointContexts(dim=2, arms=3)


@pytest.mark.parametrize(
    "policy",
    [
        dpb.RandomizedLinUCB(privacy=MU),
        dpb.linear.BatchedLinUCB(privacy=MU),
        dpb.linear.BatchedLinThompson(privacy=MU),
        dpb.linear.FactorizedLinUCB(privacy=MU),
        dpb.linear.TreeLinUCB(privacy=MU),
        dpb.linear.TreeContextualUCB(privacy=MU),
        dpb.linear.TreeContextualThompson(privacy=MU),
        dpb.local.LocalLinUCB(privacy=dpb.GaussianDP(4.0)),
        dpb.linear.LinThompson(),
        dpb.linear.LinUCB(),
        dpb.linear.UniformActions(),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_arms_with_parameters_of_their_own_conform(policy: Any) -> None:
    check_policy(policy, DISJOINT)


def test_laplace_trees_are_private_for_arms() -> None:
    # Rows of two arms move most, which takes a release: the first leaf alone is in all nodes, so that
    # four of five is the most that this replay can find.
    policy, problem = dpb.linear.TreeContextualUCB(privacy=dpb.PureDP(1.0)), DISJOINT.problem(20)
    found = replay(policy, problem.testing.example_like(problem, 20), rounds=20, floor=0.75)
    assert found.passed, str(found)
    assert row_change(2, 2) > row_change(2, 1)


@pytest.mark.parametrize(
    "policy",
    [
        dpb.RandomizedLinUCB(privacy=MU),
        dpb.linear.BatchedLinUCB(privacy=MU),
        dpb.linear.BatchedLinThompson(privacy=MU),
        dpb.linear.LinThompson(),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_a_public_decision_set_conforms(policy: Any) -> None:
    check_policy(policy, PUBLIC)
    if policy.guarantee(PUBLIC.problem(10)).is_private:
        assert policy.guarantee(PUBLIC.problem(10)).unit == dpb.Unit.REWARD


@pytest.mark.parametrize(
    "options",
    [
        {"noise": "wishart"},
        {"noise": "wishart", "nodes": "all"},
        {"noise": "wishart", "nodes": "all", "shifted": False, "calibration": "paper"},
        {"calibration": "paper"},
    ],
    ids=str,
)
def test_other_noises_of_the_tree_conform(options: Any) -> None:
    check_policy(dpb.linear.TreeLinUCB(privacy=PAPER, **options))


def test_recommendations() -> None:
    contexts, actions = dpb.LinearContexts(5), PUBLIC.problem(None)
    assert isinstance(dpb.recommend(contexts, MU).policy, dpb.RandomizedLinUCB)
    assert isinstance(dpb.recommend(actions, PAPER).policy, dpb.RandomizedLinUCB)
    assert isinstance(dpb.recommend(contexts, dpb.NonPrivate()).policy, dpb.linear.LinThompson)
    disjoint = dpb.recommend(dpb.LinearContexts(5, arms=4, horizon=100), MU)
    assert isinstance(disjoint.policy, dpb.RandomizedLinUCB)
    assert "digits" in disjoint.reason and "5 features of 4 arms" in disjoint.reason
    pure = dpb.recommend(dpb.LinearContexts(5, horizon=1000), dpb.PureDP(1.0))
    assert isinstance(pure.policy, dpb.linear.TreeContextualUCB)
    for problem in (contexts, actions):
        with pytest.raises(InvalidInput):
            dpb.recommend(problem, dpb.PureDP(1.0))
    short = dpb.recommend(dpb.LinearContexts(50, horizon=100), MU)
    assert "uniform play" in short.reason
