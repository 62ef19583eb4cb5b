r"""GP-UCB on finite sets (Srinivas, Krause, Kakade & Seeger 2010), not private."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, Limits
from dpbandits.policies.kernel.shared.epochs import Array
from dpbandits.policies.kernel.shared.protection import no_guarantee
from dpbandits.policies.released import Reading, Z, of_values
from dpbandits.policies.ties import better
from dpbandits.policies.trusted import WithoutBudget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.kernel_contexts import Features, KernelContexts, bounded


class Secret(NamedTuple):
    """Nothing is hidden."""

    nothing: Array  # (0,)


class Public(NamedTuple):
    """The posterior of the mean reward at every pair, which is raw data here: nothing is promised."""

    round: NDArray[np.int64]  # (1,) decisions so far
    mean: Array  # (|W|,)
    variance: Array  # (|W|,)
    inverse: Array  # (m, m) covariance of θ
    fresh: Array  # (|W|, 2) count and sum of rewards that are not in it yet
    seen: NDArray[np.int64]  # (|W|,) rewards that are
    moved: Array  # (m,) scratch
    features: Features
    actions: int
    noise: float  # λ, the variance of one reward
    bound: float
    width: float
    delay: float

    def limits(self) -> Limits:
        """It counts."""
        return {"round": COUNT, "seen": COUNT}

    def release(self, secret: Secret, noise: Noise) -> None:
        """There is nothing to release."""

    def select(self, context: int, explore: Chance) -> int:
        """The largest upper confidence bound; of equal ones any."""
        first = context * self.actions
        highest, best, ties = -math.inf, 0, 1
        level = math.sqrt(math.log(self.round[0] + 2.0))
        for action in range(self.actions):
            spread = math.sqrt(max(float(self.variance[first + action]), 0.0))
            index = float(self.mean[first + action]) + self.width * level * spread
            highest, best, ties = better(index, action, highest, best, ties, 0.0, explore)
        return best

    def observe(self, secret: Secret, context: int, action: int, reward: float) -> None:
        """Count the reward; update the posterior once enough of them wait at this pair."""
        self.round[0] += 1
        pair = context * self.actions + action
        if reward == reward:
            self.fresh[pair, 0] += 1.0
            self.fresh[pair, 1] += bounded(reward, self.bound)
        count = float(self.fresh[pair, 0])
        if count < 1.0 or count < self.delay * self.seen[pair]:
            return
        size = self.moved.size
        surprise = float(self.fresh[pair, 1]) / count - float(self.mean[pair])
        scale = self.noise / count + float(self.variance[pair])
        for row in range(size):
            value = 0.0
            for axis in range(size):
                value += self.inverse[row, axis] * self.features.rows[pair, axis]
            self.moved[row] = value
        for row in range(size):
            for axis in range(size):
                self.inverse[row, axis] -= self.moved[row] * self.moved[axis] / scale
        for other in range(self.mean.size):
            shared = 0.0
            for axis in range(size):
                shared += self.features.rows[other, axis] * self.moved[axis]
            self.mean[other] += shared * surprise / scale
            self.variance[other] -= shared * shared / scale
        self.seen[pair] += int(count)
        self.fresh[pair, 0] = 0.0
        self.fresh[pair, 1] = 0.0


@dataclass(frozen=True, kw_only=True)
class KernelUCB(WithoutBudget):
    r"""Play the largest upper confidence bound of the Gaussian-process posterior. Not private.

    **Definition.** With the posterior mean m(w) and deviation s(w) of a Gaussian process with covariance
    B²·k and rewards of variance λ = `reward_variance`·B² around it, round t in context c plays

        argmax_x  m(c, x) + `width`·s(c, x)·√ln(t + 1),

    ties at random. A pair's new rewards enter the posterior when they number `delay` times those already
    in it, so that its cost does not grow with the number of rounds (0: all at once).

    **Guarantee.** None: contexts and rewards decide as they are.

    **Regret.** Õ(γ_T √T) for widths of the size of the theory (Srinivas et al. 2010).

    >>> print(KernelUCB().guarantee(KernelContexts.testing.example(None)))
    No privacy guarantee: it decides by raw contexts and rewards.
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = KernelContexts
    paper: ClassVar[str] = "Srinivas, Krause, Kakade & Seeger 2010"

    width: Annotated[float, "A factor on the width of the confidence bounds."] = 0.5
    reward_variance: Annotated[
        float, "The variance of rewards that is assumed, in units of max_reward²."
    ] = 1.0
    delay: Annotated[
        float, "New rewards of a pair are used once they number this share of the old ones."
    ] = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(width=self.width, reward_variance=self.reward_variance)
        checks.width(delay=self.delay)

    def begin(self, problem: KernelContexts) -> tuple[Any, Any]:
        """The prior."""
        features, bound = problem.features(), float(problem.max_reward)
        size, pairs = features.rows.shape[1], problem.pairs
        public = Public(
            round=np.zeros(1, np.int64),
            mean=np.zeros(pairs),
            variance=bound**2 * np.einsum("wm,wm->w", features.rows, features.rows),
            inverse=bound**2 * np.eye(size),
            fresh=np.zeros((pairs, 2)),
            seen=np.zeros(pairs, np.int64),
            moved=np.zeros(size),
            features=features,
            actions=len(problem.actions),
            noise=self.reward_variance * bound**2,
            bound=bound,
            width=self.width,
            delay=self.delay,
        )
        return public, Secret(np.zeros(0))

    def released(self, problem: KernelContexts, public: Public) -> Reading:
        """The posterior as it is; that of a pair that was never played rests on others alike."""
        mean, half = public.mean, Z * np.sqrt(np.maximum(public.variance, 0.0))
        if not public.seen.any():
            mean, half = np.full((2, mean.size), np.nan)
        shape = -1, public.actions
        return of_values("pair", mean.reshape(shape), half.reshape(shape), bound=public.bound)

    def guarantee(self, problem: KernelContexts) -> Guarantee:
        """None."""
        return no_guarantee(problem, "it decides by raw contexts and rewards")
