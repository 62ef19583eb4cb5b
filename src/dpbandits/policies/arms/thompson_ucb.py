r"""Thompson sampling with a limited number of draws (Hu et al. 2025, DP-TS-UCB)."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import ANYTHING, MOST, Limits, exactly
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.arms.shared.tally import fewest
from dpbandits.policies.trusted import TrustedPolicy
from dpbandits.privacy.budgets import GAUSSIAN_OR_NONE, Budget, GaussianDP, NonPrivate
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms, centred

_UNLIMITED = 2**62


class Secret(NamedTuple):
    """Centred rewards of the open epoch, and the mean of the last full one."""

    total: NDArray[np.float64]  # Σ (r − ½)
    mean: NDArray[np.float64]  # μ̂_i


class Public(NamedTuple):
    """For every arm the draws around its last full epoch, and how far its open one is."""

    plays: NDArray[np.int64]  # decisions, in flight too
    unknown: NDArray[np.int64]  # (1,) arms without a full epoch
    open: NDArray[np.int64]  # decisions in the open epoch
    length: NDArray[np.int64]  # of the open epoch when it is full
    drawn: NDArray[np.int64]  # draws around the last full epoch
    scale: NDArray[np.float64]  # √(v/n_i)
    highest: NDArray[np.float64]  # the largest of these draws
    sample: NDArray[np.float64]  # θ_i
    draws: int  # φ
    variance: float  # v

    def limits(self) -> Limits:
        """The scale of the noise follows from the lengths of the epochs, which double."""
        last = self.length // 2
        scale = np.sqrt(self.variance / np.maximum(last, 1))
        return {
            "plays": (self.length - 1 + self.open, MOST),
            "unknown": exactly(np.count_nonzero(last == 0)),
            "open": (0, self.length - 1),
            "length": (1, MOST),
            "drawn": (0, min(self.draws, MOST)),
            "scale": exactly(np.where(last > 0, scale, 0.0)),
            "highest": ANYTHING,
            "sample": ANYTHING,
        }

    def observed(self) -> int:
        """Rounds closed so far: epochs of 1, 2, 4, … and the open one."""
        return int((self.length - 1 + self.open).sum())

    def in_flight(self) -> NDArray[np.int64]:
        """Decisions in flight."""
        return np.asarray(self.plays - (self.length - 1 + self.open))

    def release(self, secret: Secret, noise: Noise) -> None:
        """θ_i ~ N(μ̂_i, v/n_i) while draws are left in its epoch, the largest of them afterwards."""
        if self.unknown[0] > 0:
            return
        for arm in range(self.open.size):
            if self.drawn[arm] < self.draws:
                value = noise.normal(secret.mean[arm], self.scale[arm])
                self.drawn[arm] += 1
                self.sample[arm] = value
                self.highest[arm] = max(self.highest[arm], value)
            else:
                self.sample[arm] = self.highest[arm]

    def select(self, context: None, explore: Chance) -> int:
        """Each arm once, then the arm of the largest θ_i."""
        if self.unknown[0] > 0:
            return fewest(self.plays)
        best = 0
        highest = self.sample[0]
        for arm in range(1, self.open.size):
            value = self.sample[arm]
            if value > highest:
                best, highest = arm, value
        return best

    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        """Fill the arm's open epoch; a full one replaces the one before, and has all its draws."""
        self.plays[action] += 1
        secret.total[action] += centred(reward)
        self.open[action] += 1
        length = self.length[action]
        if self.open[action] == length:
            secret.mean[action] = secret.total[action] / length + 0.5
            secret.total[action] = 0.0
            self.open[action] = 0
            self.length[action] = 2 * length
            self.drawn[action] = 0
            self.scale[action] = math.sqrt(self.variance / length)
            self.highest[action] = -math.inf
            if length == 1:
                self.unknown[0] -= 1

    def wait(self, action: int, change: int) -> None:
        """Count a decision in flight."""
        self.plays[action] += change


