"""Lower bounds for arms that pay within [0, 1], with and without ε-DP.

All are of one kind. A policy is *consistent* on a class of laws if on every instance of it regret is
o(T^a) for each a > 0. It must pull an arm of law P often enough not to take it for one of a law Q in the
class whose mean is above the best, μ*, where it would have to pull it nearly always: ln T / D times for
large T, with D = inf_Q KL(P, Q) (Lai & Robbins 1985; Burnetas & Katehakis 1996).

Under ε-DP for replacing one reward, D = inf ε TV(P, Z) + KL(Z, Q) over Q and any law Z (Azize et al.
2025). Why: draw n rewards of P and n of Z so that all but a share TV(P, Z) of them agree. By group
privacy, what is decided on the first is at most e^(ε n TV) times as likely as on the others, but for
deviations of that share, which are rare; and from Z to Q the usual change of measure costs e^(n KL).
Under Q fewer than n pulls have a chance of about 1/T; so they stay unlikely under P as long as n D <
ln T.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy  # whose parts, slow to import, are loaded at their first use
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.policies.arms.shared.divergences import bernoulli_kl, private_kl
from dpbandits.privacy.budgets import Budget, NonPrivate, PureDP
from dpbandits.wording import ROUNDING


def lai_robbins(means: Sequence[float], epsilon: float = math.inf) -> float:
    """The limit of regret/ln T for Bernoulli arms: Σ Δ_a / d_ε(μ_a, μ*) over arms below the best.

    Without privacy d_∞ is the Kullback–Leibler divergence (Lai & Robbins 1985); under ε-DP it is
    d_ε(x, y) = min_z ε|z − x| + kl(z, y) (Azize et al. 2025). Assumes a policy that is consistent on
    all Bernoulli arms. Where the best mean is 1 nothing can be better, and the bound is 0.

    >>> round(lai_robbins((0.6, 0.4)), 3), round(lai_robbins((0.6, 0.4), 0.1), 2)
    (2.466, 10.64)
    """
    check_epsilon(epsilon)
    given = checked_means(means)
    return math.fsum(coefficient(mean, max(given), epsilon) for mean in given)


def checked_means(means: Sequence[float]) -> list[float]:
    """Means of Bernoulli laws, at least one."""
    given = [checks.number("means[…]", mean) for mean in checks.sequence("means", means)]
    if not given:
        raise InvalidInput("expected at least one mean, got none")
    for index, mean in enumerate(given):
        checks.unit(**{f"means[{index}]": mean})
    return given


def coefficient(mean: float, best: float, epsilon: float) -> float:
    """Δ / d_ε(mean, best), an arm's part of the limit; 0 for a best arm, and where nothing is better."""
    if best - mean <= ROUNDING or best >= 1.0:
        return 0.0
    return (best - mean) / private_kl(mean, best, epsilon)


class Law(NamedTuple):
    """What an arm pays: finitely many values within [0, 1], and their chances."""

    values: NDArray[np.float64]
    chances: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """The expected reward."""
        return float(self.values @ self.chances)


def bounded_divergence(law: Law, best: float, epsilon: float = math.inf) -> float:
    """Inf ε TV(P, Z) + KL(Z, Q) over laws Z and Q on [0, 1] of which Q has a mean of at least `best`.

    By duality (Honda & Takemura 2010 without privacy) it is the maximum over 0 ≤ λ < 1/(1 − μ*) of E
    min(g(X), g(1) + ε), with g(x) = ln(1 − λ(x − μ*)), which is concave in λ: where g(x) is above g(1)
    + ε, Z moves what P has at x to 1. Of Bernoulli laws it is d_ε; of all laws of one mean theirs is
    the smallest.
    """
    check_epsilon(epsilon)
    checks.unit(best=best)
    if best >= 1.0:
        return math.inf
    if law.mean >= best:
        return 0.0

    def negative(share: float) -> float:
        slope = share / (1.0 - best)
        logs = np.log1p(-slope * (law.values - best))
        return -float(np.minimum(logs, math.log1p(-share) + epsilon) @ law.chances)

    found = scipy.optimize.minimize_scalar(
        negative, bounds=(0.0, 1.0 - 1e-12), method="bounded", options={"xatol": 1e-12}
    )
    return max(0.0, -float(found.fun))


def burnetas_katehakis(laws: Sequence[Law], epsilon: float = math.inf) -> float:
    """The limit of regret/ln T for arms of any laws on [0, 1]: Σ Δ_a / `bounded_divergence`.

    Assumes a policy that is consistent on all arms that pay within [0, 1] (Burnetas & Katehakis 1996;
    with ε-DP Azize et al. 2025). One that is made for a smaller class, such as arms of exponential laws,
    may stay below.
    """
    check_epsilon(epsilon)
    if not laws:
        raise InvalidInput("expected the law of at least one arm, got none")
    best = max(law.mean for law in laws)
    return math.fsum(
        (best - law.mean) / bounded_divergence(law, best, epsilon)
        for law in laws
        if best - law.mean > ROUNDING
    )


