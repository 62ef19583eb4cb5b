r"""Explore only what you feed: the rule to beat at equal privacy on matroids."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise, bare
from dpbandits.engine.state import ANYTHING, COUNT, MOST, NOT_NEGATIVE, Limits, exactly
from dpbandits.policies.arms.shared.estimates import (
    Estimates,
    estimate_public,
    of_estimates,
    start_estimates,
    update_estimate,
)
from dpbandits.policies.arms.shared.schedules import next_length
from dpbandits.policies.arms.shared.splitting import split_budget
from dpbandits.policies.matroid.shared.matroid_policy import TIE, MatroidPolicy
from dpbandits.policies.matroid.shared.pending import feed
from dpbandits.policies.matroid.shared.protection import matroid_guarantee
from dpbandits.policies.released import Reading
from dpbandits.policies.returning import OncePerBlock
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import GAUSSIAN_FIRST, NonPrivate, PureDP
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.matroids import MatroidBases
from dpbandits.problems.matroids.bases import Items, Rewards
from dpbandits.problems.matroids.greedy import Greedy, rebuild, shuffle, start_greedy
from dpbandits.sums.batches import Batches, Buffers, add_public, release_batch, start_batches

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
_FEWEST_FIRST = 1e-6  # a mean's worth of a decision: enough to break ties
_EARLY = 1e5  # rounds: until about then the guard is as strict as it is at that time


class Public(NamedTuple):
    """Released sums, what they say about each item, and the basis in play."""

    round: Integers  # (1,) rounds closed so far
    flying: Integers  # (1,) rounds in flight
    until: Integers  # (1,) decisions after which the basis is chosen again
    full: Integers  # (1,) how many batches are
    hopeful: Greedy  # by the index u
    played: Greedy  # the fed items first, then by the released mean; its basis is the action
    plays: Integers  # n_e, decisions in released batches
    open: Integers  # decisions in the open batch
    waiting: Integers  # those in flight that will feed it
    length: Integers  # from how many decisions on the open batch is full
    batches: Batches
    estimates: Estimates
    doubt: Array  # d_e = 1/(4 n_eff) + noise variance, +∞ before the first release
    tail: Array  # b_e, scale of the Laplace noise in the mean
    score: Array
    fed: int  # m
    first_batch: int
    growth: float
    caution: float
    margin: float

    def limits(self) -> Limits:
        """It counts; of what was never released, doubt is infinite."""
        return {
            **dict.fromkeys(("round", "until", "full", "plays", "open", "waiting"), COUNT),
            "flying": exactly(self.waiting.sum() // self.fed),
            "length": (1, MOST),
            "doubt": (0.0, math.inf),
            "tail": NOT_NEGATIVE,
            "score": ANYTHING,
        }

    def release(self, secret: Buffers, noise: Noise) -> None:
        """Release the batches that are full and restate their items."""
        if self.full[0] > 0:
            _close(self, secret, noise)

    def select(self, context: None, explore: Chance) -> Items:
        """Go on with the basis in play until a release, or until t has grown by 3 %."""
        if _is_over(self):
            _choose(self, explore)
        return (self.played.basis,)

    def lingers(self) -> bool:
        """A release, or another basis."""
        return bool(self.full[0] > 0 or _is_over(self))

    def observe(self, secret: Buffers, context: None, action: Items, reward: Rewards) -> None:
        """Feed the first m items of the basis; the others' rewards are not read."""
        self.round[0] += 1
        for place in range(self.fed):
            feed(self, secret, action[0][place], reward[0][place])

    def wait(self, action: Items, change: int) -> None:
        """Count the decision, and the items that it will feed."""
        self.flying[0] += change
        for place in range(self.fed):
            self.waiting[action[0][place]] += change


@register_jitable(forceinline=True)
def _is_over(public: Public) -> bool:
    """Whether the basis in play is chosen again."""
    return bool(public.round[0] + public.flying[0] >= public.until[0])


