"""Bandits with a fixed number of arms: the problem and all its policies."""

from dpbandits.policies.arms import (
    KLUCB,
    UCB1,
    AdaptiveKLUCB,
    AdaptiveUCB,
    BetaThompson,
    GaussianThompson,
    HybridThompson,
    LazyBetaThompson,
    LazyThompson,
    LazyUCB,
    ModifiedThompson,
    NoiseAwareIMED,
    PrivateIMED,
    PrivateKLUCB,
    SuccessiveElimination,
    ThompsonUCB,
    TreeThompson,
    TreeUCB,
    UniformArms,
)
from dpbandits.problems import (
    Arms,
)

__all__ = [
    "KLUCB",
    "UCB1",
    "AdaptiveKLUCB",
    "AdaptiveUCB",
    "Arms",
    "BetaThompson",
    "GaussianThompson",
    "HybridThompson",
    "LazyBetaThompson",
    "LazyThompson",
    "LazyUCB",
    "ModifiedThompson",
    "NoiseAwareIMED",
    "PrivateIMED",
    "PrivateKLUCB",
    "SuccessiveElimination",
    "ThompsonUCB",
    "TreeThompson",
    "TreeUCB",
    "UniformArms",
]
