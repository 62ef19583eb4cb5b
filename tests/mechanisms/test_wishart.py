"""Wishart noise: its law, its calibration, and its price in the replay test."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, ks_2samp, kstest

from dpbandits import ApproxDP, Arms, GaussianDP, Guarantee, PureDP, Trust, TrustedPolicy, Unit
from dpbandits.audit import replay
from dpbandits.audit.recording import Draw, ForcedNoise, Mismatch, RecordingNoise, Steer
from dpbandits.audit.replay import draws_cost
from dpbandits.engine import Chance, Noise, static_size
from dpbandits.errors import BudgetNotAccepted
from dpbandits.mechanisms.gram import add_square, triangle_size, unpack
from dpbandits.mechanisms.wishart import draw_wishart, matrix_size, wishart_dof, wishart_levels
from dpbandits.privacy.calibration import limit_of
from dpbandits.problems.arms import centred

pytestmark = pytest.mark.slow

BUDGET = ApproxDP(1.0, 0.1)


@numba.njit
def draw_many(noise: Any, location: Any, out: Any, dof: int, scale: float, scratch: Any) -> None:
    for row in range(out.shape[0]):
        draw_wishart(noise, location, out[row], dof, scale, scratch, scratch[0])


def drawn(size: int, dof: int, scale: float, runs: int, seed: int = 0) -> Any:
    """Matrices (runs, size, size) of noise alone."""
    out, matrices = np.zeros((runs, triangle_size(size))), np.zeros((runs, size, size))
    noise = np.random.default_rng(seed)
    draw_many(noise, np.zeros(out.shape[1]), out, dof, scale, np.zeros((size, size)))
    for flat, matrix in zip(out, matrices, strict=True):
        unpack(flat, matrix)
    return matrices


def test_compiled_and_plain_draws_are_the_same_to_the_bit() -> None:
    for dof in (3, 40, 139_115, 10**6):
        location = np.random.default_rng(1).normal(size=triangle_size(3))
        plain, compiled = np.zeros((50, 6)), np.zeros((50, 6))
        arguments = dof, 1.5, np.zeros((3, 3))
        draw_many.py_func(np.random.default_rng(2), location, plain, *arguments)
        draw_many(np.random.default_rng(2), location, compiled, *arguments)
        assert plain.tobytes() == compiled.tobytes() and (plain != 0).all()


# 20 tests at 10⁻⁶ each: a right sampler fails once in 50,000 seeds.
LEVEL = 1e-6


def law_p_values(matrices: Any, dof: int, scale: float) -> list[float]:
    """xᵀWx/(s²‖x‖²) is chi-squared for every x; the trace and the determinant test it as a whole."""
    size = matrices.shape[1]
    directions = [*np.eye(size), np.ones(size), np.arange(size) - 1.0]
    found = [
        kstest(np.einsum("i,rij,j->r", x, matrices, x) / (scale**2 * (x @ x)), chi2(dof).cdf).pvalue
        for x in directions
    ]
    trace = matrices.trace(axis1=1, axis2=2) / scale**2
    rows = np.random.default_rng(99).normal(size=(len(matrices), dof, size))
    grams = np.einsum("rki,rkj->rij", rows, rows)
    ends = [(np.linalg.eigvalsh(x)[:, [0, -1]], np.linalg.det(x)) for x in (matrices / scale**2, grams)]
    return [
        *found,
        kstest(trace, chi2(dof * size).cdf).pvalue,
        *(ks_2samp(ends[0][0][:, end], ends[1][0][:, end]).pvalue for end in (0, 1)),
        ks_2samp(ends[0][1], ends[1][1]).pvalue,
    ]


@pytest.mark.parametrize(("size", "dof"), [(3, 5), (4, 30)])
def test_the_law_is_that_of_a_gram_matrix(size: int, dof: int) -> None:
    matrices = drawn(size, dof, 1.3, 6000)
    assert min(law_p_values(matrices, dof, 1.3)) > LEVEL
    # The controls: one degree of freedom more, five percent more width.
    assert min(law_p_values(drawn(size, dof + 1, 1.3, 6000), dof, 1.3)) < LEVEL
    assert min(law_p_values(drawn(size, dof, 1.365, 6000), dof, 1.3)) < LEVEL


def test_large_degrees_of_freedom_have_the_right_moments() -> None:
    """k = 139,115 as in the paper: mean and spread of every entry within five standard errors."""
    dof, runs = 139_115, 4000
    flat = drawn(4, dof, math.sqrt(2.0), runs) / 2.0
    for i in range(4):
        for j in range(i + 1):
            mean, spread = dof * (i == j), math.sqrt(dof * (1 + (i == j)))
            entry = flat[:, i, j]
            assert abs(entry.mean() - mean) < 5 * spread / math.sqrt(runs)
            assert abs(entry.std() / spread - 1.0) < 5 / math.sqrt(2 * runs)
    assert abs(flat[:, 3, 3].mean() - (dof + 100)) > 5 * math.sqrt(2 * dof / runs)  # the control


def test_the_calibration_is_the_theorem_and_says_where_it_ends() -> None:
    assert wishart_dof(5, 27, BUDGET) == 139_115
    for budget, levels in ((BUDGET, 27), (ApproxDP(0.1, 1e-6), 1), (ApproxDP(3.0, 1e-5), 20)):
        dof = wishart_dof(5, levels, budget)
        each = budget.epsilon / math.sqrt(8 * levels * math.log(2 / budget.delta))
        share = budget.delta / (2 * levels)
        assert dof == 6 + math.ceil(28 / each**2 * math.log(4 / share) * (1 - 1e-12))
        composed = math.sqrt(2 * levels * math.log(2 / budget.delta)) * each
        assert composed + levels * each * math.expm1(each) <= budget.epsilon
        assert wishart_levels(5, dof, budget) == levels
        assert wishart_levels(5, dof - 1, budget) == levels - 1
    assert wishart_levels(5, 6, BUDGET) == 0
    with pytest.raises(BudgetNotAccepted, match="proved for smaller ε only"):
        wishart_dof(5, 1, ApproxDP(6.0, 0.1))  # ε₀ > 1
    with pytest.raises(BudgetNotAccepted, match="proved for smaller ε only"):
        wishart_dof(5, 1000, ApproxDP(20.0, 0.1))  # ε₀ < 1, but they add up to more than ε
    with pytest.raises(BudgetNotAccepted, match="δ < 1/e"):
        wishart_dof(5, 1, ApproxDP(0.1, 0.8))
    with pytest.raises(BudgetNotAccepted, match="ε must be above 0"):
        wishart_dof(5, 1, ApproxDP(0.0, 0.1))
    with pytest.raises(BudgetNotAccepted, match="not to"):
        wishart_dof(5, 1, GaussianDP(1.0))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ the replay test


def moved(one: Any, other: Any, dof: int, scale: float = 1.0, kind: str = "wishart") -> Any:
    """A draw whose location moved between two symmetric matrices."""
    places = np.triu_indices(len(one))
    return tuple(
        Draw(kind, np.array(x)[places], scale, np.zeros(len(places[0])), dof) for x in (one, other)
    )


def test_a_moved_wishart_draw_is_priced_by_its_theorem() -> None:
    first, second, nothing = np.diag([1.0, 0, 0]), np.diag([0, 1.0, 0]), np.zeros((3, 3))
    dof, limit = wishart_dof(2, 4, BUDGET), limit_of(BUDGET)
    swap = moved(first, second, dof)
    assert draws_cost([swap] * 4, BUDGET) == pytest.approx(limit)
    assert draws_cost([swap], BUDGET) == pytest.approx(limit / 2)
    assert draws_cost([swap] * 5, BUDGET) > 1.1 * limit
    assert draws_cost([moved(nothing, first, dof), moved(second, second, dof)], BUDGET) == pytest.approx(
        limit / 2
    )
    # One degree of freedom short of four levels pays for three.
    assert draws_cost([moved(first, second, dof - 1)] * 4, BUDGET) > 1.1 * limit
    assert draws_cost([moved(first, second, 3)], BUDGET) == math.inf
    not_one_row = [
        (first + second, nothing),  # two rows
        (1.001 * first, nothing),  # longer than the bound
        (nothing, 1.001 * second),
        (np.ones((3, 3)), nothing),
        (first, np.diag([0, 0.5, 0.5])),
    ]
    for one, other in not_one_row:
        assert draws_cost([moved(one, other, dof)], BUDGET) == math.inf
        assert draws_cost([moved(one, other, dof, scale=2.0)], BUDGET) in (math.inf, limit / 2)
    assert draws_cost([moved(np.ones((3, 3)), nothing, dof, scale=2.0)], BUDGET) == pytest.approx(
        limit / 2
    )
    assert draws_cost([moved(math.nan * first, nothing, dof)], BUDGET) == math.inf
    # Nothing else adds up with it, and no other budget is met by it.
    beside = moved(first, second, 0, 1e9, "normal")
    assert draws_cost([swap, beside], BUDGET) == math.inf
    assert draws_cost([swap], GaussianDP(1.0)) == draws_cost([swap], PureDP(1.0)) == math.inf


def test_a_forced_draw_must_be_the_same_but_for_its_location() -> None:
    recorder = RecordingNoise(np.random.default_rng(0), Steer(-1))
    location = np.array([1.0, 0.5, 2.0])
    result = np.zeros(3)
    draw_wishart(recorder, location, result, 40, 0.5, np.zeros((2, 2)), np.zeros(2))
    fresh = np.zeros(3)
    draw_wishart(np.random.default_rng(0), location, fresh, 40, 0.5, np.zeros((2, 2)), np.zeros(2))
    assert result.tolist() == fresh.tolist() and recorder.numbers == 3
    forced = ForcedNoise()
    forced.start_round(recorder.draws)
    again = np.zeros(3)
    draw_wishart(forced, location + 1.0, again, 40, 0.5, np.zeros((2, 2)), np.zeros(2))
    assert again.tolist() == result.tolist()
    assert (forced.draws[0].location - recorder.draws[0].location).tolist() == [1.0, 1.0, 1.0]
    for dof, scale, count in ((41, 0.5, 3), (40, 0.6, 3), (40, 0.5, 6)):
        forced.start_round(recorder.draws)
        axes = np.zeros(matrix_size(count))
        with pytest.raises(Mismatch):
            draw_wishart(forced, np.zeros(count), np.zeros(count), dof, scale, np.zeros((2, 2)), axes)


class Secret(NamedTuple):
    sums: NDArray[np.float64]  # (levels, 3) exact nodes
    open: NDArray[np.float64]
    scratch: NDArray[np.float64]


class Public(NamedTuple):
    round: NDArray[np.int64]
    total: NDArray[np.float64]
    nodes: NDArray[np.float64]  # (levels, 3) released nodes that are live
    dof: int
    scale: float

    def release(self, secret: Secret, noise: Noise) -> None:
        """Complete one node of the tree with every leaf."""
        done, level = int(self.round[0]), 0
        if done == 0:
            return
        for level in range(secret.sums.shape[0]):
            if done >> level & 1:
                break
            secret.open[:] += secret.sums[level]
            secret.sums[level] = 0.0
            self.nodes[level] = 0.0
        secret.sums[level] = secret.open
        secret.open[:] = 0.0
        draw_wishart(
            noise,
            secret.sums[level],
            self.nodes[level],
            self.dof,
            self.scale,
            secret.scratch,
            secret.scratch[0],
        )
        self.total[:] = self.nodes.sum(axis=0)

    def select(self, context: None, explore: Chance) -> int:
        return int(self.total[1] > 0.0)

    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        self.round[0] += 1
        row = np.array([0.5, centred(reward)])
        add_square(secret.open, row, row)


@dataclass(frozen=True, kw_only=True)
class WishartTree(TrustedPolicy):
    """A tree of Gram matrices of (½, reward − ½), over `short` levels too few.

    **Definition.** The arm by the sign of a noisy sum.

    **Guarantee.** A leaf is in ⌊log2 T⌋ + 1 nodes, each a Wishart release for rows of norm √½.

    **Regret.** None worth a word.
    """

    abstract: ClassVar[bool] = True
    problem_kind: ClassVar = Arms
    accepts: ClassVar = (ApproxDP,)
    paper: ClassVar[str] = "none"
    needs_horizon: ClassVar[bool] = True

    short: int = 0
    narrow: float = 1.0

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        assert problem.horizon is not None and isinstance(self.privacy, ApproxDP)
        # The last round's own row is never released.
        levels = (problem.horizon - 1).bit_length()
        dof = wishart_dof(1, levels - self.short, self.privacy)
        scale = self.narrow * math.sqrt(0.5)
        public = Public(np.zeros(1, np.int64), np.zeros(3), np.zeros((levels, 3)), dof, scale)
        return public, Secret(np.zeros((levels, 3)), np.zeros(3), np.zeros((2, 2)))

    def guarantee(self, problem: Arms) -> Guarantee:
        return Guarantee(
            budget=self.privacy, unit=Unit.REWARD, trust=Trust.CENTRAL, horizon=problem.horizon
        )


@pytest.mark.parametrize(("entries", "size"), [(10, 3), (10, 5), (6, 2)])
def test_a_matrix_of_another_size_is_refused(entries: int, size: int) -> None:
    """Drawn too small, it would leave entries without noise."""
    noise, scratch = np.random.default_rng(0), np.zeros((size, size))
    with pytest.raises(ValueError, match="no matrix of size"):
        draw_wishart(noise, np.zeros(entries), np.zeros(entries), 40, 0.5, scratch, static_size(size))


@pytest.mark.parametrize("horizon", [9, 16, 17])
def test_a_wishart_tree_keeps_its_budget_and_one_level_less_does_not(horizon: int) -> None:
    problem = Arms(2, horizon=horizon)
    right = replay(WishartTree(privacy=BUDGET), problem)
    assert right.passed and right.cost == pytest.approx(right.limit), str(right)
    wrong = replay(WishartTree(privacy=BUDGET, short=1), problem)
    assert not wrong.private and 1.05 < wrong.cost / wrong.limit < 1.2, str(wrong)
    narrow = replay(WishartTree(privacy=BUDGET, narrow=0.99), problem)
    assert not narrow.private and narrow.cost == math.inf
