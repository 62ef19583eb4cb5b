"""UCB1 (Auer, Cesa-Bianchi & Fischer 2002): the classical upper confidence bound, without privacy."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import ANYTHING, Limits
from dpbandits.policies.arms.shared.choosing import largest
from dpbandits.policies.arms.shared.protection import no_guarantee
from dpbandits.policies.arms.shared.tally import (
    Tally,
    any_due,
    count_closed,
    count_in_flight,
    fewest,
    of_exact_means,
    start_tally,
    take_due,
)
from dpbandits.policies.released import Reading
from dpbandits.policies.trusted import WithoutBudget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms, centred


class Secret(NamedTuple):
    """Sums of centred rewards."""

    total: NDArray[np.float64]  # Σ (r − ½)


class Public(NamedTuple):
    """Means of all rewards so far, and how wide their confidence intervals are."""

    tally: Tally
    mean: NDArray[np.float64]  # x_i
    width: NDArray[np.float64]  # 1/√n_i
    score: NDArray[np.float64]  # the index

    def limits(self) -> Limits:
        """The index may be anything."""
        return {"score": ANYTHING}

    def release(self, secret: Secret, noise: Noise) -> None:
        """Restate the means of arms with new rewards, exactly: draws of scale 0."""
        while any_due(self.tally.due):
            arm = take_due(self.tally.due)
            total = noise.normal(secret.total[arm], 0.0)
            self.mean[arm] = total / self.tally.closed[arm] + 0.5

    def select(self, context: None, explore: Chance) -> int:
        """Each arm once, then the largest index."""
        if self.tally.unknown[0] > 0:
            return fewest(self.tally.plays)
        radius = math.sqrt(2.0 * math.log(self.tally.round[0]))
        for arm in range(self.score.size):
            self.score[arm] = self.mean[arm] + radius * self.width[arm]
        return largest(self.score, explore)

    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        """Add the reward up; a missing one counts ½."""
        count_closed(self.tally, action)
        self.width[action] = 1.0 / math.sqrt(self.tally.plays[action])
        secret.total[action] += centred(reward)

    def wait(self, action: int, change: int) -> None:
        """A decision in flight counts in its arm's confidence interval."""
        count_in_flight(self.tally, action, change)
        self.width[action] = 1.0 / math.sqrt(max(self.tally.plays[action], 1))


@dataclass(frozen=True, kw_only=True)
class UCB1(WithoutBudget):
    r"""Play the arm with the largest upper confidence bound on its mean.

    **Definition.** Every arm once; then, after t rounds, argmax_i x_i + √(2 ln t / n_i), with x_i the
    mean of all n_i rewards of arm i.

    **Guarantee.** None: decisions follow exact means.

    **Regret.** Σ 8 ln T/Δ_i + (1 + π²/3) Σ Δ_i (the paper's Theorem 1).

    >>> learner = UCB1().start(Arms(2), seed=1)
    >>> for _ in range(20):
    ...     arm = learner.select()
    ...     learner.update(arm, float(arm))
    >>> learner.select()
    1
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    paper: ClassVar[str] = "Auer, Cesa-Bianchi & Fischer 2002"

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Nothing played yet."""
        arms = problem.arms
        public = Public(
            tally=start_tally(arms),
            mean=np.zeros(arms),
            width=np.zeros(arms),
            score=np.zeros(arms),
        )
        return public, Secret(np.zeros(arms))

    def released(self, problem: Arms, public: Public) -> Reading:
        """The arms' exact means."""
        return of_exact_means(public.tally, public.mean)

    def guarantee(self, problem: Arms) -> Guarantee:
        """None."""
        return no_guarantee(problem, "UCB1 decides on exact means")
