"""Linear worlds: Shariff & Sheffet's, and those in which private policies are likely to fail."""

from dpbandits.environments.linear.disjoint_contexts import DisjointContexts
from dpbandits.environments.linear.fixed_actions import FixedActions
from dpbandits.environments.linear.sphere_contexts import SphereContexts
from dpbandits.environments.linear.subspace_contexts import (
    LowRankContexts,
    RotatingContexts,
    SwitchingContexts,
)

__all__ = [
    "DisjointContexts",
    "FixedActions",
    "LowRankContexts",
    "RotatingContexts",
    "SphereContexts",
    "SwitchingContexts",
]
