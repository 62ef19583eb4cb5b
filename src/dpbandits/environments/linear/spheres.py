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
    density = math.exp(math.lgamma(dim / 2) - math.lgamma((dim - 1) / 2)) / math.sqrt(math.pi)
    power = (dim - 1) / 2
    moment = density * ((1 - low * low) ** power - (1 - high * high) ** power) / (dim - 1)
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
    """P[coordinate ≤ s]; (1 + s)/2 has the Beta law of parameters (d − 1)/2 twice."""
    from scipy.special import betainc  # slow to import

    return float(betainc((dim - 1) / 2, (dim - 1) / 2, (1.0 + s) / 2.0))
