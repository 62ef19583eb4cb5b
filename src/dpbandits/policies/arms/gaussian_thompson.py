r"""Thompson sampling with Gaussian priors (Ou, Avella Medina & Cummings 2024, Algorithm 1)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, NOT_NEGATIVE, Limits, exactly
from dpbandits.policies.trusted import WithoutBudget
from dpbandits.privacy.budgets import Budget, GaussianDP, NonPrivate
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit
from dpbandits.problems.arms import Arms, centred


class Secret(NamedTuple):
    """Sums of centred rewards, and the posterior means made of them."""

    total: NDArray[np.float64]  # Σ (r − ½)
    mean: NDArray[np.float64]  # μ̂_i


class Public(NamedTuple):
    """What the decisions are made of; `prepulls` is b, `variance_scale` c."""

    needed: NDArray[np.int64]  # (1,) pre-pulls that are not closed yet
    draws: NDArray[np.int64]  # (1,) decisions that were drawn for
    counts: NDArray[np.int64]  # n_i, closed decisions for arm i
    waiting: NDArray[np.int64]  # those in flight
    scale: NDArray[np.float64]  # √(c / (n_i + 1))
    sample: NDArray[np.float64]  # θ_i
    spent: NDArray[np.float64]  # Σ 1/(c (n_i + 1)) over draws since arm i's first reward
    since: NDArray[np.int64]  # the draws up to which `spent` is counted
    prepulls: int
    variance_scale: float

    def limits(self) -> Limits:
        """The scale of the noise follows from the counts."""
        needed = np.maximum(self.prepulls - self.counts, 0).sum()
        return {
            "needed": exactly(needed),
            "draws": COUNT,
            "counts": COUNT,
            "waiting": COUNT,
            "scale": exactly(np.sqrt(self.variance_scale / (self.counts + 1.0))),
            "spent": NOT_NEGATIVE,
            "since": (0, self.draws[0]),
        }

    def observed(self) -> int:
        """Rounds closed so far."""
        return int(self.counts.sum())

    def drawn_for(self) -> int:
        """Decisions that cost something."""
        return int(self.draws[0])

    def release(self, secret: Secret, noise: Noise) -> None:
        """θ_i ~ N(μ̂_i, c / (n_i + 1)) for every arm, once every pre-pull is closed."""
        if self.needed[0] > 0:
            return
        self.draws[0] += 1
        for arm in range(self.counts.size):
            self.sample[arm] = noise.normal(secret.mean[arm], self.scale[arm])

    def select(self, context: None, explore: Chance) -> int:
        """The pre-pulls arm by arm, then the arm of the largest θ_i."""
        if self.needed[0] > 0:
            return _prepull(self)
        best = 0
        highest = self.sample[0]
        for arm in range(1, self.counts.size):
            value = self.sample[arm]
            if value > highest:
                best, highest = arm, value
        return best

    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        """μ̂_i = Σ r / (n_i + 1), from centred sums so that a missing reward is the neutral ½."""
        draws = int(self.draws[0])
        count = int(self.counts[action]) + 1
        drawn = draws - int(self.since[action])
        if count > 1 and drawn > 0:
            self.spent[action] += drawn / (self.variance_scale * count)
        total = float(secret.total[action]) + centred(reward)
        secret.total[action] = total
        secret.mean[action] = (total + 0.5 * count) / (count + 1)
        self.counts[action] = count
        self.scale[action] = math.sqrt(self.variance_scale / (count + 1))
        self.since[action] = draws
        if count <= self.prepulls:
            self.needed[0] -= 1


@register_jitable
def _prepull(public: Public) -> int:
    """The first arm with fewer than b decisions; while those are in flight, the one with the fewest."""
    least, lowest = 0, 2**62
    for arm in range(public.counts.size):
        decided = public.counts[arm] + public.waiting[arm]
        if decided < public.prepulls:
            return arm
        if decided < lowest:
            least, lowest = arm, decided
    return least


def begin(arms: int, prepulls: int, variance_scale: float) -> tuple[Public, Secret]:
    """The state before the first round; prior N(0, c) for every arm."""
    public = Public(
        needed=np.full(1, prepulls * arms, np.int64),
        draws=np.zeros(1, np.int64),
        counts=np.zeros(arms, np.int64),
        waiting=np.zeros(arms, np.int64),
        scale=np.full(arms, math.sqrt(variance_scale)),
        sample=np.zeros(arms),
        spent=np.zeros(arms),
        since=np.zeros(arms, np.int64),
        prepulls=prepulls,
        variance_scale=variance_scale,
    )
    return public, Secret(total=np.zeros(arms), mean=np.zeros(arms))


def draws_cost(arms: int, horizon: int, prepulls: int, variance_scale: float) -> float:
    r"""The exact worst-case μ of `horizon` rounds: √((T − bN) / (c (max(b, 1) + 1)))."""
    draws = max(horizon - prepulls * arms, 1)
    return math.sqrt(draws / (variance_scale * (max(prepulls, 1) + 1.0)))


def draws_multiplier(rounds: int, prepulls: int) -> float:
    r"""How many times the cost of one reward k of them cost: k √((max(b, 1) + 1)/(max(b, k) + 1)).

    With m of hers among the n_j of an arm a draw moves by at most m/(n_j+1) and costs m²/(c(n_j+1)),
    where n_j ≥ max(b, m). That grows with m, up to k²/(c(max(b, k) + 1)); for one it is
    1/(c(max(b, 1) + 1)).

    >>> [round(draws_multiplier(k, 0), 2) for k in (1, 2, 4, 16)], draws_multiplier(4, 30)
    ([1.0, 1.63, 2.53, 5.49], 4.0)
    """
    return rounds * math.sqrt((max(prepulls, 1) + 1.0) / (max(prepulls, rounds) + 1.0))


def draws_guarantee(budget: Budget, problem: Arms) -> Guarantee:
    """What the draws of this many rounds cost, up to the declared horizon."""
    return Guarantee(
        budget=budget,
        unit=Unit.REWARD,
        trust=Trust.CENTRAL,
        horizon=problem.horizon,
        public=(*problem.public_facts(), "the horizon"),
        reason="Thompson sampling spends more with every round, so it needs a declared horizon",
    )


def draws_spent(public: Public) -> Budget | None:
    """What the draws so far cost the person they cost most: the largest sum over arms."""
    drawn = public.draws[0] - public.since
    pending = drawn * (public.counts > 0) / (public.variance_scale * (public.counts + 1))
    square = public.spent + pending
    return GaussianDP(math.sqrt(square.max())) if square.max() > 0 else None


@dataclass(frozen=True, kw_only=True)
class GaussianThompson(WithoutBudget):
    r"""Draw θ_i ~ N(μ̂_i, 1/(n_i+1)) for every arm, play the largest. Private as it is, but weakly.

    **Definition.** With n_i the closed rounds of arm i so far and S_i its rewards' sum (a missing reward
    counts ½), μ̂_i = S_i/(n_i+1); round t plays argmax_i θ_i.

    **Guarantee.** Neighbours replace one reward, of arm j. Given the same decisions, only θ_j of draws
    after its round was closed moves, by at most 1/(n_j+1) with standard deviation 1/√(n_j+1), and
    n_j ≥ 1 then: each such draw is 1/√2-GDP or better, the T draws together √(T/2)-GDP under adaptive
    composition (the paper's Lemmas 1–3). That needs the horizon T: without one the cost grows without
    end and nothing is promised.

    **Regret.** O(√(N T ln N)), or O(Σ ln T/Δ_i) (Agrawal & Goyal 2017).

    >>> learner = GaussianThompson().start(Arms(2, horizon=200), seed=1)
    >>> print(learner.guarantee.budget)
    10-GDP
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    paper: ClassVar[str] = "Ou, Avella Medina & Cummings 2024, Algorithm 1"

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """No pre-pulls, c = 1."""
        return begin(problem.arms, 0, 1.0)

    def multiplier(self, problem: Arms) -> float:
        """Without pre-pulls."""
        return draws_multiplier(problem.rounds_per_person or 1, 0)

    def released(self, problem: Arms, public: Any) -> None:
        """None: each decision draws from raw sums what it needs, and no estimate is ever released."""

    def draws_of_one(self, problem: Any) -> float:
        """A reward is in the mean that every later draw of its arm is around."""
        return float(problem.horizon or math.inf)

    def guarantee(self, problem: Arms) -> Guarantee:
        """√(T/2)-GDP up to a declared horizon T, nothing without one."""
        budget: Budget = NonPrivate()
        if problem.horizon is not None:
            budget = GaussianDP(draws_cost(problem.arms, problem.horizon, 0, 1.0))
        return draws_guarantee(budget, problem)

    def spent(self, public: Public) -> Budget | None:
        """What the draws so far really cost."""
        return draws_spent(public)