@register_jitable
def _close(public: Public, secret: Buffers, noise: Noise) -> None:
    known = public.estimates
    # All items: a batch may be fed by rounds decided before another basis came into play.
    for item in public.played.order:
        length = public.open[item]
        if length >= public.length[item]:
            public.plays[item] += length
            public.open[item] = 0
            public.length[item] = next_length(public.first_batch, public.growth, public.plays[item])
            before = public.batches.total[item, 0]
            release_batch(public.batches, secret, item, noise)
            update_estimate(known, public.batches, item, public.plays[item], length, before)
            _restate(public, item)
    public.full[0] = 0
    public.until[0] = public.round[0]


@register_jitable(forceinline=True)
def _restate(public: Public, item: int) -> None:
    known = public.estimates
    laplace = 2.0 * known.draws[item] * known.tail[item] * known.tail[item]
    weight = known.weight[item]
    public.doubt[item] = 0.25 / weight + (known.variance[item] + laplace) / (weight * weight)
    public.tail[item] = known.tail[item] / weight


@register_jitable
def _choose(public: Public, explore: Chance) -> None:
    done = int(public.round[0] + public.flying[0])
    if done == 0:
        # Both: an order of the items that happens to be good must not help while nothing is known.
        shuffle(public.hopeful, explore)
        shuffle(public.played, explore)
    middling = _middling(public)
    for item in range(public.score.size):
        # Never released: first, until its first batch is decided; then it counts as an average item, and
        # among its like the one with the fewest decisions goes before.
        missing = _missing(public, item)
        public.score[item] = math.inf if missing > 0 else middling + _FEWEST_FIRST * missing
        if public.plays[item] > 0:
            log = public.caution * math.log(1.0 + done / (public.plays[item] + public.waiting[item]))
            left = _left(public, item)
            doubt, tail = public.doubt[item] * left, public.tail[item] * left
            width = max(math.sqrt(log * doubt), log * tail)
            level = math.log((done + _EARLY) / 1.5)
            width = max(width, _reach(doubt, tail, level) - public.margin)
            # A mean lies in [0, 1]: without this one unlucky batch costs hundreds of rounds.
            public.score[item] = min(max(public.estimates.mean[item], 0.0), 1.0) + width
    rebuild(public.hopeful, public.score)
    for item in range(public.score.size):
        decided = public.plays[item] == 0 and _missing(public, item) <= 0
        public.score[item] = middling if decided else public.estimates.mean[item]
    # The m items of the hopeful basis in greatest doubt; they are independent, so all are played.
    for _ in range(public.fed):
        most, doubtful = -1.0, 0
        for item in public.hopeful.basis:
            doubt = public.doubt[item] * _left(public, item)
            if public.score[item] < math.inf and doubt > most + TIE:
                most, doubtful = doubt, item
        public.score[doubtful] = math.inf
    rebuild(public.played, public.score)
    # Not longer than until the batch of a fed item is decided: with many rounds in flight it comes back
    # long after, and items would be fed on whose answer is on the way.
    left = max(1, int(0.03 * done))
    for place in range(public.fed):
        missing = _missing(public, public.played.basis[place])
        if missing > 0:
            left = min(left, missing)
    public.until[0] = done + left


@register_jitable(forceinline=True)
def _missing(public: Public, item: int) -> int:
    """Decisions by which an item's open batch will be full, less than 1 if all were made."""
    return int(public.length[item] - public.open[item] - public.waiting[item])


@register_jitable
def _middling(public: Public) -> float:
    """The average mean of the items that are known; −1 if none is."""
    total, known = 0.0, 0
    for item in range(public.plays.size):
        if public.plays[item] > 0:
            total += min(max(public.estimates.mean[item], 0.0), 1.0)
            known += 1
    return total / known if known > 0 else -1.0


@register_jitable(forceinline=True)
def _reach(doubt: float, tail: float, level: float) -> float:
    """How far above its estimate a mean lies with a chance of about e^−level.

    It is the largest g + h with g²/(2·doubt) + h/tail ≤ level: a Gaussian deviation g as long as that is
    the likelier, up to doubt/tail, and Laplace noise h for the rest.
    """
    if 2.0 * level * tail * tail <= doubt:
        return math.sqrt(2.0 * level * doubt)
    return level * tail + 0.5 * doubt / tail


