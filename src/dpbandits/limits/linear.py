"""Lower bounds for linear problems. They are about the worst world for a policy, not about a given one.

The minimax forms are the inequality of Bretagnolle and Huber on two worlds. There are d orthonormal
actions and rewards of ±1; θ = Δe₁ in one world, and in the other 2Δ is added to the coordinate, not
the first, whose action is played least: at most T/(d − 1) times on average. If each play of it tells
the worlds apart by at most D (as a Kullback–Leibler divergence), then in one of them regret is at
least TΔ/8 · e^(−TD/(d − 1)). Δ is chosen so that the exponent is −½, or as ¼ where that would be more:
then ‖θ‖ ≤ 1 all the same, and the exponent is nearer to 0.
"""

import math

from dpbandits import checks
from dpbandits.limits.arms import check_epsilon

_HALF = math.exp(-0.5) / 8.0  # e^(−½)/8
_LARGEST = 0.25


def standard_privacy_regret(n: int, epsilon: float, delta: float = 0.0) -> float:
    """Claim 13 of Shariff & Sheffet: if (ε, δ)-DP covers a person's own decision too, regret is linear.

    Two contexts swap which of two arms pays +1 and which −1, and a coin gives each person hers. A wrong
    arm costs 2. With p and q the chances of arm 1 under either context, the expected cost is 1 − p + q,
    subject to p ≤ e^ε q + δ and 1 − q ≤ e^ε (1 − p) + δ; its least value is 2(1 − δ)/(1 + e^ε) a round.
    (The paper prints n/4 for ε < ln 2 and δ < ¼, where this is more than n/2.)
    """
    checks.integer(least=1, n=n)
    checks.positive(epsilon=epsilon)
    checks.unit(delta=delta)
    return n * 2.0 * (1.0 - delta) / (1.0 + math.exp(epsilon))


def joint_minimax(rounds: int, dim: int, epsilon: float = math.inf) -> float:
    """What every ε-joint-DP policy loses on some linear world: max(.032 √((d−1)T), (d−1)/(159ε)).

    Holds for ‖θ‖ ≤ 1, d fixed orthonormal actions and rewards of ±1. Without privacy
    D = −½ ln(1 − 4Δ²) ≤ 8Δ²/3. Under ε-DP D is at most 6ε times the total variation, Δ (Azize & Basu
    2022); without contexts joint privacy is central. The order √(dT) + d/ε is also that of contexts
    (He & Zhang 2022, up to logarithms). Nothing is said of δ > 0.
    """
    _check(rounds, dim)
    gap = math.sqrt(3.0 * (dim - 1) / (16.0 * rounds))
    check_epsilon(epsilon)
    if epsilon != math.inf:
        gap = max(gap, (dim - 1) / (12.0 * epsilon * rounds))
    return _HALF * rounds * min(gap, _LARGEST)


def local_minimax(rounds: int, dim: int, epsilon: float) -> float:
    """What every ε-local-DP policy loses on some linear world: .053 √((d−1)T/c), or `joint_minimax`.

    c = min(4, e^(2ε)) (e^ε − 1)², so that for small ε the order is √(dT)/ε: messages about two laws
    differ by D = c times the square of their total variation, Δ, at most (Duchi, Jordan & Wainwright
    2013). Worlds and assumptions are those of `joint_minimax`. The best policies known have regret of
    order d√T/ε.
    """
    _check(rounds, dim)
    checks.positive(epsilon=epsilon)
    kept = min(4.0, math.exp(2.0 * min(epsilon, 1.0))) * math.expm1(min(epsilon, 300.0)) ** 2
    gap = math.sqrt((dim - 1) / (2.0 * kept * rounds))
    return max(_HALF * rounds * min(gap, _LARGEST), joint_minimax(rounds, dim, epsilon))


def _check(rounds: int, dim: int) -> None:
    checks.integer(least=1, rounds=rounds)
    checks.integer(least=2, dim=dim)
