r"""Successive elimination on fresh noisy means (Sajed & Sheffet 2019, DP-SE)."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, MOST, Limits, exactly, places
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.arms.shared.schedules import whole_length
from dpbandits.policies.released import Reading, of_last_batches
from dpbandits.policies.returning import OncePerBatch
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import LAPLACE_OR_NONE, Budget, NonPrivate, PureDP
from dpbandits.privacy.calibration import laplace_epsilon
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms, centred
from dpbandits.sums.batches import Batches, Buffers, release_batch, start_batches

# β where no horizon is declared, which only a policy without privacy allows.
_DEFAULT_FAILURE = 1e-6
# No epoch after this one would end.
_LONGEST = 40


class Public(NamedTuple):
    """The arms still in play, the epoch, and the means of the last one."""

    epoch: NDArray[np.int64]  # (1,) e
    pulls: NDArray[np.int64]  # (1,) R_e
    short: NDArray[np.int64]  # (1,) active arms with fewer closed in this epoch; −1 once one is left
    turn: NDArray[np.int64]  # (1,) whose turn it is in `active`
    alive: NDArray[np.int64]  # (1,) |S|
    active: NDArray[np.int64]  # S, in its first |S| places
    dropped: NDArray[np.bool_]  # whether an arm is not in S
    open: NDArray[np.int64]  # decisions closed in this epoch
    batches: Batches
    mean: NDArray[np.float64]
    size: NDArray[np.int64]  # the decisions behind it
    failure: float  # β
    noise_scale: float  # 1/ε
    epoch_scale: float

    def limits(self) -> Limits:
        """The active arms are different ones, and all others are dropped."""
        arms, alive = self.dropped.size, int(self.alive[0])
        active = np.isin(np.arange(arms), self.active[: max(alive, 0)])
        short = np.count_nonzero(active & (self.open < self.pulls[0])) if alive > 1 else -1
        return {
            "epoch": (1, _LONGEST),
            "pulls": (1, MOST),
            "short": exactly(short),
            "turn": (0, alive - 1),
            "alive": (1, arms),
            "active": places(self.active, arms, alive),
            "dropped": exactly(~active),
            "open": COUNT,
            "size": COUNT,
        }

    def release(self, secret: Buffers, noise: Noise) -> None:
        """At the end of an epoch, release every active arm's mean and drop the arms that are worse."""
        if self.short[0] == 0:
            _close_epoch(self, secret, noise)

    def select(self, context: None, explore: Chance) -> int:
        """The active arms in turn."""
        turn = int(self.turn[0])
        self.turn[0] = turn + 1 if turn + 1 < self.alive[0] else 0
        return int(self.active[turn])

    def observe(self, secret: Buffers, context: None, action: int, reward: float) -> None:
        """Fill the arm's batch; once a single arm is left, nothing is kept any more."""
        if self.short[0] >= 0 and not self.dropped[action]:
            secret.open[action, 0] += centred(reward)
            self.open[action] += 1
            if self.open[action] == self.pulls[0]:
                self.short[0] -= 1


@register_jitable
def _close_epoch(public: Public, secret: Buffers, noise: Noise) -> None:
    for place in range(public.alive[0]):
        arm = public.active[place]
        release_batch(public.batches, secret, arm, noise)
        public.mean[arm] = public.batches.last[arm, 0] / public.open[arm] + 0.5
        public.size[arm] = public.open[arm]
        public.open[arm] = 0
    _eliminate(public)
    _open_epoch(public)


@register_jitable
def _open_epoch(public: Public) -> None:
    public.turn[0] = 0
    if public.alive[0] == 1:
        public.short[0] = -1
        return
    public.epoch[0] += 1
    gap = 0.5 ** public.epoch[0]
    sampling = 32.0 * _log_union(public, 8.0) / (gap * gap)
    privacy = 8.0 * _log_union(public, 4.0) * public.noise_scale / gap
    public.pulls[0] = whole_length(public.epoch_scale * max(sampling, privacy)) + 1
    public.short[0] = public.alive[0]


