r"""Running sums by a binary tree: a fresh prefix sum after every leaf, each datum in few nodes.

A node is the sum of 2^l consecutive leaves, and the prefix of n leaves is the sum of one node for each
binary digit of n. `release_leaf` closes the open leaf of one slot; with leaf n exactly one node
becomes complete, the one of level (trailing zeros of n), and it is released then, once, as a draw around
its exact sum. So every leaf costs one draw per coordinate and O(1) amortised work, and only the live
nodes are kept. A leaf may hold any number of data, as long as each datum is in one leaf.

**A known number of leaves n.** The largest node has 2^⌊log2 n⌋ leaves, so a leaf is in at most
L = ⌊log2 n⌋+1 = bit_length(n) nodes (the first leaf is in exactly L). Replacing a datum moves each of
them by at most Δ: with Laplace(LΔ/ε) the whole run is ε-DP, with N(0, L(Δ/μ)²) it is μ-GDP, also on
adaptive streams, since each node is one release. (⌈log2 n⌉ or ln n levels are too few: at n = 2^k they
cost (1 + 1/k)ε and 1.44 (1 + 1/k)ε.) A tree that is full, at 2^L − 1 leaves, is put aside with its last
prefix and another begins on disjoint data: the guarantee never ends, only the noise grows.

**An unknown number** (the hybrid mechanism of Chan, Shi & Song 2011). Trees of 1, 2, 4, … leaves follow
each other. The root of each is released with a `root_share` of the budget and added up; the r levels
below the root of the r-th tree, which give the prefixes within it, share the rest:
scale (r/(1−share))Δ/ε, or √(r/(1−share))Δ/μ.
"""

import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Noise
from dpbandits.engine.state import COUNT, FROM_RECIPE, NOT_NEGATIVE, Limits, exactly
from dpbandits.mechanisms.norm_gamma import draw_norm_gamma
from dpbandits.privacy.budgets import Budget, PureDP
from dpbandits.privacy.calibration import gaussian_scale, laplace_scale
from dpbandits.sums.batches import worst_of_many

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
# Trees double up to 2^40 leaves and then stay at that size.
_DOUBLINGS = 41
MOST_LEVELS = 64  # of any tree: what is declared has at most 10¹⁵ rounds


class Tree(NamedTuple):
    """The released part. The live nodes of a slot stand in a row, the largest and oldest first."""

    total: Array  # (slots, dim) prefix sums as released
    variance: Array  # (slots,) of the noise in `total`, per coordinate
    leaves: Integers  # (slots,) in the tree now open
    finished: Integers  # (slots,) trees put aside
    live: Integers  # (slots,) nodes in the row
    prefix: (
        Array  # (slots, levels + 1, dim) released sum before each live node; all of it after the last
    )
    spread: Array  # (slots, levels + 1) the variances of those
    size: Integers  # leaves of the first, second, … tree; the last entry for all that follow
    inner: Array  # scale of a node, by tree
    root: Array  # scale of the node that ends a tree
    widths: Array  # (dim,) by which the noise of each coordinate is larger
    laplace: bool

    def limits(self) -> Limits:
        """Noise by the recipe, fewer leaves than a full tree has, and a live node for each digit 1."""
        which = np.clip(self.finished, 0, self.size.size - 1)
        return {
            "variance": NOT_NEGATIVE,
            "leaves": (0, self.size[which] - 1),
            "finished": COUNT,
            "live": exactly(np.bitwise_count(self.leaves).astype(np.int64)),
            "spread": NOT_NEGATIVE,
            **dict.fromkeys(("size", "inner", "root", "widths"), FROM_RECIPE),
        }


class Leaves(NamedTuple):
    """The secret part."""

    open: Array  # (slots, dim) the open leaf
    nodes: Array  # (slots, levels, dim) exact sums of the live nodes


