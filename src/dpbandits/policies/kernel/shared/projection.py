"""CAPRI's estimator on arrays of any library that keeps the array API.

With features φ, a design Z and the projection Π on the span of some pairs, the estimate of the mean
reward is φ(w)ᵀΠ(ΠZΠ + τI)⁻¹Π Σφy. For any L with LLᵀ = ΠZΠ + τI it is ⟨u(w), Σ u(w_t) y_t⟩ with
u(w) = L⁻¹Πφ(w), and a person moves Σuy by at most 2B·max|u|: that is the map to calibrate noise to.

In the paper Z is made of R, a copy of the data's pairs, and Π of another copy S; with
M = K_SR K_RS + τK_SS this is k_S(w)ᵀ M⁻¹ K_SW y, without having to invert M, which is singular as soon
as a pair is drawn twice: repeated pairs of S change nothing, those of R are counted.
"""

from typing import Any

from array_api_compat import array_namespace

# Directions of S below this share of its largest eigenvalue are taken to be rounding.
_CUT = 1e-12


def whitened(rows: Any, z: Any, tau: float) -> tuple[Any, Any]:
    """(u, s) for every pair, (|W|, m) each: u = L⁻¹φ and s = (Z + τI)⁻¹φ."""
    xp = array_namespace(rows, z)
    # Cholesky's L is unique, so the noise is always drawn in the same coordinates.
    root = xp.linalg.cholesky(z + tau * xp.eye(z.shape[0], dtype=z.dtype))
    maps = xp.linalg.solve(root, xp.matrix_transpose(rows))
    back = xp.linalg.solve(xp.matrix_transpose(root), maps)
    return xp.matrix_transpose(maps), xp.matrix_transpose(back)


def differences(vectors: Any, contexts: int) -> Any:
    """|v(c, x) − v(c, x')|² for all actions of each context, (contexts, actions, actions)."""
    xp = array_namespace(vectors)
    blocks = xp.reshape(vectors, (contexts, -1, vectors.shape[1]))
    products = xp.matmul(blocks, xp.matrix_transpose(blocks))
    squares = xp.sum(blocks**2, axis=2)
    found = squares[:, :, None] + squares[:, None, :] - 2.0 * products
    return xp.where(found > 0.0, found, xp.zeros_like(found))


def projector(rows: Any, drawn: Any) -> Any:
    """Π, on the span of the pairs that were drawn at least once."""
    xp = array_namespace(rows, drawn)
    kept = rows[drawn > 0]
    values, vectors = xp.linalg.eigh(xp.matmul(xp.matrix_transpose(kept), kept))
    (found,) = xp.nonzero(values > _CUT * xp.max(values))
    basis = xp.take(vectors, found, axis=1)
    return xp.matmul(basis, xp.matrix_transpose(basis))


def projected(rows: Any, drawn: Any, counts: Any) -> tuple[Any, Any]:
    """(Πφ for every pair, ΠZΠ) of a copy S, `drawn`, and a copy R, `counts`: times each pair came."""
    xp = array_namespace(rows, drawn, counts)
    flat = projector(rows, drawn)
    moved = xp.matmul(rows, flat)
    weights = xp.astype(counts, rows.dtype)
    return moved, xp.matmul(xp.matrix_transpose(moved * weights[:, None]), moved)


def estimate(maps: Any, released: Any) -> Any:
    """⟨u(w), g⟩ for every pair."""
    xp = array_namespace(maps, released)
    return xp.matmul(maps, released)


def keep(active: Any, values: Any, widths: Any) -> Any:
    """The active actions of each context (contexts, actions) that may still be the best.

    x goes if some active x' is better by more than the width of their difference, widths[c, x, x'].
    """
    xp = array_namespace(active, values, widths)
    ahead = values[:, None, :] - values[:, :, None] - widths  # by how much x' is ahead of x for sure
    ahead = xp.where(active[:, None, :], ahead, xp.zeros_like(ahead))
    return xp.logical_and(active, xp.logical_not(xp.any(ahead > 0.0, axis=2)))
