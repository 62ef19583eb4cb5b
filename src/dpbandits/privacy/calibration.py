"""How much noise a budget asks for. Sensitivities are for *replacing* one person's data."""

from dpbandits import checks
from dpbandits.errors import BudgetNotAccepted
from dpbandits.privacy import curves
from dpbandits.privacy.budgets import Budget, GaussianDP, NonPrivate, PureDP


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
    return sensitivity / budget.to_gaussian().mu


def laplace_scale(sensitivity: float, budget: Budget) -> float:
    """Scale of Laplace noise for one release of L1 sensitivity Δ: Δ/ε.

    A μ-GDP budget is met by ε = −2 ln(2Φ(−μ/2)); that is for one Laplace release per person and
    better than going through ε-DP. 0 for `NonPrivate`.
    """
    checks.not_negative(sensitivity=sensitivity)
    match budget:
        case NonPrivate():
            return 0.0
        case PureDP(epsilon=epsilon):
            return sensitivity / epsilon
        case GaussianDP(mu=mu):
            return sensitivity / curves.laplace_epsilon(mu)
    raise BudgetNotAccepted(f"Laplace noise is calibrated to ε-DP or μ-GDP, not to {budget}")


def gaussian_release(sensitivity: float, scale: float) -> GaussianDP:
    """The exact budget of one Gaussian release: (Δ/σ)-GDP."""
    checks.positive(sensitivity=sensitivity, scale=scale)
    return GaussianDP(sensitivity / scale)


def laplace_release(sensitivity: float, scale: float) -> PureDP:
    """The exact budget of one Laplace release: (Δ/b)-DP."""
    checks.positive(sensitivity=sensitivity, scale=scale)
    return PureDP(sensitivity / scale)