@dataclass(frozen=True, kw_only=True)
class ThompsonUCB(TrustedPolicy):
    r"""Thompson sampling with at most φ draws from each posterior; then their maximum is used again.

    **Definition.** The epochs of an arm have 1, 2, 4, … decisions, and only the last full one counts:
    n_i decisions with mean μ̂_i. Every arm once; then each round has θ_i ~ N(μ̂_i, v/n_i) for the first φ
    rounds of an arm's epoch, θ_i = the largest of these φ draws after that (an upper confidence bound,
    free of charge), and plays argmax_i θ_i.

    **Options.** The paper's family is φ = c₀ T^{(1−α)/2} ln^{(3−α)/2} T, v = ln^α T, 0 ≤ α ≤ 1. By the
    count below it costs μ² = c₀ (√T ln^{3/2} T)^{1−α}. c₀ is `draws_scale` (by default 1: the paper's
    value could not be checked); α is solved from the budget, φ rounded down and v = φ/μ², so that the
    budget is met exactly. For μ² < c₀, beyond the family, α = 1 and v grows instead. A budget larger
    than that of α = 0 buys more draws at v = 1, at most T.

    **Guarantee.** Neighbours replace one reward, of arm j. It is in one epoch's mean, and moves that by
    at most 1/n; epochs end by counts of decisions. At most φ draws are centred there, each of standard
    deviation √(v/n), so each is 1/√(v n)-GDP. Gaussian draws compose adaptively, so all decisions are
    √(φ/(v n))-GDP with n ≥ 1: μ = √(φ/v), reached in an arm's first epoch. (The paper states √2 times
    that.) T only tunes: the guarantee holds for any number of rounds.

    **Regret.** O(Σ ln^{1+α} T/Δ_i) within the family (Hu et al. 2025); no bound is claimed outside it.
    A larger budget hardly helps: the largest of φ draws lies √(2 v ln φ/n) above the mean, whatever α.

    >>> draws, variance = ThompsonUCB(privacy=GaussianDP(2.0)).scales(Arms(5, horizon=100_000))
    >>> draws, round(variance, 3)
    (32, 8.0)
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = GAUSSIAN_OR_NONE
    paper: ClassVar[str] = "Hu et al. 2025, DP-TS-UCB"
    needs_horizon: ClassVar[bool] = True

    draws_scale: Annotated[
        float, "The paper's c₀: a factor on the number of samples from each posterior."
    ] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(draws_scale=self.draws_scale)

    def scales(self, problem: Arms) -> tuple[int, float]:
        """The φ and v used on this problem."""
        if isinstance(self.privacy, NonPrivate) or problem.horizon is None:
            return _UNLIMITED, 1.0
        square = self.privacy.to_gaussian().mu ** 2
        horizon = max(problem.horizon, 3)  # so that ln T > 1
        log = math.log(horizon)
        family = math.log(square / self.draws_scale) / math.log(math.sqrt(horizon) * log**1.5)
        alpha = min(max(1.0 - family, 0.0), 1.0)
        wanted = self.draws_scale * horizon ** (0.5 * (1.0 - alpha)) * log ** (0.5 * (3.0 - alpha))
        draws = int(min(max(wanted, 1.0), horizon))
        if draws >= square:
            return draws, draws / square
        return int(min(square, horizon)), 1.0

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Every arm's first epoch open."""
        arms = problem.arms
        draws, variance = self.scales(problem)
        public = Public(
            plays=np.zeros(arms, np.int64),
            unknown=np.full(1, arms, np.int64),
            open=np.zeros(arms, np.int64),
            length=np.ones(arms, np.int64),
            drawn=np.zeros(arms, np.int64),
            scale=np.zeros(arms),
            highest=np.full(arms, -math.inf),
            sample=np.zeros(arms),
            draws=draws,
            variance=variance,
        )
        return public, Secret(total=np.zeros(arms), mean=np.zeros(arms))

    def multiplier(self, problem: Arms) -> float:
        """√k: m of her rewards in an epoch of n ≥ m move its mean by m/n and cost φm²/(v n) ≤ φm/v."""
        return math.sqrt(problem.rounds_per_person or 1)

    def released(self, problem: Arms, public: Any) -> None:
        """None: each decision draws from raw means what it needs, and no estimate is ever released."""

    def draws_of_one(self, problem: Any) -> float:
        """A reward is in the mean that every later draw of its arm is around."""
        return float(problem.horizon or math.inf)

    def guarantee(self, problem: Arms) -> Guarantee:
        """√(φ/v)-GDP for any number of rounds, stated in the kind of budget that was asked for."""
        self.check(problem)
        budget: Budget = self.privacy
        if not isinstance(budget, NonPrivate):
            draws, variance = self.scales(problem)
            budget = GaussianDP(math.sqrt(draws / variance)).within(budget)
        return arms_guarantee(budget, problem, horizon=True)
