r"""How many samples it takes to find the best of Bernoulli arms, with and without ε-DP.

**The bound.** A search is wrong with a probability of at most δ on *every* Bernoulli instance with one
best arm, and all that it shows (arms played, when it stops, what it recommends) is ε-DP for replacing
one reward. Then for means μ and any λ whose best arm is another,

    Σ_a E[N_a] d_ε(μ_a, λ_a) ≥ kl(δ, 1 − δ),      d_ε(x, y) = min_z ε|z − x| + kl(z, y),

so that E[τ] ≥ T*(μ) kl(δ, 1 − δ) with 1/T* = max_w min_λ Σ w_a d_ε(μ_a, λ_a) over shares w of samples
(Garivier & Kaufmann 2016 without privacy, where d_∞ is kl; Azize, Jourdan, Al Marjani & Basu 2023 with
min(kl, 6ε TV) in place of d_ε; Jourdan & Azize 2025 with d_ε). It holds for every δ < ½, not only in the
limit.

**Why.** Let arm a's i-th reward be X ~ μ_a, and Z ~ z_a be coupled to it so that they differ with
probability |z_a − μ_a|, independently for all a and i. What is shown, o, has the same chance under
tables of rewards that agree where o says that they were looked at; so by group privacy
P(o | X) ≤ e^(ε D) P(o | Z), D being the rewards looked at in which they differ. Compare the law of
(X, Z, o) with the one in which Z ~ λ, X is drawn given Z as before, and o given Z. Their
Kullback–Leibler divergence, of what is looked at, is at most E[Σ ln(z_a/λ_a)(Z)] + ε E[D]. By Wald's
identity that is Σ E[N_a](kl(z_a, λ_a) + ε|z_a − μ_a|): whether a reward is looked at is settled before
it is drawn. And it is at least the divergence of the recommendations, kl(δ, 1 − δ).
"""

import math
from collections.abc import Sequence

import scipy  # whose parts, slow to import, are loaded at their first use

from dpbandits import checks
from dpbandits.limits.arms import check_epsilon, checked_means
from dpbandits.policies.arms.shared.divergences import bernoulli_kl, private_kl
from dpbandits.wording import ROUNDING

_STEEP = 40.0  # logarithm of the largest ratio of samples that is looked at
_LARGE = 1e3  # a divergence that is as good as infinite


def characteristic_time(means: Sequence[float], epsilon: float = math.inf) -> float:
    """T*: the expected samples, for each unit of kl(δ, 1 − δ), that no search stays below.

    Assumes that it is right with probability 1 − δ on all Bernoulli arms. Infinite where two arms share
    the largest mean.

    With w_b the best arm's share of samples, those of another arm a that make the evidence against its
    being better y·w_b are r_a(y)·w_b; so 1/T* = max_y y/(1 + Σ r_a(y)). As r_a is convex this has one
    maximum.

    >>> round(characteristic_time((0.6, 0.4)), 1), round(characteristic_time((0.6, 0.4), 0.1), 1)
    (49.7, 114.3)
    """
    check_epsilon(epsilon)
    given = sorted(checked_means(means), reverse=True)
    if len(given) == 1:
        return 0.0
    best, others = given[0], given[1:]
    if best - others[0] <= ROUNDING:
        return math.inf

    def needed(y: float) -> float:
        return (1.0 + math.fsum(_samples(best, mean, y, epsilon) for mean in others)) / y

    # Beyond, even infinitely many samples of the nearest arm would not do.
    most = min(private_kl(best, others[0], epsilon), _LARGE)
    found = scipy.optimize.minimize_scalar(
        lambda log_share: needed(math.exp(log_share) * most), bounds=(-_STEEP, -1e-9), method="bounded"
    )
    return float(found.fun)


def least_samples(means: Sequence[float], error: float, epsilon: float = math.inf) -> float:
    """T*·kl(δ, 1 − δ) with δ = `error`: expected samples of every ε-DP search that is so seldom wrong.

    Assumes that it is so on all Bernoulli arms. For budgets other than ε-DP only the bound without
    privacy is known.

    >>> round(least_samples((0.6, 0.4), 0.05)), round(least_samples((0.6, 0.4), 0.05, 0.1))
    (132, 303)
    """
    checks.open_unit(error=error)
    if error >= 0.5:
        return 0.0
    return characteristic_time(means, epsilon) * bernoulli_kl(error, 1.0 - error)


def _samples(best: float, mean: float, y: float, epsilon: float) -> float:
    """r: samples of an arm, for each of the best, at which the cost of taking it for better is y."""

    def lacking(log_ratio: float) -> float:
        return y - _transport(best, mean, math.exp(log_ratio), epsilon)

    if lacking(_STEEP) >= 0.0:
        return math.inf
    if lacking(-_STEEP) <= 0.0:
        return 0.0
    return math.exp(scipy.optimize.brentq(lacking, -_STEEP, _STEEP, xtol=1e-9))


def _transport(best: float, mean: float, ratio: float, epsilon: float) -> float:
    """Min over λ of d_ε(best, λ) + ratio·d_ε(mean, λ), which is convex in λ."""
    found = scipy.optimize.minimize_scalar(
        lambda level: private_kl(best, level, epsilon) + ratio * private_kl(mean, level, epsilon),
        bounds=(mean, best),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return float(found.fun)
