r"""Best-arm identification with a fixed number of rounds: the worse half is dropped, again and again."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, Limits, exactly, places
from dpbandits.errors import InvalidInput
from dpbandits.policies.arms.shared.episodes import (
    Turns,
    close_batch,
    decisions,
    fill,
    open_batch,
    start_turns,
)
from dpbandits.policies.arms.shared.estimates import (
    Estimates,
    of_estimates,
    start_estimates,
    update_estimate,
)
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.arms.shared.search import (
    Search,
    forget,
    is_over,
    recommend,
    start_search,
    with_recommendation,
)
from dpbandits.policies.arms.shared.tally import any_due, is_due
from dpbandits.policies.released import Reading
from dpbandits.policies.returning import OncePerBatch
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import EVERY_KIND
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms
from dpbandits.sums.batches import Batches, Buffers, release_batch, start_batches

_EQUAL = 1e-9  # means nearer than this count as equal


class Public(NamedTuple):
    """The arms still in play, the phase, and what is known of all arms."""

    turns: Turns
    waiting: NDArray[np.int64]  # decisions in flight
    phases: NDArray[np.int64]  # (1,) those left, with this one
    short: NDArray[np.int64]  # (1,) arms in play whose batch of this phase is not full
    alive: NDArray[np.int64]  # (1,) |S|
    active: NDArray[np.int64]  # S, in its first |S| places
    dropped: NDArray[np.bool_]  # whether an arm is not in S
    batches: Batches
    estimates: Estimates
    search: Search
    rounds: int  # T − 1

    def limits(self) -> Limits:
        """The arms in play are different ones, and all others are dropped."""
        arms, alive = self.dropped.size, int(self.alive[0])
        active = np.isin(np.arange(arms), self.active[: max(alive, 0)])
        return {
            "waiting": COUNT,
            "phases": (0, _phases(arms)),
            # None where a phase is over and the next decision will open another.
            "short": (0, np.count_nonzero(active & ~is_due(self.turns.full)) if alive > 1 else 0),
            "alive": (1, arms),
            "active": places(self.active, arms, alive),
            "dropped": exactly(~active),
        }

    def release(self, secret: Buffers, noise: Noise) -> None:
        """At the end of a phase, release the batches of all arms in play."""
        if is_over(self):
            forget(secret)
        elif self.short[0] == 0:
            _release_all(self, secret, noise)

    def select(self, context: None, explore: Chance) -> int:
        """At the end of a phase drop the worse half. Then the arm with the most left to decide."""
        if self.short[0] == 0 and not is_over(self):
            _end_phase(self, explore)
        return _neediest(self)

    def observe(self, secret: Buffers, context: None, action: int, reward: float) -> None:
        """Fill the arm's batch; after the end the round is counted and its reward forgotten."""
        over = is_over(self)
        is_full = fill(self.turns, secret, action, math.nan if over else reward)
        # Between two phases there is none to count for: the batch is released with the next one's.
        if is_full and not over and not self.dropped[action] and self.short[0] > 0:
            self.short[0] -= 1


@register_jitable
def _release_all(public: Public, secret: Buffers, noise: Noise) -> None:
    while any_due(public.turns.full):
        arm, size = close_batch(public.turns)
        before = public.batches.total[arm, 0]
        release_batch(public.batches, secret, arm, noise)
        plays = public.turns.plays[arm]
        update_estimate(public.estimates, public.batches, arm, plays, size, before)
        open_batch(public.turns, arm, 1)


@register_jitable
def _end_phase(public: Public, explore: Chance) -> None:
    _drop_worse_half(public, explore)
    public.phases[0] -= 1
    if public.alive[0] == 1:
        recommend(public, public.active[0])
    else:
        _open_phase(public)


@register_jitable
def _neediest(public: Public) -> int:
    """The arm in play with the most decisions left, of several the first; so all are played in turn.

    Not by whose turn it is: rounds of people who are not learned from must not use up an arm's.
    """
    left, waiting, found = public.turns.left, public.waiting, int(public.active[0])
    for place in range(1, public.alive[0]):
        arm = int(public.active[place])
        if left[arm] - waiting[arm] > left[found] - waiting[found]:
            found = arm
    return found


