"""Choosing among the actions a person is offered; nothing of her features is kept.

What is known is in blocks: one, of all actions, or one for each arm with parameters of its own. Where
there are arms, one row of features is offered, which is the same for all of them.
"""

import math
from typing import Any

from numba import types
from numba.extending import overload, register_jitable

from dpbandits.engine import Chance, length
from dpbandits.engine.verbs import INLINED
from dpbandits.policies.linear.shared.algebra import quadratic
from dpbandits.policies.linear.shared.tiles import LANES, best_of, clear, put
from dpbandits.policies.ties import better

_TIE = 1e-12
# Of each block: a factor on its widths, and a bound of its A.
RADIUS, REACH = 0, 1


class ByFeatures:
    """The verbs of states that choose by features, of whomever they are."""

    def select(self: Any, context: Any, explore: Chance) -> int:
        """An action of the public decision set, or of the features that she brought."""
        chosen: int = self.choose(offered(context, self.actions)[0], explore)
        return chosen

    def choose(self, features: Any, explore: Chance) -> int:
        """How a policy chooses."""
        raise NotImplementedError


def offered(context: Any, actions: Any) -> Any:
    """A tuple of the features to choose from: those that she brought, or the public decision set."""
    return (actions,) if context is None else context


@overload(offered, strict=False, jit_options=INLINED)
def _offered(context: Any, actions: Any) -> Any:
    if isinstance(context, types.NoneType):
        return lambda context, actions: (actions,)
    return lambda context, actions: context


@register_jitable(forceinline=True)
def most_promising_action(features: Any, known: Any, factor: float, axes: Any, explore: Chance) -> int:
    """The action, or arm, of the largest m·x + factor·radius·√(xᵀAx), by the block it is of."""
    mean, shape, width = known.mean, known.shape, known.width
    if mean.shape[0] > 1:
        return most_promising_arm(features, mean, shape, width, factor, False, explore)
    radius, reach, tile = factor * width[0, RADIUS], width[0, REACH], known.tile
    return most_promising(features, mean[0], shape[0], radius, reach, axes, tile, explore)


@register_jitable
def most_promising_arm(
    features: Any, mean: Any, shape: Any, width: Any, factor: float, sampled: bool, explore: Chance
) -> int:
    """The arm of the largest m·x + factor·radius·√(xᵀAx), each with m, radius and A of its own.

    Where `sampled`, each width is multiplied by a standard normal: what is best under parameters drawn
    from N(m, (factor·radius)² A). Arms have different parameters, so those draws are independent.
    """
    best, chosen, ties, square = -math.inf, 0, 1, 0.0
    for i in range(features.shape[1]):
        square += features[0, i] * features[0, i]
    for arm in range(mean.shape[0]):
        wide = factor * width[arm, RADIUS]
        if sampled:
            wide *= explore.standard_normal()
        score = 0.0
        for i in range(features.shape[1]):
            score += mean[arm, i] * features[0, i]
        if _is_hopeless(score, square, best, _most(wide, width[arm, REACH])):
            continue
        score += wide * math.sqrt(max(quadratic(shape[arm], features[0]), 0.0))
        best, chosen, ties = better(score, arm, best, chosen, ties, _TIE, explore)
    return chosen


@register_jitable(forceinline=True)
def most_promising(
    features: Any,
    mean: Any,
    shape: Any,
    width: float,
    reach: float,
    axes: Any,
    tile: Any,
    explore: Chance,
) -> int:
    """The action of the largest m·x + width·√(xᵀAx); one of them at random where several are equal.

    `reach` is at least the largest eigenvalue of A. Where even width·√reach·‖x‖ would not be enough, the
    quadratic form is not computed: the choice is the same, most of the work is saved.
    """
    if tile.ndim > 1:
        return _most_promising_in_tiles(features, mean, shape, width, reach, axes, tile, explore)
    best, chosen, ties = -math.inf, 0, 1
    most = _most(width, reach)
    for action in range(features.shape[0]):
        score, square = _score(features, action, mean, axes)
        if _is_hopeless(score, square, best, most):
            continue
        score += width * _norm(features, action, shape, axes)
        best, chosen, ties = better(score, action, best, chosen, ties, _TIE, explore)
    return chosen


