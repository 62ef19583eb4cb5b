"""What a policy must know beforehand: how many actions, what range, how long."""

from dpbandits.problems.arms import Arms
from dpbandits.problems.linear import LinearActions, LinearContexts, LinearProblem, disjoint_features
from dpbandits.problems.matroids import (
    GraphicMatroid,
    LaminarMatroid,
    LinearMatroid,
    Matroid,
    MatroidBases,
    PartitionMatroid,
    RestrictedMatroid,
    TransversalMatroid,
    TruncatedMatroid,
    UniformMatroid,
)
from dpbandits.problems.problem import Problem

__all__ = [
    "Arms",
    "GraphicMatroid",
    "LaminarMatroid",
    "LinearActions",
    "LinearContexts",
    "LinearMatroid",
    "LinearProblem",
    "Matroid",
    "MatroidBases",
    "PartitionMatroid",
    "Problem",
    "RestrictedMatroid",
    "TransversalMatroid",
    "TruncatedMatroid",
    "UniformMatroid",
    "disjoint_features",
]
