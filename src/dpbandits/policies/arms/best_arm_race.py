r"""Best-arm identification with fixed confidence: a race on private evidence."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, FLAG, Limits
from dpbandits.errors import InvalidInput
from dpbandits.policies.arms.shared.e_values import Tilts, evidence_of_better, start_tilts
from dpbandits.policies.arms.shared.episodes import (
    Turns,
    close_batch,
    decisions,
    fill,
    is_untouched,
    open_batch,
    start_turns,
)
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.arms.shared.schedules import whole_length
from dpbandits.policies.arms.shared.search import (
    Search,
    forget,
    is_over,
    recommend,
    start_search,
    with_recommendation,
)
from dpbandits.policies.arms.shared.tally import any_due
from dpbandits.policies.released import Reading, of_sums
from dpbandits.policies.returning import OncePerBatch
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import EVERY_KIND, NonPrivate, PureDP
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms
from dpbandits.sums.batches import Batches, Buffers, release_batch, start_batches

# A batch is as long as this many times all before it, at least and at most.
_SHORTEST, _LONGEST = 0.2, 2.0


class Public(NamedTuple):
    """Released sums, the leader, and the evidence that it is better than the others."""

    turns: Turns
    waiting: NDArray[np.int64]  # decisions in flight
    playing: NDArray[np.int64]  # (1,) the arm whose batch is being decided; −1: choose
    batches: Batches
    search: Search
    leader: NDArray[np.int64]  # (1,) the arm of the largest mean; −1 at first
    out: NDArray[np.bool_]  # arms that are worse than the leader, by what is known now
    evidence: NDArray[np.float64]  # W(leader, arm)
    tilts: Tilts
    first_batch: int
    needed: float  # c

    def limits(self) -> Limits:
        """Arms that exist."""
        arm = -1, self.out.size - 1
        return {"waiting": COUNT, "playing": arm, "leader": arm, "out": FLAG}

    def release(self, secret: Buffers, noise: Noise) -> None:
        """Release every batch that is full, and compare the arms."""
        if any_due(self.turns.full) and not is_over(self):
            _close(self, secret, noise)
        if is_over(self):
            forget(secret)

    def select(self, context: None, explore: Chance) -> int:
        """The recommended arm; before there is one, go on with a batch, or choose whose is next."""
        if is_over(self):
            return int(self.search.arm[0])
        arm = int(self.playing[0])
        if arm >= 0 and self.waiting[arm] < self.turns.left[arm]:
            return arm
        return _choose(self)

    def observe(self, secret: Buffers, context: None, action: int, reward: float) -> None:
        """Fill the arm's open batch; after the end the round is counted and its reward forgotten."""
        fill(self.turns, secret, action, math.nan if is_over(self) else reward)


@register_jitable
def _close(public: Public, secret: Buffers, noise: Noise) -> None:
    while any_due(public.turns.full):
        arm, _ = close_batch(public.turns)
        open_batch(public.turns, arm, public.first_batch)
        release_batch(public.batches, secret, arm, noise)
        if public.turns.unknown[0] == 0 and not is_over(public):
            _compare(public, arm)
    public.playing[0] = -1


@register_jitable
def _compare(public: Public, released: int) -> None:
    """Restate leader, evidence, and who is out, after a release."""
    leader, before, rivals = _leader(public), public.leader[0], 0
    public.leader[0] = leader
    public.out[leader] = False
    for arm in range(public.out.size):
        if arm == leader:
            continue
        # Between the others nothing has changed.
        if arm == released or leader == released or leader != before:
            public.evidence[arm] = evidence_of_better(
                public.tilts, public.batches, public.turns.plays, leader, arm
            )
            public.out[arm] = public.evidence[arm] >= public.needed
        if not public.out[arm]:
            rivals += 1
    if rivals == 0:
        recommend(public, leader)


@register_jitable
def _leader(public: Public) -> int:
    """The largest mean; means that are equal to rounding count as equal."""
    found, most = -1, -math.inf
    for arm in range(public.out.size):
        mean = public.batches.total[arm, 0] / public.turns.plays[arm]
        if mean > most + 1e-9:
            found, most = arm, mean
    return found


@register_jitable
def _choose(public: Public) -> int:
    """The leader, as long as it has √m times the decisions of the least tried of the m others."""
    leader, least, others = public.leader[0], -1, 0
    for arm in range(public.out.size):
        if arm != leader and not public.out[arm]:
            others += 1
            if least < 0 or decisions(public, arm) < decisions(public, least):
                least = arm
    arm = least
    if leader >= 0:
        if decisions(public, leader) <= math.sqrt(others) * decisions(public, least):
            arm = leader
        if is_untouched(public, arm):
            open_batch(public.turns, arm, _planned(public, arm, public.evidence[least]))
    public.playing[0] = arm
    return arm


@register_jitable
def _planned(public: Public, arm: int, evidence: float) -> int:
    """Half of what is missing, were the evidence to grow in proportion."""
    share = 0.5 * (public.needed / max(evidence, 0.01) - 1.0)
    share = min(max(share, _SHORTEST), _LONGEST)
    return max(public.first_batch, whole_length(share * public.turns.plays[arm]))