@register_jitable(forceinline=True)
def _most_promising_in_tiles(
    features: Any,
    mean: Any,
    shape: Any,
    width: float,
    reach: float,
    axes: Any,
    tile: Any,
    explore: Chance,
) -> int:
    """The same, bit for bit: those that are not hopeless wait in a tile until it is full."""
    best, chosen, ties, waiting = -math.inf, 0, 1, 0
    most, last = _most(width, reach), features.shape[0] - 1
    for action in range(features.shape[0]):
        score, square = _score(features, action, mean, axes)
        if not _is_hopeless(score, square, best, most):
            put(tile, waiting, features, action, score)
            waiting += 1
        if waiting == LANES or action == last:
            best, chosen, ties = best_of(tile, waiting, shape, width, _TIE, best, chosen, ties, explore)
            waiting = 0
    clear(tile)
    return chosen


@register_jitable(forceinline=True)
def _most(width: float, reach: float) -> float:
    """A bound of width²·xᵀAx/‖x‖², rounding included."""
    return width * width * reach * (1.0 + 1e-9)


@register_jitable(forceinline=True)
def _score(features: Any, action: int, mean: Any, axes: Any) -> tuple[float, float]:
    """m·x and ‖x‖²."""
    score, square = 0.0, 0.0
    for i in range(length(axes)):
        value = features[action, i]
        score += mean[i] * value
        square += value * value
    return score, square


@register_jitable(forceinline=True)
def _is_hopeless(score: float, square: float, best: float, most: float) -> bool:
    """Whether no width that this action can have makes it as good as the best so far."""
    missing = best - _TIE - score
    return missing > 0.0 and missing * missing > most * square


@register_jitable(forceinline=True)
def most_promising_of_all(
    features: Any, mean: Any, shape: Any, width: float, axes: Any, explore: Chance
) -> int:
    """The same with nothing left out: quicker in few dimensions while confidence sets are wide.

    Its loop has no branches: mispredicted ones would dominate.
    """
    best, second, chosen = -math.inf, -math.inf, 0
    for action in range(features.shape[0]):
        score = _upper_bound(features, action, mean, shape, width, axes)
        second = max(second, min(score, best))
        chosen = action if score > best else chosen
        best = max(best, score)
    if second >= best - _TIE:
        ties = 0
        for action in range(features.shape[0]):
            if _upper_bound(features, action, mean, shape, width, axes) >= best - _TIE:
                ties += 1
                if explore.random() * ties < 1.0:
                    chosen = action
    return chosen


@register_jitable(forceinline=True)
def _upper_bound(features: Any, action: int, mean: Any, shape: Any, width: float, axes: Any) -> float:
    score = 0.0
    for i in range(length(axes)):
        score += mean[i] * features[action, i]
    return score + width * _norm(features, action, shape, axes)


@register_jitable(forceinline=True)
def _norm(features: Any, action: int, shape: Any, axes: Any) -> float:
    """√(xᵀAx)."""
    square = 0.0
    for i in range(length(axes)):
        value = 0.5 * shape[i, i] * features[action, i]
        for j in range(i):
            value += shape[i, j] * features[action, j]
        square += value * features[action, i]
    return math.sqrt(max(2.0 * square, 0.0))


@register_jitable(forceinline=True)
def most_rewarding(features: Any, mean: Any, explore: Chance) -> int:
    """The action of the largest m·x; one of them at random where several are equal."""
    best, chosen, ties = -math.inf, 0, 1
    for action in range(features.shape[0]):
        score = 0.0
        for i in range(mean.size):
            score += mean[i] * features[action, i]
        best, chosen, ties = better(score, action, best, chosen, ties, _TIE, explore)
    return chosen


@register_jitable(forceinline=True)
def any_action(features: Any, blocks: int, explore: Chance) -> int:
    """One of the actions offered, or of the arms, each as likely."""
    return int(explore.random() * (blocks if blocks > 1 else features.shape[0]))
