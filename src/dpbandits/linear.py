"""Bandits whose actions have features: the problems and all their policies."""

from dpbandits.policies.linear import (
    BatchedLinThompson,
    BatchedLinUCB,
    FactorizedLinUCB,
    LinThompson,
    LinUCB,
    RandomizedLinUCB,
    TreeContextualThompson,
    TreeContextualUCB,
    TreeLinUCB,
    UniformActions,
)
from dpbandits.problems import (
    LinearActions,
    LinearContexts,
    LinearProblem,
    disjoint_features,
)

__all__ = [
    "BatchedLinThompson",
    "BatchedLinUCB",
    "FactorizedLinUCB",
    "LinThompson",
    "LinUCB",
    "LinearActions",
    "LinearContexts",
    "LinearProblem",
    "RandomizedLinUCB",
    "TreeContextualThompson",
    "TreeContextualUCB",
    "TreeLinUCB",
    "UniformActions",
    "disjoint_features",
]