def regret_without_disasters(means: Sequence[float], lost: float, gap: float) -> float:
    """The least mean regret of a policy that hardly ever loses the best arm, on any Bernoulli arms.

    A policy is *safe* if, on each instance whose best arm leads by at least `gap`, all but a share δ =
    `lost` of its runs give the best arm more than half of the T rounds. Let arm a be below the best, μ*,
    and raise it to μ* + `gap`. That is such an instance too, and the event that a has more than half of
    the rounds has a probability of at most δ before and at least 1 − δ after. By the change of measure
    of Kaufmann, Cappé & Garivier (2016), for every T,

        E[N_a] kl(μ_a, μ* + gap) ≥ kl(δ, 1 − δ) ≈ ln(1/δ),

    and regret is Σ Δ_a E[N_a]. It is not asymptotic, and holds with privacy and without it, which can
    only add. No tuning gives a policy both a mean below this and a share of lost runs of at most δ.
    Arms cannot be raised above 1: where μ* + `gap` would be, the bound is 0.

    >>> round(regret_without_disasters((0.75, 0.625, 0.5, 0.375, 0.25), 2e-6, 0.05), 1)
    55.7
    """
    checks.positive(gap=gap)
    checks.open_unit(lost=lost)
    best, *others = sorted(checked_means(means), reverse=True)
    if others and best - others[0] < gap - ROUNDING:
        raise InvalidInput(f"the best of the means must lead by at least the gap, {gap:g}")
    raised = best + gap
    if lost >= 0.5 or raised > 1.0:
        return 0.0
    told = (1.0 - 2.0 * lost) * math.log((1.0 - lost) / lost)
    return math.fsum((best - mean) * told / bernoulli_kl(mean, raised) for mean in others)


def imed_level(means: Sequence[float], rounds: int, budget: Budget) -> float:
    """Not a bound: regret if every arm is left once its exact evidence says so to the index of IMED.

    Σ Δ n over the arms below the best, with Λ(n) + ln n = ln T. Λ(n) is the rate at which n rewards of
    mean x, released once, speak against a mean of q = μ*: n·d_ε(x, q) under ε-DP, the least
    n·kl(z, q) + ½ (μ n (z − x))² over z under μ-GDP, n·kl(x, q) without privacy. It leaves out chance
    and batches, which cost more.

    >>> from dpbandits.privacy.budgets import PureDP
    >>> round(imed_level((0.75, 0.625, 0.5, 0.375, 0.25), 100_000, PureDP(1.0)))
    56
    """
    checks.integer(least=2, rounds=rounds)
    best, *others = sorted(checked_means(means), reverse=True)
    regret = 0.0
    for mean in others:
        if mean < best:
            plays = _root(partial(_missing, mean, best, rounds, budget))
            regret += (best - mean) * min(plays, float(rounds))
    return regret


def _missing(mean: float, best: float, rounds: int, budget: Budget, n: float) -> float:
    """Λ(n) + ln n − ln T."""
    return _rate(n, mean, best, budget) + math.log(n) - math.log(rounds)


def _root(rising: Callable[[float], float]) -> float:
    """Where a rising function of n ≥ 1 crosses 0; 1 if it is above from the start."""
    if rising(1.0) >= 0.0:
        return 1.0
    high = 2.0
    while rising(high) < 0.0:
        high *= 2.0
    return float(scipy.optimize.brentq(rising, high / 2.0, high))


def _rate(n: float, x: float, q: float, budget: Budget) -> float:
    """Λ(n)."""
    if isinstance(budget, PureDP):
        return n * private_kl(x, q, budget.epsilon)
    if isinstance(budget, NonPrivate):
        return n * bernoulli_kl(x, q)
    mu = budget.to_gaussian().mu
    found = scipy.optimize.minimize_scalar(
        lambda z: n * bernoulli_kl(z, q) + 0.5 * (mu * n * (z - x)) ** 2, bounds=(x, q), method="bounded"
    )
    return float(found.fun)


def least_pulls(n: int, epsilon: float, gap: float) -> float:
    """Claim 14 of Shariff & Sheffet: pulls of an arm of gap Δ by an ε-DP policy of regret at most n^¾.

    ln(n)/(100 ε Δ) times, with probability at least ½; rewards are −1 or 1. The proof needs n^0.19 ≥ 4/Δ
    and at most n/2 such pulls; below that nothing is claimed and the bound is 0. (For Δ = .1 it starts
    at 2.7·10⁸ rounds.) It is far below `lai_robbins`, which says the same of consistent policies.
    """
    checks.integer(least=1, n=n)
    checks.positive(epsilon=epsilon, gap=gap)
    pulls = math.log(n) / (100.0 * epsilon * gap)
    return pulls if n**0.19 >= 4.0 / gap and pulls <= n / 2.0 else 0.0


def private_arms_regret(n: int, epsilon: float, gaps: tuple[float, ...]) -> float:
    """Corollary 15, the regret that Claim 14 forces: Σ_a ½ Δ_a ln(n)/(100 ε Δ_a).

    With all gaps in reach of the proof it is (k − 1) ln(n)/(200 ε), for k arms.
    """
    return sum(0.5 * gap * least_pulls(n, epsilon, gap) for gap in gaps)


def check_epsilon(epsilon: float) -> None:
    """Positive; infinite where there is no privacy."""
    if epsilon != math.inf:
        checks.positive(epsilon=epsilon)
