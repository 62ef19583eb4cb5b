r"""Thompson sampling on sums released by a binary tree (Mishra & Thakurta 2015, Algorithm 2)."""

import functools
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import COUNT, MOST, Limits, exactly
from dpbandits.errors import InvalidInput
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.arms.shared.sampling import beta_sample
from dpbandits.policies.arms.shared.schedules import whole_length
from dpbandits.policies.arms.shared.splitting import split_budget
from dpbandits.policies.arms.shared.tally import Due, any_due, make_due, not_due, nothing_due, take_due
from dpbandits.policies.arms.tree_ucb import released_reward
from dpbandits.policies.released import Reading, of_last_batches, of_tree
from dpbandits.policies.testing import PolicyTesting
from dpbandits.policies.trusted import TrustedPolicy
from dpbandits.privacy.budgets import EVERY_KIND, Budget, NonPrivate, PureDP
from dpbandits.privacy.calibration import Calibration
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms, centred
from dpbandits.sums.batches import Batches, Buffers, release_batch, start_batches
from dpbandits.sums.binary_tree import MOST_LEVELS, Leaves, Tree, release_leaf, start_tree, tree_levels

# Places in a clock: the phase, closed decisions for each arm at which it ends, arms that have fewer, and
# the arm whose turn it is (−1: any).
PHASE, EACH, SHORT, TURN = 0, 1, 2, 3
GAP, PULLS, THOMPSON = 0, 1, 2
# No phase that is longer would end.
_SMALLEST = 2.0**-40


class Secret(NamedTuple):
    """Rewards of the gap phase, and of all that follows."""

    batches: Buffers
    leaves: Leaves


class Public(NamedTuple):
    """The phases' schedule and what they released."""

    clock: NDArray[np.int64]
    gap: NDArray[np.float64]  # (1,) Δ̂
    open: NDArray[np.int64]  # decisions closed in this phase
    due: Due  # arms whose leaf is, in the last phase
    plays: NDArray[np.int64]  # n_a, decisions whose rewards go to the trees
    reward: NDArray[np.float64]  # r_a
    batches: Batches  # of the gap phase
    size: NDArray[np.int64]  # decisions in the last of them
    tree: Tree
    batch_unit: float  # m·Δ̂²
    pulls_unit: float  # Γ

    def limits(self) -> Limits:
        """A phase is over exactly if no arm is short of its decisions."""
        arms, short = self.plays.size, (0, self.plays.size)
        if self.clock[PHASE] != THOMPSON:
            short = exactly(np.count_nonzero(self.open < self.clock[EACH]))
        low, high = [0, 0, short[0], -1], [THOMPSON, MOST, short[1], arms - 1]
        return {
            "clock": (np.array(low), np.array(high)),
            "gap": (_SMALLEST, 1.0),
            "open": COUNT,
            "plays": COUNT,
            "reward": (0.0, self.plays),
            "size": COUNT,
        }

    def release(self, secret: Secret, noise: Noise) -> None:
        """End a phase that is over; in the last one, insert what came in into the trees."""
        if self.clock[PHASE] != THOMPSON:
            if self.clock[SHORT] == 0:
                _end_phase(self, secret, noise)
            return
        while any_due(self.due):
            arm = take_due(self.due)
            release_leaf(self.tree, secret.leaves, arm, noise)
            self.reward[arm] = released_reward(self.tree, arm, float(self.plays[arm]))

    def select(self, context: None, explore: Chance) -> int:
        """The arms in turn from a random one on, then the largest posterior sample."""
        arms = self.plays.size
        if self.clock[PHASE] != THOMPSON:
            turn = int(self.clock[TURN])
            if turn < 0:
                turn = int(explore.random() * arms)
            self.clock[TURN] = (turn + 1) % arms
            return turn
        best, highest = 0, -1.0
        for arm in range(arms):
            reward = self.reward[arm]
            value = beta_sample(reward + 1.0, self.plays[arm] - reward + 1.0, explore)
            if value > highest:
                best, highest = arm, value
        return best

    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        """The reward belongs to the batch of the gap phase, or to the open leaf."""
        phase = self.clock[PHASE]
        if phase == THOMPSON:
            make_due(self.due, action)
        else:
            self.open[action] += 1
            if self.open[action] == self.clock[EACH]:
                self.clock[SHORT] -= 1
        if phase == GAP:
            secret.batches.open[action, 0] += centred(reward)
        else:
            secret.leaves.open[action, 0] += centred(reward)
            self.plays[action] += 1