def tree_levels(leaves: int) -> int:
    """The most nodes that any of this many leaves is in: ⌊log2 n⌋ + 1.

    >>> [tree_levels(n) for n in (1, 2, 3, 4, 7, 8)]
    [1, 2, 2, 3, 3, 4]
    """
    checks.integer(least=1, leaves=leaves)
    return int(leaves).bit_length()


def tree_participation(levels: int, rounds: int) -> float:
    r"""How many times the cost of one datum k of them cost under Gaussian noise, in different leaves.

    All nodes have noise of variance L(Δ/μ)², and one with n of the data moves by at most nΔ: k data cost
    √(Σ n²/L), summed over the nodes that are released. Those are the left halves: whatever completes a
    right half completes a larger node, and that is released instead. So with A_l(n) the largest sum of n
    data below a node of 2^l leaves,

        A_0 = 0,   A_{l+1}(n) = max_i  i² + A_l(i) + A_l(n − i),   i data being in the left half,

    a whole tree, all left of its last leaf, has A_L(n), and trees that follow each other or are of other
    slots are independent, like blocks (`sums/batches.py`). (Under ε-DP the shifts add up: k. Without
    a known number of leaves trees grow without end, and one node holds all k at ever more levels: k.)

    >>> [round(tree_participation(17, k), 2) for k in (1, 2, 4, 16)]
    [1.0, 1.96, 3.8, 14.24]
    """
    checks.integer(least=1, levels=levels, rounds=rounds)
    below = np.zeros(2)  # A_l(0), A_l(1), … up to the number of leaves
    for _ in range(levels):
        left, most = below + np.arange(below.size) ** 2, min(2 * (below.size - 1), rounds)
        below = np.array([_best_split(left, below, n) for n in range(most + 1)])
    return math.sqrt(worst_of_many(below, rounds) / levels)


def _best_split(left: Array, right: Array, total: int) -> float:
    """The largest left[i] + right[total − i] that there is."""
    low, high = max(0, total - right.size + 1), min(total, left.size - 1)
    return float(np.max(left[low : high + 1] + right[total - high : total - low + 1][::-1]))


def leaves_released(public: Tree, slot: int) -> int:
    """How many leaves of a slot were, in all its trees."""
    finished = int(public.finished[slot])
    beyond = max(finished - public.size.size, 0) * int(public.size[-1])
    return int(public.size[:finished].sum()) + beyond + int(public.leaves[slot])


def start_tree(
    slots: int,
    dim: int,
    sensitivity: float,
    budget: Budget,
    *,
    leaves: int | None = None,
    root_share: float = 0.5,
    widths: Array | None = None,
) -> tuple[Tree, Leaves]:
    """An empty tree for each slot, calibrated so that everything they ever release costs one budget.

    `sensitivity` is what replacing one datum moves a leaf by, coordinates divided by their `widths`: in
    L1 under ε-DP, in L2 otherwise and where leaves are released by `release_vector_leaf`.
    `leaves` is how many a slot will have at most; without it, trees double.
    """
    checks.open_unit(root_share=root_share)
    laplace = isinstance(budget, PureDP)
    unit = laplace_scale(sensitivity, budget) if laplace else gaussian_scale(sensitivity, budget)
    # A datum in `parts` nodes of one scale: costs add up under ε-DP, their squares under μ-GDP.
    widened = (lambda parts: parts * unit) if laplace else (lambda parts: math.sqrt(parts) * unit)
    if leaves is None:
        levels = _DOUBLINGS
        size = [2**r for r in range(_DOUBLINGS)]
        inner = [widened(r / (1.0 - root_share)) for r in range(_DOUBLINGS)]
        root = [unit, *(widened(1.0 / root_share) for _ in range(1, _DOUBLINGS))]
    else:
        levels = tree_levels(leaves)
        size, inner = [2**levels - 1], [widened(levels)]
        root = inner
    checks.room("a tree", slots * (levels + 1) * dim)
    public = Tree(
        total=np.zeros((slots, dim)),
        variance=np.zeros(slots),
        leaves=np.zeros(slots, np.int64),
        finished=np.zeros(slots, np.int64),
        live=np.zeros(slots, np.int64),
        prefix=np.zeros((slots, levels + 1, dim)),
        spread=np.zeros((slots, levels + 1)),
        size=np.array(size, np.int64),
        inner=np.array(inner, np.float64),
        root=np.array(root, np.float64),
        widths=np.ones(dim) if widths is None else np.array(widths, np.float64),
        laplace=laplace,
    )
    return public, Leaves(open=np.zeros((slots, dim)), nodes=np.zeros((slots, levels, dim)))


