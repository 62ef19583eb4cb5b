"""Lower bounds for bases of a matroid whose items pay 0 or 1, each independently of the others."""

import math
from collections.abc import Sequence

from dpbandits import checks
from dpbandits.limits.arms import check_epsilon, checked_means, coefficient
from dpbandits.problems import Matroid


def talebi_proutiere(matroid: Matroid, means: Sequence[float], epsilon: float = math.inf) -> float:
    """The limit of regret/ln T: Σ_e Δ_e / d_ε(w_e, w_σ(e)) over the items e outside the best basis A*.

    σ(e) is the item of A* of the smallest mean whose place e can take; Δ_e = w_σ(e) − w_e. Without
    privacy this is the bound of Talebi & Proutiere (2016). Under ε-DP for replacing a round's vector
    of rewards, or only one of them, the argument of `arms.py` holds for each item: raised above σ(e),
    it would have to be in nearly every basis. And a basis B loses at least Σ Δ_e over its items
    outside A*, as bases can be exchanged item by item. That a vector has K rewards is not used; see
    `conjectured_order`. Assumes a policy that is consistent on all Bernoulli items.
    """
    check_epsilon(epsilon)
    means = checked_means(means)
    best = matroid.best_basis(means)
    state, falling = matroid.state(), sorted(best, key=lambda item: -means[item])
    found = []
    for item in set(range(matroid.size)) - set(best):
        state.clear()
        if state.join(item):  # otherwise it is in no basis
            # The first to find no room beside it is the last of those whose place it can take.
            replaced = next(other for other in falling if not state.join(other))
            found.append(coefficient(means[item], means[replaced], epsilon))
    return math.fsum(found)


def conjectured_order(items: int, rank: int, gap: float, epsilon: float, rounds: int) -> float:
    """L ln(n)/Δ + LK ln(n)/ε, the order that Chandak, Hu & Hegde conjecture to be necessary.

    A conjecture, and an order: "we conjecture that an improved Ω(L ln(n)/Δ + LK ln(n)/ε) regret lower
    bound for differentially private matroid bandits is achievable" (Section 6), for L items, bases of K
    of them and gap Δ under ε-DP. It is not proved and has no constants: regret may well be below.
    """
    checks.integer(least=1, items=items, rank=rank, rounds=rounds)
    checks.positive(gap=gap, epsilon=epsilon)
    return items * math.log(rounds) * (1.0 / gap + rank / epsilon)