@register_jitable
def _end_phase(public: Public, secret: Secret, noise: Noise) -> None:
    arms = public.plays.size
    if public.clock[PHASE] == PULLS:
        for arm in range(arms):
            release_leaf(public.tree, secret.leaves, arm, noise)
            public.reward[arm] = released_reward(public.tree, arm, float(public.plays[arm]))
        public.clock[PHASE] = THOMPSON
        return
    best, second = -math.inf, -math.inf
    for arm in range(arms):
        release_batch(public.batches, secret.batches, arm, noise)
        mean = public.batches.last[arm, 0] / public.open[arm]
        public.size[arm] = public.open[arm]
        public.open[arm] = 0
        second = max(second, min(best, mean))
        best = max(best, mean)
    public.gap[0] *= 0.5
    unit = public.batch_unit
    if best - second > public.gap[0]:
        public.clock[PHASE] = PULLS
        unit = public.pulls_unit
    public.clock[EACH] = whole_length(unit / (public.gap[0] * public.gap[0]))
    public.clock[SHORT] = arms
    public.clock[TURN] = -1


@functools.lru_cache  # a root has to be found for (ε, δ)
def _size(privacy: Budget) -> float:
    """ε, or μ under Gaussian budgets; 1 without any."""
    if isinstance(privacy, NonPrivate):
        return 1.0
    return privacy.epsilon if isinstance(privacy, PureDP) else privacy.to_gaussian().mu


def _few_decisions(policy: "TreeThompson") -> float:
    """A `constant` that makes phases short, whatever the budget."""
    return 0.006 * _size(policy.privacy)


