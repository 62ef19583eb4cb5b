r"""Thompson sampling on released batches, with the privacy noise inside the posterior."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.policies.arms.episodes import first_unplayed
from dpbandits.policies.arms.estimates import Estimates, start_estimates, update_estimate
from dpbandits.policies.arms.schedules import default_schedule
from dpbandits.policies.returning import OncePerBatch
from dpbandits.privacy.budgets import GAUSSIAN_KINDS, NonPrivate, PureDP
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit
from dpbandits.problems.arms import Arms, centred
from dpbandits.sums.batches import Batches, Buffers, release_batch, start_batches


class Public(NamedTuple):
    """Released batches, one open batch for every arm, and the posterior they give."""

    ended: NDArray[np.int64]  # (1,) the arm whose batch is due, −1 if none
    plays: NDArray[np.int64]  # decisions in released batches
    open: NDArray[np.int64]  # decisions in the open batch
    length: NDArray[np.int64]  # of the open batch when it is full
    batches: Batches
    estimates: Estimates
    deviation: NDArray[np.float64]  # of the Gaussian part of the posterior
    spread: NDArray[np.float64]  # scale of its Laplace part
    first_batch: int
    growth: float
    unit_variance: float

    def release(self, secret: Buffers, noise: Noise) -> None:
        """Release the batch that is full, and restate its arm's posterior."""
        arm = self.ended[0]
        if arm < 0:
            return
        self.ended[0] = -1
        length = self.length[arm]
        self.plays[arm] += length
        self.open[arm] = 0
        self.length[arm] = max(self.first_batch, math.ceil(self.growth * self.plays[arm]))
        before = self.batches.total[arm, 0]
        release_batch(self.batches, secret, arm, noise)
        known = self.estimates
        update_estimate(known, self.batches, arm, self.plays[arm], length, before)
        weight = known.weight[arm]
        self.deviation[arm] = math.sqrt(
            self.unit_variance / weight + known.variance[arm] / (weight * weight)
        )
        self.spread[arm] = known.tail[arm] * math.sqrt(known.draws[arm]) / weight

    def select(self, context: None, explore: Chance) -> int:
        """A fresh posterior sample for every arm, free of charge; the largest is played."""
        best = first_unplayed(self.plays)
        if best >= 0:
            return best
        highest = -math.inf
        for arm in range(self.plays.size):
            value = explore.normal(self.estimates.mean[arm], self.deviation[arm])
            if self.spread[arm] > 0.0:
                value += explore.laplace(0.0, self.spread[arm])
            if value > highest:
                best, highest = arm, value
        return best

    def observe(self, secret: Buffers, context: None, action: int, reward: float) -> None:
        """Fill the arm's open batch; full means so many decisions, with or without rewards."""
        secret.open[action, 0] += centred(reward)
        self.open[action] += 1
        if self.open[action] == self.length[action]:
            self.ended[0] = action


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

    problem_kind: ClassVar = Arms
    accepts: ClassVar = (*GAUSSIAN_KINDS, PureDP, NonPrivate)
    paper: ClassVar[str] = "dpbandits"

    first_batch: int | None = None
    growth: float | None = None
    block: int = 64
    unit_variance: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first_batch is not None:
            checks.integer(least=1, first_batch=self.first_batch)
        if self.growth is not None:
            checks.positive(growth=self.growth)
        checks.integer(least=1, block=self.block)
        checks.positive(unit_variance=self.unit_variance)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Every arm's first batch open."""
        arms = problem.arms
        first_batch, growth = default_schedule(self.privacy)
        first_batch = first_batch if self.first_batch is None else self.first_batch
        batches, buffers = start_batches(arms, 1, 1.0, self.privacy, block=self.block)
        public = Public(
            ended=np.full(1, -1, np.int64),
            plays=np.zeros(arms, np.int64),
            open=np.zeros(arms, np.int64),
            length=np.full(arms, first_batch, np.int64),
            batches=batches,
            estimates=start_estimates(arms),
            deviation=np.zeros(arms),
            spread=np.zeros(arms),
            first_batch=first_batch,
            growth=growth if self.growth is None else self.growth,
            unit_variance=self.unit_variance,
        )
        return public, buffers

    def small(self) -> "LazyThompson":
        """Batches of two and blocks of three."""
        return replace(self, first_batch=2, growth=0.25, block=3)

    def suited_to_returning(self) -> "LazyThompson":
        """Blocks cost a person who is in many of their batches nearly as much as no rule at all."""
        return replace(self, block=1)

    def blocks_used(self) -> int:
        """As given."""
        return self.block

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return Guarantee(
            budget=self.privacy, unit=Unit.REWARD, trust=Trust.CENTRAL, public=problem.public_facts()
        )
