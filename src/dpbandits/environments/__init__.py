"""Worlds that offer rounds and pay rewards; each knows its best action, so regret is exact."""

from dpbandits.environments.arms import BernoulliArms, TruncatedExponentialArms
from dpbandits.environments.environment import Environment
from dpbandits.environments.linear import (
    DisjointContexts,
    FixedActions,
    LowRankContexts,
    RotatingContexts,
    SphereContexts,
    SwitchingContexts,
)

__all__ = [
    "BernoulliArms",
    "DisjointContexts",
    "Environment",
    "FixedActions",
    "LowRankContexts",
    "RotatingContexts",
    "SphereContexts",
    "SwitchingContexts",
    "TruncatedExponentialArms",
]
