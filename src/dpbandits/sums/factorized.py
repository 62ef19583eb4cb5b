r"""A fresh prefix sum after every row, from a few buffers: Gaussian noise that is correlated on purpose.

`release_factorized` takes the open row x_t (zeros where nothing happened) and releases S_t = Σ_{s≤t} x_s
as one draw per coordinate. With A the matrix that sums prefixes, the releases are A x + A C⁻¹ z for
independent z; C is lower-triangular Toeplitz with the generating function

    r(x) = ∏_m (1 − θ̂_m x) / ∏_j (1 − θ_j x),   1 > θ_1 > θ̂_1 > θ_2 > … > θ̂_b > 0

(buffered linear Toeplitz, BLT: Dvijotham, McMahan, Pillutla, Steinke & Thakurta 2024). Its inverse is of
the same kind, with coefficients 1 and Σ_m ω̂_m θ̂_m^(k−1), so that b buffers per coordinate are enough:

    loc = S_t + N_{t−1} + Σ_m ω̂_m a_m,   P_t ~ N(loc, (‖C e_1‖ Δ/μ)²),   z_t = P_t − loc,
    N_t = P_t − S_t,   a_m ← θ̂_m a_m + z_t.

**Why private.** The releases are an invertible lower-triangular function of C x + z. Replacing the datum
of round j moves C x by C e_j times the change of its row, of length ‖C e_j‖ Δ ≤ ‖C e_1‖ Δ, so the whole
run is μ-GDP, also on adaptive streams, since C is lower-triangular. All θ < 1, so over infinitely many
rounds ‖C e_1‖ is a finite geometric sum, and the noise is calibrated to that: the guarantee **never
ends**. With coordinates of different `widths` w_i (the noise of coordinate i is w_i times as wide), Δ is
measured in those units: Δ² = sup Σ_i (change of coordinate i / w_i)².

**How good.** θ and θ̂ minimise the noise of the last of `length` prefix sums, in the logarithms of
1 − θ. Eight buffers are within one percent of the square root of A, which needs all of the past, and
that within a tenth of what any factorization can do. Past its design length the noise grows like that
of a plain sum of noises. Stopping the calibration at the length would save 0.7 percent at 10⁴ rows and
less later, so it is not offered.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Noise
from dpbandits.engine.state import COUNT, FROM_RECIPE, NOT_NEGATIVE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.privacy.budgets import Budget
from dpbandits.privacy.calibration import gaussian_scale

Array = NDArray[np.float64]
# What an unknown length is designed for: 38 percent more noise at 10⁴ rows than with the length known,
# 18 percent at 10⁶, 7 at 5·10⁷.
_UNKNOWN_LENGTH = 1e9
# Longer lengths would need gaps near the grain of double precision.
_LONGEST = 1e12
MOST_BUFFERS = 12
_SAFE = 1e-10
# Products with a θ̂ near 1 lose digits of its gap. Relative to the grain over the gap, the impulse
# response over `length` rows drifts by less than this (with √n in n rows, measured up to 10⁸).
_DRIFT = 2e-4


class Factorized(NamedTuple):
    """The released part."""

    total: Array  # (dim,) the prefix sum as released
    variance: Array  # (1,) of the noise in `total`, per coordinate of width 1
    released: NDArray[np.int64]  # (1,) how many rows were
    fading: Array  # (buffers,) the part of the next round's impulse response that dies out
    settled: float  # the part that stays
    decay: Array  # (buffers,) θ̂
    weights: Array  # (buffers,) ω̂
    widths: Array  # (dim,) of the noise, relative to `scale`
    scale: float  # of one draw of width 1

    def limits(self) -> Limits:
        """Noise by the recipe."""
        recipe = dict.fromkeys(("decay", "weights", "widths"), FROM_RECIPE)
        return {"variance": NOT_NEGATIVE, "released": COUNT, **recipe}


class FactorizedSecret(NamedTuple):
    """The secret part."""

    open: Array  # (dim,) the open row
    exact: Array  # (dim,) S, the prefix sum without noise
    carried: Array  # (dim,) N, the noise of the last prefix sum
    buffers: Array  # (dim, buffers)


class Design(NamedTuple):
    """Which θ, θ̂: as gaps 1 − θ < 1 − θ̂ < 1 − θ …, which keep their digits near 1."""

    gaps: Array
    gaps_hat: Array

    def sensitivity(self) -> float:
        """‖C e_1‖ over infinitely many rounds, rounded up by more than ω̂, θ̂ and what is made of them."""
        drift = _DRIFT * 2.0**-53 / float(self.gaps.min())
        return math.sqrt(float(_column(self.gaps, self.gaps_hat))) * (1.0 + max(_SAFE, drift))

    def participation(self, rounds: int, *, apart: int = 1) -> float:
        r"""How many times the cost of one datum k of them cost, in rows at least `apart` of each other.

        Two rows d apart move the whitened releases by columns of C whose product is, over infinitely
        many rounds, c_d + Σ_{n≥1} c_n c_{n+d} with c_0 = 1, c_n = Σ_j ω_j θ_j^(n−1). These coefficients
        are positive and fall, so the product falls in d, and rows 0, s, 2s, … cost most, s = `apart`:
        m² = Σ_{i,j<k} ρ(s|i − j|), where ρ is the product relative to that at d = 0.

        >>> [round(design_factorized(8, 10**6).participation(k), 2) for k in (1, 2, 16)]
        [1.0, 1.94, 14.42]
        """
        checks.integer(least=1, rounds=rounds, apart=apart)
        omega, lags = residues(self.gaps, self.gaps_hat), np.arange(1, rounds, dtype=np.float64)
        fading = np.exp(apart * lags[:, None] * np.log1p(-self.gaps))  # θ^d
        tail = omega @ (1.0 / _products(self.gaps))
        shared = fading @ (omega / (1.0 - self.gaps) + omega * tail)
        alike = shared / float(_column(self.gaps, self.gaps_hat))
        return math.sqrt(rounds + 2.0 * float((rounds - lags) @ alike))

    def variance(self, length: float) -> float:
        """The noise variance of the prefix sum of this many rows, for z of variance 1."""
        return float(_row(self.gaps, self.gaps_hat, length))

    def spread(self, length: float) -> float:
        """Standard deviation of the noise on that prefix sum, for Δ/μ = 1."""
        return self.sensitivity() * math.sqrt(self.variance(length))


def start_factorized(
    dim: int,
    sensitivity: float,
    budget: Budget,
    *,
    widths: Array | None = None,
    buffers: int = 8,
    length: int | None = None,
) -> tuple[Factorized, FactorizedSecret]:
    """An empty sum, calibrated so that everything it ever releases costs one budget.

    `sensitivity` is what replacing one datum moves its row by, in L2, each coordinate measured in its
    width. `length` is the number of rows it is made for; it bounds nothing.
    """
    checks.integer(least=1, dim=dim)
    checks.room("a factorized sum", dim * buffers)
    wide = np.ones(dim) if widths is None else np.array(widths, np.float64)
    if wide.shape != (dim,) or not (np.isfinite(wide) & (wide > 0.0)).all():
        raise InvalidInput(f"expected widths to be {dim} positive numbers, got {checks.shown(widths)}")
    design = design_factorized(buffers, length)
    weights = residues(design.gaps_hat, design.gaps)
    public = Factorized(
        total=np.zeros(dim),
        variance=np.zeros(1),
        released=np.zeros(1, np.int64),
        fading=-weights / design.gaps_hat,
        settled=float(np.prod(design.gaps / design.gaps_hat)),
        decay=1.0 - design.gaps_hat,
        weights=weights,
        widths=wide,
        scale=gaussian_scale(sensitivity, budget) * design.sensitivity(),
    )
    secret = FactorizedSecret(
        open=np.zeros(dim),
        exact=np.zeros(dim),
        carried=np.zeros(dim),
        buffers=np.zeros((dim, design.gaps.size)),
    )
    return public, secret


@register_jitable(forceinline=True)
def release_factorized(public: Factorized, secret: FactorizedSecret, noise: Noise) -> None:
    """Close the open row and release the prefix sum that ends with it."""
    for axis in range(public.total.size):
        secret.exact[axis] += secret.open[axis]
        secret.open[axis] = 0.0
        location = secret.exact[axis] + secret.carried[axis]
        for m in range(public.decay.size):
            location += public.weights[m] * secret.buffers[axis, m]
        drawn = noise.normal(location, public.scale * public.widths[axis])
        for m in range(public.decay.size):
            secret.buffers[axis, m] = public.decay[m] * secret.buffers[axis, m] + (drawn - location)
        secret.carried[axis] = drawn - secret.exact[axis]
        public.total[axis] = drawn
    # The oldest z enters `total` by the impulse response of this lag, the younger ones as before.
    response = public.settled
    for m in range(public.decay.size):
        response += public.fading[m]
        public.fading[m] *= public.decay[m]
    public.variance[0] += (public.scale * response) ** 2
    public.released[0] += 1


@functools.cache
def design_factorized(buffers: int, length: int | None = None) -> Design:
    """The θ, θ̂ with the least noise on the last of `length` prefix sums, private for ever.

    >>> round(design_factorized(8).spread(10**6), 1)
    6.5
    """
    from scipy.optimize import minimize  # slow to import

    checks.integer(least=1, buffers=buffers)
    if buffers > MOST_BUFFERS:
        raise InvalidInput(f"more than {MOST_BUFFERS} buffers gain nothing, got buffers={buffers}")
    if length is not None:
        checks.integer(least=1, length=length)
    rounds = _UNKNOWN_LENGTH if length is None else min(max(float(length), 2.0), _LONGEST)

    def loss(steps: Array) -> Array:
        gaps, gaps_hat = _gaps(steps)
        noise = np.log(_column(gaps, gaps_hat)) + np.log(_row(gaps, gaps_hat, rounds))
        # The trace of a ridge holds buffers that are not needed where they began.
        return np.asarray(noise + 1e-6 * np.sum((steps - first) ** 2, axis=-1))

    def value_and_slope(steps: Array) -> tuple[float, Array]:
        # All of the central differences at once.
        shifts = 1e-5 * np.eye(steps.size)
        found = loss(np.concatenate([steps[None], steps + shifts, steps - shifts]))
        return float(found[0]), (found[1 : steps.size + 1] - found[steps.size + 1 :]) / 2e-5

    # From log-equidistant gaps between about 1/length and 1.
    first = np.full(2 * buffers, math.log((math.log(rounds) + 1.0) / (2 * buffers)))
    best = minimize(
        value_and_slope,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(step - 4.0, step + 2.0) for step in first],
        options={"maxiter": 1000, "ftol": 1e-8, "gtol": 1e-7},
    )
    # On the grid of 1 − gap, so that the calibration is of the very θ̂ that is used.
    return Design(*(1.0 - (1.0 - gaps) for gaps in _gaps(best.x)))


def _gaps(steps: Array) -> tuple[Array, Array]:
    """1 − θ and 1 − θ̂, in order for any `steps`: −log gaps are partial sums of e^steps."""
    falling = np.exp(-np.cumsum(np.exp(steps), axis=-1))
    return falling[..., ::-2], falling[..., -2::-2]


def residues(gaps: Array, others: Array) -> Array:
    """ω: with θ from `gaps` over θ̂ from `others`, C has the coefficients 1, Σ_j ω_j θ_j^(k−1).

    ω_j = ∏_m (θ_j − θ̂_m) / ∏_{i≠j} (θ_j − θ_i); with the two exchanged, the ω̂ of C⁻¹, all negative.
    """
    across = others[..., None, :] - gaps[..., :, None]
    among = gaps[..., None, :] - gaps[..., :, None] + np.eye(gaps.shape[-1])
    return np.asarray(np.prod(across / among, axis=-1))


def _column(gaps: Array, gaps_hat: Array) -> Array:
    """‖C e_1‖² = 1 + Σ_ij ω_i ω_j / (1 − θ_i θ_j)."""
    omega = residues(gaps, gaps_hat)
    return np.asarray(1.0 + np.einsum("...i,...ij,...j->...", omega, 1.0 / _products(gaps), omega))


def _row(gaps: Array, gaps_hat: Array, length: float) -> Array:
    """Σ_{k<length} g_k², where A C⁻¹ has the coefficients g_k = G + Σ_m f_m θ̂_m^k: no sign changes."""
    fading = -residues(gaps_hat, gaps) / gaps_hat
    settled = np.prod(gaps / gaps_hat, axis=-1)
    squares = np.einsum("...i,...ij,...j->...", fading, _sums(_products(gaps_hat), length), fading)
    mixed = settled * np.sum(fading * _sums(gaps_hat, length), axis=-1)
    return np.asarray(length * settled**2 + 2.0 * mixed + squares)


def _products(gaps: Array) -> Array:
    """1 − θ_i θ_j."""
    return gaps[..., :, None] + gaps[..., None, :] - gaps[..., :, None] * gaps[..., None, :]


def _sums(gaps: Array, length: float) -> Array:
    """Σ_{k<length} (1 − gap)^k."""
    return np.asarray(-np.expm1(length * np.log1p(-gaps)) / gaps)
