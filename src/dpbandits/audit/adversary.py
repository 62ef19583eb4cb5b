r"""Telling two neighbouring streams apart by what is seen, and what that proves about privacy.

An adversary's *score* is a number for each run; an *event* is a score above (or below) a threshold.
If a run is (ε, δ)-DP, then P′[E] ≤ e^ε P[E] + δ for every event, and if it is μ-GDP,
Φ⁻¹(P′[E]) − Φ⁻¹(P[E]) ≤ μ. Clopper–Pearson bounds for both probabilities, each at half the error rate,
turn counts into a lower bound for ε or μ. Scores and the event are chosen on other runs than those the
bound is made of, so one pair of bounds is all that can go wrong.

Scores, of which the best on the choosing runs is taken:

- how often each action is chosen, weighed by how much more often that is under the one stream;
- the log odds of whole sequences of actions, the best there is where they are few;
- a logistic rule over the actions of every round;
- where numbers are seen: a logistic rule over their *innovations*, what each adds to those before it
  (regressed on them). For Gaussian noise the log likelihood ratio is linear in these; for Laplace noise
  it is linear in innovations clipped to lie between their two medians, so both are given to the rule;
- the same with a rule of its own for each choice that she may have been given;
- the numbers one by one, each weighed by how far it moves against its spread.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy  # whose parts, slow to import, are loaded at their first use
from numpy.typing import NDArray

from dpbandits.privacy.budgets import ApproxDP, Budget, GaussianDP, PureDP

Array = NDArray[np.float64]
Score = Callable[[Array], Array]
# Neighbours whose means differ by fewer standard errors tell nothing that a few thousand runs can use.
_NOTABLE = 4.0
_MOST_INNOVATIONS, _MOST_COLUMNS = 40, 400
_THRESHOLDS = 300
# Choices that have a rule of their own: how many, and met in how many runs of each stream.
_MOST_CHOICES, _ENOUGH = 12, 300


class Claim(NamedTuple):
    """What is tested: ε at some δ, or μ."""

    unit: str
    size: float
    delta: float = 0.0

    @classmethod
    def of(cls, budget: Budget) -> "Claim":
        """A pure, approximate or Gaussian budget itself; of others the ε that follows at δ = 10⁻³."""
        if isinstance(budget, GaussianDP):
            return cls("μ", budget.mu)
        if isinstance(budget, PureDP):
            return cls("ε", budget.epsilon)
        delta = budget.delta if isinstance(budget, ApproxDP) else 1e-3
        return cls("ε", budget.epsilon_at(delta), delta)

    def shown(self, other: Any, one: Any, runs: int, error: float) -> Array:
        """The size proved by an event that came up so often in `runs` runs of either stream."""
        low = _beta(error / 2.0, other, runs - np.asarray(other) + 1)
        high = _beta(1.0 - error / 2.0, np.asarray(one) + 1, runs - np.asarray(one))
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.unit == "μ":
                found = scipy.special.ndtri(low) - scipy.special.ndtri(high)
            else:
                found = np.log(np.maximum(low - self.delta, 0.0)) - np.log(high)
        return np.asarray(np.maximum(np.nan_to_num(found, nan=0.0, neginf=0.0), 0.0))


def _beta(level: float, a: Any, b: Any) -> Array:
    """A quantile of a beta law, 0 and 1 where a or b is 0."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    inside = scipy.special.betaincinv(np.maximum(a, 1e-9), np.maximum(b, 1e-9), level)
    return np.asarray(np.where(a == 0, 0.0, np.where(b == 0, 1.0, inside)))


@dataclass(frozen=True)
class Event:
    """One of several scores above a threshold, which points to the second stream; or not above it."""

    score: int
    threshold: float
    above: bool

    def shown(self, one: Array, other: Array, claim: Claim, error: float) -> float:
        """What it proves on runs that it was not chosen on; scores are (scores, runs)."""
        first, second = (
            int(np.count_nonzero((part[self.score] > self.threshold) == self.above))
            for part in (one, other)
        )
        if not self.above:
            first, second = second, first
        return float(claim.shown(second, first, one.shape[1], error))


