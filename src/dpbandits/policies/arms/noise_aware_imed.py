r"""IMED with the privacy noise inside its index, and a guard: the rule to beat at equal privacy."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.policies.arms.shared.batched_estimates import BatchedEstimates, release_estimate
from dpbandits.policies.arms.shared.choosing import largest
from dpbandits.policies.arms.shared.episodes import (
    NEXT,
    Episode,
    InTurn,
    Turns,
    any_full,
    arm_in_turn,
    begin_episode,
    decisions,
    is_known,
    is_untouched,
    open_batch,
    plan_again,
    start_episode,
    start_turns,
    untried,
)
from dpbandits.policies.arms.shared.estimates import Estimates, start_estimates
from dpbandits.policies.arms.shared.guard import (
    Rule,
    can_be_asked,
    doubtful,
    index_of,
    leads_of,
    others_trail,
    planned_length,
)
from dpbandits.policies.arms.shared.schedules import next_length, whole_length
from dpbandits.privacy.budgets import NonPrivate, PureDP
from dpbandits.problems.arms import Arms
from dpbandits.sums.batches import Batches, Buffers, start_batches

Array = NDArray[np.float64]
_TRIES, _FEW = 12, 10  # first batches of every arm beyond these few, before which c is smaller


class _Fields(NamedTuple):
    turns: Turns
    waiting: NDArray[np.int64]  # decisions in flight
    away: NDArray[np.bool_]  # arms not to be chosen
    episode: Episode
    batches: Batches
    estimates: Estimates
    score: Array  # minus the index
    first_batch: int
    growth: float
    rule: Rule


class Public(InTurn, _Fields):
    """Released sums, and for each arm what they say about its mean."""

    def release(self, secret: Buffers, noise: Noise) -> None:
        """Release every batch that is full, and restate what is known of its arm."""
        if any_full(self):
            _close(self, secret, noise)

    def select(self, context: None, explore: Chance) -> int:
        """Go on with the episode; otherwise choose an arm, and the length of its batch."""
        arm = int(self.episode[NEXT])
        return arm if arm >= 0 else _turn(self, explore)


@register_jitable
def _close(public: Public, secret: Buffers, noise: Noise) -> None:
    while any_full(public):
        release_estimate(public, secret, noise)


@register_jitable
def _turn(public: Public, explore: Chance) -> int:
    arm = -1
    if public.turns.unknown[0] > 0:
        arm = untried(public, explore)
        if arm < 0:
            arm = _better_unknown(public)
        elif is_untouched(public, arm):
            open_batch(public.turns, arm, _first_length(public))
    if arm < 0:
        arm = arm_in_turn(public)
    return arm if arm >= 0 else _choose(public, explore)


@register_jitable
def _better_unknown(public: Public) -> int:
    """While one arm alone is known, and to be below ½, another with the fewest decisions; otherwise −1.

    Only with rounds in flight: first batches are decided, and come back one by one. The best of two or
    more is likely to be better than those of which nothing is known, a single one is not.
    """
    known, least = -1, -1
    for arm in range(public.away.size):
        if is_known(public, arm):
            if known >= 0 or public.estimates.mean[arm] >= 0.5:
                return -1
            known = arm
        elif not public.away[arm] and (least < 0 or decisions(public, arm) < decisions(public, least)):
            least = arm
    return least if known >= 0 else -1


@register_jitable
def _first_length(public: Public) -> int:
    """`first_batch`, or more where the arms tried so far pay so little that noise would hide it."""
    turns, batches, total, plays, variance = public.turns, public.batches, 0.0, 0, 0.0
    for arm in range(turns.plays.size):
        total += batches.total[arm, 0] + 0.5 * turns.plays[arm]
        plays += turns.plays[arm]
        variance += batches.variance[arm]
    if plays == 0:
        return public.first_batch
    rate = (max(0.0, total) + 2.0 * math.sqrt(variance) + 1.0) / plays
    return max(public.first_batch, whole_length(public.rule.first_signal * batches.scale / rate))


@register_jitable
def _choose(public: Public, explore: Chance) -> int:
    means, rounds = public.estimates.mean, 0
    for arm in range(means.size):
        rounds += decisions(public, arm)
        public.score[arm] = means[arm] if is_known(public, arm) else -math.inf
    leader = largest(public.score, explore)
    best = min(1.0, max(0.0, means[leader]))
    for arm in range(means.size):
        asked = arm == leader or can_be_asked(public, arm)
        public.score[arm] = -index_of(public, arm, best) if asked else -math.inf
    chosen = largest(public.score, explore)
    leads = leads_of(public, leader, best)
    if chosen == leader:
        chosen = doubtful(public, leader, best, leads, rounds)
    # Where all means are small, noise would hide a short batch. Not too long: the best may be all noise.
    heard = public.rule.signal * public.batches.scale / max(min(best, 0.5), 1e-4)
    # By released plays: many may be in flight, and a batch as long as they are would keep back what is
    # known of them.
    shortest = whole_length(min(heard, 2.0 * public.turns.plays[chosen]))
    if chosen == leader:
        length = next_length(public.first_batch, public.growth, public.turns.plays[leader])
        length = max(length, shortest)
    else:
        trail, shortest = others_trail(public, chosen, best, leads), max(public.rule.shortest, shortest)
        length = planned_length(public, chosen, leader, best, trail, shortest, rounds)
    plan_again(public.turns, chosen, length)
    return begin_episode(public, chosen, length)


@dataclass(frozen=True, kw_only=True)
class NoiseAwareIMED(BatchedEstimates):
    r"""Play the arm that the least evidence speaks against, counting the privacy noise as evidence lost.

    **Definition.** Arms are played in batches, whose noisy sums are released; first one of `first_batch`
    for each arm, in random order. With x_i the estimated means, n_i the decisions, and
    R_i(q) = −ln(2·P[released mean ≤ x_i | true mean q]) with all noise in it (`shared/evidence.py`), the
    leader has the largest mean q = max(0, min(1, max x_j)), and the next batch goes to

    1. *the index:* argmin_i R_i(q) + ln n_i + 1, without the 1 where R_i(q) = 0, as for the leader: what
       that much evidence more would insure against the guard looks after;
    2. *the guard:* if that is the leader, to the arm with fewer plays for which least speaks against its
       being better, if that is less than L(t) = c + ln((t + 10⁵)/K). Two such cases are thought of. It
       may lead *wide*, by m = 0.52 in log odds: R_i(q^w) + 2 + ln(n_i m²), logit q^w = logit q + m,
       speaks against it. Or it may lead *narrowly*, by 0.05: R_i(q^n) + W_i speaks against it, with
       q^n = min(q + 0.05, q^w). W_i is what speaks against the others being close to the leader: who is
       far ahead of most is rarely just behind one. With λ_i the mean lead of the leader over the known
       arms but i and one more that is level with it, in log odds of at most 3 each, v_i the variance of
       those arms' part in it and u = `usual_lead`, W_i = (λ_i − u)²/(2 v_i), at most 7, where λ_i > u,
       otherwise 0 (as with two arms).

    The leader's batches are max(first_batch, ⌈growth·n⌉) long. Another arm's is the shortest, from
    ⌈first_batch/5⌉ on by steps of a fifth and at most plan·n_i, after which neither rule would choose it
    again were its mean to stay x_i. Under ε-DP batches have independent Laplace noise and x_i is
    precision-weighted, and where rewards are rare batches are longer: a first one of 1.5/(ε r), r being
    the pooled mean so far plus two deviations of its noise, a later one of 4/(ε q), at most 2 n_i. Under
    Gaussian budgets they are block-factorized. With rounds in flight lengths go by released plays, an
    open batch is planned again whenever its arm is chosen, and an arm that does not lead is not asked
    again while its answer is on the way: otherwise a delay of W would be spent on arms whose answer
    would have settled them.

    **Guarantee.** Neighbours replace one reward. It is in one batch, of sensitivity 1; arms, lengths and
    batch ends are functions of released sums and counts of decisions. So all decisions together cost one
    release, for any number of rounds: ε-DP with Laplace(1/ε), μ-GDP with block-factorized noise
    (`sums/batches.py`).

    **Being lost.** Let arm 1 have a true mean of at least q^w at time t, q being what is released of
    the arm that leads. The guard plays arm 1 unless R_1(q^w) + 2 + ln(n_1 m²) ≥ L(t); R only grows with
    q. At a release after n_1 plays that has probability e² K n_1 m² e^−c/(2(t + 10⁵)) at most, up to
    the saddlepoint's error, for R > 0 is the log of a tail. While arm 1 is not played nothing is
    released of it. So it is ignored at t with at most the sum of that over its releases: the loss
    expected of it grows like ln T, not like T. If its mean is at least q^n only, and the other arms'
    true mean lead is at most u, the guard asks for evidence against both: with W_1 half the square of a
    standard normal number where that is positive, and independent of R_1, R_1 + W_1 ≥ L has probability
    (¼ + √(L/4π) + 1/√(4πL)) e^−L at most, and e^−L is K e^−c/(t + 10⁵). *What is missing for a
    theorem:* lengths depend on what was released, so that n_1 plays do not follow a fixed law; λ_1 is
    not normal: with one other arm, known by one batch with Laplace noise, W_1 ≥ 6.9 has probability of
    about 10⁻³ instead of 10⁻⁴; and an arm that leads narrowly while most others are far behind may be
    lost, in up to three runs of 10⁴ in `arms-tails`. That is the price of the mean
    (`dpbandits.limits.regret_without_disasters`). Where a lost best arm costs more than the mean, use
    `usual_lead=3`: an arm that leads narrowly is then looked for whatever the others are. (While c is
    smaller, with more than ten arms, the bound is weaker by as much.)

    **Regret.** Measured in the leaderboard, with very many runs in `arms-tails`; no bound is claimed.
    Defaults: first_batch = max(12, 26/ε) and plan = ε^−0.6 between ¼ and 3 under ε-DP, max(4, 20/μ) and
    0.1 under Gaussian budgets, 1 where each batch has noise of its own, as with people who return;
    growth 1, u = 0.4, blocks of 24; c = 6 + 0.4 ln max(1, 1/ε) under ε-DP, 6.2 + 0.2 ln max(1, 5/μ)
    under μ-GDP. With more than ten arms c is smaller by 6.5 for the time of twelve first batches of each
    arm beyond ten: insurance is paid for every arm and insures one, so that a short run would pay it
    until it ends.

    >>> policy = NoiseAwareIMED(privacy=PureDP(1.0))
    >>> print(policy.guarantee(Arms(5)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "dpbandits, after Honda & Takemura 2015"

    caution: Annotated[
        float | None,
        "Evidence asked for before an arm is left alone: with more of it fewer runs are bad. By default "
        "what suits the budget.",
    ] = None
    usual_lead: Annotated[
        float,
        "Where the leader's mean lead is larger, in log odds, less evidence is asked for against an arm "
        "that could be better by little. From 3 on it never is, and such an arm is hardly ever lost.",
    ] = 0.4
    block: Annotated[
        int, "Releases whose noise is drawn together: more of them means less noise each."
    ] = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.caution is not None:
            checks.width(caution=self.caution)
        checks.scale(usual_lead=self.usual_lead)

    def schedule(self) -> tuple[int, float]:
        """First batch and growth as used: those given, the defaults otherwise."""
        if isinstance(self.privacy, PureDP):
            first_batch = math.ceil(max(12.0, 26.0 / self.privacy.epsilon))
        elif isinstance(self.privacy, NonPrivate):
            first_batch = 4
        else:
            first_batch = math.ceil(max(4.0, 20.0 / self.privacy.to_gaussian().mu))
        return (
            first_batch if self.first_batch is None else self.first_batch,
            1.0 if self.growth is None else self.growth,
        )

    def _caution(self) -> float:
        """C: as much of it as our goals for the mean on five arms leave room for."""
        if self.caution is not None:
            return self.caution
        if isinstance(self.privacy, PureDP):
            return 6.0 + 0.4 * math.log(max(1.0, 1.0 / self.privacy.epsilon))
        if isinstance(self.privacy, NonPrivate):
            return 6.2
        return 6.2 + 0.2 * math.log(max(1.0, 5.0 / self.privacy.to_gaussian().mu))

    def _rule(self, problem: Arms) -> Rule:
        first_batch, _ = self.schedule()
        early = _TRIES * first_batch * max(0, problem.slots - _FEW)
        shortest = math.ceil(0.2 * first_batch)
        rule = Rule(self._caution(), early, self.usual_lead, shortest, 0.1, 0.0, 0.0)
        if not isinstance(self.privacy, PureDP):
            # Every batch with noise of its own costs as much as the last: fewer and longer ones.
            apart = self.block == 1 and not isinstance(self.privacy, NonPrivate)
            return rule._replace(plan=1.0) if apart else rule
        plan = min(3.0, max(0.25, self.privacy.epsilon**-0.6))
        return rule._replace(plan=plan, first_signal=1.5, signal=4.0)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Nothing played yet."""
        arms = problem.slots
        batches, buffers = start_batches(arms, 1, 1.0, self.privacy, block=self.block)
        first_batch, growth = self.schedule()
        public = Public(
            **start_turns(problem, first_batch),
            episode=start_episode(),
            batches=batches,
            estimates=start_estimates(arms),
            score=np.zeros(arms),
            first_batch=first_batch,
            growth=growth,
            rule=self._rule(problem),
        )
        return public, buffers
