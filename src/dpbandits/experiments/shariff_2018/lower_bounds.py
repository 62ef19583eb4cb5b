"""Section 5: what no private policy can do, beside the policies that are measured."""

import math

import numpy as np

from dpbandits.experiments.evidence import as_power_of_ten
from dpbandits.experiments.figure import Claim
from dpbandits.limits.arms import lai_robbins, least_pulls, private_arms_regret
from dpbandits.limits.linear import standard_privacy_regret

_EPSILON, _GAP, _ARMS = 1.0, 0.1, 25
_FORMULA = "formula"
_EXPONENT = 0.19  # of n in the proof of Claim 14, which needs n^0.19 ≥ 4/Δ


def lower_bound_claims(rounds: int) -> list[Claim]:
    """Claims 13 and 14 and Corollary 15, with the numbers of Figure 4 where they have any."""
    epsilon, delta = math.log(2.0), 0.25
    least, formula = _least_cost(epsilon, delta), standard_privacy_regret(1, epsilon, delta)
    first = math.ceil((4.0 / _GAP) ** (1.0 / _EXPONENT))
    speaks_from = "" if rounds >= first else f"n ≈ {as_power_of_ten(first)} (Δ = {_GAP:g})"
    pulls = least_pulls(first, _EPSILON, _GAP)
    # Rewards of ±1 whose means are Δ apart are rewards of 0 and 1 whose means are Δ/2 apart.
    sharper = math.log(first) * lai_robbins((0.5, 0.5 - _GAP / 2.0), _EPSILON) / (_GAP / 2.0)
    regret = private_arms_regret(first, _EPSILON, (_GAP,) * (_ARMS - 1))
    return [
        Claim(
            paper="Claim 13: (ε, δ)-DP that covers a person's own decision too costs n/4 at least, for "
            "ε < ln 2 and δ < ¼",
            criterion="at ε = ln 2 and δ = ¼, where it costs least, the cheapest pair of choices on a "
            "grid of 10⁻³ that is private in the proof's two worlds loses ¼ a round or more",
            measured=f"{least:.3f} a round (2(1 − δ)/(1 + e^ε) = {formula:.3f}); at ε = 1, δ = .1 "
            f"{standard_privacy_regret(rounds, 1.0, 0.1):.1e} in {rounds:,} rounds, where joint privacy "
            "allows what is drawn above",
            holds=least >= 0.25,
            scale=_FORMULA,
        ),
        Claim(
            paper="Claim 14: for large n an ε-DP policy for arms of regret at most n^¾ pulls an arm of "
            "gap Δ at least ln(n)/(100 ε Δ) times, with probability ½",
            criterion="a lower bound is not refuted by a policy that is far above it; what is tried "
            "is whether the limit for consistent ε-DP policies (`lai_robbins`) contradicts it by asking "
            "for fewer pulls where the proof begins, at n^0.19 ≥ 4/Δ",
            measured=f"ε = {_EPSILON:g}, Δ = {_GAP:g}: it says nothing for n = {rounds:,}; {pulls:.1f} "
            f"pulls where it begins, and {sharper:,.0f} by the limit",
            holds=pulls <= sharper,
            speaks_from=speaks_from,
            scale=_FORMULA,
        ),
        Claim(
            paper="Corollary 15: so its regret is at least (k − 1) ln(n)/(200 ε)",
            criterion="as Claim 14, of regret",
            measured=f"k = {_ARMS} arms of gap {_GAP:g}: {regret:.1f} where it begins, and "
            f"{_GAP * (_ARMS - 1) * sharper:,.0f} by the limit",
            holds=regret <= _GAP * (_ARMS - 1) * sharper,
            speaks_from=speaks_from,
            scale=_FORMULA,
        ),
    ]


def _least_cost(epsilon: float, delta: float) -> float:
    """The least 1 − p + q of chances p, q of arm 1 under either context that are (ε, δ)-close."""
    p, q = np.meshgrid(np.linspace(0.0, 1.0, 1001), np.linspace(0.0, 1.0, 1001))
    factor, slack = math.exp(epsilon), delta + 1e-12
    close = (p <= factor * q + slack) & (1.0 - q <= factor * (1.0 - p) + slack)
    return float((1.0 - p + q)[close].min())