@register_jitable
def _eliminate(public: Public) -> None:
    """Drop a if max x − x_a > 2h + 2c."""
    best = -math.inf
    for place in range(public.alive[0]):
        best = max(best, public.mean[public.active[place]])
    pulls = public.pulls[0]
    sampling = math.sqrt(_log_union(public, 8.0) / (2.0 * pulls))
    privacy = _log_union(public, 4.0) * public.noise_scale / pulls
    kept = 0
    for place in range(public.alive[0]):
        arm = public.active[place]
        if best - public.mean[arm] <= 2.0 * sampling + 2.0 * privacy:
            public.active[kept] = arm
            kept += 1
        else:
            public.dropped[arm] = True
    public.alive[0] = kept


@register_jitable(forceinline=True)
def _log_union(public: Public, factor: float) -> float:
    """Ln(factor·|S| e²/β): a union bound over arms and epochs."""
    epoch = float(public.epoch[0])
    return math.log(factor * public.alive[0] * epoch * epoch / public.failure)


@dataclass(frozen=True, kw_only=True)
class SuccessiveElimination(OncePerBatch):
    r"""Play all remaining arms equally often, in ever longer epochs, and drop those that are worse.

    **Definition.** S is all arms, β = 1/T. Epoch e = 1, 2, … with Δ_e = 2^−e plays each arm of S, in
    turn,

        R_e = ⌈max(32 ln(8|S|e²/β)/Δ_e², 8 ln(4|S|e²/β)/(ε Δ_e))⌉ + 1

    times, releases the mean x_a of these rewards alone for each, and drops from S every a with
    max x − x_a > 2h + 2c, h = √(ln(8|S|e²/β)/(2R_e)), c = ln(4|S|e²/β)/(ε R_e). The last arm is played
    for ever. Without privacy c and the second term of R_e are 0. `epoch_scale` multiplies the maximum in
    R_e: shorter epochs at the same privacy, with the bounds h and c of the pulls really made. With
    rounds in flight an epoch lasts until R_e rounds of every arm of S are closed, x_a is the mean of
    all that are, and those still in flight count in the next epoch.

    **Guarantee.** Neighbours replace one reward. It is in the sum of one arm in one epoch, which moves
    by at most 1 and is released once with Laplace(1/ε) noise; epoch lengths and S are functions of
    released means. So all decisions together are ε-DP. A μ-GDP budget is met by the ε at which one
    such release is μ-GDP. The horizon only sets β: the guarantee holds beyond it too.

    **Regret.** O(Σ ln T/Δ_i + N ln T/ε), optimal up to constants (Sajed & Sheffet 2019). The
    constants are large: nothing is dropped before every arm has had about 128 ln(8N T) pulls.

    >>> public, _ = SuccessiveElimination(privacy=PureDP(1.0)).begin(Arms(5, horizon=100_000))
    >>> int(public.pulls[0])
    1947
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = LAPLACE_OR_NONE
    paper: ClassVar[str] = "Sajed & Sheffet 2019, DP-SE"
    testing: ClassVar = PolicyTesting(epoch_scale=0.001)
    needs_horizon: ClassVar[bool] = True

    epoch_scale: Annotated[float, "A factor on the length of epochs; 1 is as printed."] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(epoch_scale=self.epoch_scale)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """The first epoch open, with every arm."""
        arms = problem.arms
        epsilon = laplace_epsilon(self.privacy)
        noise: Budget = self.privacy if isinstance(self.privacy, NonPrivate) else PureDP(epsilon)
        batches, buffers = start_batches(arms, 1, 1.0, noise, cumulative=False)
        public = Public(
            epoch=np.zeros(1, np.int64),
            pulls=np.zeros(1, np.int64),
            short=np.zeros(1, np.int64),
            turn=np.zeros(1, np.int64),
            alive=np.full(1, arms, np.int64),
            active=np.arange(arms),
            dropped=np.zeros(arms, np.bool_),
            open=np.zeros(arms, np.int64),
            batches=batches,
            mean=np.zeros(arms),
            size=np.zeros(arms, np.int64),
            failure=_DEFAULT_FAILURE if problem.horizon is None else 1.0 / problem.horizon,
            noise_scale=1.0 / epsilon,
            epoch_scale=self.epoch_scale,
        )
        _open_epoch(public)
        return public, buffers

    def released(self, problem: Arms, public: Public) -> Reading:
        """The means of each arm's last epoch; those that were dropped are out of play."""
        return of_last_batches("arm", public.batches, public.size, active=~public.dropped)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for any number of rounds."""
        self.check(problem)
        return arms_guarantee(self.privacy, problem, horizon=True)
