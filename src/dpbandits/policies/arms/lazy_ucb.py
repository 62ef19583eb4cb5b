r"""UCB on doubling batches that forget (Hu, Huang & Mehta 2021, Anytime-Lazy-UCB)."""

import math
import sys
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import ANYTHING, COUNT, FLAG, Limits, exactly
from dpbandits.policies.arms.shared.choosing import largest_in_play
from dpbandits.policies.arms.shared.episodes import (
    Turns,
    close_batch,
    fill,
    first_needed,
    open_batch,
    start_turns,
)
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.arms.shared.tally import any_due
from dpbandits.policies.released import Reading, of_last_batches
from dpbandits.policies.returning import OncePerBatch
from dpbandits.privacy.budgets import LAPLACE_OR_NONE, Budget, NonPrivate, PureDP
from dpbandits.privacy.calibration import laplace_epsilon
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms
from dpbandits.sums.batches import Batches, Buffers, release_batch, start_batches

Array = NDArray[np.float64]


class Public(NamedTuple):
    """Every arm's last released batch, and how far its open one is."""

    round: NDArray[np.int64]  # (1,) decisions so far
    turns: Turns
    waiting: NDArray[np.int64]  # decisions in flight
    away: NDArray[np.bool_]  # arms not to be chosen
    batches: Batches
    size: NDArray[np.int64]  # n_i, decisions in the last released batch
    mean: Array  # x_i; −∞ before a release
    width: Array  # 1/√n_i, where decisions in flight count as well
    tail: Array  # 1/(ε n_i), likewise
    score: Array  # the index
    noise_scale: float  # 1/ε

    def limits(self) -> Limits:
        """Limits for arms that exist; before a release a mean is −∞."""
        return {
            "round": exactly(self.turns.observed() + self.waiting.sum()),
            "waiting": COUNT,
            "away": FLAG,
            "size": (np.minimum(self.turns.plays, 1), self.turns.plays),
            "mean": (-math.inf, sys.float_info.max),
            "score": ANYTHING,
        }

    def release(self, secret: Buffers, noise: Noise) -> None:
        """Release every batch that is full; it replaces what was known of its arm."""
        if any_due(self.turns.full):
            _close(self, secret, noise)

    def select(self, context: None, explore: Chance) -> int:
        """Each arm once, then the largest index."""
        arm = first_needed(self)
        if arm >= 0:
            return arm
        spread = 3.0 * math.log(self.round[0] + 1.0)
        radius = math.sqrt(spread)
        for arm in range(self.score.size):
            bonus = radius * self.width[arm] + spread * self.tail[arm]
            self.score[arm] = self.mean[arm] + bonus
        return largest_in_play(self.score, self.away, explore)

    def observe(self, secret: Buffers, context: None, action: int, reward: float) -> None:
        """Fill the arm's open batch; full means a number of decisions, with or without rewards."""
        self.round[0] += 1
        fill(self.turns, secret, action, reward)

    def wait(self, action: int, change: int) -> None:
        """A decision in flight is one of those so far, and makes its arm's bonus smaller."""
        self.round[0] += change
        self.waiting[action] += change
        if self.size[action] > 0:
            _restate(self, action)


@register_jitable
def _close(public: Public, secret: Buffers, noise: Noise) -> None:
    while any_due(public.turns.full):
        arm, size = close_batch(public.turns)
        open_batch(public.turns, arm, 2 * size)
        release_batch(public.batches, secret, arm, noise)
        public.size[arm] = size
        public.mean[arm] = public.batches.last[arm, 0] / size + 0.5
        _restate(public, arm)


@register_jitable(forceinline=True)
def _restate(public: Public, arm: int) -> None:
    counted = public.size[arm] + public.waiting[arm]
    public.width[arm] = 1.0 / math.sqrt(counted)
    public.tail[arm] = public.noise_scale / counted


def begin(problem: Arms, privacy: Budget) -> tuple[Public, Buffers]:
    """Every arm's first batch, of one decision, open."""
    arms = problem.slots
    epsilon = laplace_epsilon(privacy)
    noise: Budget = privacy if isinstance(privacy, NonPrivate) else PureDP(epsilon)
    batches, buffers = start_batches(arms, 1, 1.0, noise, cumulative=False)
    public = Public(
        round=np.zeros(1, np.int64),
        **start_turns(problem, 1),
        batches=batches,
        size=np.zeros(arms, np.int64),
        mean=np.full(arms, -math.inf),
        width=np.zeros(arms),
        tail=np.zeros(arms),
        score=np.zeros(arms),
        noise_scale=1.0 / epsilon,
    )
    return public, buffers


@dataclass(frozen=True, kw_only=True)
class LazyUCB(OncePerBatch):
    r"""Play the largest upper confidence bound, made of each arm's last batch and its Laplace noise.

    **Definition.** The batches of an arm have 1, 2, 4, … decisions; a full one is released and replaces
    the one before, which is forgotten. Every arm once; then round t plays

        argmax_i  x_i + √(3 ln t/n_i) + 3 ln t/(ε n_i),

    with x_i the released mean of the n_i decisions of the last full batch of arm i (the paper's T_i).
    Other arms may be played while a batch is open. Without privacy the last term is 0.

    **Guarantee.** Neighbours replace one reward. It is in one batch, whose sum moves by at most 1 and is
    released once with Laplace(1/ε) noise; batch ends count decisions, and choices are functions of
    released sums. So all decisions together are ε-DP, for any number of rounds. A μ-GDP budget
    is met by the ε at which one such release is μ-GDP.

    **Regret.** O(Σ ln T/min(Δ_i, ε)) (Hu, Huang & Mehta 2021). The constants 3 are those of Chandak,
    Hu & Hegde's Algorithm 2 at K = 1.

    >>> print(LazyUCB(privacy=PureDP(1.0)).guarantee(Arms(5)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = LAPLACE_OR_NONE
    paper: ClassVar[str] = "Hu, Huang & Mehta 2021, Anytime-Lazy-UCB"

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Every arm's first batch open."""
        return begin(problem, self.privacy)

    def released(self, problem: Arms, public: Public) -> Reading:
        """The means of the arms' last batches."""
        return of_last_batches("arm", public.batches, public.size, active=~public.away)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return arms_guarantee(self.privacy, problem)
