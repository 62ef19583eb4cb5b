"""Lower bounds for linear problems. They are about the worst world for a policy, not about a given one.

The minimax forms are the inequality of Bretagnolle and Huber on two worlds. There are d orthonormal
actions and rewards of ±1; θ = Δe₁ in one world, and in the other 2Δ is added to the coordinate, not
the first, whose action is played least: at most T/(d − 1) times on average. If each play of it tells
the worlds apart by at most D (as a Kullback–Leibler divergence), then in one of them regret is at
least TΔ/8 · e^(−TD/(d − 1)). Δ is chosen so that the exponent is −½, or as ¼ where that would be more:
then ‖θ‖ ≤ 1 all the same, and the exponent is nearer to 0. The total variation of the action's rewards
in the two worlds is Δ.

Under ε-DP for replacing a reward D ≤ εΔ, because of what is seen only actions matter. Draw rewards r
of one world and r′ of the other for the same actions, so that they differ in as few rounds as
possible: in a share Δ of the plays of that one action. Let actions be chosen by r, or else by r′:
whatever r and r′ are, a sequence of actions is at most e^(ε |r ≠ r′|) times as likely by the one as by
the other. So the divergence of all three together, and all the more of the actions alone, is at most ε
E|r ≠ r′|.

Under ε-local DP D ≤ (e^ε − 1)² Δ². A message z has the chance q(z|r), which over all r varies by a
factor of at most e^ε, hence by (e^ε − 1) min_r q(z|r) at most. So its chances in the two worlds, m and
m′, differ by at most (e^ε − 1) Δ m′; and the divergence of m from m′ is at most Σ (m − m′)²/m′.
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
    """What every ε-joint-DP policy loses on some linear world: max(.032 √((d−1)T), (d−1)/(27ε)).

    Holds for ‖θ‖ ≤ 1, d fixed orthonormal actions and rewards of ±1. Without privacy
    D = −½ ln(1 − 4Δ²) ≤ 8Δ²/3, under ε-DP D ≤ εΔ as well; without contexts joint privacy is central.
    The proof is at the head of the file; bounds of this order, √(dT) + d/ε, are Azize & Basu's (2022).
    Nothing is said of δ > 0.
    """
    _check(rounds, dim)
    gap = math.sqrt(3.0 * (dim - 1) / (16.0 * rounds))
    check_epsilon(epsilon)
    if epsilon != math.inf:
        gap = max(gap, (dim - 1) / (2.0 * epsilon * rounds))
    return _HALF * rounds * min(gap, _LARGEST)


def local_minimax(rounds: int, dim: int, epsilon: float) -> float:
    """What every ε-local-DP policy loses on some linear world: .053 √((d−1)T)/(e^ε−1), or more.

    For small ε the order is √(dT)/ε, as D ≤ (e^ε − 1)² Δ² (proved at the head of the file; with a larger
    constant Duchi, Jordan & Wainwright 2013). Worlds and assumptions are those of `joint_minimax`,
    which is the bound where it is larger.
    """
    _check(rounds, dim)
    checks.positive(epsilon=epsilon)
    gap = math.sqrt((dim - 1) / (2.0 * rounds)) / math.expm1(min(epsilon, 300.0))
    return max(_HALF * rounds * min(gap, _LARGEST), joint_minimax(rounds, dim, epsilon))


def _check(rounds: int, dim: int) -> None:
    checks.integer(least=1, rounds=rounds)
    checks.integer(least=2, dim=dim)
