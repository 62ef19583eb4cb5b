"""How far from optimal: lower bounds on regret and on samples, each with what it assumes.

`known_limit(world, budget)` is the one that is known for a world, to be drawn beside what was measured.
The others are the mathematics: of one world (`arms.py`, `matroids.py`) as coefficients of ln T, and of
the worst world for a policy (`linear.py`), which say nothing about a given one; and the samples that it
takes to find the best arm (`identification.py`).
"""

from dpbandits.limits.arms import (
    Law,
    bounded_divergence,
    burnetas_katehakis,
    imed_level,
    lai_robbins,
    least_pulls,
    private_arms_regret,
    regret_without_disasters,
)
from dpbandits.limits.identification import characteristic_time, least_samples
from dpbandits.limits.known import Limit, known_limit
from dpbandits.limits.linear import joint_minimax, local_minimax, standard_privacy_regret
from dpbandits.limits.matroids import conjectured_order, talebi_proutiere

__all__ = [
    "Law",
    "Limit",
    "bounded_divergence",
    "burnetas_katehakis",
    "characteristic_time",
    "conjectured_order",
    "imed_level",
    "joint_minimax",
    "known_limit",
    "lai_robbins",
    "least_pulls",
    "least_samples",
    "local_minimax",
    "private_arms_regret",
    "regret_without_disasters",
    "standard_privacy_regret",
    "talebi_proutiere",
]
