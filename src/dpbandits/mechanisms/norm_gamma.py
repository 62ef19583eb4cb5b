r"""The Gamma mechanism: one draw of noise for a whole vector, under ε-DP.

A vector x ∈ Rⁿ is released as y with density ∝ exp(−‖(y − x)/w‖₂/s), coordinates divided by widths w. In
polar coordinates the volume is rⁿ⁻¹ dr, so that y = x + w·R·U with R ~ Gamma(n, s), that is ½s times a
chi-squared number of 2n degrees of freedom, and U uniform on the unit sphere: normals over their norm.

**Why private.** By the triangle inequality moving x by Δ changes the log density by at most ‖Δ/w‖₂/s,
and by just that where y − x = cΔ, c ≥ 1. So one draw is (‖Δ/w‖₂/s)-DP, and s = Δ₂/ε does for an L2
sensitivity of Δ₂. (Laplace noise on each coordinate is the same with the L1 norm, and n independent
draws.) Nodes of a tree add up: with L levels s = LΔ₂/ε.

**How large it is.** E[R²] = s²n(n+1) is shared by n coordinates of one law: their deviation is

    Gamma       w √(n+1) L Δ₂/ε,
    Laplace     √2 L Δ₁/ε,          Δ₁ the L1 sensitivity,
    Gaussian    w √L Δ₂/μ           (μ-GDP, which is no ε-DP).

For vectors of L2 norm 1 (Δ₂ = 2, Δ₁ = 2√n) Gamma noise is √(½(1 + 1/n)) times as wide as Laplace noise.

Noise is floating-point: R·U is a product, no draw around a location on a grid (`mechanisms/exact.py`).
"""

import math
from typing import Any

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

Array = NDArray[np.float64]


def draw_norm_gamma(noise: Any, location: Array, out: Array, scale: float, widths: Array) -> None:
    """Release a vector: `out` = `location` + `widths`·R·U; `out` is another array than `location`."""
    if not location.size == out.size == widths.size:
        # A shorter one would leave the rest of `out` without noise, unseen by an audit.
        raise ValueError(f"{location.size} numbers, {out.size} places and {widths.size} widths")
    if hasattr(noise, "norm_gamma"):  # an audit remembers the vector as one draw, as it would a number
        out[:] = noise.norm_gamma(location, scale * widths)
    else:
        _draw(noise, location, out, scale, widths)


def _draw(noise: Any, location: Array, out: Array, scale: float, widths: Array) -> None:
    size, squares = location.size, 0.0
    for i in range(size):
        out[i] = noise.normal(0.0, 1.0)
        squares += out[i] * out[i]
    reach = 0.5 * noise.chisquare(2.0 * size) / math.sqrt(squares)
    for i in range(size):
        out[i] = location[i] + scale * widths[i] * reach * out[i]


@overload(draw_norm_gamma, strict=False, jit_options={"forceinline": True})
def _compiled_draw(noise: Any, location: Any, out: Any, scale: Any, widths: Any) -> Any:
    return _draw
