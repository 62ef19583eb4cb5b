r"""IMED with the privacy noise inside its index: the rule to beat at equal privacy."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.policies.arms.shared.batched_estimates import BatchedEstimates, release_estimate
from dpbandits.policies.arms.shared.choosing import largest
from dpbandits.policies.arms.shared.episodes import (
    Episode,
    InTurn,
    Turns,
    alike,
    any_full,
    arm_in_turn,
    begin_episode,
    decisions,
    is_known,
    start_episode,
    start_turns,
)
from dpbandits.policies.arms.shared.estimates import Estimates, start_estimates
from dpbandits.policies.arms.shared.schedules import next_length
from dpbandits.privacy.budgets import PureDP
from dpbandits.problems.arms import Arms
from dpbandits.sums.batches import Batches, Buffers, start_batches

Array = NDArray[np.float64]


class _Fields(NamedTuple):
    turns: Turns
    waiting: NDArray[np.int64]  # decisions in flight
    away: NDArray[np.bool_]  # arms not to be chosen
    episode: Episode
    batches: Batches
    estimates: Estimates
    score: Array  # minus the index
    first_batch: int
    growth: float
    grace: float


class Public(InTurn, _Fields):
    """Released sums, and for each arm what they say about its mean."""

    def release(self, secret: Buffers, noise: Noise) -> None:
        """Release every batch that is full, and restate what is known of its arm."""
        if any_full(self):
            _close(self, secret, noise)

    def select(self, context: None, explore: Chance) -> int:
        """Go on with the episode; otherwise the arm of the smallest index, for a new one."""
        arm = arm_in_turn(self)
        return arm if arm >= 0 else _play_batch(self, _choose(self, explore))


@register_jitable
def _close(public: Public, secret: Buffers, noise: Noise) -> None:
    while any_full(public):
        release_estimate(public, secret, noise)


@register_jitable
def _choose(public: Public, explore: Chance) -> int:
    known = public.estimates
    best = 0.0
    for arm in range(known.mean.size):
        if is_known(public, arm):
            best = max(best, known.mean[arm])
    best = min(best, 1.0)
    for arm in range(known.mean.size):
        public.score[arm] = -math.inf
        if is_known(public, arm):
            noise = known.variance[arm], known.tail[arm], known.draws[arm]
            grown = alike(public, arm)
            evidence = evidence_against(known.weight[arm] * grown, known.mean[arm], best, *noise)
            plays = public.turns.plays[arm] * grown
            public.score[arm] = -max(0.0, evidence - public.grace) - math.log(plays)
    return largest(public.score, explore)


@register_jitable(forceinline=True)
def _play_batch(public: Public, arm: int) -> int:
    length = next_length(public.first_batch, public.growth, decisions(public, arm))
    return begin_episode(public, arm, length)


@register_jitable(forceinline=True)
def evidence_against(n: float, x: float, q: float, variance: float, b: float, m: float) -> float:
    """R = −ln(2 P[released mean ≤ x | true mean q]) by a saddlepoint; 0 where x ≥ q."""
    if x >= q:
        return 0.0
    low, high = 0.0, 1.0
    if b > 0.0:
        high = (1.0 - 1e-9) / b
    else:
        while high < 512.0 and _slope(high, n, x, q, variance, b, m) > 0.0:
            low, high = high, 2.0 * high
    for _ in range(52):
        tilt = 0.5 * (low + high)
        if _slope(tilt, n, x, q, variance, b, m) > 0.0:
            low = tilt
        else:
            high = tilt
    tilt = 0.5 * (low + high)
    falling = q * math.exp(-tilt)
    mass = 1.0 - q + falling
    share = falling / mass if mass > 0.0 else 1.0
    # ln of e^{-tilt} is exact where mass underflows: q = 1.
    log_mass = math.log(mass) if mass > 1e-300 else -tilt
    reach = 1.0 - tilt * tilt * b * b
    exponent = -tilt * n * x - n * log_mass - 0.5 * tilt * tilt * variance + m * math.log(reach)
    width = n * share * (1.0 - share) + variance + 2.0 * m * b * b * (2.0 - reach) / (reach * reach)
    return exponent - log_erfcx(tilt * math.sqrt(width / 2.0))


@register_jitable(forceinline=True)
def _slope(tilt: float, n: float, x: float, q: float, variance: float, b: float, m: float) -> float:
    """The derivative in the tilt of −l·n·x − n ln(1−q+q e^−l) − l²σ²/2 + m ln(1−l²b²)."""
    falling = q * math.exp(-tilt)
    mass = 1.0 - q + falling
    share = falling / mass if mass > 1e-300 else 1.0
    return n * (share - x) - tilt * variance - 2.0 * m * tilt * b * b / (1.0 - tilt * tilt * b * b)


@register_jitable(forceinline=True)
def log_erfcx(x: float) -> float:
    """ln(e^{x²} erfc(x)) for x ≥ 0."""
    if x < 10.0:
        return x * x + math.log(math.erfc(x))
    u = 0.5 / (x * x)
    return math.log((1.0 - u * (1.0 - 3.0 * u * (1.0 - 5.0 * u))) / (x * math.sqrt(math.pi)))


@dataclass(frozen=True, kw_only=True)
class NoiseAwareIMED(BatchedEstimates):
    r"""Play the arm that the least evidence speaks against, counting the privacy noise as evidence lost.

    **Definition.** Arms are played in batches: one of `first_batch` for each arm, then
    max(first_batch, ⌈growth·n_i⌉) for the arm chosen. After each batch its noisy sum is released. With
    x_i the estimated means and q = min(1, max x_j), the next batch goes to

        argmin_i  max(0, R_i − grace) + ln n_i,    R_i = −ln(2·P[released mean ≤ x_i | true mean q]),

    with R_i by a saddlepoint approximation for n_i Bernoulli rewards plus the noise. Under ε-DP batches
    have independent Laplace noise and x_i is precision-weighted; under Gaussian budgets they are
    block-factorized.

    **Guarantee.** Neighbours replace one reward. It is in one batch, of sensitivity 1, and batch ends
    and choices are functions of released sums and counts of decisions. So all decisions together cost
    one release: ε-DP with Laplace(1/ε), μ-GDP with block-factorized noise (`sums/batches.py`), for any
    number of rounds.

    **Regret.** No bound is claimed; measured in the leaderboard, with its worst runs. Defaults:
    first_batch = max(4, 16/ε), growth ½ and grace 1 (ε ≥ ¼), 2 (ε ≥ 0.1) or 2.5 under ε-DP;
    max(8, 16/μ), ¼ and 1.5 under Gaussian budgets. The chance that the best arm is lost until T is about
    first_batch·e^−grace/(2T), which is why a small ε needs more grace.

    >>> policy = NoiseAwareIMED(privacy=PureDP(1.0))
    >>> print(policy.guarantee(Arms(5)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "dpbandits, after Honda & Takemura 2015"

    grace: Annotated[
        float | None, "Evidence against an arm that is overlooked: more of it explores more."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grace is not None:
            checks.width(grace=self.grace)

    def schedule(self) -> tuple[int, float, float]:
        """First batch, growth and grace as used: those given, the defaults otherwise."""
        grace = 1.0 if isinstance(self.privacy, PureDP) else 1.5
        if isinstance(self.privacy, PureDP) and self.privacy.epsilon < 0.25:
            grace = 2.0 if self.privacy.epsilon >= 0.1 else 2.5
        return *self._batches(), grace if self.grace is None else self.grace

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Nothing played yet."""
        arms = problem.slots
        batches, buffers = start_batches(arms, 1, 1.0, self.privacy, block=self.block)
        first_batch, growth, grace = self.schedule()
        public = Public(
            **start_turns(problem, first_batch),
            episode=start_episode(),
            batches=batches,
            estimates=start_estimates(arms),
            score=np.zeros(arms),
            first_batch=first_batch,
            growth=growth,
            grace=grace,
        )
        return public, buffers
