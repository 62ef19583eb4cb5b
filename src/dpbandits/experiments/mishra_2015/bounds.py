"""What the printed constants of Algorithms 1 and 2 say, and from which T on they say anything.

A bound on regret above that of uniform play says nothing: so both are compared with it.
"""

import math
from collections.abc import Callable

from dpbandits.experiments import evidence
from dpbandits.experiments.mishra_2015.setting import ARMS, GAPS

FAILURE = 0.1  # γ
_ARMS = len(ARMS.means)
Log = Callable[[float], float]


def room(horizon: float, epsilon: float, log: Log = math.log) -> float:
    """Γ = k log²T log(k T log T/γ)/ε of Algorithm 1. The paper does not say which logarithm."""
    return _ARMS * log(horizon) ** 2 * log(_ARMS * horizon * log(horizon) / FAILURE) / epsilon


def ucb_bound(horizon: float, epsilon: float, log: Log = math.log) -> float:
    r"""Theorem 4 with constants: what Algorithm 1's regret is at most, with probability 1 − γ.

    (But for failures of UCB1's own bounds.) While the noise is within Γ, arm a is played with n plays
    before only if μ* is at most its index, and that at most μ_a + 2√(2 log T/n) + 2Γ/n. So n ≤ N_a,
    where Δ_a = 2√(2 log T/N_a) + 2Γ/N_a, and

        regret ≤ Σ_a Δ_a (N_a + 1).
    """
    gamma, root = room(horizon, epsilon, log), math.sqrt(2.0 * log(horizon))
    plays = [(2.0 * gamma / (math.sqrt(root**2 + 2.0 * gamma * gap) - root)) ** 2 for gap in GAPS]
    return sum(gap * (n + 1.0) for gap, n in zip(GAPS, plays, strict=True))


def forced_rounds(horizon: float, epsilon: float, gap: float) -> float:
    """The rounds that Algorithm 2 plays uniformly if its gap phase ends at Δ̂ = `gap`, a power of ½.

    Batches of m = 192 k log2 T/(ε Δ̂²) plays of each arm at Δ̂ = 1, ½, … until `gap` is reached by
    halving, then 192 log2³T/(ε Δ̂²) plays of each.
    """
    log = math.log2(horizon)
    batches = sum(192.0 * _ARMS * log / epsilon * 4.0**i for i in range(round(-math.log2(gap))))
    return _ARMS * (batches + 192.0 * log**3 / (epsilon * gap * gap))


def ucb_share(horizon: float, epsilon: float, log: Log = math.log) -> float:
    """Algorithm 1's bound as a multiple of uniform play's regret."""
    return ucb_bound(horizon, epsilon, log) / (horizon * ARMS.uniform_regret())


def thompson_share(horizon: float, epsilon: float) -> float:
    """The least part of the rounds that Algorithm 2 plays uniformly, where Δ̂ is the gap as it is."""
    return forced_rounds(horizon, epsilon, min(GAPS)) / horizon


def speaks_from(share: Callable[[float], float]) -> str:
    """From which T on a share of uniform play is below 1."""
    first = evidence.speaks_from(lambda horizon: share(horizon) * horizon, 1.0)
    return f"T ≈ {evidence.as_power_of_ten(first)}"


def power_of_ten(number: float) -> str:
    """Ten to the nearest whole power.

    >>> power_of_ten(100_000)
    '10⁵'
    """
    return "10" + str(round(math.log10(number))).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