@register_jitable(forceinline=True)
def _left(public: Public, item: int) -> float:
    """The part of an item's doubt that is left when what is in flight has come back alike."""
    plays, waiting = float(public.plays[item]), float(public.waiting[item])
    return plays / (plays + waiting) if plays > 0.0 else 1.0


@dataclass(frozen=True, kw_only=True)
class FocusedMatroidUCB(OncePerBlock, MatroidPolicy):
    r"""Play and feed the few items most in doubt of the basis hoped for; complete them by what is known.

    **Definition.** At each release, and when t has grown by 3 %:

    1. u_e = [x_e] + max(√(ℓ d_e), ℓ b_e), ℓ = caution·ln(1 + t/n_e), with x_e the released mean of the
       n_e decisions of item e, [x_e] that mean brought back into [0, 1], d_e = 1/(4 n_eff) + noise
       variance, and b_e the scale of Laplace noise in x_e (0 for Gaussian noise). *The guard,* with a
       `margin`: u_e is at least [x_e] + w_e − margin. With L = ln((t + 10⁵)/1.5), w_e = √(2 L d_e) where
       2 L b_e² ≤ d_e, else L b_e + d_e/(2 b_e). U is the basis of the largest Σ u_e, items never
       released first.
    2. F are the m = `fed` items of U with the largest d_e.
    3. The basis in play is F, completed greedily by x. Only the rewards of F are read, each into the
       open batch of its item, which is released when it has `first_batch` decisions, later
       max(first_batch, ⌈growth·n_e⌉), or more.

    With rounds in flight t counts decisions, and the f_e of them that will feed item e count as if they
    had come back alike: n_e is n_e + f_e in ℓ, and d_e and b_e are n_e/(n_e + f_e) times themselves. A
    basis is also chosen again when the open batch of an item of F is decided. An item never released
    comes first only until all of its first batch is decided; until that is back it counts as an item of
    the average x of those that are known, and of several such the one with the fewest decisions first.

    Under ε-DP batches have independent Laplace(m/ε) noise and x_e is precision-weighted; under
    Gaussian budgets they are block-factorized at μ/√m.

    **Guarantee.** Neighbours replace one round's vector of rewards. F, the basis and the batch ends are
    functions of released values and counts of decisions, made or in flight: never of open batches, of
    this round's rewards, or of who rated what. A vector enters m batches, each of sensitivity 1 and each
    paid for once by ε/m (μ/√m, `sums/batches.py`). So all decisions together are ε-DP (μ-GDP) by
    adaptive composition, for any number of rounds.

    **Regret.** No bound is claimed; measured in `matroid-leaderboard`, with its worst runs.
    Defaults: under ε-DP m = √K (ε/2)^⅓ rounded, between 1 and K, and first_batch = max(4, 16 m/ε); under
    Gaussian budgets m = K and first_batch = max(4, 12 √m/μ); growth ½, caution 1, no guard.

    **Bad runs.** ℓ may drop an item of the best basis for good after one unlucky release. The guard
    tries again whatever could exceed what stands in its place by the margin: w_e is exceeded with a
    probability of about e^−L at a release. So an item whose mean is at least the margin above the one
    that stands in its place is missed with a probability of that order, summed over its few releases.
    `recommend` sets growth 0.3, caution ½ and margin 0.04, under Gaussian budgets 0.045, but for short
    horizons. On eleven matroids whose best items lead by 0.05 or more the mean after 10⁵ rounds is then
    up to twice as large, and at most 1 of 100,000 runs is above ten times it (`matroid-tails`), not up
    to 1 in 155.

    >>> from dpbandits.problems import UniformMatroid
    >>> policy, problem = FocusedMatroidUCB(privacy=PureDP(2.0)), MatroidBases(UniformMatroid(30, 9))
    >>> print(policy.guarantee(problem).budget, policy.schedule(problem))
    2-DP (3, 24)
    """

    status: ClassVar[str] = "proved"
    accepts: ClassVar = GAUSSIAN_FIRST
    paper: ClassVar[str] = "dpbandits"
    testing: ClassVar = PolicyTesting(first_batch=2, growth=0.25, block=3)

    fed: Annotated[
        int | None, "How many items of a basis are learned from; by default what suits the budget."
    ] = None
    first_batch: Annotated[
        int | None, "The first batch of an item, in rounds; by default what suits the budget."
    ] = None
    growth: Annotated[float, "A batch is this many times as long as all batches before it together."] = (
        0.5
    )
    caution: Annotated[float, "A factor on exploration of items that could be better, if by little."] = (
        1.0
    )
    margin: Annotated[
        float | None,
        "Items that could be better by this much are tried again: a smaller one costs more on average "
        "and finds smaller leads. None: they are not, and some runs are bad.",
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fed is not None:
            checks.integer(least=1, limit=checks.MOST_ACTIONS, fed=self.fed)
        if self.first_batch is not None:
            checks.integer(least=1, first_batch=self.first_batch)
        checks.growth(growth=self.growth)
        checks.scale(caution=self.caution)
        if self.margin is not None:
            checks.width(margin=self.margin)

    def schedule(self, problem: MatroidBases) -> tuple[int, int]:
        """How many items are fed, and the first batch: those given, the defaults otherwise."""
        rank = problem.rank
        match self.privacy:
            case NonPrivate():
                fed, noise = rank, 0.0
            case PureDP(epsilon=epsilon):
                wanted = math.sqrt(rank) * (epsilon / 2.0) ** (1.0 / 3.0)
                fed = max(1, round(min(float(rank), wanted)))
                noise = 16.0 / epsilon
            case _:
                fed, noise = rank, 12.0 / self.privacy.to_gaussian().mu
        if self.fed is not None:
            fed = min(self.fed, rank)
        noise *= fed if isinstance(self.privacy, PureDP) else math.sqrt(fed)
        return fed, math.ceil(max(4.0, noise)) if self.first_batch is None else self.first_batch

    def begin(self, problem: MatroidBases) -> tuple[Any, Any]:
        """Nothing played yet."""
        items, state = problem.items, problem.matroid.state()
        fed, first_batch = self.schedule(problem)
        share = split_budget(self.privacy, fed)
        batches, buffers = start_batches(items, 1, 1.0, share, block=self.block)
        public = Public(
            round=np.zeros(1, np.int64),
            flying=np.zeros(1, np.int64),
            until=np.zeros(1, np.int64),
            full=np.zeros(1, np.int64),
            hopeful=start_greedy(state, items, tolerance=TIE),
            played=start_greedy(state, items, tolerance=TIE),
            plays=np.zeros(items, np.int64),
            open=np.zeros(items, np.int64),
            waiting=np.zeros(items, np.int64),
            length=np.full(items, first_batch, np.int64),
            batches=batches,
            estimates=start_estimates(items),
            doubt=np.full(items, math.inf),
            tail=np.zeros(items),
            score=np.zeros(items),
            fed=fed,
            first_batch=first_batch,
            growth=self.growth,
            caution=self.caution,
            margin=math.inf if self.margin is None else float(self.margin),
        )
        return public, buffers

    def begin_public(self, problem: MatroidBases) -> tuple[Any, Any]:
        """What is public is read of all items."""
        public, secret = super().begin_public(problem)
        return public._replace(fed=problem.rank), secret

    def take_public(self, public: Public, secret: Buffers, seen: Public, sums: Buffers) -> None:
        """As the first batches of their items."""
        for item in np.flatnonzero(seen.open).tolist():
            plays = int(seen.open[item])
            public.plays[item] = plays
            public.length[item] = next_length(public.first_batch, public.growth, plays)
            add_public(public.batches, secret, item, sums.open[item])
            estimate_public(public.estimates, public.batches, item, plays)
            _restate(public, item)

    def released(self, problem: MatroidBases, public: Public) -> Reading:
        """The items' means; those that were never fed have none."""
        state = problem.matroid.state()
        return of_estimates("item", public.estimates, public.batches, public.plays, matroid=state)

    def slots(self, public: Public, action: Any) -> tuple[int, ...]:
        """Those of the items that are fed, the first of the basis."""
        return tuple(int(item) for item in bare(action)[: public.fed])

    def numbers_of_one(self, problem: Any) -> int:
        """A sum for each item of her set, at most all."""
        return int(problem.items)

    def guarantee(self, problem: MatroidBases) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return matroid_guarantee(self.privacy, problem)
