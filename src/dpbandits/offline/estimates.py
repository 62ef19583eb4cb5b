r"""Off-policy estimates: what decisions on logged contexts would have earned, without having been made.

Row i of a log has a context x_i, an action a_i that was chosen with the known chance p_i > 0, and its
reward r_i. Other decisions on the same contexts are π(a | x_i). With the weights w_i = π(a_i | x_i)/p_i,

- IPS is the mean of w_i r_i (Horvitz and Thompson, 1952): unbiased;
- SNIPS is Σ w_i r_i / Σ w_i (Swaminathan and Joachims, 2015): a bias of order 1/n, less variance;
- DR is the mean of Σ_a π(a | x_i) q(x_i, a) + w_i (r_i − q(x_i, a_i)) (Dudík, Langford and Li,
  2011), q being a model of rewards: unbiased whatever q is, if it was fitted on other rows; the better
  the model, the less variance.

Unbiased on three conditions: the p_i are those the log was made with; π(a | x) > 0 only where the log
could have chosen a; and π was fixed without looking at these rows. So decisions of a learner that
learned from the same rows are not for these estimates: that is what `replay` is for.

**Intervals** are normal (`intervals.py`) on the terms of the mean; for SNIPS on w_i (r_i − V)/w̄, its
influence. They take rows to be independent: where people return, those of one person are not, and the
intervals are too short. So they are where few rewards differ from the commonest, which an estimate then
says (`telling`). For IPS there is a Bernstein interval, which holds for every n if the least p that the
log could have had is *declared*: the least that it did have would be too large just where a rare action
that pays was never drawn.

**Effective rows** are (Σ w_i)²/Σ w_i², how many rows of weight 1 would tell as much. Below
`LEAST_EFFECTIVE` an estimate is refused. Weights have mean 1 if the conditions hold; if theirs is not
within ½ and 2, or is off by more than a tenth and five standard errors, the log lacks actions that π
takes, or the p_i are wrong, and it is refused too.

These are made of raw rewards: for those who may see the log, not private releases.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.offline.intervals import bernstein_interval, if_short, normal_interval
from dpbandits.offline.rows import Rows

Array = NDArray[np.float64]
LEAST_EFFECTIVE = 50.0
_OFF, _ERRORS = 0.1, 5.0  # how far from 1 the mean weight may be, by itself and in standard errors


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The mean reward of decisions that were not made, with its interval. Not a private release."""

    method: str
    value: float
    low: float
    high: float
    confidence: float
    interval: str
    rows: int
    effective: float  # rows of weight 1 that would tell as much
    telling: float  # of the effective rows, those whose reward is not the commonest
    mean_weight: float  # 1, but for chance, where the propensities are right

    def __str__(self) -> str:
        caveat = if_short(self.telling) if self.interval == "normal" else ""
        return (
            f"{self.method} {self.value:.4g}, {100 * self.confidence:g} % {self.interval} interval "
            f"{self.low:.4g} to {self.high:.4g}{caveat}; {self.rows:,} rows, effective sample size "
            f"{self.effective:,.0f} (raw data, not private)"
        )


def ips(
    rows: Rows,
    decisions: Any,
    *,
    confidence: float = 0.95,
    interval: str = "normal",
    least_propensity: float | None = None,
) -> Estimate:
    """Inverse propensity scores; `interval` is "normal" or "bernstein". See the head of this file.

    `decisions` are (n, K) probabilities of each action in each row, or n numbers of actions. Bernstein's
    interval needs `least_propensity`, the least chance with which the log chose any action for anybody,
    by how it was made and not by what it shows.
    """
    checks.one_of(("normal", "bernstein"), interval=interval)
    _, weights = _weighed(rows, decisions)
    terms = weights * rows.rewards
    ends = normal_interval(terms, confidence)
    if interval == "bernstein":
        most = 1.0 / _least(rows, least_propensity)  # no weight is larger
        span = max(rows.reward_range[1], 0.0) - min(rows.reward_range[0], 0.0)
        ends = bernstein_interval(terms, confidence, most * span)
    return _estimate("IPS", float(terms.mean()), ends, confidence, interval, rows, weights)


def snips(rows: Rows, decisions: Any, *, confidence: float = 0.95) -> Estimate:
    """Self-normalised inverse propensity scores; see the head of this file."""
    _, weights = _weighed(rows, decisions)
    value = float((weights * rows.rewards).sum() / weights.sum())
    influence = weights * (rows.rewards - value) / weights.mean()
    ends = normal_interval(value + influence, confidence)
    return _estimate("SNIPS", value, ends, confidence, "normal", rows, weights)


def doubly_robust(
    rows: Rows, decisions: Any, *, model: Any = None, confidence: float = 0.95
) -> Estimate:
    """Doubly robust, with `model`'s rewards of each row and action, (n, K); by default `ridge_model`'s.

    A model of your own must not have been fitted on the rows that it is used for.
    """
    chosen, weights = _weighed(rows, decisions)
    if model is None:
        expected = ridge_model(rows)
    else:
        expected = checks.array("model as an (n, K) array of rewards", model)
        if expected.shape != chosen.shape or not np.isfinite(expected).all():
            raise InvalidInput(
                f"expected model to have finite rewards of shape {chosen.shape}, got {expected.shape}"
            )
    each = np.arange(len(rows))
    terms = (chosen * expected).sum(axis=1)
    terms += weights * (rows.rewards - expected[each, rows.actions])
    ends = normal_interval(terms, confidence)
    return _estimate("DR", float(terms.mean()), ends, confidence, "normal", rows, weights)


