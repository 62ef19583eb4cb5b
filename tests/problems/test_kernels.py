"""Kernels, kernel problems and worlds: formulas, features, and every bad input."""

import math
from typing import Any

import numpy as np
import pytest
from kernel_grids import GRID, KERNELS, dense

import dpbandits as dpb
from dpbandits.errors import InvalidInput
from dpbandits.problems.kernel_contexts import bounded, pivoted_cholesky
from dpbandits.recipes import Recipe


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_features_are_the_kernel_and_at_most_one(kernel: dpb.kernels.Kernel) -> None:
    problem = dpb.KernelContexts(kernel, GRID, GRID)
    features, matrix = problem.features(), dense(problem)
    np.testing.assert_allclose(features.rows @ features.rows.T, matrix, atol=2e-9)
    np.testing.assert_allclose(
        kernel.diagonal(np.array([[0.3, 0.7]]), 1),
        kernel.between(np.array([[0.3, 0.7]]), np.array([[0.3, 0.7]]), 1)[0],
    )
    assert matrix.diagonal().max() <= 1.0
    assert features.radius == pytest.approx(math.sqrt(matrix.diagonal().max()))
    assert features.error <= 1e-9
    assert Recipe.from_json(kernel.to_json()) == kernel
    assert Recipe.from_json(problem.to_json()) == problem


def test_kernels_by_hand() -> None:
    a, b = np.array([[0.0, 0.0]]), np.array([[0.3, 0.4]])  # at distance ½
    s = math.sqrt(5.0) * 2.5
    assert dpb.kernels.SquaredExponential(0.2).between(a, b, 1)[0, 0] == pytest.approx(math.exp(-3.125))
    assert dpb.kernels.Matern(0.2, 0.5).between(a, b, 1)[0, 0] == pytest.approx(math.exp(-2.5))
    assert dpb.kernels.Matern(0.2).between(a, b, 1)[0, 0] == pytest.approx(
        (1 + s + s * s / 3) * math.exp(-s)
    )
    assert dpb.kernels.PolynomialKernel(2, 1.0).between(b, b, 1)[0, 0] == pytest.approx(1.25**2)
    on_action = dpb.kernels.SquaredExponential(0.2, on="action").between(a, b, 1)[0, 0]
    assert on_action == pytest.approx(math.exp(-2.0))


def test_rank_limited_features_state_their_error() -> None:
    full = dpb.KernelContexts(dpb.kernels.Matern(0.2), GRID, GRID)
    few = dpb.KernelContexts(dpb.kernels.Matern(0.2), GRID, GRID, max_rank=10)
    rows = few.features().rows
    rest = dense(full) - rows @ rows.T
    assert rows.shape == (25, 10)
    assert few.features().error == pytest.approx(rest.diagonal().max())
    assert np.linalg.eigvalsh(rest).min() > -1e-9  # so a function of norm 1 is off by √error at most
    assert few.features().radius <= 1.0 + 1e-9


def test_repeated_points_and_singular_kernels_need_no_more_features() -> None:
    problem = dpb.KernelContexts(dpb.kernels.SquaredExponential(0.2), (*GRID, *GRID), (*GRID, GRID[0]))
    assert problem.features().rows.shape == (60, 25)
    assert dpb.KernelContexts(dpb.kernels.LinearKernel(), GRID, GRID).features().rows.shape == (25, 2)
    rows, error = pivoted_cholesky(lambda w: np.ones(4), np.ones(4), 10)
    assert rows.shape == (4, 1) and error == 0.0


def test_kernels_above_one_are_scaled_down_and_small_ones_left() -> None:
    large = dpb.KernelContexts(dpb.kernels.LinearKernel(), ((3.0,), (4.0,)), ((0.0,), (3.0,)))
    assert large.features().radius == pytest.approx(1.0)
    small = dpb.KernelContexts(dpb.kernels.LinearKernel(), ((0.3,), (0.4,)), ((0.0,), (0.3,)))
    assert small.features().radius == pytest.approx(0.5)


def test_points_far_apart_have_nothing_in_common() -> None:
    for kernel in (
        dpb.kernels.SquaredExponential(0.2),
        *(dpb.kernels.Matern(0.2, s) for s in (0.5, 1.5, 2.5)),
    ):
        features = dpb.KernelContexts(kernel, (0.0, 1e200, -1e300), (0.0, 1e290)).features()
        np.testing.assert_allclose(features.rows @ features.rows.T, np.eye(6))


