"""Bandits that choose sets: matroids, the problem and all its policies."""

from dpbandits.policies import matroid as _policies
from dpbandits.policies.matroid import *
from dpbandits.problems import (
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

__all__ = [
    "GraphicMatroid",
    "LaminarMatroid",
    "LinearMatroid",
    "Matroid",
    "MatroidBases",
    "PartitionMatroid",
    "RestrictedMatroid",
    "TransversalMatroid",
    "TruncatedMatroid",
    "UniformMatroid",
]
__all__ += _policies.__all__
