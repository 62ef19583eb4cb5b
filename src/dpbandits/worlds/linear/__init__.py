"""Linear worlds: Shariff & Sheffet's, and those in which private policies are likely to fail."""

from dpbandits.worlds.linear.disjoint_contexts import DisjointContexts
from dpbandits.worlds.linear.fixed_actions import FixedActions
from dpbandits.worlds.linear.sphere_contexts import SphereContexts
from dpbandits.worlds.linear.subspace_contexts import (
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
