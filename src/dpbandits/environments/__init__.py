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
from dpbandits.environments.timing import DayAndNight, Delays, LogNormal, Traffic

__all__ = [
    "BernoulliArms",
    "DayAndNight",
    "Delays",
    "DisjointContexts",
    "Environment",
    "FixedActions",
    "KernelWorld",
    "LogNormal",
    "LowRankContexts",
    "MatroidArms",
    "MovieRatings",
    "RotatingContexts",
    "SphereContexts",
    "SwitchingContexts",
    "Traffic",
    "TruncatedExponentialArms",
]
