"""Worlds that offer rounds and pay rewards; each knows its best action, so regret is exact."""

from dpbandits.environments.arms import BernoulliArms, TruncatedExponentialArms
from dpbandits.environments.environment import Environment
from dpbandits.environments.kernels import KernelWorld
from dpbandits.environments.linear import (
    DisjointContexts,
    FixedActions,
    LowRankContexts,
    RotatingContexts,
    SphereContexts,
    SwitchingContexts,
)
from dpbandits.environments.matroids import MatroidArms
from dpbandits.environments.movielens import MovieRatings

__all__ = [
    "BernoulliArms",
    "DisjointContexts",
    "Environment",
    "FixedActions",
    "KernelWorld",
    "LowRankContexts",
    "MatroidArms",
    "MovieRatings",
    "RotatingContexts",
    "SphereContexts",
    "SwitchingContexts",
    "TruncatedExponentialArms",
]
