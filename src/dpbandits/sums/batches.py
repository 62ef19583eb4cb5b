r"""Sums released batch by batch: each datum is in exactly one batch, so it is paid for once.

`release_batch` closes the open batch of one slot. What is drawn depends on the budget:

**Independent** (Laplace under ε-DP; Gaussian where only the last batch is used). The batch sum s_k is
drawn with fresh noise and added up. A person's value is in one batch sum of sensitivity Δ, so with
Laplace(Δ/ε) the whole run is ε-DP and with N(0, (Δ/μ)²) it is μ-GDP, for any number of batches:
choosing the batch ends may use released values and counts of decisions only, and adding released sums
is post-processing.

**Block-factorized** (Gaussian, cumulative). In blocks of q_max batches, with f_0 = 1,
f_q = f_{q−1}(2q−1)/(2q) and c² = Σ_{q<q_max} f_q²,

    loc_k = Σ_{j≤k} s_j + F + Σ_{q≥1} f_q z_{k−q},   P_k ~ N(loc_k, (cΔ/μ)²),   z_k = P_k − loc_k,

where q stays within the block and F is the noise carried over from finished blocks. Within a block the
releases are C s + noise with C the lower-triangular Toeplitz matrix of f, and C·C sums prefixes: a
datum in batch j shifts the whitened releases by ‖C e_j‖/c ≤ 1 times μ. Gaussian noise with a
lower-triangular C holds on adaptive streams, and blocks touch disjoint data: μ-GDP for any horizon.
Its prefix sums carry about ln(batches)/π as much noise variance as independent ones would. It is for
Gaussian noise only: under ε-DP it would cost the L1 norm of a column. Blocks may grow, each with the c
of its own size: short ones cost little while there are few batches, long ones when there are many.

Coordinates may have `widths`: their noise is so much larger, and Δ is the sensitivity of the coordinates
divided by them.

**People who return.** With m_j of her data in batch j, Laplace noise costs Σ m_j of ε whatever the
batches are, and independent Gaussian noise √Σ m_j² of μ: k for k data anyhow, √k in k different batches.
For blocks see `participation`.
"""

import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Noise
from dpbandits.engine.state import COUNT, FROM_RECIPE, MOST, NOT_NEGATIVE, Limits
from dpbandits.privacy.budgets import Budget, PureDP
from dpbandits.privacy.calibration import gaussian_scale, laplace_scale

Array = NDArray[np.float64]


class Batches(NamedTuple):
    """The released part."""

    total: Array  # (slots, dim) prefix sums as released
    last: Array  # (slots, dim) the last batch alone; independent batches only
    variance: Array  # (slots,) of the noise in `total`, per coordinate
    released: NDArray[np.int64]  # (slots,) how many batches were
    place: NDArray[np.int64]  # (slots, 2): the block that is open, and batches released in it
    weights: Array  # f_q of the factorization; (1,) for independent batches
    sizes: NDArray[np.int64]  # batches in the first, second, … block; the last entry for all that follow
    ratio: Array  # c of each block, relative to that of the first
    widths: Array  # (dim,)
    scale: float  # of one draw in the first block, at width 1
    laplace: bool

    def limits(self) -> Limits:
        """Noise by the recipe, and no place outside its block."""
        block = np.clip(self.place[:, 0], 0, self.sizes.size - 1)
        last = np.stack([np.full(block.size, MOST), self.sizes[block] - 1], axis=1)
        recipe = dict.fromkeys(("weights", "sizes", "ratio", "widths"), FROM_RECIPE)
        return {"variance": NOT_NEGATIVE, "released": COUNT, "place": (0, last), **recipe}


class Buffers(NamedTuple):
    """The secret part."""

    open: Array  # (slots, dim) the open batch
    exact: Array  # (slots, dim) the released batches without noise
    carried: Array  # (slots, dim) F
    noise: Array  # (slots, q_max, dim) z of this block


def start_batches(
    slots: int,
    dim: int,
    sensitivity: float,
    budget: Budget,
    *,
    block: int | tuple[int, ...] = 64,
    cumulative: bool = True,
    widths: Array | None = None,
) -> tuple[Batches, Buffers]:
    """Empty batches, calibrated so that everything they ever release costs one budget.

    `sensitivity` is what replacing one datum moves a batch by, coordinates divided by their `widths`: in
    L1 under ε-DP, in L2 otherwise. `block` is the size of every block, or of the first, second, … one.
    """
    laplace = isinstance(budget, PureDP)
    sizes = np.atleast_1d(np.array(block if cumulative and not laplace else 1, np.int64))
    checks.room("the noise of a block", slots * dim * int(sizes.max()))
    weights = toeplitz_root(int(sizes.max()))
    norms = np.sqrt(np.cumsum(weights * weights))[sizes - 1]
    if laplace:
        scale = laplace_scale(sensitivity, budget)
    else:
        scale = gaussian_scale(sensitivity, budget) * float(norms[0])
    public = Batches(
        total=np.zeros((slots, dim)),
        last=np.zeros((slots, dim)),
        variance=np.zeros(slots),
        released=np.zeros(slots, np.int64),
        place=np.zeros((slots, 2), np.int64),
        weights=weights,
        sizes=sizes,
        ratio=norms / norms[0],
        widths=np.ones(dim) if widths is None else np.array(widths, np.float64),
        scale=scale,
        laplace=laplace,
    )
    secret = Buffers(
        open=np.zeros((slots, dim)),
        exact=np.zeros((slots, dim)),
        carried=np.zeros((slots, dim)),
        noise=np.zeros((slots, weights.size, dim)),
    )
    return public, secret


