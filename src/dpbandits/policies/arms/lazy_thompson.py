r"""Thompson sampling on released batches, with the privacy noise inside the posterior."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, FLAG, NOT_NEGATIVE, Limits
from dpbandits.policies.arms.shared.batched_estimates import BatchedEstimates, release_estimate
from dpbandits.policies.arms.shared.episodes import Turns, fill, first_needed, is_known, start_turns
from dpbandits.policies.arms.shared.estimates import Estimates, start_estimates
from dpbandits.policies.arms.shared.tally import any_due
from dpbandits.problems.arms import Arms
from dpbandits.sums.batches import Batches, Buffers, start_batches


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
        """Fill the arm's open batch; full means a number of decisions, with or without rewards."""
        fill(self.turns, secret, action, reward)


@register_jitable
def _close(public: Public, secret: Buffers, noise: Noise) -> None:
    while any_due(public.turns.full):
        _restate(public, release_estimate(public, secret, noise))


@register_jitable(forceinline=True)
def _restate(public: Public, arm: int) -> None:
    """The posterior of an arm."""
    known = public.estimates
    weight = known.weight[arm]
    variance = public.unit_variance / weight + known.variance[arm] / (weight * weight)
    public.deviation[arm] = math.sqrt(variance)
    public.spread[arm] = known.tail[arm] * math.sqrt(known.draws[arm]) / weight


@dataclass(frozen=True, kw_only=True)
class LazyThompson(BatchedEstimates):
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

    >>> from dpbandits.privacy.budgets import PureDP
    >>> print(LazyThompson(privacy=PureDP(1.0)).guarantee(Arms(5)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "dpbandits"

    unit_variance: Annotated[float, "The variance of one reward that the samples assume."] = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(unit_variance=self.unit_variance)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Every arm's first batch open."""
        arms = problem.slots
        first_batch, growth = self._batches()
        batches, buffers = start_batches(arms, 1, 1.0, self.privacy, block=self.block)
        public = Public(
            **start_turns(problem, first_batch),
            batches=batches,
            estimates=start_estimates(arms),
            deviation=np.zeros(arms),
            spread=np.zeros(arms),
            first_batch=first_batch,
            growth=growth,
            unit_variance=self.unit_variance,
        )
        return public, buffers

    def restate_arm(self, public: Public, arm: int) -> None:
        """Its posterior."""
        _restate(public, arm)
