"""How much noise a budget asks for. Sensitivities are for *replacing* one person's data."""

import math
from typing import Literal

from dpbandits import checks
from dpbandits.errors import BudgetNotAccepted, InvalidInput
from dpbandits.privacy import curves
from dpbandits.privacy.budgets import Budget, GaussianDP, NonPrivate, PureDP

# Below the least normal number a scale has few bits left, and then none.
_LEAST = float.fromhex("0x1p-1022")

# Of noise and margins: the least that meets the budget, or as a paper prints them.
Calibration = Literal["exact", "paper"]


def gaussian_scale(sensitivity: float, budget: Budget) -> float:
    """Standard deviation of Gaussian noise for one release of L2 sensitivity Δ: Δ/μ.

    Exact for every budget that Gaussian noise can meet; 0 for `NonPrivate`.

    >>> from dpbandits.privacy.budgets import ApproxDP
    >>> round(gaussian_scale(1.0, ApproxDP(1.0, 1e-6)), 6)
    4.224679
    """
    checks.not_negative(sensitivity=sensitivity)
    if isinstance(budget, NonPrivate):
        return 0.0
    return _noise(sensitivity, sensitivity / budget.to_gaussian().mu)


def laplace_epsilon(budget: Budget) -> float:
    """The ε at which one Laplace release per person meets the budget; infinite for `NonPrivate`.

    A μ-GDP budget is met by ε = −2 ln(2Φ(−μ/2)), better than going through ε-DP.
    """
    match budget:
        case NonPrivate():
            return math.inf
        case PureDP(epsilon=epsilon):
            return epsilon
        case GaussianDP(mu=mu):
            return curves.laplace_epsilon(mu)
    raise BudgetNotAccepted(f"Laplace noise is calibrated to ε-DP or μ-GDP, not to {budget}")


def laplace_scale(sensitivity: float, budget: Budget) -> float:
    """Scale of Laplace noise for one release of L1 sensitivity Δ: Δ/ε, 0 for `NonPrivate`."""
    checks.not_negative(sensitivity=sensitivity)
    if isinstance(budget, NonPrivate):
        return 0.0
    return _noise(sensitivity, sensitivity / laplace_epsilon(budget))


def _noise(sensitivity: float, scale: float) -> float:
    """The scale; a bound so small, or a budget so large, that it rounds to no noise is refused."""
    if sensitivity > 0.0 and not _LEAST <= scale < math.inf:
        raise InvalidInput(f"noise of scale {scale:g} cannot be drawn: change units or budget")
    return scale


def reduced(budget: Budget, times: float) -> Budget:
    """What one datum may cost so that `times` as large a shift stays within the budget.

    ε/m under ε-DP. Otherwise μ/m of the Gaussian guarantee that suffices, since shifts of Gaussian noise
    add up as they are; no δ has to be split. `accounting.grouped` is its inverse.

    >>> reduced(GaussianDP(1.0), 4.0)
    GaussianDP(mu=0.25)
    """
    match budget:
        case NonPrivate():
            return budget
        case PureDP(epsilon=epsilon):
            return PureDP(epsilon / times)
    return GaussianDP(budget.to_gaussian().mu / times)


def limit_of(budget: Budget) -> float:
    """What the cost of noise is held against: ε of a pure budget, the μ that suffices for the others."""
    return budget.epsilon if isinstance(budget, PureDP) else budget.to_gaussian().mu


def gaussian_release(sensitivity: float, scale: float) -> GaussianDP:
    """The exact budget of one Gaussian release: (Δ/σ)-GDP."""
    checks.positive(sensitivity=sensitivity, scale=scale)
    return GaussianDP(sensitivity / scale)


def laplace_release(sensitivity: float, scale: float) -> PureDP:
    """The exact budget of one Laplace release: (Δ/b)-DP."""
    checks.positive(sensitivity=sensitivity, scale=scale)
    return PureDP(sensitivity / scale)
