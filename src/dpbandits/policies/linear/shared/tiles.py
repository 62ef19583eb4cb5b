"""Upper bounds of many actions, side by side.

The sum xᵀAx of one action is a chain of additions of which each waits for the one before. With the
features of some actions in the columns of a tile, the processor adds for several of them at once, and
for each in the order of `choosing._norm`: the same result, bit for bit, at a fraction of the time.

Features are private, and a tile is part of a public state: `clear` it before a verb ends.
"""

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Chance
from dpbandits.policies.ties import better

_MANY = 24  # in fewer dimensions there is little to gain
LANES = 32  # actions side by side: in 100 dimensions a tile fits into the fastest cache
_SQUARE, _SCORE, _ACTION, _EXTRA = 4, 5, 6, 7  # rows after the features; the first four are sums


def start_tile(dim: int) -> NDArray[np.float64]:
    """A column for each of `LANES` actions; with few features it is empty, and has one axis only."""
    return np.zeros((dim + _EXTRA, LANES) if dim >= _MANY else 0)


@register_jitable(forceinline=True)
def put(tile: Any, lane: int, features: Any, action: int, score: float) -> None:
    """An action, and the part m·x of its upper bound."""
    size = tile.shape[0] - _EXTRA
    for i in range(size):
        tile[i, lane] = features[action, i]
    tile[size + _SCORE, lane] = score
    tile[size + _ACTION, lane] = action


@register_jitable
def best_of(
    tile: Any,
    lanes: int,
    shape: Any,
    width: float,
    tie: float,
    best: float,
    chosen: int,
    ties: int,
    explore: Chance,
) -> tuple[float, int, int]:
    """What `better` makes of the actions in the first `lanes` columns, one after the other."""
    size = tile.shape[0] - _EXTRA
    _square(tile, lanes, shape)
    for lane in range(lanes):
        norm = math.sqrt(max(2.0 * tile[size + _SQUARE, lane], 0.0))
        score, action = tile[size + _SCORE, lane] + width * norm, int(tile[size + _ACTION, lane])
        best, chosen, ties = better(score, action, best, chosen, ties, tie, explore)
    return best, chosen, ties


@register_jitable
def _square(tile: Any, lanes: int, shape: Any) -> None:
    """½xᵀAx of each column.

    Four rows of A at a time, and four of their entries: features are read from memory a quarter as
    often, and so are the sums.
    """
    size = tile.shape[0] - _EXTRA
    first, second, third, fourth = tile[size], tile[size + 1], tile[size + 2], tile[size + 3]
    square = tile[size + _SQUARE]
    for lane in range(lanes):
        square[lane] = 0.0
    fours = size - size % 4
    for i in range(0, fours, 4):
        for lane in range(lanes):
            first[lane] = 0.5 * shape[i, i] * tile[i, lane]
            second[lane] = 0.5 * shape[i + 1, i + 1] * tile[i + 1, lane]
            third[lane] = 0.5 * shape[i + 2, i + 2] * tile[i + 2, lane]
            fourth[lane] = 0.5 * shape[i + 3, i + 3] * tile[i + 3, lane]
        for j in range(0, i, 4):
            a, b = _four(shape, i, j), _four(shape, i + 1, j)
            c, d = _four(shape, i + 2, j), _four(shape, i + 3, j)
            for lane in range(lanes):
                x = tile[j, lane], tile[j + 1, lane], tile[j + 2, lane], tile[j + 3, lane]
                first[lane] = _plus(first[lane], a, x)
                second[lane] = _plus(second[lane], b, x)
                third[lane] = _plus(third[lane], c, x)
                fourth[lane] = _plus(fourth[lane], d, x)
        b, c, d = _four(shape, i + 1, i), _four(shape, i + 2, i), _four(shape, i + 3, i)
        for lane in range(lanes):
            x = tile[i, lane], tile[i + 1, lane], tile[i + 2, lane], tile[i + 3, lane]
            values = (
                first[lane],
                second[lane] + b[0] * x[0],
                third[lane] + c[0] * x[0] + c[1] * x[1],
                fourth[lane] + d[0] * x[0] + d[1] * x[1] + d[2] * x[2],
            )
            square[lane] = _plus(square[lane], values, x)
    for i in range(fours, size):
        for lane in range(lanes):
            first[lane] = 0.5 * shape[i, i] * tile[i, lane]
        for j in range(i):
            for lane in range(lanes):
                first[lane] += shape[i, j] * tile[j, lane]
        for lane in range(lanes):
            square[lane] += first[lane] * tile[i, lane]


@register_jitable(forceinline=True)
def _four(shape: Any, i: int, j: int) -> tuple[float, float, float, float]:
    return shape[i, j], shape[i, j + 1], shape[i, j + 2], shape[i, j + 3]


@register_jitable(forceinline=True)
def _plus(value: float, a: Any, x: Any) -> float:
    """Four products more, in their order."""
    total: float = value + a[0] * x[0] + a[1] * x[1] + a[2] * x[2] + a[3] * x[3]
    return total


@register_jitable
def clear(tile: Any) -> None:
    """Keep nothing of anybody's features."""
    for i in range(tile.shape[0]):
        for lane in range(LANES):
            tile[i, lane] = 0.0
