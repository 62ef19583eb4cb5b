r"""Sums of rows x xᵀ and x·y as one flat vector, and how wide Gaussian noise on them must be.

A pair (G, u), a symmetric d×d matrix and a vector, is laid out as the upper triangle of G row by row,
then u: `pair_size(d)` = d(d+1)/2 + d numbers. Each number is drawn once, so a noisy G stays symmetric.

**What one person moves.** Off the diagonal every number of a symmetric matrix stands for two entries. So
with noise s off the diagonal and √2·s on it (that is, s·(Z′ + Z′ᵀ)/√2 with Z′ of independent standard
normals), replacing a row a by b costs, in units of the noise,

    Σ_{i<j} D_ij²/s² + Σ_i D_ii²/(2s²) = ‖D‖_F²/(2s²),   D = aaᵀ − bbᵀ,
    ‖D‖_F² = ‖a‖⁴ + ‖b‖⁴ − 2(a·b)².

With s on the diagonal as well the same row could cost √2 times as much (a = e₁, b = e₂).
"""

import functools
import math

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import length

Array = NDArray[np.float64]


def triangle_size(dim: int) -> int:
    """How many numbers a symmetric matrix has."""
    return dim * (dim + 1) // 2


def pair_size(dim: int) -> int:
    """How many numbers a pair (G, u) has."""
    return triangle_size(dim) + dim


def pair_widths(dim: int) -> Array:
    """Noise on Σ (x xᵀ, x·y) that makes it 1-GDP where ‖x‖ ≤ 1 and |y| ≤ 1: sensitivity 1.

    For ‖x‖ ≤ L and |y| ≤ B store x/L and y/B, which is the same as L² and LB times as wide.

    **Derivation.** Let a and b be features of norms r and q with c = a·b, and |y|, |y′| ≤ 1. With s_G
    for the matrix (√2·s_G on its diagonal) and s_U for the vector, replacing (a, y) by (b, y′) costs

        μ² = (r⁴ + q⁴ − 2c²)/(2 s_G²) + ‖a y − b y′‖²/s_U²,   ‖a y − b y′‖² ≤ r² + q² + 2|c|,

    reached at y = −y′ = ±1. With the scales below it grows with r and with q (with c = rq·k, 4.5 times
    the derivative in r² is 2r² − 2q²k² + 1 + kq/r: positive at q = 0, at k = 0 and at q = k = 1, and
    concave in between), so both are 1:

        μ² = sup_c (1 − c²)/s_G² + (2 + 2c)/s_U².

    Among all scales that keep this at 1, s_G = 3/2 and s_U = 3/√2 have the least s_G² + s_U²; the worst
    pair is then at c = ½, where the two terms are ⅓ and ⅔.
    """
    return np.concatenate([_triangle_widths(dim, 1.5), np.full(dim, 1.5 * math.sqrt(2.0))])


def augmented_widths(dim: int) -> Array:
    """Noise on Σ (x xᵀ, x·y) that makes it 1-GDP where ‖(x, y)‖ ≤ 1: sensitivity 1 (Shariff & Sheffet).

    The pair is part of the Gram matrix of rows ã = (x, y) ∈ R^(d+1), whose noise is the symmetrised
    Gaussian: ‖D‖_F²/2 ≤ 1, reached where ã and its replacement are orthogonal. The entry Σ y² is not
    released, which can only cost less; with d ≥ 2 (and with d = 1, at ã = (1, ±1)/√2) just as much.
    For ‖ã‖ ≤ L̃ the noise is L̃² times as wide.
    """
    return np.concatenate([_triangle_widths(dim, 1.0), np.ones(dim)])


def _triangle_widths(dim: int, width: float) -> Array:
    checks.integer(least=1, dim=dim)
    rows, columns = np.triu_indices(dim)
    return np.where(rows == columns, math.sqrt(2.0) * width, width)


@register_jitable(forceinline=True)
def block_of(packed: Array, block: int, blocks: int) -> tuple[int, int]:
    """Where one of `blocks` packed pairs that follow each other begins and ends; or the only one."""
    size = packed.size // blocks
    first = block * size if blocks > 1 else 0
    return first, first + size


@register_jitable(forceinline=True)
def add_square(packed: Array, row: Array, axes: Array) -> None:
    """Add x xᵀ to a packed matrix; `length(axes)` is the size of x."""
    place, size = 0, length(axes)
    for i in range(size):
        for j in range(i, size):
            packed[place] += row[i] * row[j]
            place += 1


