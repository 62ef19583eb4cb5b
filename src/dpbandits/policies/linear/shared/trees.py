"""Linear policies that see a fresh private sum in every round, from a binary tree over rounds.

What `TreeLinUCB`, `TreeContextualUCB` and `TreeContextualThompson` share: one leaf a round, holding the
person's row (z, w) as zzᵀ and zw, and what was last made of the released prefix. Rounds that were closed
between the same two decisions are one leaf.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise, static_size
from dpbandits.engine.state import FROM_RECIPE, MOST, Limits, exactly
from dpbandits.mechanisms.gram import add_row, block_of, pair_size, unpack_pair
from dpbandits.policies.linear.shared.choosing import (
    RADIUS,
    most_promising_action,
    most_promising_of_all,
)
from dpbandits.policies.linear.shared.rows import GRID, grid_row
from dpbandits.policies.linear.shared.tiles import start_tile
from dpbandits.policies.returning import OncePerBatch
from dpbandits.problems.linear import LinearContexts, Rewards
from dpbandits.sums.binary_tree import (
    MOST_LEVELS,
    Leaves,
    Tree,
    leaves_released,
    release_leaf,
    release_vector_leaf,
    tree_levels,
    tree_participation,
)

Array = NDArray[np.float64]
ROUND, RELEASED = 0, 1


@dataclass(frozen=True, kw_only=True)
class OncePerLeaf(OncePerBatch):
    """A policy whose every round is a leaf of one tree."""

    abstract: ClassVar[bool] = True
    one_slot: ClassVar[bool] = True

    def multiplier_apart(self, problem: LinearContexts, rounds: int) -> float:
        """That of different leaves; k where the tree has no last level."""
        if problem.horizon is None:
            return float(rounds)
        return tree_participation(tree_levels(max(problem.horizon - 1, 1)), rounds)

    def draws_of_one(self, problem: LinearContexts) -> float:
        """All numbers of every node above her leaf; of two arms, where another is shown another."""
        return float(MOST_LEVELS * min(problem.blocks, 2) * pair_size(problem.dimension + 1))

    def batch_number(self, public: "TreeState", slot: int) -> int:
        """A leaf is a batch."""
        return leaves_released(public.tree, slot)


class TreeRows(NamedTuple):
    """The exact sums of the nodes, and room for one row and one matrix."""

    leaves: Leaves
    row: Array  # (r,)
    axes: Array  # that its size is known to compiled code
    matrix: Array  # (r, r) scratch, where noise is a matrix

    def limits(self) -> Limits:
        """Its size is declared."""
        return {"axes": FROM_RECIPE}


class TreeState(NamedTuple):
    """The released prefix, and what a policy made of it."""

    clock: NDArray[np.int64]  # rounds closed, those of them that are released
    tree: Tree
    axes: Array  # that d is known to compiled code
    gram: Array  # (d, d) G̃ of the block that is read
    moment: Array  # (d,) ũ of the block that is read
    mean: Array  # (blocks, d) θ̂
    shape: Array  # (blocks, d, d) V⁻¹
    lower: Array  # (d, d) scratch, or a factor of V⁻¹ where there is one block
    tile: Array  # scratch, to choose among many features
    draw: Array  # (2, d) a Thompson sample and its standard normals
    width: Array  # (blocks, 2) β, and a bound of V⁻¹
    regularizers: Array  # (nodes, 4) the policy's own, by the number of nodes in a prefix
    padding: Array  # (…, entries) noise of nodes that hold nobody, where it is added to a prefix
    max_norm: float
    rewards: Rewards
    settings: Any  # the policy's own: a named tuple of numbers

    def limits(self) -> Limits:
        """The policy's own numbers are declared."""
        recipe = dict.fromkeys(("axes", "regularizers"), FROM_RECIPE)
        clock = 0, np.array([MOST, self.clock[ROUND]])
        return {"clock": clock, "tile": exactly(0.0), **recipe}

    def observed(self) -> int:
        """Rounds closed so far."""
        return int(self.clock[ROUND])

    def observe(self, secret: TreeRows, context: Any, action: int, reward: float) -> None:
        """Put the person's row into the open leaf and count the round."""
        value = grid_row(secret.row, context[0], action, reward, self.max_norm, self.rewards, GRID)
        packed = secret.leaves.open[0]
        first, end = block_of(packed, action, self.mean.shape[0])
        add_row(packed[first:end], secret.row, value, secret.axes)
        self.clock[ROUND] += 1


@register_jitable(forceinline=True)
def leaf_waits(public: TreeState) -> bool:
    """Whether a round was closed since the last release."""
    return bool(public.clock[ROUND] > public.clock[RELEASED])


@register_jitable(forceinline=True)
def close_leaf(public: TreeState, secret: TreeRows, noise: Noise) -> None:
    """Release the open leaf."""
    public.clock[RELEASED] = public.clock[ROUND]
    release_leaf(public.tree, secret.leaves, 0, noise)


@register_jitable(forceinline=True)
def close_vector_leaf(public: TreeState, secret: TreeRows, noise: Noise) -> None:
    """Release the open leaf by the Gamma mechanism."""
    public.clock[RELEASED] = public.clock[ROUND]
    release_vector_leaf(public.tree, secret.leaves, 0, noise)


@register_jitable(forceinline=True)
def read_block(public: TreeState, block: int) -> None:
    """What is released about an arm of its own parameters, or about all, into `gram` and `moment`."""
    total = public.tree.total[0]
    first, end = block_of(total, block, public.mean.shape[0])
    unpack_pair(total[first:end], public.gram, public.moment)


@register_jitable(forceinline=True)
def choose(public: TreeState, features: Any, factor: float, explore: Chance) -> int:
    """The largest upper bound m·x + factor·β·√(xᵀV⁻¹x)."""
    if public.axes.ndim > 1 and public.mean.shape[0] == 1:
        width, axes = factor * public.width[0, RADIUS], public.axes
        return most_promising_of_all(features, public.mean[0], public.shape[0], width, axes, explore)
    return most_promising_action(features, public, factor, public.axes, explore)


def start_tree_state(
    kind: type[TreeState],
    problem: LinearContexts,
    tree: Tree,
    leaves: Leaves,
    regularizers: Array,
    settings: Any,
) -> tuple[Any, Any]:
    """Nothing known yet."""
    dim, blocks = problem.dimension, problem.blocks
    public = kind(
        clock=np.zeros(2, np.int64),
        tree=tree,
        axes=static_size(dim),
        gram=np.zeros((dim, dim)),
        moment=np.zeros(dim),
        mean=np.zeros((blocks, dim)),
        shape=np.tile(np.eye(dim), (blocks, 1, 1)),
        lower=np.eye(dim),
        tile=start_tile(dim),
        draw=np.zeros((2, dim)),
        width=np.ones((blocks, 2)),
        regularizers=regularizers,
        padding=np.zeros((0, 0)),
        max_norm=problem.max_norm,
        rewards=problem.rewards,
        settings=settings,
    )
    return public, TreeRows(leaves, np.zeros(dim), static_size(dim), np.zeros((0, 0)))
