"""What a policy must know beforehand: how many actions, what range, how long."""

from dpbandits.problems.arms import Arms
from dpbandits.problems.linear import LinearActions, LinearContexts, LinearProblem, disjoint_features
from dpbandits.problems.problem import Problem

__all__ = [
    "Arms",
    "LinearActions",
    "LinearContexts",
    "LinearProblem",
    "Problem",
    "disjoint_features",
]