def toeplitz_root(length: int) -> Array:
    """f_0 … f_{q_max−1}: the coefficients of 1/√(1 − x), whose square sums prefixes."""
    weights = np.ones(length)
    for q in range(1, length):
        weights[q] = weights[q - 1] * (2 * q - 1) / (2 * q)
    return weights


def participation(block: int | tuple[int, ...], rounds: int, *, apart: int = 1) -> float:
    r"""How many times the cost of one datum k of them cost, in batches at least `apart` of each other.

    Data in batches i ≤ j of a block of q move the whitened releases by columns of C/c, whose product is
    Σ_{m<q−j} f_m f_{m+j−i}/c². It is positive and falls in j and in j − i, because f falls. So n batches
    of one block cost most at 0, s, 2s, …, s = `apart`: N(n)², the sum of all their products. Blocks are
    independent and there is no end of them, so the worst is max Σ_b N(n_b)² with Σ n_b = k, found by
    dynamic programming: filling block after block is not always worst. Where blocks differ in size, each
    counts as the worst of them. (Vectors cost no more than numbers: no product is negative.)

    >>> [round(participation(q, 4), 2) for q in (1, 4, 64)]
    [2.0, 2.79, 3.48]
    """
    checks.integer(least=1, rounds=rounds, apart=apart)
    within = np.zeros(rounds + 1)  # N(n)²
    for size in {int(size) for size in np.atleast_1d(block)}:
        weights = toeplitz_root(size)
        found = np.cumsum(_block_costs(weights, min(rounds, math.ceil(size / apart)), apart))
        within[1 : found.size + 1] = np.maximum(within[1 : found.size + 1], found)
    return math.sqrt(worst_of_many(within[: int(np.count_nonzero(within)) + 1], rounds))


def worst_of_many(one: Array, rounds: int) -> float:
    """The most that n data cost in independent parts, of which 0, 1, … cost `one` in each."""
    worst = np.zeros(rounds + 1)
    for n in range(1, rounds + 1):
        most = min(n, one.size - 1)
        worst[n] = np.max(one[1 : most + 1] + worst[n - most : n][::-1])
    return float(worst[rounds])


def _block_costs(weights: Array, count: int, apart: int) -> Array:
    """What each of `count` batches of one block, `apart` of each other, adds to the cost's square."""
    total, added = float(weights @ weights), np.zeros(count)
    for n in range(count):
        left = weights[: weights.size - n * apart]
        products = [float(left @ weights[d * apart : d * apart + left.size]) for d in range(n + 1)]
        added[n] = (2.0 * sum(products) - products[0]) / total
    return added


@register_jitable(forceinline=True)
def release_batch(public: Batches, secret: Buffers, slot: int, noise: Noise) -> None:
    """Close the open batch of a slot and release its sum."""
    if public.weights.size == 1:
        _release_independent(public, secret, slot, noise)
    else:
        _release_factorized(public, secret, slot, noise)
    public.released[slot] += 1


def add_public(public: Batches, secret: Buffers, slot: int, values: Array) -> None:
    """Add a sum that is public to what is released of a slot: a batch without noise.

    It moves the location of later draws by a constant, and their scale not at all.
    """
    public.total[slot] += values
    public.last[slot] = values
    public.released[slot] += 1
    secret.exact[slot] += values


@register_jitable(forceinline=True)
def _release_independent(public: Batches, secret: Buffers, slot: int, noise: Noise) -> None:
    for axis in range(public.total.shape[1]):
        value = secret.open[slot, axis]
        scale = public.scale * public.widths[axis]
        drawn = noise.laplace(value, scale) if public.laplace else noise.normal(value, scale)
        public.last[slot, axis] = drawn
        public.total[slot, axis] += drawn
        secret.open[slot, axis] = 0.0
    public.variance[slot] += public.scale * public.scale * (2.0 if public.laplace else 1.0)


@register_jitable(forceinline=True)
def _release_factorized(public: Batches, secret: Buffers, slot: int, noise: Noise) -> None:
    block, place = min(public.place[slot, 0], public.sizes.size - 1), public.place[slot, 1]
    ends = place + 1 == public.sizes[block]
    unit, dim = public.scale * public.ratio[block], public.total.shape[1]
    # Locations are added up in `open`, noise by noise: of large sums each is long, and read once.
    for axis in range(dim):
        secret.exact[slot, axis] += secret.open[slot, axis]
        secret.open[slot, axis] = secret.exact[slot, axis] + secret.carried[slot, axis]
    for q in range(1, place + 1):
        for axis in range(dim):
            secret.open[slot, axis] += public.weights[q] * secret.noise[slot, place - q, axis]
    for axis in range(dim):
        location = secret.open[slot, axis]
        secret.open[slot, axis] = 0.0
        drawn = noise.normal(location, unit * public.widths[axis])
        secret.noise[slot, place, axis] = drawn - location
        public.total[slot, axis] = drawn
        if ends:
            secret.carried[slot, axis] = drawn - secret.exact[slot, axis]
    # The block's variance so far grows by f² with each release; that of finished blocks stays.
    public.variance[slot] += (unit * public.weights[place]) ** 2
    if ends:
        public.place[slot, 0] += 1
    public.place[slot, 1] = 0 if ends else place + 1
