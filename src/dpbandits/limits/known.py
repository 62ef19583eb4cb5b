"""The limit that is known for a world and a budget."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpbandits.limits.arms import Law, burnetas_katehakis, lai_robbins
from dpbandits.limits.matroids import talebi_proutiere
from dpbandits.privacy.budgets import Budget, NonPrivate, PureDP
from dpbandits.worlds import (
    BernoulliArms,
    Environment,
    LoggedArms,
    MatroidArms,
    TruncatedExponentialArms,
)

_WITHOUT = "without privacy"
# Worlds with a limit, and on what a policy must learn to be held to it.
_CLASSES: dict[type[Environment], str] = {
    BernoulliArms: "Bernoulli arms",
    TruncatedExponentialArms: "arms that pay within [0, 1]",
    LoggedArms: "arms that pay within [0, 1]",
    MatroidArms: "Bernoulli items",
}
_CONJECTURE = (
    " Conjectured by Chandak, Hu & Hegde, not proved: under ε-DP order L ln(t)/Δ + LK ln(t)/ε is "
    "necessary (L items, bases of K)."
)
_POINTS = 400  # of the quadrature of an exponential law
_FAR = 40.0  # lifetimes beyond which it has no mass left


@dataclass(frozen=True)
class Limit:
    """A lower bound on expected regret that grows with ln t, and what it assumes."""

    name: str  # the budget that it depends on, or "without privacy"
    rate: float  # regret is at least this times ln t, for large t
    sentence: str

    def at(self, rounds: ArrayLike) -> NDArray[np.float64]:
        """The bound after so many rounds: rate · ln t."""
        return np.asarray(self.rate * np.log(np.asarray(rounds, dtype=np.float64)))


def known_limit(world: Environment, budget: Budget) -> Limit | None:
    """What no consistent policy of this budget beats in the long run on this world; None if not known.

    Known for arms, Bernoulli or not, and for Bernoulli items of a matroid. Under ε-DP it grows as ε
    falls; for all other budgets it is the one without privacy, which holds for every policy. Under (ε,
    δ)-DP with a fixed δ no larger one is known; under a Gaussian budget μ the same argument adds pulls
    of order √(ln T)/μ only, which vanish beside ln T. Local policies, and those whose people return,
    are held to the same limit, though theirs may be higher. Nothing is known for one given world with
    contexts, linear actions or a kernel: what is known there is about the worst one.

    >>> from dpbandits import GaussianDP, PureDP
    >>> held = PureDP(0.1), GaussianDP(1.0)
    >>> found = [known_limit(BernoulliArms((0.6, 0.4)), one) for one in held]
    >>> [(one.name, round(float(one.at(100_000)), 1)) for one in found]
    [('0.1-DP', 122.5), ('without privacy', 28.4)]
    """
    if (learned := _CLASSES.get(type(world))) is None:
        return None
    unprotected = _rate(world, math.inf)
    if unprotected <= 0.0:  # all arms alike, or one that nothing can be better than
        return None
    said = f"For policies that learn on all {learned}; asymptotic: at a given t one may be below."
    if isinstance(budget, PureDP):
        rate = _rate(world, budget.epsilon)
        if isinstance(world, MatroidArms):
            said += _CONJECTURE
        private = rate > unprotected * (1.0 + 1e-9)
        return Limit(str(budget) if private else _WITHOUT, rate, said)
    if not isinstance(budget, NonPrivate):
        said += " None larger is known for budgets other than ε-DP."
    return Limit(_WITHOUT, unprotected, said)


def _rate(world: Environment, epsilon: float) -> float:
    """The coefficient of ln t."""
    match world:
        case BernoulliArms():
            return lai_robbins(world.arm_means(), epsilon)
        case TruncatedExponentialArms() | LoggedArms():
            return burnetas_katehakis(_laws(world), epsilon)
        case MatroidArms():
            return talebi_proutiere(world.item_matroid(), world.item_means(), epsilon)
    raise NotImplementedError


def _laws(world: TruncatedExponentialArms | LoggedArms) -> list[Law]:
    """What each arm pays; of an exponential law, where a quadrature looks."""
    if isinstance(world, LoggedArms):
        low, high = world.reward_range
        return [
            Law(np.clip((np.array(rewards) - low) / (high - low), 0.0, 1.0), _shares(np.array(weights)))
            for rewards, weights in zip(world.rewards, world.weights, strict=True)
        ]
    nodes, widths = np.polynomial.legendre.leggauss(_POINTS)
    found = []
    for rate in world.rates:
        values = 0.5 * (nodes + 1.0) * min(1.0, _FAR / rate)
        found.append(Law(values, _shares(widths * np.exp(-rate * values))))
    return found


def _shares(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(weights / weights.sum())