@register_jitable(forceinline=True)
def release_leaf(public: Tree, secret: Leaves, slot: int, noise: Noise) -> None:
    """Close the open leaf of a slot and release the node that it completes."""
    place = merge_leaf(public, secret, slot)
    scale = _node_scale(public, slot)
    for axis in range(public.total.shape[1]):
        wide = scale * public.widths[axis]
        value = secret.nodes[slot, place, axis]
        drawn = noise.laplace(value, wide) if public.laplace else noise.normal(value, wide)
        public.prefix[slot, place + 1, axis] = public.prefix[slot, place, axis] + drawn
    finish_leaf(public, slot, place, scale * scale * (2.0 if public.laplace else 1.0))


@register_jitable(forceinline=True)
def release_vector_leaf(public: Tree, secret: Leaves, slot: int, noise: Noise) -> None:
    """The same by the Gamma mechanism, under ε-DP: one draw for all coordinates of the node."""
    place = merge_leaf(public, secret, slot)
    scale, node = _node_scale(public, slot), public.prefix[slot, place + 1]
    draw_norm_gamma(noise, secret.nodes[slot, place], node, scale, public.widths)
    for axis in range(node.size):
        node[axis] += public.prefix[slot, place, axis]
    finish_leaf(public, slot, place, scale * scale * (node.size + 1.0))


@register_jitable(forceinline=True)
def _node_scale(public: Tree, slot: int) -> float:
    """The scale of the node that the open leaf completes."""
    which = min(int(public.finished[slot]), public.size.size - 1)
    ends = public.leaves[slot] + 1 == public.size[which]
    return float(public.root[which] if ends else public.inner[which])


@register_jitable(forceinline=True)
def merge_leaf(public: Tree, secret: Leaves, slot: int) -> int:
    """Make the node that the open leaf completes, of it and live nodes of level 0, 1, …; its place."""
    place = int(public.live[slot])
    ones = int(public.leaves[slot])  # the trailing ones of its binary digits are those nodes
    while ones & 1:
        place -= 1
        ones >>= 1
        for axis in range(public.total.shape[1]):
            secret.open[slot, axis] += secret.nodes[slot, place, axis]
    for axis in range(public.total.shape[1]):
        secret.nodes[slot, place, axis] = secret.open[slot, axis]
        secret.open[slot, axis] = 0.0
    return place


@register_jitable(forceinline=True)
def finish_leaf(public: Tree, slot: int, place: int, variance: float) -> None:
    """Count a leaf whose node was released into `prefix`, with so much noise."""
    for axis in range(public.total.shape[1]):
        public.total[slot, axis] = public.prefix[slot, place + 1, axis]
    public.spread[slot, place + 1] = public.spread[slot, place] + variance
    public.variance[slot] = public.spread[slot, place + 1]
    public.leaves[slot] += 1
    public.live[slot] = place + 1
    if public.leaves[slot] == public.size[min(int(public.finished[slot]), public.size.size - 1)]:
        _begin_next(public, slot)


@register_jitable
def _begin_next(public: Tree, slot: int) -> None:
    """Put a full tree aside: its last prefix is where the next one starts from."""
    for axis in range(public.total.shape[1]):
        public.prefix[slot, 0, axis] = public.total[slot, axis]
    public.spread[slot, 0] = public.variance[slot]
    public.leaves[slot] = 0
    public.live[slot] = 0
    public.finished[slot] += 1
