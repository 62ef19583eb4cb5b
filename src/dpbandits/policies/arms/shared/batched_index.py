"""Index policies that play their choice for a whole batch, paid for by one Laplace draw per batch.

What `AdaptiveUCB`, `AdaptiveKLUCB`, `PrivateKLUCB` and `PrivateIMED` share: the batches, the state, and
the argument for their privacy. Each brings a state class of its own with a `select`, and its index.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import Limits
from dpbandits.policies.arms.shared.choosing import largest
from dpbandits.policies.arms.shared.episodes import (
    Episode,
    InTurn,
    Turns,
    alike,
    any_full,
    arm_in_turn,
    begin_episode,
    close_batch,
    decisions,
    is_known,
    open_batch,
    start_episode,
    start_turns,
)
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.released import Reading, of_last_batches, of_sums
from dpbandits.policies.returning import OncePerBatch
from dpbandits.privacy.budgets import LAPLACE_OR_NONE, Budget, NonPrivate, PureDP
from dpbandits.privacy.calibration import laplace_epsilon
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms
from dpbandits.sums.batches import Batches, Buffers, release_batch, start_batches


class _Fields(NamedTuple):
    turns: Turns
    waiting: NDArray[np.int64]  # decisions in flight
    away: NDArray[np.bool_]  # arms not to be chosen
    episode: Episode
    batches: Batches
    size: NDArray[np.int64]  # n_i, the decisions behind the mean
    mean: NDArray[np.float64]  # x_i, in [0, 1] only up to noise
    score: NDArray[np.float64]  # the index; the largest is played
    forgets: bool  # the mean is that of the last batch alone
    growth: float  # a batch is this many times as long as all before it
    epsilon: float
    alpha: float


class Indexed(InTurn, _Fields):
    """Released batches and the means they give."""

    def limits(self) -> Limits:
        """Limits for arms that exist; no batch is longer than all that was played."""
        return {**super().limits(), "size": (np.minimum(self.turns.plays, 1), self.turns.plays)}

    def release(self, secret: Buffers, noise: Noise) -> None:
        """Release every batch that is full, and restate its arm's mean."""
        if any_full(self):
            _close(self, secret, noise)

    def select(self, context: None, explore: Chance) -> int:
        """Go on with the episode; otherwise the arm of the largest score, for its next batch."""
        arm = arm_in_turn(self)
        return arm if arm >= 0 else _choose(self, explore)

    def restate(self) -> None:
        """The score of every arm that is known."""
        log_t = log_round(self)
        for arm in range(self.size.size):
            if is_known(self, arm):
                self.score[arm] = self.index_of(arm, log_t)

    def index_of(self, arm: int, log_t: float) -> float:
        """The index of an arm that is known: each policy's own."""
        raise NotImplementedError


@register_jitable
def _close(public: Indexed, secret: Buffers, noise: Noise) -> None:
    while any_full(public):
        arm, size = close_batch(public.turns)
        plays = public.turns.plays[arm]
        open_batch(public.turns, arm, _next_length(public.growth, plays))
        release_batch(public.batches, secret, arm, noise)
        if public.forgets:
            public.size[arm] = size
            public.mean[arm] = public.batches.last[arm, 0] / size + 0.5
        else:
            public.size[arm] = plays
            public.mean[arm] = public.batches.total[arm, 0] / plays + 0.5


@register_jitable(forceinline=True)
def _next_length(growth: float, plays: int) -> int:
    # 1.1·10 is 11 and a little more in floating point.
    return max(1, math.ceil((1.0 + growth) * plays - 1e-9) - plays)


@register_jitable
def _choose(public: Indexed, explore: Chance) -> int:
    """An arm to be played until its decisions have grown from N to ⌈(1 + growth)·N⌉."""
    for arm in range(public.score.size):
        public.score[arm] = -math.inf
    public.restate()
    arm = largest(public.score, explore)
    return begin_episode(public, arm, _next_length(public.growth, decisions(public, arm)))


@register_jitable(forceinline=True)
def size_of(public: Indexed, arm: int) -> float:
    """n_i, with decisions that are not released yet as if they had come back alike."""
    return float(public.size[arm] * alike(public, arm))


@register_jitable(forceinline=True)
def log_round(public: Indexed) -> float:
    """The logarithm of the round in which an episode begins."""
    count = 1.0
    for arm in range(public.size.size):
        count += decisions(public, arm)
    return math.log(count)


@register_jitable(forceinline=True)
def unit_interval(x: float) -> float:
    """The nearest number in [0, 1]."""
    return min(max(x, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class BatchedIndex(OncePerBatch):
    """A policy whose every reward is in one Laplace release.

    One Laplace release at ε also meets μ-GDP where ε = −2 ln(2Φ(−μ/2)), so both kinds of budget are met
    by the same policy at the ε that suffices.
    """

    abstract: ClassVar[bool] = True
    problem_kind: ClassVar = Arms
    accepts: ClassVar = LAPLACE_OR_NONE
    state: ClassVar[type[Indexed]]
    forgets: ClassVar[bool]

    def _begin(self, problem: Arms, first_batch: int, growth: float, alpha: float) -> tuple[Any, Any]:
        arms, epsilon = problem.slots, laplace_epsilon(self.privacy)
        # By kind, not by size: a budget too large for an ε must not pass for none.
        budget: Budget = self.privacy if isinstance(self.privacy, NonPrivate) else PureDP(epsilon)
        batches, buffers = start_batches(arms, 1, 1.0, budget, cumulative=False)
        public = self.state(
            **start_turns(problem, first_batch),
            episode=start_episode(),
            batches=batches,
            size=np.zeros(arms, np.int64),
            mean=np.zeros(arms),
            score=np.zeros(arms),
            forgets=self.forgets,
            growth=growth,
            epsilon=epsilon,
            alpha=alpha,
        )
        return public, buffers

    def released(self, problem: Arms, public: Indexed) -> Reading:
        """The arms' means, or those of their last batches."""
        batches, active = public.batches, ~public.away
        if public.forgets:
            return of_last_batches("arm", batches, public.size, active=active)
        noise: dict[str, Any] = {"variance": batches.variance, "laplace": batches.laplace}
        return of_sums("arm", batches.total[:, 0], public.size, **noise, active=active)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return arms_guarantee(self.privacy, problem)


@dataclass(frozen=True, kw_only=True)
class ForgetfulIndex(BatchedIndex):
    """Batches that double, of which only the last counts (Azize & Basu 2022)."""

    abstract: ClassVar[bool] = True
    forgets: ClassVar[bool] = True

    alpha: Annotated[float, "The exploration rate: the index is about α ln t wide."] = 3.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(alpha=self.alpha)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Nothing played yet; the batches of an arm are 1, 1, 2, 4, 8 and so on."""
        return self._begin(problem, 1, 1.0, self.alpha)


@dataclass(frozen=True, kw_only=True)
class CumulativeIndex(BatchedIndex):
    """Batches that grow with what came before, all of which count (Azize et al. 2025)."""

    abstract: ClassVar[bool] = True
    forgets: ClassVar[bool] = False

    first_batch: Annotated[int, "The first batch of an arm, in rounds."] = 1
    growth: Annotated[float, "A batch is this many times as long as all batches before it together."] = (
        1.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(least=1, first_batch=self.first_batch)
        checks.growth(growth=self.growth)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Nothing played yet; the level is ln t as it is."""
        return self._begin(problem, self.first_batch, self.growth, 1.0)
