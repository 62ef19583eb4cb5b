"""Worlds that offer rounds and pay rewards; each knows its best action, so regret is exact."""

from dpbandits.worlds.arms import BernoulliArms, TruncatedExponentialArms
from dpbandits.worlds.changing_arms import ScriptedArms, ShiftingArms
from dpbandits.worlds.environment import Environment
from dpbandits.worlds.kernels import KernelWorld
from dpbandits.worlds.linear import (
    DisjointContexts,
    FixedActions,
    LowRankContexts,
    RotatingContexts,
    SphereContexts,
    SwitchingContexts,
)
from dpbandits.worlds.logged import LoggedArms, LoggedContexts
from dpbandits.worlds.matroids import MatroidArms
from dpbandits.worlds.movielens import MovieRatings
from dpbandits.worlds.timing import DayAndNight, Delays, LogNormal, Traffic

__all__ = [
    "BernoulliArms",
    "DayAndNight",
    "Delays",
    "DisjointContexts",
    "Environment",
    "FixedActions",
    "KernelWorld",
    "LogNormal",
    "LoggedArms",
    "LoggedContexts",
    "LowRankContexts",
    "MatroidArms",
    "MovieRatings",
    "RotatingContexts",
    "ScriptedArms",
    "ShiftingArms",
    "SphereContexts",
    "SwitchingContexts",
    "Traffic",
    "TruncatedExponentialArms",
]
