r"""The privacy curves δ(ε) behind the budgets, right in every corner of double precision.

Gaussian (Dong, Roth & Su 2022; Balle & Wang 2018): with a = ε/μ − μ/2 and b = ε/μ + μ/2,

.. math:: \delta(\varepsilon; \mu) = \Phi(-a) - e^{\varepsilon} \Phi(-b).

Since φ(a) = e^ε φ(b), this is φ(a)·(R(a) − R(b)) with the Mills ratio R = (1 − Φ)/φ, which neither
overflows nor cancels; over a short [a, b] the difference is the integral of −R'(x) = 1 − x R(x).
"""

import math
from collections.abc import Callable

import numpy as np
import scipy  # whose parts, slow to import, are loaded at their first use

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
# Every solved value aims at a δ smaller by about this much and is then moved by this much to the
# safe side: far above the error of solver and curve, far below anything a user could notice.
_SAFE = 1e-12


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2.0) * float(scipy.special.erfcx(x / math.sqrt(2.0)))


def _mills_slope(x: np.ndarray) -> np.ndarray:
    """−R'(x) = 1 − x R(x); beyond x = 30 by its asymptotic series, where the product cancels."""
    near = np.minimum(x, 30.0)
    direct = 1.0 - near * math.sqrt(math.pi / 2.0) * scipy.special.erfcx(near / math.sqrt(2.0))
    u = 1.0 / np.maximum(x, 30.0) ** 2
    series = u * (1 - 3 * u * (1 - 5 * u * (1 - 7 * u * (1 - 9 * u * (1 - 11 * u)))))
    return np.asarray(np.where(x <= 30.0, direct, series))


def gaussian_log_delta(epsilon: float, mu: float) -> float:
    """Ln δ(ε; μ) of a μ-GDP mechanism, for ε ≥ 0 and μ > 0; −inf where it is below e^(−10³⁰⁸)."""
    a = epsilon / mu - mu / 2.0
    b = epsilon / mu + mu / 2.0
    if math.isinf(b) or a > 1e153:
        return -math.inf if a > 0 else 0.0
    log_density = -0.5 * a * a - _LOG_SQRT_2PI
    if mu <= max(1.0, a):
        points = a + 0.5 * mu * (_NODES + 1.0)
        return log_density + math.log(mu) + math.log(0.5 * float(_WEIGHTS @ _mills_slope(points)))
    if a >= 0.0:
        return log_density + math.log(_mills(a) - _mills(b))
    # 1 − δ = Φ(a) + φ(a) R(b), so that δ near 1 keeps its digits.
    lost = math.exp(log_density) * _mills(b)
    missing = float(scipy.special.ndtr(a)) + lost
    return math.log1p(-missing) if missing < 0.5 else math.log(float(scipy.special.ndtr(-a)) - lost)


def gaussian_epsilon(log_delta: float, mu: float) -> float:
    """The smallest ε ≥ 0 with δ(ε; μ) ≤ δ, rounded up; inf where it is beyond double precision."""
    target = log_delta * (1.0 + _SAFE)
    if gaussian_log_delta(0.0, mu) <= target:
        return 0.0
    # δ(ε) ≤ Φ(−a), so a = −Φ⁻¹(δ) is enough.
    top = mu * (max(0.0, -float(scipy.special.ndtri_exp(target))) + mu / 2.0)
    if math.isinf(top):
        return math.inf
    return _root(lambda e: gaussian_log_delta(e, mu) - target, 0.0, top) * (1.0 + _SAFE)


def gaussian_mu(epsilon: float, log_delta: float) -> float:
    """The largest μ whose curve passes below (ε, δ), rounded down."""
    target = log_delta * (1.0 + _SAFE)
    low = high = max(epsilon, 1e-8)
    while gaussian_log_delta(epsilon, high) < target:
        high *= 2.0
    while gaussian_log_delta(epsilon, low) > target:
        low /= 2.0
    log_mu = _root(
        lambda m: gaussian_log_delta(epsilon, math.exp(m)) - target, math.log(low), math.log(high)
    )
    return math.exp(log_mu) * (1.0 - _SAFE)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """A sign change of `function` in [low, high]; infinite values count by their sign."""
    from scipy.optimize import brentq  # slow to import, and only solving needs it

    def finite(x: float) -> float:
        return min(max(function(x), -1e300), 1e300)

    # Rounding at the bracket's end may leave both ends on one side: then the end is the root.
    at_low, at_high = finite(low), finite(high)
    if at_low * at_high > 0:
        return low if abs(at_low) < abs(at_high) else high
    return float(brentq(finite, low, high, xtol=1e-300, rtol=8.9e-16, maxiter=500))


def approx_delta(epsilon: float, delta: float, at: float) -> float:
    """δ' such that (ε, δ)-DP implies (at, δ')-DP: δ + (1 − δ)(e^ε − e^at)/(1 + e^ε), tight."""
    if at >= epsilon:
        return delta
    return delta - (1.0 - delta) * math.expm1(at - epsilon) / (1.0 + math.exp(-epsilon))


