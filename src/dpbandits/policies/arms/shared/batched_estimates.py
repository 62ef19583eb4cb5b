"""Batches that are weighed by their noise: what `NoiseAwareIMED` and `LazyThompson` share."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.engine import Noise
from dpbandits.policies.arms.shared.episodes import close_batch, open_batch
from dpbandits.policies.arms.shared.estimates import (
    estimate_public,
    of_estimates,
    update_estimate,
)
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.arms.shared.schedules import default_schedule, next_length
from dpbandits.policies.released import Reading
from dpbandits.policies.returning import OncePerBlock
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import GAUSSIAN_FIRST
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms
from dpbandits.sums.batches import Buffers, add_public, release_batch


@register_jitable(forceinline=True)
def release_estimate(public: Any, secret: Buffers, noise: Noise) -> int:
    """Release a batch that is full, restate what is known of its arm, open the next; the arm."""
    arm, size = close_batch(public.turns)
    plays, before = public.turns.plays[arm], public.batches.total[arm, 0]
    open_batch(public.turns, arm, next_length(public.first_batch, public.growth, plays))
    release_batch(public.batches, secret, arm, noise)
    update_estimate(public.estimates, public.batches, arm, plays, size, before)
    return arm


@dataclass(frozen=True, kw_only=True)
class BatchedEstimates(OncePerBlock):
    """A policy that knows how noisy its estimates are."""

    abstract: ClassVar[bool] = True
    problem_kind: ClassVar = Arms
    accepts: ClassVar = GAUSSIAN_FIRST
    testing: ClassVar = PolicyTesting(first_batch=2, growth=0.25, block=3)

    first_batch: Annotated[
        int | None, "The first batch of an arm, in rounds; by default what suits the budget."
    ] = None
    growth: Annotated[
        float | None, "A batch is this many times as long as all batches before it together."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first_batch is not None:
            checks.integer(least=1, first_batch=self.first_batch)
        if self.growth is not None:
            checks.growth(growth=self.growth)

    def _batches(self) -> tuple[int, float]:
        """First batch and growth as used: those given, the defaults otherwise."""
        first_batch, growth = default_schedule(self.privacy)
        return (
            first_batch if self.first_batch is None else self.first_batch,
            growth if self.growth is None else self.growth,
        )

    def take_public(self, public: Any, secret: Buffers, seen: Any, sums: Buffers) -> None:
        """As the first batches of their arms."""
        turns, plays = public.turns, seen.turns.length - seen.turns.left
        for arm in np.flatnonzero(plays).tolist():
            turns.plays[arm] = plays[arm]
            turns.unknown[0] -= 1
            open_batch(turns, arm, next_length(public.first_batch, public.growth, int(plays[arm])))
            add_public(public.batches, secret, arm, sums.open[arm])
            estimate_public(public.estimates, public.batches, arm, int(plays[arm]))
            self.restate_arm(public, arm)

    def restate_arm(self, public: Any, arm: int) -> None:
        """What a policy makes of an arm's estimate, beside the estimate itself."""

    def released(self, problem: Arms, public: Any) -> Reading:
        """The arms' means."""
        plays, active = public.turns.plays, ~public.away
        return of_estimates("arm", public.estimates, public.batches, plays, active=active)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return arms_guarantee(self.privacy, problem)