class Undefined(dpb.kernels.LinearKernel):
    """Finite at every pair, not between two."""

    abstract = True

    def _of(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.where(left[:, :1] == right[:, :1].T, 1.0, np.nan)


def test_kernels_that_are_next_to_nothing_or_no_numbers_are_refused() -> None:
    for kernel, points in ((dpb.kernels.LinearKernel(), (0.0, 1e-162)), (Undefined(), (1.0, 2.0))):
        problem = dpb.KernelContexts(kernel, points, (0.0,))
        with pytest.raises(InvalidInput, match="finite"):
            problem.features()


def test_weights_by_a_public_sampler() -> None:
    def sampler(generator: np.random.Generator, draws: int) -> np.ndarray:
        return generator.integers(0, 2, size=draws)

    problem = dpb.KernelContexts.sampled(dpb.kernels.LinearKernel(), GRID, GRID, sampler, max_reward=2.0)
    weights: Any = problem.weights
    assert sum(weights) == pytest.approx(1.0) and weights[2:] == (0.0, 0.0, 0.0)
    assert weights[0] == pytest.approx(0.5, abs=0.01)
    assert problem == dpb.KernelContexts.sampled(
        dpb.kernels.LinearKernel(), GRID, GRID, sampler, max_reward=2.0
    )
    for wrong, said in (
        (lambda generator, n: np.zeros(3, int), "whole numbers"),
        (lambda generator, n: np.zeros(n), "whole numbers"),
        (lambda generator, n: np.full(n, 5), "0 to 4"),
    ):
        with pytest.raises(InvalidInput, match=said):
            dpb.KernelContexts.sampled(dpb.kernels.LinearKernel(), GRID, GRID, wrong)
    assert "not made of people" in " ".join(str(dpb.KernelContexts.__doc__).split())
    assert "how often each context comes" in problem.public_facts()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kernel": "rbf"}, "expected a kernel"),
        ({"contexts": ()}, "at least one point"),
        ({"contexts": ((1.0,), (1.0, 2.0))}, "points of equal length"),
        ({"actions": ((math.nan,),)}, "finite"),
        ({"weights": (0.5, 0.5)}, "5 weights"),
        ({"weights": (0.0,) * 5}, "not all 0"),
        ({"weights": (-1.0, 1.0, 1.0, 1.0, 1.0)}, "none below 0"),
        ({"max_reward": 0.0}, "max_reward"),
        ({"max_reward": 8e307}, "other units"),  # two of them are ∞, and so would tell about a third
        ({"max_reward": 1e-200}, "other units"),
        ({"max_norm": -1.0}, "max_norm"),
        ({"max_rank": 0}, "max_rank"),
    ],
)
def test_bad_problems_are_refused_in_one_sentence(change: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {"kernel": dpb.kernels.LinearKernel(), "contexts": GRID, "actions": GRID}
    with pytest.raises(InvalidInput, match=said):
        dpb.KernelContexts(**(good | change))


def test_bad_kernels_are_refused_in_one_sentence() -> None:
    for make, said in (
        (lambda: dpb.kernels.SquaredExponential(0.0), "length_scale"),
        (lambda: dpb.kernels.Matern(0.2, 2.0), "smoothness"),
        (lambda: dpb.kernels.PolynomialKernel(0), "degree"),
        (lambda: dpb.kernels.PolynomialKernel(2, -1.0), "offset"),
        (lambda: dpb.kernels.LinearKernel(on="both"), "on"),  # type: ignore[arg-type]
        (lambda: dpb.kernels.LinearKernel() + 1, "expected a kernel"),  # type: ignore[operator]
        (
            lambda: dpb.KernelContexts(dpb.kernels.LinearKernel(), ((0.0,),), ((0.0,),)).features(),
            "is 0 or not finite",
        ),
    ):
        with pytest.raises(InvalidInput, match=said):
            make()


def test_contexts_and_rewards_are_checked() -> None:
    problem = dpb.KernelContexts(dpb.kernels.LinearKernel(), GRID, GRID, max_reward=2.0)
    for wrong in ((), (1, 2), (5,), (-1,), (0.5,), (True,), ("0",)):
        with pytest.raises(InvalidInput, match="context"):
            problem.context(*wrong)
    assert problem.context(np.int64(3)) == 3
    with pytest.raises(InvalidInput, match="reward"):
        problem.reward(math.nan)
    assert [bounded(x, 2.0) for x in (5.0, -math.inf, 1.0, math.nan)] == [2.0, -2.0, 1.0, 0.0]


def test_the_world_is_in_the_kernels_space() -> None:
    world = dpb.worlds.KernelWorld.standard("matern", seed=3)
    matrix, f = dense(world.problem(None)), world.means().ravel()
    norm = math.sqrt(f @ np.linalg.solve(matrix, f))
    assert norm == pytest.approx(1.0, rel=1e-6)
    assert np.abs(f).max() <= 1.0
    assert world.means().tolist() == dpb.worlds.KernelWorld.standard("matern", seed=3).means().tolist()
    assert world.means().tolist() != dpb.worlds.KernelWorld.standard("matern", seed=4).means().tolist()


def test_the_world_pays_its_means_and_offers_by_its_true_weights() -> None:
    """Each of 10 means is within 5 standard errors: all hold with probability above 1 − 10⁻⁵."""
    told = (0.2, 0.2, 0.2, 0.2, 0.2)
    world = dpb.worlds.KernelWorld(
        dpb.kernels.LinearKernel(),
        GRID,
        GRID[:2],
        weights=(5, 3, 2, 0, 0),
        declared=told,
        max_reward=2.0,
        norm=2.0,
    )
    state, chance, rounds = world.world(), np.random.default_rng(1), 20_000
    offer, pay = (getattr(type(state), verb) for verb in ("offer", "pay"))
    contexts = np.array([offer(state, chance) for _ in range(rounds)])
    shares = np.bincount(contexts, minlength=5) / rounds
    assert world.problem(None).weights == told
    assert np.abs(shares - [0.5, 0.3, 0.2, 0, 0]).max() < 5 * 0.5 / math.sqrt(rounds)
    paid = np.array([pay(state, 2, 1, chance) for _ in range(rounds)])
    assert set(paid) == {-2.0, 2.0}
    assert abs(paid.mean() - world.means()[2, 1]) < 5 * 2.0 / math.sqrt(rounds)
    # A control: a tenth off would have been noticed.
    assert abs(paid.mean() - world.means()[2, 1] - 0.1) > 5 * 2.0 / math.sqrt(rounds)
    with pytest.raises(InvalidInput, match="smaller norm"):
        dpb.worlds.KernelWorld(dpb.kernels.LinearKernel(), GRID, GRID, norm=50.0)
    with pytest.raises(InvalidInput, match="squared-exponential"):
        dpb.worlds.KernelWorld.standard("squared")
