r"""Wishart noise on Gram matrices: positive semidefinite, so that a noisy Gram matrix is one as well.

W ~ W_p(s²I, k) is the Gram matrix of k rows N(0, s²I_p). It is drawn as s²·A Aᵀ with A lower-triangular,
A_ii² chi-squared with k − i degrees of freedom (i = 0 … p−1) and standard normals below (Bartlett 1933):
p(p+1)/2 draws, however large k.

**Why private** (Sheffet 2015, Theorem 4.1; Shariff & Sheffet 2018, Theorems 8 and 23). For rows of norm
at most s, releasing their Gram matrix plus W_p(s²I, k) is (ε₀, δ₀)-DP under replacement of a row, where
ε₀ < 1, δ₀ < 1/e and k ≥ p + 28 ε₀⁻² ln(4/δ₀). If a row is in at most m such releases,

    ε₀ = ε/√(8m ln(2/δ)),   δ₀ = δ/(2m)   and so   k = p + ⌈224 m ε⁻² ln(8m/δ) ln(2/δ)⌉

suffice for (ε, δ): by adaptive composition (Dwork, Rothblum & Vadhan 2010) they cost
√(2m ln(2/δ)) ε₀ + m ε₀ (e^ε₀ − 1) = ε/2 + m ε₀ (e^ε₀ − 1) and m δ₀ + δ/2 = δ. The paper takes the second
term to be at most ε/2. That fails for ε beyond 4 ln(2/δ) or somewhat less, which is refused here.

Noise depends on a matrix only as its location, so only the difference aaᵀ − bbᵀ of two neighbours
counts, which is how the replay test prices a draw.
"""

import math
from typing import Any

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import length
from dpbandits.errors import BudgetNotAccepted
from dpbandits.mechanisms.gram import triangle_size
from dpbandits.privacy.budgets import ApproxDP

Array = NDArray[np.float64]


def wishart_dof(dim: int, levels: int, budget: ApproxDP) -> int:
    """Degrees of freedom k for Gram matrices of rows (x, y), x ∈ R^dim, each row in `levels` releases.

    >>> wishart_dof(5, 27, ApproxDP(1.0, 0.1))  # 5·10⁷ rounds
    139115
    """
    checks.integer(least=1, dim=dim, levels=levels)
    if not isinstance(budget, ApproxDP):
        raise BudgetNotAccepted(f"Wishart noise is calibrated to (ε, δ)-DP, not to {budget}")
    each, slack = _each(levels, budget)
    if not (each < 1.0 and budget.delta / (2 * levels) < 1.0 / math.e and slack >= 0.0):
        raise BudgetNotAccepted(
            f"Wishart noise is proved for smaller ε only: {budget} over {levels} levels is "
            f"ε = {each:.3g} for each, where ε < 1, δ < 1/e and a sum of at most ε are needed"
        )
    return _freedom(dim, levels, budget)


def wishart_levels(dim: int, dof: int, budget: ApproxDP) -> int:
    """In how many releases with these degrees of freedom a row may be: the inverse of `wishart_dof`."""
    levels = 0
    step = 1
    while _freedom(dim, levels + step, budget) <= dof:
        step *= 2
    while step:
        if _freedom(dim, levels + step, budget) <= dof:
            levels += step
        step //= 2
    if levels:
        try:
            wishart_dof(dim, levels, budget)
        except BudgetNotAccepted:
            return 0
    return levels


def _each(levels: int, budget: ApproxDP) -> tuple[float, float]:
    """ε₀, and what is left of ε when `levels` of them are composed."""
    log = math.log(2.0 / budget.delta)
    each = budget.epsilon / math.sqrt(8.0 * levels * log)
    return each, budget.epsilon / 2.0 - levels * each * math.expm1(min(each, 1.0))


def _freedom(dim: int, levels: int, budget: ApproxDP) -> int:
    if budget.epsilon == 0.0:
        raise BudgetNotAccepted(f"no Wishart noise meets {budget}: ε must be above 0")
    logs = math.log(8.0 * levels / budget.delta) * math.log(2.0 / budget.delta)
    return dim + 1 + math.ceil(224.0 * levels * logs / budget.epsilon**2)


def draw_wishart(
    noise: Any, location: Array, out: Array, dof: int, scale: float, scratch: Array, axes: Array
) -> None:
    """Release a packed p×p matrix: `out` = `location` + W_p(scale²·I, dof), p being `length(axes)`.

    Matrices are upper triangles row by row; `out` may be `location` itself. `scratch` is p×p.
    """
    if not triangle_size(length(axes)) == location.size == out.size:
        # A smaller matrix would leave the rest of `out` without noise, unseen by an audit.
        raise ValueError(f"{location.size} numbers are no matrix of size {length(axes)}")
    if isinstance(noise, np.random.Generator):
        _draw_bartlett(noise, location, out, dof, scale, scratch, axes)
    else:  # an audit remembers the matrix as one draw, as it would a number
        out[:] = noise.wishart(location, dof, scale)


def _draw_bartlett(
    noise: Any, location: Array, out: Array, dof: int, scale: float, scratch: Array, axes: Array
) -> None:
    size = length(axes)
    for i in range(size):
        for j in range(i):
            scratch[i, j] = noise.normal(0.0, 1.0)
        scratch[i, i] = math.sqrt(noise.chisquare(float(dof - i)))
    place = 0
    for i in range(size):
        for j in range(i, size):
            product = 0.0
            for m in range(i + 1):
                product += scratch[i, m] * scratch[j, m]
            out[place] = location[place] + scale * scale * product
            place += 1


@overload(draw_wishart, strict=False, jit_options={"forceinline": True})
def _compiled_draw(
    noise: Any, location: Any, out: Any, dof: Any, scale: Any, scratch: Any, axes: Any
) -> Any:
    return _draw_bartlett


def matrix_size(packed: int) -> int:
    """The dimension of a matrix with this many packed numbers."""
    size = (math.isqrt(8 * packed + 1) - 1) // 2
    assert triangle_size(size) == packed, f"{packed} numbers are no triangle"
    return size
