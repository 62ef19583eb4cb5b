"""Choosing among the actions a person is offered; nothing of her features is kept."""

import math
from typing import Any

from numba.extending import register_jitable

from dpbandits.engine import Chance

_TIE = 1e-12


@register_jitable(forceinline=True)
def most_promising(
    features: Any, mean: Any, shape: Any, width: float, reach: float, explore: Chance
) -> int:
    """The action of the largest m·x + width·√(xᵀAx); one of them at random where several are equal.

    `reach` is at least the largest eigenvalue of A. Where even width·√reach·‖x‖ would not be enough, the
    quadratic form is not computed: the choice is the same, most of the work is saved.
    """
    best, chosen, ties = -math.inf, 0, 1
    most = width * width * reach * (1.0 + 1e-9)
    for action in range(features.shape[0]):
        score, square = 0.0, 0.0
        for i in range(mean.size):
            value = features[action, i]
            score += mean[i] * value
            square += value * value
        missing = best - _TIE - score
        if missing > 0.0 and missing * missing > most * square:
            continue
        square = 0.0
        for i in range(mean.size):
            value = 0.5 * shape[i, i] * features[action, i]
            for j in range(i):
                value += shape[i, j] * features[action, j]
            square += value * features[action, i]
        score += width * math.sqrt(max(2.0 * square, 0.0))
        if score > best + _TIE:
            best, chosen, ties = score, action, 1
        elif score >= best - _TIE:
            ties += 1
            if explore.random() * ties < 1.0:
                chosen = action
    return chosen


@register_jitable(forceinline=True)
def most_rewarding(features: Any, mean: Any, explore: Chance) -> int:
    """The action of the largest m·x; one of them at random where several are equal."""
    best, chosen, ties = -math.inf, 0, 1
    for action in range(features.shape[0]):
        score = 0.0
        for i in range(mean.size):
            score += mean[i] * features[action, i]
        if score > best + _TIE:
            best, chosen, ties = score, action, 1
        elif score >= best - _TIE:
            ties += 1
            if explore.random() * ties < 1.0:
                chosen = action
    return chosen


@register_jitable(forceinline=True)
def any_action(features: Any, explore: Chance) -> int:
    """One of the actions offered, each as likely."""
    return int(explore.random() * features.shape[0])
