"""The binary tree against dense sums, and its cost counted node by node."""

import math
from typing import Any

import numba
import numpy as np
import pytest

from dpbandits import Budget, GaussianDP, NonPrivate, PureDP
from dpbandits.audit.recording import RecordingNoise, Steer
from dpbandits.sums.binary_tree import release_leaf, start_tree, tree_levels

LENGTHS = [*range(1, 71), *(2**k + d for k in range(7, 13) for d in (-1, 0, 1))]


def recorder(seed: int = 0) -> RecordingNoise:
    return RecordingNoise(np.random.default_rng(seed), Steer())


def costs(leaves: int, budget: Budget, declared: int | None) -> Any:
    """What each leaf costs, from the locations of all draws: leaf j is the j-th unit vector."""
    public, secret = start_tree(1, leaves, 1.0, budget, leaves=declared)
    noise, power = recorder(), 1 if isinstance(budget, PureDP) else 2
    total = np.zeros(leaves)
    for leaf in range(leaves):
        secret.open[0, leaf] = 1.0
        noise.draws = []
        release_leaf(public, secret, 0, noise)
        assert len(noise.draws) == leaves  # one node, one draw per coordinate
        total += [
            (float(d.location) / float(d.scale)) ** power if d.location else 0 for d in noise.draws
        ]
    return total ** (1 / power)


@pytest.mark.parametrize("declared", [True, False], ids=["known length", "doubling"])
def test_streamed_equals_dense(declared: bool) -> None:
    for leaves in LENGTHS:
        values = np.random.default_rng(leaves).integers(-8, 9, (leaves, 3)).astype(float)
        tree = start_tree(2, 3, 1.0, NonPrivate(), leaves=leaves if declared else None)
        noise: Any = np.random.default_rng(0)
        for dense, value in zip(np.cumsum(values, axis=0), values, strict=True):
            tree[1].open[1] = value
            release_leaf(*tree, 1, noise)
            assert tree[0].total[1].tolist() == dense.tolist()
        assert not tree[0].total[0].any() and tree[0].variance[1] == 0.0


def test_each_leaf_completes_one_node_and_the_prefix_is_the_sum_of_released_nodes() -> None:
    public, secret = start_tree(1, 2, 1.0, PureDP(1.0), leaves=100)
    values, noise = np.random.default_rng(1).normal(size=(100, 2)), recorder()
    released = {}
    for n in range(1, 101):
        noise.draws = []
        secret.open[0] = values[n - 1]
        release_leaf(public, secret, 0, noise)
        length = n & -n
        node = [float(draw.location) for draw in noise.draws]
        assert node == pytest.approx(values[n - length : n].sum(axis=0))
        released[n, length] = np.array([float(draw.result) for draw in noise.draws])
        parts, end = [], n
        while end:
            parts.append(released[end, end & -end])
            end -= end & -end
        assert public.total[0] == pytest.approx(np.sum(parts, axis=0))
        assert public.variance[0] == pytest.approx(len(parts) * 2 * 7.0**2)
        assert public.live[0] == len(parts) == n.bit_count()


@pytest.mark.parametrize("budget", [PureDP(0.7), GaussianDP(0.7)], ids=str)
def test_the_worst_leaf_costs_exactly_the_budget(budget: Budget) -> None:
    for leaves in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65):
        assert costs(leaves, budget, leaves).max() == pytest.approx(0.7, rel=1e-12)
        assert costs(leaves, budget, leaves).argmax() == 0


@pytest.mark.parametrize("budget", [PureDP(0.7), GaussianDP(0.7)], ids=str)
def test_a_full_tree_is_followed_by_another_and_no_leaf_costs_more(budget: Budget) -> None:
    found = costs(40, budget, 5)  # three levels: trees of seven leaves
    assert found.max() == pytest.approx(0.7, rel=1e-12)
    assert found[::7][:5] == pytest.approx(0.7)


@pytest.mark.parametrize("budget", [PureDP(0.7), GaussianDP(0.7)], ids=str)
def test_doubling_trees_cost_the_budget_for_any_length(budget: Budget) -> None:
    found = costs(70, budget, None)
    assert found.max() == pytest.approx(0.7, rel=1e-12)
    assert found[[2**r - 1 for r in range(6)]] == pytest.approx(0.7)  # first leaf of each full tree


def test_levels_are_counted_in_binary() -> None:
    assert [tree_levels(2**k) for k in range(12)] == list(range(1, 13))
    assert [tree_levels(2**k - 1) for k in range(1, 12)] == list(range(1, 12))
    scale = start_tree(1, 1, 2.0, PureDP(0.5), leaves=1024)[0].inner
    assert scale.tolist() == [11 * 2 / 0.5]
    scale = start_tree(1, 1, 2.0, GaussianDP(0.5), leaves=1023)[0].inner
    assert scale.tolist() == [math.sqrt(10) * 2 / 0.5]


def test_memory_is_logarithmic() -> None:
    def numbers(leaves: int) -> int:
        public, secret = start_tree(1, 1, 1.0, PureDP(1.0), leaves=leaves)
        return sum(np.size(field) for field in (*public, *secret))

    assert numbers(2**20) - numbers(2**10) == numbers(2**30) - numbers(2**20) == 30


@pytest.mark.parametrize("declared", [100, None], ids=["known length", "doubling"])
@pytest.mark.parametrize("budget", [PureDP(1.0), GaussianDP(1.0)], ids=str)
def test_the_stated_variance_is_the_real_one(budget: Budget, declared: int | None) -> None:
    """Over 4000 slots: a standard error of at most 3.5 % (Laplace), so that 18 % is five of them."""
    slots = 4000
    public, secret = start_tree(slots, 1, 1.0, budget, leaves=declared)
    noise: Any = np.random.default_rng(5)
    for leaf in range(1, 24):
        for slot in range(slots):
            release_leaf(public, secret, slot, noise)
        if leaf in (1, 7, 8, 23):
            assert public.total.var() == pytest.approx(public.variance[0], rel=0.18)


def test_vectors_run_compiled_to_the_same_bit() -> None:
    @numba.njit
    def run(public: Any, secret: Any, noise: Any, values: Any) -> None:
        for row in range(values.shape[0]):
            for axis in range(values.shape[1]):
                secret.open[1, axis] = values[row, axis]
            release_leaf(public, secret, 1, noise)

    values = np.random.default_rng(3).normal(size=(100, 4))
    for declared in (20, None):
        plain, compiled = (start_tree(2, 4, 1.0, PureDP(1.0), leaves=declared) for _ in range(2))
        run.py_func(*plain, np.random.default_rng(9), values)
        run(*compiled, np.random.default_rng(9), values)
        states: Any = ((*plain[0], *plain[1]), (*compiled[0], *compiled[1]))
        for one, other in zip(*states, strict=True):
            assert np.array_equal(one, other)
