"""Bandits that choose sets: matroids, the problem and all its policies."""

from dpbandits.policies.matroid import (
    CombinatorialTreeUCB,
    FocusedMatroidUCB,
    MatroidKLUCB,
    MatroidThompson,
    MatroidUCB,
    PrivateMatroidThompson,
    PrivateMatroidUCB,
    UniformBases,
)
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
    "CombinatorialTreeUCB",
    "FocusedMatroidUCB",
    "GraphicMatroid",
    "LaminarMatroid",
    "LinearMatroid",
    "Matroid",
    "MatroidBases",
    "MatroidKLUCB",
    "MatroidThompson",
    "MatroidUCB",
    "PartitionMatroid",
    "PrivateMatroidThompson",
    "PrivateMatroidUCB",
    "RestrictedMatroid",
    "TransversalMatroid",
    "TruncatedMatroid",
    "UniformBases",
    "UniformMatroid",
]