def best_event(one: Array, other: Array, claim: Claim, error: float) -> tuple[float, Event]:
    """The event that would prove most on these runs, and how much."""
    found: list[tuple[float, int, Event]] = []
    for index, (a, b) in enumerate(zip(one, other, strict=True)):
        points = np.unique(np.concatenate([a, b]))
        if points.size > _THRESHOLDS:
            tails = np.geomspace(1e-5, 0.5, _THRESHOLDS // 2)
            points = np.unique(np.quantile(points, np.concatenate([tails, 1.0 - tails])))
        below_a = np.searchsorted(np.sort(a), points, side="right")
        below_b = np.searchsorted(np.sort(b), points, side="right")
        high = claim.shown(b.size - below_b, a.size - below_a, a.size, error)
        low = claim.shown(below_a, below_b, a.size, error)
        for values, above in ((high, True), (low, False)):
            best = int(np.argmax(values))
            found.append((float(values[best]), -index, Event(index, float(points[best]), above)))
    value, _, event = max(found, key=lambda entry: entry[:2])
    return value, event


def action_scores(one: Array, other: Array) -> list[Score]:
    """Those over choices alone, a column of 0 and 1 for each round and action."""
    weights = other.mean(axis=0) - one.mean(axis=0)
    return [lambda seen: seen @ weights, _sequences(one, other), _logistic_score(one, other)]


def number_scores(one: Array, other: Array, choices: int) -> list[Score]:
    """Those over choices and numbers, in the order in which they were seen.

    The first `choices` columns are the choice she was given, where that may be looked at: it says which
    numbers are hers.
    """
    whole = _rule(one, other)
    return [whole, _by_choice(one, other, choices, whole), _one_by_one(one, other)]


def _rule(one: Array, other: Array) -> Score:
    features = innovations(one, other)
    rule = logistic(features(one), features(other))
    return lambda seen: np.asarray(features(seen) @ rule)


def _by_choice(one: Array, other: Array, choices: int, whole: Score) -> Score:
    """A rule for each choice that is met often enough; otherwise the one for all."""
    found, counts = np.unique(one[:, :choices], axis=0, return_counts=True)
    rules: list[tuple[Array, Score]] = []
    for choice in found[np.argsort(-counts)][:_MOST_CHOICES]:
        parts = [part[(part[:, :choices] == choice).all(axis=1)] for part in (one, other)]
        size = min(map(len, parts))
        if size >= _ENOUGH:
            rules.append((choice, _rule(*(part[:size] for part in parts))))

    def score(seen: Array) -> Array:
        values = whole(seen)
        for choice, rule in rules:
            rows = (seen[:, :choices] == choice).all(axis=1)
            if rows.any():
                values[rows] = rule(seen[rows])
        return values

    return score


def _one_by_one(one: Array, other: Array) -> Score:
    """Every number by itself, as if they were independent: little to fit, so it suits few runs."""
    one, other = _tidy(one), _tidy(other)
    moved = other.mean(axis=0) - one.mean(axis=0)
    variance = 0.5 * (one.var(axis=0) + other.var(axis=0))
    noisy = variance > 1e-12
    weights = np.where(noisy, moved / np.where(noisy, variance, 1.0), 0.0)
    # What moved by less than chance would is left out.
    weights[np.abs(moved) * math.sqrt(len(one)) < 3.0 * np.sqrt(2.0 * variance)] = 0.0
    return lambda seen: np.asarray(_tidy(seen) @ weights)


def _logistic_score(one: Array, other: Array) -> Score:
    rule = logistic(one, other)
    return lambda seen: seen @ rule


def _sequences(one: Array, other: Array) -> Score:
    """The log odds of each whole sequence; 0 for one that was never met."""
    mix = np.random.default_rng(0).random(one.shape[1])  # tells sequences apart but for chance 2⁻⁵⁰
    found, place = np.unique(np.concatenate([one, other]) @ mix, return_inverse=True)
    counts = [np.bincount(part, minlength=found.size) for part in (place[: len(one)], place[len(one) :])]
    odds = np.log((counts[1] + 0.5) / (counts[0] + 0.5))

    def score(seen: Array) -> Array:
        keys = seen @ mix
        at = np.minimum(np.searchsorted(found, keys - 1e-12), found.size - 1)
        return np.where(np.abs(found[at] - keys) < 1e-9, odds[at], 0.0)

    return score


def logistic(one: Array, other: Array, *, steps: int = 12, ridge: float = 1e-3) -> Array:
    """Weights of a logistic rule by Newton steps; a ridge keeps them finite where nothing overlaps."""
    seen = np.concatenate([one, other])
    spread = seen.std(axis=0)
    usable = spread > 1e-12
    weights = np.zeros(seen.shape[1])
    if not usable.any():
        return weights
    scaled = (seen[:, usable] - seen[:, usable].mean(axis=0)) / spread[usable]
    inputs = np.column_stack([scaled, np.ones(len(seen))])
    labels = np.repeat([0.0, 1.0], [len(one), len(other)])
    rule = np.zeros(inputs.shape[1])
    for _ in range(steps):
        chance = scipy.special.expit(inputs @ rule)
        slope = inputs.T @ (labels - chance) - ridge * len(seen) * rule
        curve = (inputs * (chance * (1.0 - chance))[:, None]).T @ inputs
        curve += ridge * len(seen) * np.eye(rule.size)
        rule += np.linalg.solve(curve, slope)
    weights[usable] = rule[:-1] / spread[usable]
    return weights


def innovations(one: Array, other: Array) -> Callable[[Array], Array]:
    """A function that maps what is seen to the innovations that differ between the streams."""
    seen = _tidy(np.concatenate([one, other]))
    centre, spread = seen.mean(axis=0), seen.std(axis=0)
    varied = np.flatnonzero(spread > 1e-9 * (1.0 + np.abs(centre)))
    alike = np.round((seen[:200, varied] - centre[varied]) / spread[varied], 9)
    varied = varied[np.sort(np.unique(alike, axis=1, return_index=True)[1])][:_MOST_COLUMNS]
    if varied.size == 0:
        return lambda new: np.zeros((len(new), 1))
    # Regressed within each stream: what differs between the two is what is looked for.
    halves = [_tidy(part[:, varied]) / spread[varied] for part in (one, other)]
    inner = np.stack([half - half.mean(axis=0) for half in halves], axis=1).reshape(-1, varied.size)
    # With a ridge: a number that follows from earlier ones adds nothing, unless how it follows depends
    # on the stream.
    moments = inner.T @ inner / len(inner) + 1e-6 * np.eye(varied.size)
    whiten = np.linalg.inv(np.linalg.cholesky(moments)).T / spread[varied, None]

    def whole(new: Array) -> Array:
        return np.asarray((_tidy(new[:, varied]) - centre[varied]) @ whiten)

    a, b = whole(one), whole(other)
    notable = np.abs(b.mean(axis=0) - a.mean(axis=0)) * math.sqrt(len(a) / 2.0)
    best = np.argsort(-notable)[:_MOST_INNOVATIONS]
    best = best[notable[best] > _NOTABLE] if (notable > _NOTABLE).any() else best[:1]
    medians = np.sort([np.median(a[:, best], axis=0), np.median(b[:, best], axis=0)], axis=0)

    def features(new: Array) -> Array:
        found = whole(new)[:, best]
        return np.concatenate([found, np.clip(found, *medians)], axis=1)

    return features


def _tidy(seen: Array) -> Array:
    """Numbers that can be reckoned with: a score of −∞ is a low one."""
    return np.clip(np.nan_to_num(seen, nan=0.0), -1e6, 1e6)