@dataclass(frozen=True, kw_only=True)
class BestArmRace(OncePerBatch):
    r"""Find the best arm, wrong with a probability of at most `error`, then play it for ever.

    **Definition.** Every arm begins with a batch of `first_batch` decisions. W(a, b) is the evidence in
    all released sums that a is better than b (`shared/e_values.py`); the leader a has the largest
    released mean. Of K arms b is out while W(a, b) ≥ c = ln((K − 1)/`error`). When all but the leader
    are out, the search ends with it. With m others not out, the next batch is the leader's while it has
    at most √m times the decisions of the least tried of these, and otherwise that one's. It adds
    ½(c/W − 1), between 0.2 and 2, times the decisions that the arm has had: half of what is missing.
    `error` is the papers' δ.

    **Guarantee.** Neighbours replace one reward. It is in one batch, whose sum moves by at most 1 and is
    released once: with Laplace(1/ε) or N(0, 1/μ²) noise of its own. Batch ends and lengths, who is out,
    when the search stops and what it recommends are functions of released sums and counts of decisions.
    So all decisions, the stopping time and the recommendation together are ε-DP, or μ-GDP.

    **Error.** Let a* be best. The recommendation is another arm b only if at that time W(b, a*) ≥ c. As
    q_b ≤ q_a*, that ever happens with a probability of at most e^−c, for each of K − 1 such b: together
    `error`. It holds for all rewards within [0, 1] whose mean given the past is the arm's, whatever
    batches were chosen, one round at a time; with rounds in flight if, moreover, arms pay independently
    of each other. A round closed without a reward counts as ½: the answer is then about means in which
    it does, and is right about the arms' own if missing is equally likely for all arms *and* whatever
    they would have paid. Where several arms share the largest mean it does not stop, but with
    probability `error` for each pair of them. Being out is not for good: a best arm
    that is out by bad luck comes back as the leader's own mean becomes known, so that others which are
    alike do not race for ever.

    **Regret.** Until it stops that of a race; none after it, if the recommendation is right. *Samples:*
    measured against `limits.least_samples` by `dpbandits reproduce identification`. Both papers on the
    problem, AdaP-TT (Azize, Jourdan, Al Marjani & Basu 2023) and its successor (Jourdan & Azize 2025),
    choose between a leader and a challenger, and stop by thresholds with a union over episodes. A race
    leaves no arm alone that may be best; its threshold has no such union, and is neither paper's.

    >>> policy = BestArmRace(privacy=PureDP(1.0), error=0.01)
    >>> print(policy.guarantee(Arms(5)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = EVERY_KIND
    paper: ClassVar[str] = "dpbandits, for the problem of Azize et al. 2023"
    testing: ClassVar = PolicyTesting(first_batch=2, error=0.5)

    error: Annotated[float, "The probability, at most, of recommending an arm that is not best."] = 0.05
    first_batch: Annotated[
        int | None, "The first batch of an arm, in rounds; by default what suits the budget."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.risk(error=self.error)
        if self.first_batch is not None:
            checks.integer(least=1, first_batch=self.first_batch)

    def _first_batch(self) -> int:
        """As given; otherwise 24/ε or 16/μ, at least 8."""
        if self.first_batch is not None:
            return self.first_batch
        if isinstance(self.privacy, NonPrivate):
            return 8
        if isinstance(self.privacy, PureDP):
            return max(8, whole_length(24.0 / self.privacy.epsilon))
        return max(8, whole_length(16.0 / self.privacy.to_gaussian().mu))

    def check(self, problem: Any) -> None:
        """Refuse arms that come and go: best of which ones would be asked."""
        if isinstance(problem, Arms) and problem.capacity is not None:
            raise InvalidInput(f"{type(self).__name__} is for arms that stay, without a capacity")
        super().check(problem)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Nothing played yet."""
        arms, first_batch = problem.arms, self._first_batch()
        batches, buffers = start_batches(arms, 1, 1.0, self.privacy, cumulative=False)
        started = start_turns(problem, first_batch)
        public = Public(
            turns=started["turns"],
            waiting=started["waiting"],
            playing=np.full(1, -1, np.int64),
            batches=batches,
            search=start_search(arms),
            leader=np.full(1, -1, np.int64),
            out=np.zeros(arms, np.bool_),
            evidence=np.zeros(arms),
            tilts=start_tilts(batches),
            first_batch=first_batch,
            needed=math.log((arms - 1) / self.error),
        )
        return public, buffers

    def released(self, problem: Arms, public: Public) -> Reading:
        """The means of all arms, who is out, and the recommendation."""
        batches = public.batches
        reading = of_sums(
            "arm",
            batches.total[:, 0],
            public.turns.plays,
            batches.variance,
            laplace=batches.laplace,
            active=~public.out,
        )
        return with_recommendation(reading, public.search)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for any number of rounds."""
        self.check(problem)
        return arms_guarantee(self.privacy, problem)