@register_jitable(forceinline=True)
def add_row(packed: Array, row: Array, reward: float, axes: Array) -> None:
    """Add (x xᵀ, x·y) to a packed pair."""
    add_square(packed, row, axes)
    size = length(axes)
    first = size * (size + 1) // 2
    for i in range(size):
        packed[first + i] += row[i] * reward


@register_jitable(forceinline=True)
def unpack(packed: Array, matrix: Array) -> None:
    """Write the symmetric matrix that a packed one, or a pair, begins with."""
    place = 0
    for i in range(matrix.shape[0]):
        for j in range(i, matrix.shape[0]):
            matrix[i, j] = packed[place]
            matrix[j, i] = packed[place]
            place += 1


@register_jitable(forceinline=True)
def unpack_pair(packed: Array, matrix: Array, vector: Array) -> None:
    """Write the matrix and the vector of a packed pair."""
    unpack(packed, matrix)
    for i in range(vector.size):
        vector[i] = packed[packed.size - vector.size + i]


@functools.cache
def operator_norm(dim: int) -> float:
    """E‖Z‖ of the d×d symmetrised Gaussian matrix Z (variance 1 off the diagonal, 2 on it).

    ‖Z‖ is √2-Lipschitz in independent standard normals, so ‖Z‖ ≤ E‖Z‖ + 2√(ln 1/p) but with
    probability p.

    All eigenvalues lie within [−t, t] with probability Pf A(t)/Pf A(∞), where A_ij(t) is the integral of
    sgn(y − x) φ_i(x) φ_j(y) over [−t, t]², the φ being any basis of the polynomials below degree d times
    e^(−x²/4); for odd d it is bordered by the integrals of the φ_i (de Bruijn 1955). E‖Z‖ is the
    integral of the rest, to six digits by Gauss's quadrature. Above d = 200 the bound 2√d + √(4 ln 2) is
    taken: the largest eigenvalue and the least have means within ±2√d and the tails of variance 2.

    >>> [round(operator_norm(dim), 3) for dim in (1, 5)]
    [1.128, 3.866]
    """
    checks.integer(least=1, dim=dim)
    if dim > 200:
        return 2.0 * math.sqrt(dim) + math.sqrt(4.0 * math.log(2.0))
    # What is left out on either side of 2√d is below 10⁻⁸.
    low, high = max(0.0, 2.0 * math.sqrt(dim) - 6.0), 2.0 * math.sqrt(dim) + 9.0
    nodes, weights = np.polynomial.legendre.leggauss(48)
    times = low + (high - low) * (nodes + 1.0) / 2.0
    whole = _log_pfaffian(dim, high)
    outside = [-math.expm1(min(_log_pfaffian(dim, time) - whole, 0.0)) for time in times]
    return low + (high - low) / 2.0 * float(weights @ outside)


def _log_pfaffian(dim: int, time: float) -> float:
    """Ln Pf A(t), with Hermite functions for φ: but for a factor, ln |det ∫₀ᵗ Φ_i(y) φ_j(y) dy|.

    Here Φ_i is the integral from 0 of an even φ_i and φ_j is odd; other pairs of A vanish. For odd d the
    border is one more odd function.
    """
    nodes, weights, primitive = _quadrature((3 * dim) // 2 + 48)
    x = time * nodes
    basis = np.zeros((dim + 1, x.size))
    basis[0] = np.exp(-(x**2) / 4.0)
    basis[1] = x * basis[0]
    for i in range(2, dim):
        basis[i] = (x * basis[i - 1] - math.sqrt(i - 1.0) * basis[i - 2]) / math.sqrt(i)
    even, odd = basis[:dim:2], basis[1:dim:2]
    # By einsum, not @: products this small lose more in threads than they gain.
    primitives = np.einsum("ik,nk->in", even, primitive)
    matrix = time**2 * np.einsum("in,jn->ij", primitives, odd * weights)
    if dim % 2:
        matrix = np.column_stack([matrix, time * even @ weights])
    return float(np.linalg.slogdet(matrix)[1])


@functools.cache
def _quadrature(size: int) -> tuple[Array, Array, Array]:
    """Gauss's nodes and weights on [0, 1], and the matrix that integrates from 0 to each node."""
    legendre = np.polynomial.legendre
    nodes, weights = legendre.leggauss(size)
    values = legendre.legvander(nodes, size)
    orders = np.arange(1, size)
    primitive = np.empty((size, size))
    primitive[0] = nodes + 1.0
    primitive[1:] = ((values[:, 2:] - values[:, :-2]) / (2.0 * orders + 1.0)).T
    coefficients = values[:, :-1] * weights[:, None] * (np.arange(size) + 0.5)
    return (nodes + 1.0) / 2.0, weights / 2.0, (coefficients @ primitive).T.copy() / 2.0