@dataclass(frozen=True, kw_only=True)
class TreeThompson(TrustedPolicy):
    r"""Estimate the gap, pull every arm until the trees' noise is small against it, then sample.

    **Definition.** Three phases; in the first two the arms are played in turn.

    1. *Gap estimation.* Δ̂ = 1. Repeat: play every arm m = c k log2 T/(ε Δ̂²) times, release each arm's
       fresh mean μ̂_a, halve Δ̂; until the two largest μ̂ differ by more than Δ̂.
    2. *Random pulls.* Every arm Γ/Δ̂² times, Γ = c log2³T/ε; their total is one leaf of the arm's tree.
    3. *Thompson sampling.* Every reward is a leaf of its arm's tree, r_a is the released prefix brought
       back into [0, n_a], θ_a ~ Beta(r_a+1, n_a−r_a+1), and the largest is played. n_a counts from 2 on.

    c = `constant` is the paper's 192. gap_phase=False is the paper's experiment (D.1): no phase 1, and
    `burn_in` pulls of every arm in phase 2, of which the paper says only that they are fewer. The
    default is our own rule: five standard deviations of the noise of the largest prefix, at most T/(2k).
    Our readings besides: n_a is set back to 0 before phase 2 (the plays of phase 1 are in no tree, and
    would make samples too low), r_a is brought back into its range, and log is log2, as in appendix C.
    Without noise to wait for (Γ < 1, as with `NonPrivate`) phase 3 is all there is. Under Gaussian
    budgets μ stands for ε.

    **Guarantee.** Neighbours replace one reward. It is either in one batch of phase 1, released once, or
    in one leaf of one tree, and so in at most L = bit_length(leaves) nodes, each released once with
    scale L/ε₀ or √L/μ₀. Phases end by released values and counts of decisions. So ε₀ = ε does for both
    (calibration="exact"), for any number of rounds: full trees are followed by fresh ones
    (`sums/binary_tree.py`). calibration="paper" is ε₀ = ε/(2k) (μ/√(2k)) for both as printed, which
    gives the stronger ε/(2k)-DP, and that is what is reported. With the exact calibration k in m is ½,
    since the noise of μ̂ is as much smaller; Γ is as printed.

    **Regret.** Polylogarithmic in T in the paper, for ε < 1; above that m stays at its value for ε = 1,
    or the sampling error of μ̂ would be too large. The constants leave uniform play below about
    T = 10⁹. With gap_phase=False there is no bound, and a short burn-in loses the best arm in some runs.

    >>> policy = TreeThompson(privacy=PureDP(1.0), calibration="paper")
    >>> policy.gap_batch(Arms(5, horizon=100_000)), policy.first_sample(Arms(5, horizon=100_000)) > 10**7
    (15946, True)
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = EVERY_KIND
    paper: ClassVar[str] = "Mishra & Thakurta 2015, Algorithm 2"
    testing: ClassVar = PolicyTesting(constant=_few_decisions)
    needs_horizon: ClassVar[bool] = True

    gap_phase: Annotated[
        bool, "Whether a first phase estimates the gap, as printed; the experiments leave it out."
    ] = True
    burn_in: Annotated[
        int | None, "Random pulls of each arm before sampling begins, without a gap phase."
    ] = None
    calibration: Annotated[
        Calibration, '"exact": the least noise that meets the budget; "paper": as printed.'
    ] = "exact"
    constant: Annotated[float, "A factor on the length of the first phases; 192 as printed."] = 192.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of((True, False), gap_phase=self.gap_phase)
        checks.one_of(("exact", "paper"), calibration=self.calibration)
        checks.scale(constant=self.constant)
        if self.burn_in is not None:
            checks.integer(least=0, burn_in=self.burn_in)
            if self.gap_phase:
                raise InvalidInput("burn_in is for gap_phase=False; the gap decides otherwise")

    def per_release(self, problem: Arms) -> Budget:
        """What the gap phase and each tree may spend."""
        return (
            self.privacy if self.calibration == "exact" else split_budget(self.privacy, 2 * problem.arms)
        )

    def pulls_unit(self, problem: Arms) -> float:
        """Γ; 0 without noise."""
        if problem.horizon is None or isinstance(self.privacy, NonPrivate):
            return 0.0
        return self.constant * math.log2(problem.horizon) ** 3 / _size(self.privacy)

    def gap_batch(self, problem: Arms) -> int:
        """M of the first batch, at Δ̂ = 1; 0 where there is no gap phase."""
        return whole_length(self._batch_unit(problem))

    def _batch_unit(self, problem: Arms) -> float:
        if not self.gap_phase or problem.horizon is None or self.pulls_unit(problem) < 1.0:
            return 0.0
        parts = 1 if self.calibration == "exact" else 2 * problem.arms
        return self.constant * parts / 2.0 * math.log2(problem.horizon) / min(_size(self.privacy), 1.0)

    def pulls(self, problem: Arms) -> int:
        """The least number of random pulls of each arm: at Δ̂ = ½, or `burn_in`."""
        if self.burn_in is not None:
            return self.burn_in
        horizon = problem.horizon
        if horizon is None or self.pulls_unit(problem) < 1.0:
            return 0
        if self.gap_phase:
            return whole_length(self.pulls_unit(problem) / 0.25)
        levels, budget = tree_levels(horizon), self.per_release(problem)
        pure = isinstance(budget, PureDP)
        deviation = levels * (math.sqrt(2.0 * levels) if pure else 1.0) / _size(budget)
        return min(math.ceil(5.0 * deviation), horizon // (2 * problem.arms))

    def first_sample(self, problem: Arms) -> int:
        """How many decisions, at least, are made before Thompson sampling begins."""
        return problem.arms * (self.gap_batch(problem) + self.pulls(problem))

    def _leaves(self, problem: Arms) -> int:
        """The most leaves that an arm's tree can have when the last decision is made."""
        if isinstance(self.privacy, NonPrivate) or problem.horizon is None:
            return 2**40  # without noise the number of levels is of no consequence
        sampled = problem.horizon - 1 - self.first_sample(problem)
        return max(sampled + (self.pulls(problem) > 0), 1)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """At the start of the first phase that there is."""
        arms, budget = problem.arms, self.per_release(problem)
        batches, buffers = start_batches(arms, 1, 1.0, budget, cumulative=False)
        tree, leaves = start_tree(arms, 1, 1.0, budget, leaves=self._leaves(problem))
        each, pulls = self.gap_batch(problem), self.pulls(problem)
        phase = GAP if each else PULLS if pulls else THOMPSON
        public = Public(
            clock=np.array([phase, each or pulls, arms, -1], np.int64),
            gap=np.ones(1),
            open=np.zeros(arms, np.int64),
            due=nothing_due(arms),
            plays=np.zeros(arms, np.int64),
            reward=np.zeros(arms),
            batches=batches,
            size=np.zeros(arms, np.int64),
            tree=tree,
            batch_unit=self._batch_unit(problem),
            pulls_unit=self.pulls_unit(problem),
        )
        return public, Secret(batches=buffers, leaves=leaves)

    def released(self, problem: Arms, public: Public) -> Reading:
        """The arms' means; until there are trees, those of the last batch of the gap phase."""
        if public.clock[PHASE] != THOMPSON:
            return of_last_batches("arm", public.batches, public.size)
        return of_tree("arm", public.tree, not_due(public.plays, public.due))

    def draws_of_one(self, problem: Any) -> float:
        """A reward is in one node of each level, of at most four trees."""
        return float(4 * MOST_LEVELS)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget of one release of the gap phase or of one tree, for any number of rounds."""
        self.check(problem)
        tight = self.calibration == "exact"
        return arms_guarantee(
            self.privacy if tight else self.per_release(problem).within(self.privacy),
            problem,
            horizon=True,
        )

    def plays_uniform_below(self, problem: Arms) -> int:
        """Until Thompson sampling begins, the arms are played in turn."""
        return self.first_sample(problem)
