"""Dense linear algebra in loops: nothing is allocated, and plain and compiled code agree bitwise.

Functions learn the size d of their matrices from `axes`, any vector of that size or what `static_size`
makes (`engine/sizes.py`).
"""

import math
from typing import Any

from numba.extending import register_jitable

from dpbandits.engine import Chance, length

_FEW = 40  # up to here rotations of the whole matrix are about as quick


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


@register_jitable
def quadratic(matrix: Any, vector: Any) -> float:
    """xᵀAx for a symmetric A, eight of its columns at a time: one sum would wait for itself."""
    total, size = 0.0, vector.size
    eights = size - size % 8
    for i in range(0, eights, 8):
        a = b = c = d = e = f = g = h = 0.0
        for j in range(size):
            value = vector[j]
            a += matrix[j, i] * value
            b += matrix[j, i + 1] * value
            c += matrix[j, i + 2] * value
            d += matrix[j, i + 3] * value
            e += matrix[j, i + 4] * value
            f += matrix[j, i + 5] * value
            g += matrix[j, i + 6] * value
            h += matrix[j, i + 7] * value
        total += a * vector[i] + b * vector[i + 1] + c * vector[i + 2] + d * vector[i + 3]
        total += e * vector[i + 4] + f * vector[i + 5] + g * vector[i + 6] + h * vector[i + 7]
    for i in range(eights, size):
        value = 0.0
        for j in range(size):
            value += matrix[j, i] * vector[j]
        total += value * vector[i]
    return total


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
def eigen(matrix: Any, values: Any, vectors: Any, many: bool = False) -> None:
    """Eigenvalues and eigenvectors (columns) of a symmetric matrix; destroys it.

    `many`: where there are many matrices, so that time matters for small ones too.
    """
    if matrix.shape[0] <= (2 if many else _FEW):
        _jacobi(matrix, values, vectors)
    else:
        _tridiagonal(matrix, values, vectors)
        _implicit_ql(matrix[0], values, vectors)
        for i in range(values.size):
            for j in range(i):
                vectors[i, j], vectors[j, i] = vectors[j, i], vectors[i, j]


@register_jitable
def _jacobi(matrix: Any, values: Any, vectors: Any) -> None:
    """By cyclic rotations: the most exact, and the quickest for small ones."""
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
def _tridiagonal(matrix: Any, values: Any, vectors: Any) -> None:
    """Householder's reflections: Qᵀ into `vectors`, the diagonal of QᵀAQ into `values`.

    The entries below the diagonal go into the first row of `matrix`, from its second place on.
    """
    size = matrix.shape[0]
    for i in range(size):
        for j in range(size):
            vectors[i, j] = 1.0 if i == j else 0.0
    for k in range(size - 2):
        # v = x ± ‖x‖e₁ for the part x of column k below the diagonal, kept in that column's place.
        square = 0.0
        for i in range(k + 1, size):
            square += matrix[k, i] * matrix[k, i]
        first = matrix[k, k + 1]
        below = math.sqrt(square)
        if first > 0.0:
            below = -below
        norm = square - first * below  # ‖v‖²/2
        if norm > 1e-290:  # of which there is an inverse
            matrix[k, k + 1] = first - below
            _reflect(matrix, vectors, values, k, 1.0 / norm)
        matrix[k + 1, k] = below
    for i in range(size):
        values[i] = matrix[i, i]
    for i in range(1, size - 1):
        matrix[0, i] = matrix[i, i - 1]
    matrix[0, size - 1] = matrix[size - 1, size - 2]


@register_jitable
def _reflect(matrix: Any, vectors: Any, image: Any, k: int, factor: float) -> None:
    """Apply I − v vᵀ·factor from both sides to what is right of and below k, and to Qᵀ from the left.

    v is in row k of `matrix`; `image` is scratch.
    """
    size, along = matrix.shape[0], 0.0
    for i in range(k + 1, size):
        image[i] = 0.0
    for j in range(k + 1, size):
        weight = matrix[k, j] * factor
        for i in range(k + 1, size):
            image[i] += matrix[j, i] * weight
    for i in range(k + 1, size):
        along += image[i] * matrix[k, i]
    half = 0.5 * along * factor
    for i in range(k + 1, size):
        image[i] -= half * matrix[k, i]
    for i in range(k + 1, size):
        one, other = matrix[k, i], image[i]
        for j in range(k + 1, size):
            matrix[i, j] -= one * image[j] + other * matrix[k, j]
    for j in range(size):
        image[j] = 0.0
    for i in range(k + 1, size):
        weight = matrix[k, i] * factor
        for j in range(size):
            image[j] += vectors[i, j] * weight
    for i in range(k + 1, size):
        one = matrix[k, i]
        for j in range(size):
            vectors[i, j] -= one * image[j]


@register_jitable
def _implicit_ql(below: Any, values: Any, vectors: Any) -> None:
    """Eigenvalues of a tridiagonal matrix, by rotations that the rows of `vectors` are turned with.

    Its diagonal is `values`; entry i beside it is below[i], and below[0] is free.
    """
    size = values.size
    for i in range(1, size):
        below[i - 1] = below[i]
    below[size - 1] = 0.0
    for start in range(size):
        for _ in range(60):
            end = start
            while end < size - 1:
                near = abs(values[end]) + abs(values[end + 1])
                if abs(below[end]) <= 2.3e-16 * near:
                    break
                end += 1
            if end == start:
                break
            _chase(below, values, vectors, start, end)


@register_jitable
def _chase(below: Any, values: Any, vectors: Any, start: int, end: int) -> None:
    """One step of QL with Wilkinson's shift on the part from `start` to `end`."""
    shift = (values[start + 1] - values[start]) / (2.0 * below[start])
    root = math.sqrt(shift * shift + 1.0)
    shift = values[end] - values[start] + below[start] / (shift + (root if shift >= 0.0 else -root))
    sine, cosine, moved = 1.0, 1.0, 0.0
    for i in range(end - 1, start - 1, -1):
        far, near = sine * below[i], cosine * below[i]
        root = math.sqrt(far * far + shift * shift)
        below[i + 1] = root
        if root == 0.0:
            values[i + 1] -= moved
            below[end] = 0.0
            return
        sine, cosine = far / root, shift / root
        shift = values[i + 1] - moved
        root = (values[i] - shift) * sine + 2.0 * cosine * near
        moved = sine * root
        values[i + 1] = shift + moved
        shift = cosine * root - near
        for k in range(values.size):
            one, other = vectors[i + 1, k], vectors[i, k]
            vectors[i + 1, k] = sine * other + cosine * one
            vectors[i, k] = cosine * other - sine * one
    values[start] -= moved
    below[start] = shift
    below[end] = 0.0


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
