"""Thompson sampling with Beta posteriors (Thompson 1933; Agrawal & Goyal 2012), without privacy."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise
from dpbandits.policies.arms.sampling import beta_sample
from dpbandits.policies.policy import Policy
from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit
from dpbandits.problems.arms import Arms, centred


class Secret(NamedTuple):
    """The last reward."""

    reward: NDArray[np.float64]  # (1,)


class Public(NamedTuple):
    """The posterior Beta(wins, losses) of every arm, and the last reward, not yet counted."""

    played: NDArray[np.int64]  # (1,) the arm of the last round, −1 if it is counted
    reward: NDArray[np.float64]  # (1,)
    wins: NDArray[np.float64]  # 1 + successes
    losses: NDArray[np.float64]  # 1 + failures

    def release(self, secret: Secret, noise: Noise) -> None:
        """Hand the last reward over exactly: a draw of scale 0."""
        if self.played[0] >= 0:
            self.reward[0] = noise.normal(secret.reward[0], 0.0)

    def select(self, context: None, explore: Chance) -> int:
        """Count the last reward, tossing a coin for a fraction; then the largest posterior sample."""
        arm = self.played[0]
        if arm >= 0:
            self.played[0] = -1
            reward = self.reward[0]
            if 0.0 < reward < 1.0:
                reward = 1.0 if explore.random() < reward else 0.0
            self.wins[arm] += reward
            self.losses[arm] += 1.0 - reward
        best, highest = 0, -1.0
        for arm in range(self.wins.size):
            value = beta_sample(self.wins[arm], self.losses[arm], explore)
            if value > highest:
                best, highest = arm, value
        return best

    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        """Keep the reward; a missing one is ½, a fair coin."""
        self.played[0] = action
        secret.reward[0] = centred(reward) + 0.5


@dataclass(frozen=True, kw_only=True)
class BetaThompson(Policy):
    r"""Draw every arm's mean from its Beta posterior and play the largest.

    **Definition.** θ_i ~ Beta(1 + S_i, 1 + F_i) with S_i successes and F_i failures of arm i; round t
    plays argmax_i θ_i. A reward r strictly between 0 and 1 counts as a success with probability r.

    **Guarantee.** None: the posteriors follow exact counts.

    **Regret.** (1 + η) Σ Δ_i ln T/kl(μ_i, μ*) + O(N/η²) for every η > 0 (Agrawal & Goyal 2013).

    >>> BetaThompson().start(Arms(3), seed=1).select() in range(3)
    True
    """

    problem_kind: ClassVar = Arms
    accepts: ClassVar = (NonPrivate,)
    paper: ClassVar[str] = "Agrawal & Goyal 2012, Algorithm 2"

    privacy: Budget = field(default_factory=NonPrivate)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """A uniform prior for every arm."""
        public = Public(
            played=np.full(1, -1, np.int64),
            reward=np.zeros(1),
            wins=np.ones(problem.arms),
            losses=np.ones(problem.arms),
        )
        return public, Secret(np.zeros(1))

    def guarantee(self, problem: Arms) -> Guarantee:
        """None."""
        return Guarantee(
            budget=NonPrivate(),
            unit=Unit.REWARD,
            trust=Trust.CENTRAL,
            public=problem.public_facts(),
            reason="the posteriors follow exact counts of successes",
        )
