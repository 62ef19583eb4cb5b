"""A budget shared out over several releases of the same data."""

import math

from dpbandits.privacy.budgets import Budget, GaussianDP, NonPrivate, PureDP


def split_budget(privacy: Budget, parts: int) -> Budget:
    """One of so many equal parts, which composed cost the whole: ε/k under ε-DP, μ/√k otherwise."""
    match privacy:
        case NonPrivate():
            return privacy
        case PureDP(epsilon=epsilon):
            return PureDP(epsilon / parts)
    return GaussianDP(privacy.to_gaussian().mu / math.sqrt(parts))
