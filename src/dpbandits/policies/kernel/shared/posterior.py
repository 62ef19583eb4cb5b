"""One Gaussian posterior over noisy sums Σφy, on arrays of any library that keeps the array API.

The rewards of an epoch of T rounds are summed to b = Σ φ(w_t) y_t. Who came is not known, but how often
each pair is played on average is: with q(w) = κ(c)π(x|c) the design is Z = T Σ_w q(w) φ(w)φ(w)ᵀ. If the
mean reward is ⟨θ, φ(w)⟩ and |y| ≤ B, then E b = Zθ and Cov b ⪯ B² Z, so a release of b with Gaussian
noise of variance v in each coordinate is a measurement of Zθ with covariance at most C = B² Z + v I.
"""

from typing import Any

from array_api_compat import array_namespace

# Keeps C regular without noise where the design does not reach every direction; per unit of B².
_JITTER = 1e-9


def design(rows: Any, shares: Any, rounds: int) -> Any:
    """Z, of features (|W|, m) and shares (|W|,)."""
    xp = array_namespace(rows, shares)
    return float(rounds) * xp.matmul(xp.matrix_transpose(rows * shares[:, None]), rows)


def absorb(
    precision: Any, evidence: Any, z: Any, released: Any, bound: float, variance: float
) -> tuple[Any, Any]:
    """Add one release to a posterior kept as (P, h), the mean being P⁻¹h: P + ZC⁻¹Z, h + ZC⁻¹b̃."""
    return absorb_through(precision, evidence, z, z, z, released, bound, variance)


def absorb_through(
    precision: Any,
    evidence: Any,
    gain: Any,
    turned: Any,
    z: Any,
    released: Any,
    bound: float,
    variance: float,
) -> tuple[Any, Any]:
    """The same of a measurement of Gθ, with C = B² Z + v I: P + GᵀC⁻¹G, h + GᵀC⁻¹b̃; `turned` is Gᵀ."""
    xp = array_namespace(precision, evidence, gain, z, released)
    unit = xp.eye(z.shape[0], dtype=z.dtype)
    c = bound**2 * z + (variance + _JITTER * bound**2) * unit
    solved = xp.linalg.solve(c, xp.concat([gain, released[:, None]], axis=1))
    added = xp.matmul(turned, solved)
    gain = added[:, :-1]
    return precision + (gain + xp.matrix_transpose(gain)) / 2.0, evidence + added[:, -1]


def samples(precision: Any, evidence: Any, normals: Any, spread: float) -> Any:
    """Vectors N(P⁻¹h, spread² P⁻¹), one for each column of standard normals (m, n)."""
    xp = array_namespace(precision, evidence, normals)
    root = xp.linalg.cholesky(precision)  # P = L Lᵀ, so L⁻ᵀ z has covariance P⁻¹
    mean = xp.linalg.solve(precision, evidence[:, None])
    return mean + spread * xp.linalg.solve(xp.matrix_transpose(root), normals)


def votes(rows: Any, vectors: Any, contexts: int) -> Any:
    """How many of the vectors (m, n) make each action the best one, (contexts, actions)."""
    xp = array_namespace(rows, vectors)
    values = xp.reshape(xp.matmul(rows, vectors), (contexts, -1, vectors.shape[1]))
    best = xp.argmax(values, axis=1)  # (contexts, n)
    actions = xp.arange(values.shape[1], dtype=best.dtype)
    return xp.sum(xp.astype(best[:, None, :] == actions[None, :, None], xp.int64), axis=2)
