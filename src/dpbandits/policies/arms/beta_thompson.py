"""Thompson sampling with Beta posteriors (Thompson 1933; Agrawal & Goyal 2012), without privacy."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, MOST, Limits
from dpbandits.policies.arms.shared.protection import no_guarantee
from dpbandits.policies.arms.shared.sampling import beta_sample
from dpbandits.policies.arms.shared.tally import Due, any_due, make_due, nothing_due, take_due
from dpbandits.policies.released import Reading, of_sums
from dpbandits.policies.trusted import WithoutBudget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms, centred


class Secret(NamedTuple):
    """Rewards that are not handed over yet."""

    reward: NDArray[np.float64]  # Σ r


class Public(NamedTuple):
    """The posterior Beta(wins, losses) of every arm, and the rewards not yet counted."""

    due: Due  # arms that have such
    fresh: NDArray[np.int64]  # how many
    reward: NDArray[np.float64]  # their sum
    wins: NDArray[np.float64]  # 1 + successes
    losses: NDArray[np.float64]  # 1 + failures

    def limits(self) -> Limits:
        """Posteriors that can be drawn from."""
        return {"fresh": COUNT, "wins": (1, MOST), "losses": (1, MOST)}

    def observed(self) -> int:
        """Rounds closed so far."""
        return int((self.wins + self.losses - 2.0 + self.fresh).sum())

    def release(self, secret: Secret, noise: Noise) -> None:
        """Hand new rewards over exactly: a draw of scale 0."""
        arm = self.due.first[0]
        while arm >= 0:
            self.reward[arm] += noise.normal(secret.reward[arm], 0.0)
            secret.reward[arm] = 0.0
            arm = self.due.after[arm]

    def select(self, context: None, explore: Chance) -> int:
        """Count new rewards, tossing a coin for a fraction; then the largest posterior sample."""
        while any_due(self.due):
            _count(self, take_due(self.due), explore)
        best, highest = 0, -1.0
        for arm in range(self.wins.size):
            value = beta_sample(self.wins[arm], self.losses[arm], explore)
            if value > highest:
                best, highest = arm, value
        return best

    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        """Keep the reward; a missing one is ½, a fair coin."""
        make_due(self.due, action)
        self.fresh[action] += 1
        secret.reward[action] += centred(reward) + 0.5


@register_jitable(forceinline=True)
def _count(public: Public, arm: int, explore: Chance) -> None:
    reward = float(public.reward[arm])
    wins = min(max(math.floor(reward), 0), public.fresh[arm])
    if wins < reward and explore.random() < reward - wins:
        wins += 1
    public.wins[arm] += wins
    public.losses[arm] += public.fresh[arm] - wins
    public.fresh[arm] = 0
    public.reward[arm] = 0.0


@dataclass(frozen=True, kw_only=True)
class BetaThompson(WithoutBudget):
    r"""Draw every arm's mean from its Beta posterior and play the largest.

    **Definition.** θ_i ~ Beta(1 + S_i, 1 + F_i) with S_i successes and F_i failures of arm i; round t
    plays argmax_i θ_i. A reward r strictly between 0 and 1 counts as a success with probability r; where
    several of an arm are closed at once, the fraction of their sum does.

    **Guarantee.** None: the posteriors follow exact counts.

    **Regret.** (1 + η) Σ Δ_i ln T/kl(μ_i, μ*) + O(N/η²) for every η > 0 (Agrawal & Goyal 2013).

    >>> BetaThompson().start(Arms(3), seed=1).select() in range(3)
    True
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    paper: ClassVar[str] = "Agrawal & Goyal 2012, Algorithm 2"

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """A uniform prior for every arm."""
        arms = problem.arms
        public = Public(
            due=nothing_due(arms),
            fresh=np.zeros(arms, np.int64),
            reward=np.zeros(arms),
            wins=np.ones(arms),
            losses=np.ones(arms),
        )
        return public, Secret(np.zeros(arms))

    def released(self, problem: Arms, public: Public) -> Reading:
        """The arms' exact means."""
        wins, losses = public.wins, public.losses
        return of_sums("arm", 0.5 * (wins - losses), wins + losses - 2.0, 0.0)

    def guarantee(self, problem: Arms) -> Guarantee:
        """None."""
        return no_guarantee(problem, "the posteriors follow exact counts of successes")
