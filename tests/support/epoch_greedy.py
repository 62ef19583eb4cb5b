"""A small private policy written outside the package, with a pause: what an outsider would write."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import Arms, Budget, GaussianDP, Guarantee, NonPrivate, Trust, TrustedPolicy, Unit
from dpbandits.engine import Chance, Noise
from dpbandits.policies.released import Reading, of_sums
from dpbandits.privacy.calibration import gaussian_scale
from dpbandits.problems.arms import centred


class Secret(NamedTuple):
    buffer: NDArray[np.float64]


class Public(NamedTuple):
    round: NDArray[np.int64]
    next_pause: NDArray[np.int64]
    open: NDArray[np.int64]  # decisions per arm in the open epoch
    seen: NDArray[np.int64]  # decisions per arm behind the released sums
    released: NDArray[np.float64]
    scale: float

    def release(self, secret: Secret, noise: Noise) -> None:
        """Nothing between pauses."""

    def select(self, context: None, explore: Chance) -> int:
        if self.seen[0] == 0 or explore.random() < 0.1:
            return int(explore.random() * self.seen.size)
        best = 0
        for arm in range(1, self.seen.size):
            if self.released[arm] * self.seen[best] > self.released[best] * self.seen[arm]:
                best = arm
        return best

    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        self.round[0] += 1
        self.open[action] += 1
        secret.buffer[action] += centred(reward)

    def pause(self, secret: Secret, noise: Noise) -> None:
        """Release every buffer once, with ordinary NumPy; each epoch is twice as long."""
        self.released[:] += noise.normal(secret.buffer, self.scale)  # type: ignore[arg-type]
        self.seen[:] += self.open
        self.open[:] = 0
        secret.buffer[:] = 0.0
        self.next_pause[0] = 2 * self.round[0]


@dataclass(frozen=True, kw_only=True)
class EpochGreedy(TrustedPolicy):
    """Explore a tenth of the time, otherwise play the best released mean.

    **Definition.** Epochs end at rounds 12, 24, 48, …; then every arm's sum of the epoch is released.

    **Guarantee.** One reward is in one buffer, released once with noise 1/μ: μ-GDP for any horizon.

    **Regret.** Linear, a tenth of uniform play's at least.
    """

    problem_kind: ClassVar = Arms
    accepts: ClassVar = (GaussianDP, NonPrivate)
    paper: ClassVar[str] = "none"

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        arms = problem.arms
        opened, seen = (np.zeros(arms, np.int64) for _ in range(2))
        first = np.full(1, 12, np.int64)
        scale = gaussian_scale(1.0, self.privacy)
        public = Public(np.zeros(1, np.int64), first, opened, seen, np.zeros(arms), scale)
        return public, Secret(np.zeros(arms))

    def released(self, problem: Arms, public: Public) -> Reading:
        epochs = np.log2(public.next_pause[0] / 12)
        return of_sums("arm", public.released, public.seen, epochs * public.scale**2)

    def guarantee(self, problem: Arms) -> Guarantee:
        return Guarantee(budget=self.privacy, unit=Unit.REWARD, trust=Trust.CENTRAL)


def epoch_greedy(privacy: Budget | None = None) -> EpochGreedy:
    return EpochGreedy(privacy=privacy or GaussianDP(1.0))
