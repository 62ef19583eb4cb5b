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
_SPARED = 1.0  # evidence that the index does not ask for: what it would be for, the guard looks after
_WIDE, _LESS = 0.52, 2.0  # the wide lead, in log odds, and by how much less evidence is asked for there
_GAP = 0.05  # the narrow lead, in the mean
# Of the leads of the leader: the most that counts, in log odds; how many arms are thought of that are
# level with it, for whoever is far ahead of the only other may well be just behind a third; and the most
# that all of them together count as evidence.
_FAR, _LEVEL, _MOST = 3.0, 1, 7.0


class Rule(NamedTuple):
    """What the choice of an arm and of its batch depends on, beside what is released."""

    caution: float  # c
    early: int  # rounds, until which it is less
    usual: float  # mean lead from which on arms that may lead narrowly are rare
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
    """R_i(q) + ln n_i + 1, R_i(q) being what is released against this mean; ln n_i if nothing is."""
    known = public.estimates
    n = known.weight[arm] * alike(public, arm)
    x, noise = known.mean[arm], known.variance[arm]
    evidence = evidence_against(n, x, mean, noise, known.tail[arm], known.draws[arm])
    return evidence + (_SPARED if evidence > 0.0 else 0.0) + math.log(_plays(public, arm))


@register_jitable(forceinline=True)
def needed(public: Any, rounds: int) -> float:
    """L(t): with so much evidence against its being better an arm is left alone."""
    caution = public.rule.caution - (0.0 if rounds >= public.rule.early else _UNINSURED)
    return float(caution + math.log((rounds + _EARLY) / public.score.size))


@register_jitable(forceinline=True)
def _counted(public: Any, arm: int, best: float) -> float:
    """The mean of an arm, or one that is as far behind the leader as counts."""
    return float(min(max(public.estimates.mean[arm], _raised(best, -_FAR), 1e-6), 1.0 - 1e-6))


@register_jitable(forceinline=True)
def _lead(public: Any, arm: int, best: float) -> float:
    """By how much the leader is ahead of an arm, in log odds."""
    return _log_odds(best) - _log_odds(_counted(public, arm, best))


@register_jitable(forceinline=True)
def _doubt(public: Any, arm: int, best: float) -> float:
    """The variance of that lead: of rewards and noise that are released, to first order."""
    known, x = public.estimates, _counted(public, arm, best)
    information = known.weight[arm] * x * (1.0 - x)
    noise = known.variance[arm] + 2.0 * known.draws[arm] * known.tail[arm] * known.tail[arm]
    return float((information + noise) / (information * information))


@register_jitable(forceinline=True)
def _log_odds(mean: float) -> float:
    mean = min(max(mean, 1e-6), 1.0 - 1e-6)
    return math.log(mean / (1.0 - mean))


@register_jitable
def leads_of(public: Any, leader: int, best: float) -> tuple[float, float, int]:
    """The sum of the leads over all others that are known, its variance, and their number."""
    total, doubt, others = 0.0, 0.0, 0
    for arm in range(public.score.size):
        if arm != leader and is_known(public, arm):
            total += _lead(public, arm, best)
            doubt += _doubt(public, arm, best)
            others += 1
    return total, doubt, others


@register_jitable
def others_trail(public: Any, arm: int, best: float, leads: tuple[float, float, int]) -> float:
    """W_i: how strongly what is known of the others speaks against a mean lead that is usual."""
    if leads[2] < 2:
        return 0.0
    beyond = leads[0] - _lead(public, arm, best) - public.rule.usual * (leads[2] - 1 + _LEVEL)
    doubt = leads[1] - _doubt(public, arm, best)
    return float(min(_MOST, 0.5 * beyond * beyond / doubt)) if beyond > 0.0 and doubt > 0.0 else 0.0


@register_jitable(forceinline=True)
def _raised(best: float, margin: float) -> float:
    """The leader's mean, moved up in odds."""
    odds = best * math.exp(margin)
    return odds / (1.0 - best + odds)


@register_jitable
def against_better(
    known: tuple[float, float, float, float, float], plays: float, best: float, trail: float
) -> float:
    """How much speaks against an arm that is better by the wide lead, or by the narrow one: the least.

    `known` are its weight, mean, and noise, as for `evidence_against`.
    """
    n, x, variance, b, m = known
    wide = _raised(best, _WIDE)
    narrow = min(wide, best + _GAP)
    against_wide = evidence_against(n, x, wide, variance, b, m) + math.log(plays * _WIDE * _WIDE)
    return float(min(against_wide + _LESS, evidence_against(n, x, narrow, variance, b, m) + trail))


@register_jitable
def doubtful(public: Any, leader: int, best: float, leads: tuple[float, float, int], rounds: int) -> int:
    """The arm for which most evidence is missing that it is not better; the leader if none is."""
    known, chosen, least = public.estimates, leader, needed(public, rounds)
    for arm in range(public.score.size):
        if can_be_asked(public, arm) and _plays(public, arm) < _plays(public, leader):
            trail = others_trail(public, arm, best, leads)
            n, variance = known.weight[arm] * alike(public, arm), known.variance[arm]
            held = n, known.mean[arm], variance, known.tail[arm], known.draws[arm]
            against = against_better(held, _plays(public, arm), best, trail)
            if against < least:
                chosen, least = arm, against
    return chosen


@register_jitable
def planned_length(
    public: Any, arm: int, leader: int, best: float, trail: float, shortest: int, rounds: int
) -> int:
    """The shortest batch that would settle the arm, were its mean to stay as it is."""
    rule, known, plays = public.rule, public.estimates, public.turns.plays[arm]
    mean, length, level = known.mean[arm], shortest, needed(public, rounds)
    most = max(length, whole_length(rule.plan * plays))
    index = math.log(_plays(public, leader)) - _SPARED
    while length < most:
        n, variance, b, m = foreseen(known, public.batches, arm, plays, length)
        after = float(plays + length)
        behind = evidence_against(n, mean, best, variance, b, m) + math.log(after) >= index
        hopeless = against_better((n, mean, variance, b, m), after, best, trail) >= level
        if behind and hopeless:
            break
        length = min(most, whole_length(1.2 * length))
    return length
