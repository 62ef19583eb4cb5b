r"""The guard of `NoiseAwareIMED`: which arm could be better than the leader, and how long to ask it.

Everything here is a function of released estimates and of counts of decisions. A state has `turns`,
`batches`, `estimates`, `score` (one entry an arm) and a `Rule`.
"""

import math
from typing import Any, NamedTuple

from numba.extending import register_jitable

from dpbandits.policies.arms.shared.episodes import alike, is_awaited, is_known
from dpbandits.policies.arms.shared.estimates import foreseen
from dpbandits.policies.arms.shared.evidence import evidence_against
from dpbandits.policies.arms.shared.schedules import whole_length

_EARLY = 1e5  # rounds: until about then the guard is as strict as it is at that time
_UNINSURED = 6.5  # what c is less by until `early`
# Of a margin: the least; of the mean lead, what is not counted, and how fast margins grow with the rest;
# of one lead, the most that counts; and how many arms are thought of that are level with the leader:
# whoever is far ahead of the only other may well be just behind a third.
_LEAST, _USUAL, _SLOPE, _FAR, _LEVEL = 0.15, 0.55, 2.5, 2.0, 1


class Rule(NamedTuple):
    """What the choice of an arm and of its batch depends on, beside what is released."""

    caution: float  # c
    early: int  # rounds, until which it is less
    margin: float  # the largest m_i
    shortest: int  # batch of a challenger
    plan: float  # its longest, as a multiple of its released plays
    first_signal: float  # rewards that a first batch should hold, in units of the noise
    signal: float  # that a later batch of an arm like the leader should hold


@register_jitable(forceinline=True)
def _plays(public: Any, arm: int) -> float:
    """n_i."""
    return float(public.turns.plays[arm] * alike(public, arm))


@register_jitable(forceinline=True)
def can_be_asked(public: Any, arm: int) -> bool:
    """Whether more decisions for an arm than are in flight may be needed: its answer is not awaited."""
    return bool(is_known(public, arm) and not is_awaited(public, arm))


@register_jitable
def index_of(public: Any, arm: int, mean: float) -> float:
    """R_i(q) + ln n_i, R_i(q) being how strongly what is released speaks against this mean."""
    known = public.estimates
    n = known.weight[arm] * alike(public, arm)
    x, noise = known.mean[arm], known.variance[arm]
    evidence = evidence_against(n, x, mean, noise, known.tail[arm], known.draws[arm])
    return evidence + math.log(_plays(public, arm))


@register_jitable(forceinline=True)
def _needed(public: Any, plays: float, margin: float, rounds: int) -> float:
    """L(t) − ln(n_i m_i²): with so much evidence against its being better by the margin it is left."""
    caution = public.rule.caution - (0.0 if rounds >= public.rule.early else _UNINSURED)
    level = caution + math.log((rounds + _EARLY) / public.score.size)
    return float(level - math.log(plays * margin * margin))


@register_jitable(forceinline=True)
def _lead(public: Any, arm: int, best: float) -> float:
    """By how much the leader is ahead of an arm, in log odds."""
    return min(_FAR, _log_odds(best) - _log_odds(public.estimates.mean[arm]))


@register_jitable(forceinline=True)
def _log_odds(mean: float) -> float:
    mean = min(max(mean, 1e-6), 1.0 - 1e-6)
    return math.log(mean / (1.0 - mean))


@register_jitable
def leads_of(public: Any, leader: int, best: float) -> tuple[float, int]:
    """The sum of the leads over all others that are known, and their number."""
    total, others = 0.0, 0
    for arm in range(public.score.size):
        if arm != leader and is_known(public, arm):
            total += _lead(public, arm, best)
            others += 1
    return total, others


@register_jitable
def margin_of(public: Any, arm: int, best: float, leads: tuple[float, int]) -> float:
    """m_i, by which an arm must be better than the leader, in log odds, to be looked for."""
    margin = _LEAST
    if leads[1] > 1:
        mean = (leads[0] - _lead(public, arm, best)) / (leads[1] - 1 + _LEVEL)
        margin = max(margin, _SLOPE * (mean - _USUAL))
    return float(min(public.rule.margin, margin))


@register_jitable(forceinline=True)
def _raised(best: float, margin: float) -> float:
    """q_i⁺: the leader's mean, moved up in odds."""
    odds = best * math.exp(margin)
    return odds / (1.0 - best + odds)


@register_jitable
def doubtful(public: Any, leader: int, best: float, leads: tuple[float, int], rounds: int) -> int:
    """The arm that could best be better than the leader by its margin; the leader if none could."""
    known, chosen, least = public.estimates, leader, 0.0
    for arm in range(public.score.size):
        if can_be_asked(public, arm) and _plays(public, arm) < _plays(public, leader):
            margin = margin_of(public, arm, best, leads)
            n, variance = known.weight[arm] * alike(public, arm), known.variance[arm]
            against = evidence_against(
                n, known.mean[arm], _raised(best, margin), variance, known.tail[arm], known.draws[arm]
            )
            missing = against - _needed(public, _plays(public, arm), margin, rounds)
            if missing < least:
                chosen, least = arm, missing
    return chosen


@register_jitable
def planned_length(
    public: Any, arm: int, leader: int, best: float, margin: float, shortest: int, rounds: int
) -> int:
    """The shortest batch that would settle the arm, were its mean to stay as it is."""
    rule, known, plays = public.rule, public.estimates, public.turns.plays[arm]
    mean, length, hoped = known.mean[arm], shortest, _raised(best, margin)
    most = max(length, whole_length(rule.plan * plays))
    index = math.log(_plays(public, leader))
    while length < most:
        n, variance, b, m = foreseen(known, public.batches, arm, plays, length)
        after = float(plays + length)
        behind = evidence_against(n, mean, best, variance, b, m) + math.log(after) >= index
        hopeless = evidence_against(n, mean, hoped, variance, b, m) >= _needed(
            public, after, margin, rounds
        )
        if behind and hopeless:
            break
        length = min(most, whole_length(1.2 * length))
    return length
