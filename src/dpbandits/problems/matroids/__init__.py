"""Matroids: which sets of items may be chosen together, and the bandit problem of choosing one."""

from dpbandits.problems.matroids.bases import MatroidBases
from dpbandits.problems.matroids.counting import LaminarMatroid, PartitionMatroid, UniformMatroid
from dpbandits.problems.matroids.derived import RestrictedMatroid, TruncatedMatroid
from dpbandits.problems.matroids.linear import GraphicMatroid, LinearMatroid
from dpbandits.problems.matroids.matroid import Matroid
from dpbandits.problems.matroids.transversal import TransversalMatroid

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