def ridge_model(rows: Rows, *, penalty: float = 1.0, folds: int = 5) -> Array:
    r"""The reward of each row and action, (n, K), as the *other* rows tell: row i is of fold i mod F.

    For each action a ridge regression of r − r̄ on its context and 1, (XᵀX + λI)⁻¹ Xᵀ(r − r̄), r̄ being the
    mean of all rewards in the other folds; without contexts that is a mean, drawn towards r̄.
    """
    checks.scale(penalty=penalty)
    checks.integer(least=2, limit=len(rows), folds=folds)
    size, count = len(rows), len(rows.labels)
    known = np.zeros((size, 0)) if rows.contexts is None else rows.contexts
    if known.ndim == 1:  # numbers of contexts from a grid
        known = np.eye(int(known.max()) + 1)[known]
    inputs = np.concatenate([np.ones((size, 1)), known], axis=1)
    checks.room("the model of rewards", size * max(count, inputs.shape[1]))
    fold, expected = np.arange(size) % folds, np.empty((size, count))
    for held in range(folds):
        others = fold != held
        mean = rows.rewards[others].mean()
        for action in range(count):
            mine = others & (rows.actions == action)
            x, y = inputs[mine], rows.rewards[mine] - mean
            weights = np.linalg.solve(x.T @ x + penalty * np.eye(inputs.shape[1]), x.T @ y)
            expected[~others, action] = mean + inputs[~others] @ weights
    return expected


def _weighed(rows: Rows, decisions: Any) -> tuple[Array, Array]:
    """The decisions as probabilities, and the weight of each row; refused where too little is known."""
    if not isinstance(rows, Rows):
        raise InvalidInput(f"expected rows as offline.read(…) gives them, got {checks.kind_of(rows)}")
    if rows.propensities is None:
        raise InvalidInput(
            "off-policy estimates need the chance with which each logged action was chosen: "
            "read(…, propensity=…)"
        )
    chosen = _probabilities(rows, decisions)
    weights = chosen[np.arange(len(rows)), rows.actions] / rows.propensities
    effective = effective_rows(weights)
    if effective < LEAST_EFFECTIVE:
        raise InvalidInput(
            f"the log overlaps too little with these decisions: {len(rows):,} rows have an effective "
            f"sample size of {effective:.1f}, and an estimate needs {LEAST_EFFECTIVE:g}"
        )
    mean = float(weights.mean())
    off, error = abs(mean - 1.0), float(weights.std()) / math.sqrt(weights.size)
    if not 0.5 <= mean <= 2.0 or off > max(_OFF, _ERRORS * error):
        raise InvalidInput(
            f"weights of mean {mean:.2g} where it should be 1: the log lacks actions that were decided "
            "for, or its propensities are wrong"
        )
    return chosen, weights


def _least(rows: Rows, declared: float | None) -> float:
    """The least propensity there can be, as declared."""
    if declared is None:
        raise InvalidInput(
            "a Bernstein interval needs the least chance with which the log could choose an action, by "
            "how it was made: least_propensity=0.01"
        )
    least = checks.number("least_propensity", declared)
    assert rows.propensities is not None
    found = float(rows.propensities.min())
    if not 0.0 < least <= 1.0 or found < least * (1.0 - 1e-9):
        raise InvalidInput(
            f"expected least_propensity above 0 and at most {found:.4g}, which the log has, got "
            f"{least:g}"
        )
    return least


def effective_rows(weights: Array) -> float:
    """(Σ w)²/Σ w²; 0 where all are 0."""
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0.0 else 0.0


def telling_rows(rewards: Array, weights: Array) -> float:
    """Effective rows of those whose reward is not the commonest: an interval is made of them."""
    kinds, places = np.unique(rewards[weights > 0.0], return_inverse=True)
    if kinds.size < 2:
        return 0.0
    commonest = np.bincount(places, weights[weights > 0.0]).argmax()
    return effective_rows(weights[weights > 0.0][places != commonest])


def _probabilities(rows: Rows, decisions: Any) -> Array:
    size, count = len(rows), len(rows.labels)
    what = (
        f"decisions as {size:,} numbers of actions, their places in rows.labels, or as probabilities in "
        f"{size:,} rows of {count}"
    )
    given = checks.array(what, decisions)
    if given.shape == (size,):
        if not ((given >= 0) & (given < count) & (given == np.floor(given))).all():
            raise InvalidInput(f"expected decisions to be places in rows.labels, 0 to {count - 1}")
        return np.eye(count)[given.astype(np.int64)]
    if given.shape != (size, count):
        raise InvalidInput(f"expected {what}; got shape {given.shape}")
    if not ((given >= 0.0).all() and np.allclose(given.sum(axis=1), 1.0, rtol=0.0, atol=1e-6)):
        raise InvalidInput("expected the probabilities of each row to be at least 0 and to add up to 1")
    return given


def _estimate(
    method: str,
    value: float,
    ends: tuple[float, float],
    confidence: float,
    interval: str,
    rows: Rows,
    weights: Array,
) -> Estimate:
    return Estimate(
        method=method,
        value=value,
        low=ends[0],
        high=ends[1],
        confidence=confidence,
        interval=interval,
        rows=weights.size,
        effective=effective_rows(weights),
        telling=telling_rows(rows.rewards, weights),
        mean_weight=float(weights.mean()),
    )
