"""Expectations over uniformly random unit vectors."""

import math


def band_mass(dim: int, low: float, high: float) -> float:
    """P[low ≤ s ≤ high] for s, one coordinate of a uniformly random unit vector in `dim` dimensions.

    >>> band_mass(3, -0.5, 0.5)  # Archimedes: uniform
    0.5
    """
    return _below(dim, high) - _below(dim, low)


def band_mean(dim: int, low: float, high: float) -> float:
    """E[s | low ≤ s ≤ high].

    The density of s is c(1 − s²)^{(d−3)/2} with c = Γ(d/2)/(√π Γ((d−1)/2)), and s times it has the
    antiderivative −c(1 − s²)^{(d−1)/2}/(d − 1).
    """
    power = (dim - 1) / 2
    moment = _density(dim) * ((1 - low * low) ** power - (1 - high * high) ** power) / (dim - 1)
    return float(moment / band_mass(dim, low, high))


def largest_mean(dim: int, actions: int) -> float:
    """E[max of `actions` independent s], which is ∫ (1 − F(s)^K) ds − 1 over [−1, 1].

    >>> largest_mean(1, 2)  # two signs: ½, as both are −1 in one case of four
    0.5
    """
    from scipy.integrate import quad  # slow to import

    if dim == 1:
        return 1.0 - 2.0 ** (1 - actions)
    value, _ = quad(lambda s: 1.0 - _below(dim, s) ** actions, -1.0, 1.0, epsabs=1e-10, limit=200)
    return float(value) - 1.0


def _below(dim: int, s: float) -> float:
    """P[coordinate ≤ s] = ½ + c ∫₀ˢ (1 − x²)^{(d−3)/2} dx: an arc at d = 2, a length at d = 3.

    By parts, I_m = ∫ (1 − x²)^m is (s (1 − s²)^m + 2m I_{m−1})/(2m + 1).
    """
    power, integral = (-0.5, math.asin(s)) if dim % 2 == 0 else (0.0, s)
    while power < (dim - 3) / 2:
        power += 1.0
        integral = (s * (1.0 - s * s) ** power + 2.0 * power * integral) / (2.0 * power + 1.0)
    return 0.5 + _density(dim) * integral


def _density(dim: int) -> float:
    """That of a coordinate at 0."""
    return math.exp(math.lgamma(dim / 2) - math.lgamma((dim - 1) / 2)) / math.sqrt(math.pi)
