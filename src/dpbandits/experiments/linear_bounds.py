r"""Regret bounds of Shariff & Sheffet 2018, to be drawn beside what is measured.

Their letters: n rounds, dimension d, ‖x‖ ≤ L, |⟨x, θ*⟩| ≤ B with B ≥ 1, ‖θ*‖ ≤ S, σ²-subgaussian noise;
ρ_min I ≤ H_t ≤ ρ_max I and ‖h_t‖_{H_t⁻¹} ≤ γ bound the regularisers in all rounds; a bound may fail with
probability α. Logarithms are natural.
"""

import math

from dpbandits import checks


def regret_bound(
    n: int,
    d: int,
    alpha: float,
    *,
    rho_min: float,
    rho_max: float,
    gamma: float = 0.0,
    L: float = 1.0,  # noqa: N803 (the paper's letters)
    S: float = 1.0,  # noqa: N803
    B: float = 1.0,  # noqa: N803
    sigma: float = 1.0,
) -> float:
    """Theorem 5, a bound on the pseudo-regret of Algorithm 1 that holds with probability 1 − α.

        B √(8n) [σ(2 ln(2/α) + d ln(ρ_max/ρ_min + s)) + (S√ρ_max + γ) √(d ln(1 + s))],  s = nL²/(dρ_min).

    Without privacy and with regulariser ρ: ρ_min = ρ_max = ρ and γ = 0.
    """
    bracket = _bracket(n, d, alpha, rho_min, rho_max, gamma, L, S, sigma)
    return _at_least_one(B) * math.sqrt(8.0 * n) * bracket


def gap_regret_bound(
    n: int,
    d: int,
    alpha: float,
    gap: float,
    *,
    rho_min: float,
    rho_max: float,
    gamma: float = 0.0,
    L: float = 1.0,  # noqa: N803
    S: float = 1.0,  # noqa: N803
    B: float = 1.0,  # noqa: N803
    sigma: float = 1.0,
) -> float:
    """Theorem 6: where all other actions pay at least Δ = `gap` less than the optimal ones, (8B/Δ)[…]².

    The bracket is that of Theorem 5; the bound grows with ln² n rather than √n.
    """
    checks.positive(gap=gap)
    bracket = _bracket(n, d, alpha, rho_min, rho_max, gamma, L, S, sigma)
    return 8.0 * _at_least_one(B) / gap * bracket**2


def _bracket(
    n: int,
    d: int,
    alpha: float,
    rho_min: float,
    rho_max: float,
    gamma: float,
    length: float,
    size: float,
    sigma: float,
) -> float:
    checks.integer(least=1, n=n, d=d)
    checks.open_unit(alpha=alpha)
    checks.positive(rho_min=rho_min, rho_max=rho_max, L=length, S=size, sigma=sigma)
    checks.not_negative(gamma=gamma)
    seen = n * length**2 / (d * rho_min)
    noise = sigma * (2.0 * math.log(2.0 / alpha) + d * math.log(rho_max / rho_min + seen))
    return noise + (size * math.sqrt(rho_max) + gamma) * math.sqrt(d * math.log1p(seen))


def _at_least_one(bound: float) -> float:
    """B, which the proofs take to be at least 1 (their Remark 2)."""
    checks.positive(B=bound)
    return max(1.0, bound)
