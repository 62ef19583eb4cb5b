r"""KL-UCB (Garivier & Cappé 2011), without privacy."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import ANYTHING, Limits
from dpbandits.policies.arms.shared.choosing import largest
from dpbandits.policies.arms.shared.divergences import kl_upper_from, negative_entropy
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

# Indices this near each other are computed, not compared by their divergences: they may be ties.
_NEAR = 1e-8


class Secret(NamedTuple):
    """Sums of centred rewards."""

    total: NDArray[np.float64]


class Public(NamedTuple):
    """Means of all rewards so far, as they are."""

    tally: Tally
    played: NDArray[np.int64]  # (1,) the arm of the round closed last
    mean: NDArray[np.float64]  # x_i
    entropy: NDArray[np.float64]  # x_i ln x_i + (1−x_i) ln(1−x_i)
    score: NDArray[np.float64]  # the index, or −∞ where it is not the largest
    loglog: float

    def limits(self) -> Limits:
        """Means are within [0, 1], and the arm is one that there is."""
        arms = self.mean.size
        return {"played": (0, arms - 1), "mean": (0.0, 1.0), "score": ANYTHING}

    def release(self, secret: Secret, noise: Noise) -> None:
        """The means of arms with new rewards, without noise."""
        while any_due(self.tally.due):
            arm = take_due(self.tally.due)
            mean = noise.normal(secret.total[arm], 0.0) / self.tally.closed[arm] + 0.5
            mean = min(max(mean, 0.0), 1.0)
            self.mean[arm] = mean
            self.entropy[arm] = negative_entropy(mean)

    def select(self, context: None, explore: Chance) -> int:
        """Every arm once, then the arm of the largest index."""
        return fewest(self.tally.plays) if self.tally.unknown[0] > 0 else _choose(self, explore)

    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        """Add the reward to its arm's sum."""
        count_closed(self.tally, action)
        self.played[0] = action
        secret.total[action] += centred(reward)

    def wait(self, action: int, change: int) -> None:
        """A decision in flight counts in its arm's index."""
        count_in_flight(self.tally, action, change)


@register_jitable(forceinline=True)
def _choose(public: Public, explore: Chance) -> int:
    """An arm's index is below u exactly if n·kl(x, u) > f(t), which needs no root: so the root is
    found for one arm, and for those that come near it.
    """
    level = math.log(public.tally.round[0] + 1.0)
    if public.loglog > 0.0:
        level += public.loglog * math.log(level)
    played = public.played[0]
    highest = _index(public, played, level)
    below = max(highest - _NEAR, 0.0)
    log_below = math.log(below) if below > 0.0 else -math.inf
    log_above = math.log(1.0 - below)
    for arm in range(public.mean.size):
        mean = public.mean[arm]
        public.score[arm] = -math.inf
        if arm == played:
            public.score[arm] = highest
        elif mean >= below:
            public.score[arm] = _index(public, arm, level)
        else:
            divergence = public.entropy[arm] - mean * log_below - (1.0 - mean) * log_above
            if public.tally.plays[arm] * divergence <= level:
                public.score[arm] = _index(public, arm, level)
    return largest(public.score, explore)


@register_jitable
def _index(public: Public, arm: int, level: float) -> float:
    if public.mean[arm] >= 1.0:
        return 1.0
    return kl_upper_from(public.mean[arm], public.entropy[arm], level / public.tally.plays[arm])


@dataclass(frozen=True, kw_only=True)
class KLUCB(WithoutBudget):
    r"""Play the arm whose mean could be highest, judged by the Bernoulli divergence. Not private.

    **Definition.** Every arm once; then, in round t, with n_i the decisions for arm i and x_i the mean
    of its rewards (a missing one counts ½),

        argmax_i  max{q : n_i·kl(x_i, q) ≤ ln t + c·ln ln t},

    ties broken at random. c = `loglog`: 3 in the paper's proof, 0 in its experiments and here.

    **Guarantee.** None: sums are released as they are, in every round. It is what privacy is paid from.

    **Regret.** Σ Δ_i ln T/kl(x_i, x*) + o(ln T) for Bernoulli rewards, which no policy can improve on;
    valid for any rewards in [0, 1] (Theorem 2 of the paper, for c = 3).

    >>> learner = KLUCB().start(Arms(2), seed=1)
    >>> learner.select()
    0
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    paper: ClassVar[str] = "Garivier & Cappé 2011"

    loglog: Annotated[float, "The factor of ln ln t in the index: 3 in proofs, 0 in practice."] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.width(loglog=self.loglog)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Nothing played yet."""
        arms = problem.arms
        public = Public(
            tally=start_tally(arms),
            played=np.zeros(1, np.int64),
            mean=np.zeros(arms),
            entropy=np.zeros(arms),
            score=np.zeros(arms),
            loglog=self.loglog,
        )
        return public, Secret(total=np.zeros(arms))

    def released(self, problem: Arms, public: Public) -> Reading:
        """The arms' exact means."""
        return of_exact_means(public.tally, public.mean)

    def guarantee(self, problem: Arms) -> Guarantee:
        """None, with the reason."""
        return no_guarantee(problem, "KL-UCB decides on exact sums of rewards")
