"""Dense linear algebra in loops: nothing is allocated, and plain and compiled code agree bitwise.

Functions learn the size d of their matrices from `axes`, any vector of that size or what `static_size`
makes (`engine/sizes.py`).
"""

import math
from typing import Any

from numba.extending import register_jitable

from dpbandits.engine import Chance, length


@register_jitable(forceinline=True)
def cholesky(matrix: Any, ridge: float, lower: Any, axes: Any) -> float:
    """Factor matrix + ridge·I = L Lᵀ into `lower`; the log determinant, or NaN if it is not positive."""
    log_det, product = 0.0, 1.0
    for i in range(length(axes)):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= lower[i, k] * lower[j, k]
            if j < i:
                lower[i, j] = value / lower[j, j]
            else:
                value += ridge
                if not value > 0.0:
                    return math.nan
                lower[i, i] = math.sqrt(value)
                product *= value
                if product > 1e150 or product < 1e-150:  # few logarithms, no overflow
                    log_det += math.log(product)
                    product = 1.0
    return log_det + math.log(product)


@register_jitable(forceinline=True)
def invert(lower: Any, inverse: Any, axes: Any) -> None:
    """(L Lᵀ)⁻¹ into `inverse`, replacing L by its own inverse."""
    size = length(axes)
    for i in range(size):
        lower[i, i] = 1.0 / lower[i, i]
        for j in range(i):
            value = 0.0
            for k in range(j, i):
                value -= lower[i, k] * lower[k, j]
            lower[i, j] = value * lower[i, i]
    for i in range(size):
        for j in range(i + 1):
            value = 0.0
            for k in range(i, size):
                value += lower[k, i] * lower[k, j]
            inverse[i, j] = inverse[j, i] = value


@register_jitable(forceinline=True)
def multiply(matrix: Any, vector: Any, result: Any, axes: Any) -> None:
    """matrix·vector into `result`."""
    size = length(axes)
    for i in range(size):
        value = 0.0
        for j in range(size):
            value += matrix[i, j] * vector[j]
        result[i] = value


@register_jitable(forceinline=True)
def norm_bound(matrix: Any, axes: Any) -> float:
    """The largest row sum of absolute values: at least the largest eigenvalue."""
    bound, size = 0.0, length(axes)
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += abs(matrix[i, j])
        bound = max(bound, total)
    return bound


@register_jitable
def eigen(matrix: Any, values: Any, vectors: Any) -> None:
    """Eigenvalues and eigenvectors (columns) of a symmetric matrix by cyclic Jacobi; destroys it."""
    size = matrix.shape[0]
    scale = 0.0
    for i in range(size):
        for j in range(size):
            vectors[i, j] = 1.0 if i == j else 0.0
            scale += matrix[i, j] * matrix[i, j]
    for _ in range(60):
        off = 0.0
        for i in range(size):
            for j in range(i):
                off += matrix[i, j] * matrix[i, j]
        if off <= 1e-26 * scale:
            break
        for p in range(size - 1):
            for q in range(p + 1, size):
                if matrix[p, q] != 0.0:
                    _rotate(matrix, vectors, p, q)
    for i in range(size):
        values[i] = matrix[i, i]


@register_jitable
def _rotate(matrix: Any, vectors: Any, p: int, q: int) -> None:
    """One Jacobi rotation that makes entry (p, q) zero."""
    ratio = (matrix[q, q] - matrix[p, p]) / (2.0 * matrix[p, q])
    tangent = 1.0 / (abs(ratio) + math.sqrt(ratio * ratio + 1.0))
    if ratio < 0.0:
        tangent = -tangent
    cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
    sine = tangent * cosine
    shift = tangent * matrix[p, q]
    matrix[p, p] -= shift
    matrix[q, q] += shift
    matrix[p, q] = matrix[q, p] = 0.0
    for k in range(matrix.shape[0]):
        if k != p and k != q:
            one, other = matrix[k, p], matrix[k, q]
            matrix[k, p] = matrix[p, k] = cosine * one - sine * other
            matrix[k, q] = matrix[q, k] = sine * one + cosine * other
        one, other = vectors[k, p], vectors[k, q]
        vectors[k, p] = cosine * one - sine * other
        vectors[k, q] = sine * one + cosine * other


@register_jitable
def sample(mean: Any, factor: Any, spread: float, draw: Any, explore: Chance) -> None:
    """draw[0] ~ N(mean, spread²·F Fᵀ) for a lower-triangular F; draw[1] holds the standard normals."""
    for i in range(mean.size):
        draw[1, i] = explore.standard_normal()
    for i in range(mean.size):
        value = 0.0
        for k in range(i + 1):
            value += factor[i, k] * draw[1, k]
        draw[0, i] = mean[i] + spread * value
