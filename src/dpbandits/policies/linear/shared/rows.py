"""What one person adds to the sums: her features and reward, brought into range and onto a grid.

In units of the declared bounds a row is (z, w) with ‖z‖ ≤ 1 and |w| ≤ 1. Entries are rounded towards
zero to a grid of 2⁻¹³, so products lie on a grid of 2⁻²⁶ and sums over 2²⁷ people are exact in double
precision: replacing one person moves a sum by exactly what the sensitivity bounds, rounding included.
What it costs is a bias of at most 2⁻¹³ per entry.
"""

import math
from typing import Any

from numba.extending import register_jitable

from dpbandits.problems.linear import Rewards

# Steps per unit: of what is protected, and of what is not (where rounding should not be seen).
GRID = 8192.0
FINE = float(2**40)


@register_jitable(forceinline=True)
def row_of(features: Any, action: int) -> int:
    """Which row is the action's: its own, or the only one (kept of many, or the same for all arms)."""
    return action if features.shape[0] > 1 else 0


@register_jitable(forceinline=True)
def shrinkage(features: Any, row: int, max_norm: float) -> float:
    """The factor that brings a row of features into the unit ball; 0 where one is not finite."""
    square = 0.0
    for axis in range(features.shape[1]):
        value = features[row, axis] / max_norm
        square += value * value
    if square <= 1.0:
        return 1.0 / max_norm
    if square < 1e300:
        return 1.0 / (max_norm * math.sqrt(square))
    return _huge_shrinkage(features, row)


@register_jitable
def _huge_shrinkage(features: Any, row: int) -> float:
    """The same where squares overflow, or something is not a number."""
    largest = 0.0
    for axis in range(features.shape[1]):
        size = abs(features[row, axis])
        if not size < math.inf:
            return 0.0
        largest = max(largest, size)
    square = 0.0
    for axis in range(features.shape[1]):
        value = features[row, axis] / largest
        square += value * value
    return 1.0 / math.sqrt(square) / largest


@register_jitable(forceinline=True)
def on_grid(value: float, grid: float) -> float:
    """A number in [−1, 1], rounded towards zero."""
    return int(value * grid) / grid


@register_jitable(forceinline=True)
def grid_row(
    row: Any, features: Any, action: int, reward: float, max_norm: float, rewards: Rewards, grid: float
) -> float:
    """Fill `row` with z and return w; both 0 where the reward is missing or a feature unusable."""
    hers = row_of(features, action)
    factor = 0.0 if reward != reward else shrinkage(features, hers, max_norm)
    if factor == 0.0:
        for axis in range(row.size):
            row[axis] = 0.0
        return 0.0
    for axis in range(row.size):
        row[axis] = on_grid(features[hers, axis] * factor, grid)
    return on_grid(in_units(reward, rewards), grid)


@register_jitable(forceinline=True)
def in_units(reward: float, rewards: Rewards) -> float:
    """A reward from the middle of their range, clipped, in units of half of it."""
    largest, middle = rewards
    value: float = min(max(reward - middle, -largest), largest) / largest
    return value
