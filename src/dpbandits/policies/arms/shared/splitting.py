"""A budget shared out over several releases of the same data."""

import math

from dpbandits.privacy.budgets import Budget, PureDP
from dpbandits.privacy.calibration import reduced


def split_budget(privacy: Budget, parts: int) -> Budget:
    """One of k equal parts of a budget, which compose to the whole: ε/k under ε-DP, μ/√k otherwise."""
    return reduced(privacy, parts if isinstance(privacy, PureDP) else math.sqrt(parts))
