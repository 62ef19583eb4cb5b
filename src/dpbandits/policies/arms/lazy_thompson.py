r"""Thompson sampling on released batches, with the privacy noise inside the posterior."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, FLAG, NOT_NEGATIVE, Limits
from dpbandits.policies.arms.shared.episodes import (
    Turns,
    close_batch,
    fill,
    first_needed,
    is_known,
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
from dpbandits.policies.arms.shared.schedules import default_schedule, next_length
from dpbandits.policies.arms.shared.tally import any_due
from dpbandits.policies.released import Reading
from dpbandits.policies.returning import OncePerBatch
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import EVERY_KIND
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms
from dpbandits.sums.batches import Batches, Buffers, release_batch, start_batches


class Public(NamedTuple):
    """Released batches, one open batch for every arm, and the posterior they give."""

    turns: Turns
    waiting: NDArray[np.int64]  # decisions in flight
    away: NDArray[np.bool_]  # arms not to be chosen
    batches: Batches
    estimates: Estimates
    deviation: NDArray[np.float64]  # of the Gaussian part of the posterior
    spread: NDArray[np.float64]  # scale of its Laplace part
    first_batch: int
    growth: float
    unit_variance: float

    def limits(self) -> Limits:
        """Deviations are not negative."""
        scales = dict.fromkeys(("deviation", "spread"), NOT_NEGATIVE)
        return {"waiting": COUNT, "away": FLAG, **scales}

    def release(self, secret: Buffers, noise: Noise) -> None:
        """Release every batch that is full, and restate its arm's posterior."""
        if any_due(self.turns.full):
            _close(self, secret, noise)

    def select(self, context: None, explore: Chance) -> int:
        """A fresh posterior sample for every arm, free of charge; the largest is played."""
        best = first_needed(self)
        if best >= 0:
            return best
        highest = -math.inf
        for arm in range(self.deviation.size):
            if not is_known(self, arm):
                continue
            value = explore.normal(self.estimates.mean[arm], self.deviation[arm])
            if self.spread[arm] > 0.0:
                value += explore.laplace(0.0, self.spread[arm])
            if value > highest:
                best, highest = arm, value
        return best

    def observe(self, secret: Buffers, context: None, action: int, reward: float) -> None:
        """Fill the arm's open batch; full means so many decisions, with or without rewards."""
        fill(self.turns, secret, action, reward)


@register_jitable
def _close(public: Public, secret: Buffers, noise: Noise) -> None:
    while any_due(public.turns.full):
        arm, size = close_batch(public.turns)
        plays, before = public.turns.plays[arm], public.batches.total[arm, 0]
        open_batch(public.turns, arm, next_length(public.first_batch, public.growth, plays))
        release_batch(public.batches, secret, arm, noise)
        known = public.estimates
        update_estimate(known, public.batches, arm, plays, size, before)
        weight = known.weight[arm]
        variance = public.unit_variance / weight + known.variance[arm] / (weight * weight)
        public.deviation[arm] = math.sqrt(variance)
        public.spread[arm] = known.tail[arm] * math.sqrt(known.draws[arm]) / weight


@dataclass(frozen=True, kw_only=True)
class LazyThompson(OncePerBatch):
    r"""Sample every arm's mean from a posterior that knows the privacy noise; play the largest.

    **Definition.** Every arm has an open batch, first of `first_batch` decisions, then of
    max(first_batch, ⌈growth·n_i⌉); when it is full its noisy sum is released and cumulated. Each round
    plays argmax_i θ_i with θ_i ~ N(x_i, v/n_i + noise variance), v = `unit_variance`, drawn afresh from
    public randomness. Under ε-DP the batches have independent Laplace noise, x_i is precision-weighted,
    and the posterior's noise part is Laplace too: with Gaussian tails in its place a best arm that was
    unlucky once is never tried again. Under Gaussian budgets the batches are block-factorized.

    **Guarantee.** Neighbours replace one reward. It is in one batch, of sensitivity 1, and batch ends
    are counts of decisions. So all decisions together cost one release: ε-DP with Laplace(1/ε), μ-GDP
    with block-factorized noise (`sums/batches.py`), for any number of rounds.

    **Regret.** No bound is claimed; measured in the leaderboard.

    >>> print(LazyThompson(privacy=PureDP(1.0)).guarantee(Arms(5)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = EVERY_KIND
    paper: ClassVar[str] = "dpbandits"
    testing: ClassVar = PolicyTesting(first_batch=2, growth=0.25, block=3)

    first_batch: Annotated[
        int | None, "The first batch of an arm, in rounds; by default what suits the budget."
    ] = None
    growth: Annotated[
        float | None, "A batch is this many times as long as all batches before it together."
    ] = None
    block: Annotated[
        int, "Releases whose noise is drawn together: more of them means less noise each."
    ] = 64
    unit_variance: Annotated[float, "The variance of one reward that the samples assume."] = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first_batch is not None:
            checks.integer(least=1, first_batch=self.first_batch)
        if self.growth is not None:
            checks.growth(growth=self.growth)
        checks.integer(least=1, limit=checks.MOST_BLOCK, block=self.block)
        checks.scale(unit_variance=self.unit_variance)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Every arm's first batch open."""
        arms = problem.slots
        first_batch, growth = default_schedule(self.privacy)
        first_batch = first_batch if self.first_batch is None else self.first_batch
        batches, buffers = start_batches(arms, 1, 1.0, self.privacy, block=self.block)
        public = Public(
            **start_turns(problem, first_batch),
            batches=batches,
            estimates=start_estimates(arms),
            deviation=np.zeros(arms),
            spread=np.zeros(arms),
            first_batch=first_batch,
            growth=growth if self.growth is None else self.growth,
            unit_variance=self.unit_variance,
        )
        return public, buffers

    def suited_to_returning(self) -> "LazyThompson":
        """Blocks cost a person who is in many of their batches nearly as much as no rule at all."""
        return replace(self, block=1)

    def blocks_used(self) -> int:
        """As given."""
        return self.block

    def released(self, problem: Arms, public: Public) -> Reading:
        """The arms' means."""
        plays, active = public.turns.plays, ~public.away
        return of_estimates("arm", public.estimates, public.batches, plays, active=active)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return arms_guarantee(self.privacy, problem)