@register_jitable
def _open_phase(public: Public) -> None:
    """Share out the rounds that are left over the phases that are left, equally."""
    left, alive = public.rounds, public.alive[0]
    for arm in range(public.dropped.size):
        left -= decisions(public, arm)
    length = max(1, left // (public.phases[0] * alive))
    for place in range(alive):
        open_batch(public.turns, public.active[place], length)
    public.short[0] = alive


@register_jitable
def _drop_worse_half(public: Public, explore: Chance) -> None:
    """Keep ⌈|S|/2⌉ arms of the largest means; of those that are equal to rounding, any."""
    alive, means = public.alive[0], public.estimates.mean
    kept = (alive + 1) // 2
    low, high = math.inf, -math.inf
    for place in range(alive):
        low, high = min(low, means[public.active[place]]), max(high, means[public.active[place]])
    low -= _EQUAL
    while high - low > _EQUAL:  # at least as many as are kept lie above `low`, fewer above `high`
        middle = 0.5 * (low + high)
        if _above(public, middle) >= kept:
            low = middle
        else:
            high = middle
    surely = _above(public, high)
    spare, equal, place = kept - surely, _above(public, low) - surely, 0
    for old in range(alive):
        arm = public.active[old]
        stays = means[arm] > high
        if not stays and means[arm] > low:
            # Each as likely as the others; without a draw where all of them stay.
            stays = spare == equal or (spare > 0 and explore.random() * equal < spare)
            spare, equal = spare - (1 if stays else 0), equal - 1
        if stays:
            public.active[place] = arm
            place += 1
        else:
            public.dropped[arm] = True
    public.alive[0] = place


@register_jitable
def _above(public: Public, level: float) -> int:
    """How many arms in play have a larger mean."""
    count = 0
    for place in range(public.alive[0]):
        if public.estimates.mean[public.active[place]] > level:
            count += 1
    return count


def _phases(arms: int) -> int:
    """⌈log2 K⌉."""
    return (arms - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class SequentialHalving(OncePerBatch):
    r"""Use a given number of rounds to find the best arm as well as they allow, then play it for ever.

    **Definition.** T = `rounds`, K arms. There are ⌈log2 K⌉ phases, which share T − 1 rounds equally; in
    each all arms in play are played in turn, equally often. At its end each one's sum of rewards of this
    phase is released, the arm's means of all phases so far are weighted by precision
    (`shared/estimates.py`), and the worse half is dropped, ties broken at random. The last arm is
    recommended, and is what decision T plays. A phase plays each arm at least once, which 3K rounds
    suffice for: with fewer it ends later. Where W rounds are in flight a phase ends when enough of them
    came back, so that the recommendation can be up to W decisions later.

    **Guarantee.** Neighbours replace one reward. It is in the sum of one arm in one phase, which moves
    by at most 1 and is released once: with Laplace(1/ε) or N(0, 1/μ²) noise of its own. How long phases
    are, who is dropped, when the search stops and what it recommends are functions of released sums and
    counts of decisions. So all decisions and the recommendation together are ε-DP, or μ-GDP; T is the
    policy's own, and the guarantee does not end with it.

    **Error.** It falls exponentially in T: without privacy as exp(−Ω(T/(H log K))), H = max i/Δ_i² over
    arms by rank (Karnin, Koren & Somekh 2013); under ε-DP so long as gaps are below ε, and otherwise as
    exp(−Ω(εT/(H' log K))), H' = max i/Δ_i, which is the order of DP-BAI and cannot be improved but for
    logarithms (Chen, Karthik, Chee & Tan 2024). DP-BAI uses each phase's sums alone; adding the
    earlier ones is free, since they are released. What is measured is in `identification`.

    **Regret.** That of ever fewer arms played equally, linear in T; then none, if the recommendation is
    right.

    >>> from dpbandits.privacy.budgets import PureDP
    >>> public, _ = SequentialHalving(privacy=PureDP(1.0), rounds=1001).begin(Arms(4))
    >>> int(public.turns.length[0])
    125
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = EVERY_KIND
    paper: ClassVar[str] = "Karnin et al. 2013; Chen et al. 2024 (DP-BAI)"
    testing: ClassVar = PolicyTesting(rounds=25)

    rounds: Annotated[int, "T: the decision with this number plays the recommended arm."] = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(least=2, rounds=self.rounds)

    def check(self, problem: Any) -> None:
        """Refuse arms that come and go: best of which ones would be asked."""
        if isinstance(problem, Arms) and problem.capacity is not None:
            raise InvalidInput(f"{type(self).__name__} is for arms that stay, without a capacity")
        super().check(problem)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """The first phase open, with every arm."""
        arms = problem.arms
        batches, buffers = start_batches(arms, 1, 1.0, self.privacy, cumulative=False)
        started = start_turns(problem, 1)
        public = Public(
            turns=started["turns"],
            waiting=started["waiting"],
            phases=np.full(1, _phases(arms), np.int64),
            short=np.zeros(1, np.int64),
            alive=np.full(1, arms, np.int64),
            active=np.arange(arms),
            dropped=np.zeros(arms, np.bool_),
            batches=batches,
            estimates=start_estimates(arms),
            search=start_search(arms),
            rounds=self.rounds - 1,
        )
        _open_phase(public)
        return public, buffers

    def released(self, problem: Arms, public: Public) -> Reading:
        """The means of all arms, who is dropped, and the recommendation."""
        plays, active = public.turns.plays, ~public.dropped
        reading = of_estimates("arm", public.estimates, public.batches, plays, active=active)
        return with_recommendation(reading, public.search)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for any number of rounds."""
        self.check(problem)
        return arms_guarantee(self.privacy, problem)