def approx_epsilon(epsilon: float, delta: float, at: float) -> float:
    """ε' such that (ε, δ)-DP implies (ε', at)-DP: the inverse of `approx_delta`, rounded up."""
    if at < delta:
        return math.inf
    share = (at * (1.0 - _SAFE) - delta) / (1.0 - delta) * (1.0 + math.exp(-epsilon))
    if share >= 1.0:
        return 0.0
    return min(epsilon, max(0.0, epsilon * (1.0 + _SAFE) + math.log1p(-share)))


def _divergence_log_delta(divergence: float) -> float:
    """Ln δ at ε = 0 from a KL or Rényi divergence: δ ≤ √(1 − e^−γ) (Bretagnolle & Huber 1979)."""
    return 0.5 * math.log(-math.expm1(-divergence))


def renyi_epsilon(order: float, divergence: float, log_delta: float) -> float:
    """ε from an (α, γ)-Rényi guarantee (Canonne, Kamath & Steinke 2020, Prop. 12), rounded up."""
    if _divergence_log_delta(divergence) <= log_delta * (1.0 + _SAFE):
        return 0.0
    gap = order - 1.0
    # −ln(1 − 1/α), without its cancellation at α near 1.
    shrink = math.log1p(1.0 / gap)
    value = divergence - shrink - (log_delta + math.log(order)) / gap
    rounding = divergence + shrink + (math.log(order) - log_delta) / gap
    return max(0.0, value + _SAFE * rounding)


def renyi_log_delta(order: float, divergence: float, epsilon: float) -> float:
    """Ln δ from an (α, γ)-Rényi guarantee, the same proposition solved for δ."""
    gap = order - 1.0
    value = gap * (divergence - epsilon - math.log1p(1.0 / gap)) - math.log(order)
    return min(value, _divergence_log_delta(divergence))


def concentrated_epsilon(rho: float, log_delta: float) -> float:
    """ε of a ρ-zCDP mechanism: `renyi_epsilon` at γ = αρ, minimised over α."""
    return _best_order(lambda order: renyi_epsilon(order, order * rho, log_delta))


def concentrated_log_delta(rho: float, epsilon: float) -> float:
    """Ln δ of a ρ-zCDP mechanism, minimised over α."""
    return _best_order(lambda order: renyi_log_delta(order, order * rho, epsilon))


def _best_order(bound: Callable[[float], float]) -> float:
    """The least bound over orders α = 1 + e^s; any order is valid, so no search can be unsafe."""
    from scipy.optimize import minimize_scalar  # as above

    grid = np.linspace(-36.0, 40.0, 305)
    values = [bound(1.0 + math.exp(s)) for s in grid]
    best = int(np.argmin(values))
    bracket = (grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)])
    found = minimize_scalar(
        lambda s: bound(1.0 + math.exp(s)),
        bounds=bracket,
        method="bounded",
        options={"xatol": 1e-12},
    )
    return min(float(found.fun), values[best])


def _two_sided(inside: float, log_outside: float) -> float:
    """The μ with 2Φ(μ/2) − 1 = `inside` = 1 − e^`log_outside`; each keeps its digits at one end."""
    if inside < 0.5:
        return 2.0 * math.sqrt(2.0) * float(scipy.special.erfinv(inside))
    return -2.0 * float(scipy.special.ndtri_exp(log_outside - math.log(2.0)))


def response_mu(bias: float) -> float:
    """The μ-GDP of a coin of this bias c, which tells the truth with probability (1 + c)/2."""
    return _two_sided(bias, math.log1p(-bias))


def pure_mu(epsilon: float) -> float:
    """The μ-GDP that ε-DP implies, tight for randomized response: μ = −2 Φ⁻¹(1/(1 + e^ε))."""
    log_outside = math.log(2.0) - float(np.logaddexp(0.0, epsilon))
    return _two_sided(math.tanh(epsilon / 2.0), log_outside)


def pure_rho(epsilon: float) -> float:
    """The ρ-zCDP that ε-DP implies: ε·tanh(ε/2), the divergence of randomized response as α → 1."""
    return epsilon * math.tanh(epsilon / 2.0)


def pure_renyi(order: float, epsilon: float) -> float:
    """The Rényi divergence of order α that ε-DP implies, that of randomized response.

    ln[cosh((α − ½)ε) / cosh(ε/2)] / (α − 1), written so that nothing cancels or overflows.
    """
    gap = order - 1.0
    if order * epsilon < 600.0:
        product = 2.0 * math.sinh(order * epsilon / 2.0) * math.sinh(gap * epsilon / 2.0)
        return math.log1p(product / math.cosh(epsilon / 2.0)) / gap
    return epsilon - math.log1p(math.exp(-epsilon)) / gap


def laplace_mu(epsilon: float) -> float:
    """The μ-GDP of one Laplace release at ε, better than `pure_mu`: ε = −2 ln(2 Φ(−μ/2))."""
    return _two_sided(-math.expm1(-epsilon / 2.0), -epsilon / 2.0)


def laplace_epsilon(mu: float) -> float:
    """The ε at which one Laplace release is μ-GDP, the inverse of `laplace_mu`."""
    if mu < 1.0:
        return -2.0 * math.log1p(-math.erf(mu / math.sqrt(8.0)))
    return -2.0 * (math.log(2.0) + float(scipy.special.log_ndtr(-mu / 2.0)))
