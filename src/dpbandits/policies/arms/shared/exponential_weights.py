"""Exponential weights on short batches of one arm each: what `PrivateExp3` and `Exp3` share.

The symbols are those of `PrivateExp3`.
"""

import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, MOST, Limits
from dpbandits.policies.arms.shared.tally import Due, any_due, is_due, make_due, nothing_due, take_due
from dpbandits.policies.released import Reading, of_sums
from dpbandits.privacy.budgets import Budget
from dpbandits.problems.arms import Arms, centred
from dpbandits.sums.batches import Batches, Buffers, release_batch, start_batches

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
_ARM, _UNTIL = 0, 1  # places in `playing`


class Weights(NamedTuple):
    """Estimated gains of the arms, and how far their open batches are."""

    closed: Integers  # decisions of each arm that are
    open: Integers  # of them, in its open batch
    waiting: Integers  # decisions in flight
    full: Due  # arms whose batch is
    playing: Integers  # (2,) the arm drawn last (−1: none yet), until it has so many decisions
    batches: Batches
    gain: Array  # Ĝ_i
    odds: Array  # p_i of each arm as it was drawn last; 1/K before
    chances: Array  # p, scratch
    batch: int  # B
    reach: float  # max(B, 2b)
    cost: float  # c
    rate: float
    memory: float  # m, infinite for all rounds
    fading: float  # e^{−B/m}

    def limits(self) -> Limits:
        """A batch is full exactly if it holds B decisions; no arm was drawn that there is not."""
        full, arms = is_due(self.full), self.closed.size
        return {
            "closed": (self.open, MOST),
            "open": (np.where(full, self.batch, 0), np.where(full, MOST, self.batch - 1)),
            "waiting": COUNT,
            "playing": (np.array([-1, 0]), np.array([arms - 1, MOST])),
            "odds": (np.finfo(np.float64).tiny, 1.0),
            "chances": (0.0, 1.0),
        }

    def observed(self) -> int:
        """Rounds closed so far."""
        return int(self.closed.sum())

    def release(self, secret: Buffers, noise: Noise) -> None:
        """Release every batch that is full, and add it to its arm's gain by the odds of its draw."""
        while any_due(self.full):
            arm = take_due(self.full)
            release_batch(self.batches, secret, arm, noise)
            self.open[arm] = 0
            for other in range(self.gain.size):
                self.gain[other] *= self.fading
            self.gain[arm] += self.batches.last[arm, 0] / self.odds[arm]

    def select(self, context: None, explore: Chance) -> int:
        """The arm drawn last until its batch is decided; then another."""
        arm = int(self.playing[_ARM])
        if arm >= 0 and self.closed[arm] + self.waiting[arm] < self.playing[_UNTIL]:
            return arm
        return _draw(self, explore)

    def observe(self, secret: Buffers, context: None, action: int, reward: float) -> None:
        """Fill the arm's open batch; full means a number of decisions, with or without rewards."""
        secret.open[action, 0] += centred(reward)
        self.closed[action] += 1
        self.open[action] += 1
        if self.open[action] >= self.batch:
            make_due(self.full, action)


@register_jitable
def _draw(public: Weights, explore: Chance) -> int:
    """Draw an arm for a batch: by the exponential weights, mixed with uniform play."""
    arms, rounds, best = public.gain.size, 0.0, -math.inf
    for arm in range(arms):
        rounds += public.closed[arm] + public.waiting[arm]
        best = max(best, public.gain[arm])
    rounds = min(rounds, public.memory) + public.batch
    rate = public.rate * math.sqrt(math.log(arms) / (2.0 * public.cost * arms * rounds))
    rate = min(rate, 0.5 / (arms * public.reach))
    mixed, total = rate * arms * public.reach, 0.0
    for arm in range(arms):
        public.chances[arm] = math.exp(rate * (public.gain[arm] - best))
        total += public.chances[arm]
    left, drawn = explore.random(), -1
    for arm in range(arms):
        public.chances[arm] = (1.0 - mixed) * public.chances[arm] / total + mixed / arms
        left -= public.chances[arm]
        if drawn < 0 and left < 0.0:
            drawn = arm
    drawn = drawn if drawn >= 0 else arms - 1  # the chances add up to 1 but for rounding
    public.odds[drawn] = public.chances[drawn]
    public.playing[_ARM] = drawn
    public.playing[_UNTIL] = public.closed[drawn] + public.waiting[drawn] + public.batch
    return drawn


def start_weights(
    problem: Arms, privacy: Budget, batch: int | None, rate: float, memory: int | None
) -> tuple[Weights, Buffers]:
    """Nothing played yet."""
    arms = problem.arms
    batches, buffers = start_batches(arms, 1, 1.0, privacy, cumulative=False)
    variance = batches.scale * batches.scale * (2.0 if batches.laplace else 1.0)
    length = max(1, math.ceil(min(2.0 * batches.scale, checks.MOST_ROUNDS))) if batch is None else batch
    reach = max(float(length), 2.0 * batches.scale)
    public = Weights(
        closed=np.zeros(arms, np.int64),
        open=np.zeros(arms, np.int64),
        waiting=np.zeros(arms, np.int64),
        full=nothing_due(arms),
        playing=np.array([-1, 0]),
        batches=batches,
        gain=np.zeros(arms),
        odds=np.full(arms, 1.0 / arms),
        chances=np.zeros(arms),
        batch=length,
        reach=reach,
        cost=1.1 * (0.25 * length + variance / length) + reach,
        rate=rate,
        memory=math.inf if memory is None else float(memory),
        fading=1.0 if memory is None else math.exp(-length / memory),
    )
    return public, buffers


def of_released(public: Weights) -> Reading:
    """What may be read: the means of all batches that were released."""
    batches = public.batches
    size = public.closed - public.open
    return of_sums("arm", batches.total[:, 0], size, batches.variance, laplace=batches.laplace)
