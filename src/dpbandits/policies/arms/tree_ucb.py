r"""UCB on sums released by a binary tree (Mishra & Thakurta 2015, Algorithm 1)."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import ANYTHING, Limits
from dpbandits.policies.arms.shared.choosing import largest
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.arms.shared.splitting import split_budget
from dpbandits.policies.arms.shared.tally import (
    Tally,
    any_due,
    count_closed,
    count_in_flight,
    fewest,
    not_due,
    start_tally,
    take_due,
)
from dpbandits.policies.released import Reading, of_tree
from dpbandits.policies.returning import OncePerBatch
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import EVERY_KIND, Budget, NonPrivate, PureDP
from dpbandits.privacy.calibration import Calibration
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms, centred
from dpbandits.sums.binary_tree import (
    MOST_LEVELS,
    Leaves,
    Tree,
    leaves_released,
    release_leaf,
    start_tree,
    tree_levels,
    tree_participation,
)

Array = NDArray[np.float64]


class Public(NamedTuple):
    """Released sums and each arm's index, base + √(ln t)·width + ln t·rate."""

    tally: Tally
    tree: Tree
    base: Array
    width: Array
    rate: Array
    score: Array
    bonus: float  # Γ
    chernoff: bool

    def limits(self) -> Limits:
        """The index may be anything."""
        return {"score": ANYTHING}

    def release(self, secret: Leaves, noise: Noise) -> None:
        """Insert what came in into the trees, a leaf for each arm, and restate these arms."""
        while any_due(self.tally.due):
            arm = take_due(self.tally.due)
            release_leaf(self.tree, secret, arm, noise)
            _restate(self, arm)

    def select(self, context: None, explore: Chance) -> int:
        """Each arm once, then the largest index."""
        if self.tally.unknown[0] > 0:
            return fewest(self.tally.plays)
        log = math.log(self.tally.round[0] + 1.0)
        root = math.sqrt(log)
        for arm in range(self.score.size):
            self.score[arm] = self.base[arm] + root * self.width[arm] + log * self.rate[arm]
        return largest(self.score, explore)

    def observe(self, secret: Leaves, context: None, action: int, reward: float) -> None:
        """The reward is a leaf of its arm's tree, or part of one."""
        secret.open[action, 0] += centred(reward)
        count_closed(self.tally, action)

    def wait(self, action: int, change: int) -> None:
        """A decision in flight counts in its arm's index."""
        count_in_flight(self.tally, action, change)
        if self.tally.closed[action] > 0:
            _restate(self, action)


@register_jitable(forceinline=True)
def _restate(public: Public, arm: int) -> None:
    """From released rewards, with decisions in flight as if they had come back like those before."""
    plays, closed = float(public.tally.plays[arm]), float(public.tally.closed[arm])
    reward = released_reward(public.tree, arm, closed)
    if plays > closed:
        reward *= plays / closed
    public.base[arm] = (reward + public.bonus) / plays
    if public.chernoff:
        public.width[arm] = math.sqrt(reward) / plays
        public.rate[arm] = 1.0 / plays
    else:
        public.width[arm] = math.sqrt(2.0 / plays)


@register_jitable(forceinline=True)
def released_reward(tree: Tree, arm: int, plays: float) -> float:
    """r_a, an arm's rewards as released, brought back into [0, n_a] where the noise left it."""
    return float(min(max(tree.total[arm, 0] + 0.5 * plays, 0.0), plays))


@dataclass(frozen=True, kw_only=True)
class TreeUCB(OncePerBatch):
    r"""UCB1 on noisy sums, with room for the noise of the tree that releases them.

    **Definition.** Every arm has a binary tree; each reward is a leaf of its arm's tree, and r_a is the
    released prefix, brought back into [0, n_a]. After one play of each arm, round t plays the largest

        r_a/n_a + √(2 ln t/n_a) + Γ/n_a           with confidence="theory",
        r_a/n_a + √(r_a ln t)/n_a + ln t/n_a      with confidence="chernoff" (D.1: no room for noise).

    Rewards of an arm that are closed between two decisions are one leaf, and decisions in flight count
    in n_a and r_a as if they had come back like those before.

    With γ = `failure`, Γ = ln²T·ln(k T ln T/γ)/ε₀ bounds the noise of all rounds with probability 1 − γ.
    Our readings, where the paper is silent: its logarithms are natural (with binary ones Γ would be
    three times as large), and r_a is brought back into its range.
    Under Gaussian budgets Γ = L√(2 ln(kT/γ))/μ₀ does: a prefix is at most L nodes of variance L/μ₀².

    **Guarantee.** Neighbours replace one reward. It is in one leaf, of sensitivity 1, in at most
    L = bit_length(T − k) nodes: no arm has more plays than T − k when the last decision is made. Each
    node is released once, with Laplace(L/ε₀) or N(0, L/μ₀²), and decisions are functions of released
    nodes and counts of decisions: ε₀-DP or μ₀-GDP by adaptive composition, beyond T too, since full
    trees are followed by fresh ones (`sums/binary_tree.py`); T only tunes. The other arms' trees do not
    hold the reward, so ε₀ = ε does (calibration="exact"). calibration="paper" is ε₀ = ε/k (μ/√k) as
    printed, which gives the stronger ε/k-DP, and that is what is reported. (The paper's node noise,
    Lap(log T/ε₀), is for one level too few.)

    **Regret.** O(Σ_a ln²T ln(kT/γ)/(ε₀ Δ_a)) with probability 1 − γ (Theorem 4), with "theory"; while
    n_a(n_a+1) < Γ the bonus outweighs any reward, and arms are played in turn. With "chernoff" there is
    no bound: an arm whose noise was low early may be lost for good.

    >>> policy, problem = TreeUCB(privacy=PureDP(1.0), calibration="paper"), Arms(5, horizon=10_000)
    >>> print(policy.guarantee(problem).budget, round(policy.bonus(problem)))
    0.2-DP 6508
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = EVERY_KIND
    paper: ClassVar[str] = "Mishra & Thakurta 2015, Algorithm 1"
    testing: ClassVar = PolicyTesting(confidence="chernoff")
    needs_horizon: ClassVar[bool] = True

    confidence: Annotated[
        Literal["theory", "chernoff"],
        '"theory" leaves room for the noise (Γ); "chernoff" is the interval of the experiments.',
    ] = "theory"
    calibration: Annotated[
        Calibration, '"exact": the least noise that meets the budget; "paper": as printed.'
    ] = "exact"
    failure: Annotated[float, "The probability with which the confidence bounds may fail."] = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(("theory", "chernoff"), confidence=self.confidence)
        checks.one_of(("exact", "paper"), calibration=self.calibration)
        checks.risk(failure=self.failure)

    def per_tree(self, problem: Arms) -> Budget:
        """What each arm's tree may spend."""
        return self.privacy if self.calibration == "exact" else split_budget(self.privacy, problem.arms)

    def bonus(self, problem: Arms) -> float:
        """Γ, or 0 where no room is left for noise."""
        budget, arms, horizon = self.per_tree(problem), problem.arms, problem.horizon
        if self.confidence == "chernoff" or isinstance(budget, NonPrivate) or horizon is None:
            return 0.0
        if isinstance(budget, PureDP):
            log = math.log(horizon)
            return log * log * math.log(arms * horizon * max(log, 1.0) / self.failure) / budget.epsilon
        levels = tree_levels(self._leaves(problem))
        return (
            levels * math.sqrt(2.0 * math.log(arms * horizon / self.failure)) / budget.to_gaussian().mu
        )

    def _leaves(self, problem: Arms) -> int:
        """The most leaves that an arm's tree can have when the last decision is made."""
        if isinstance(self.privacy, NonPrivate) or problem.horizon is None:
            return 2**40  # without noise the number of levels is of no consequence
        return max(problem.horizon - problem.arms, 1)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """An empty tree for every arm."""
        arms = problem.arms
        tree, leaves = start_tree(arms, 1, 1.0, self.per_tree(problem), leaves=self._leaves(problem))
        public = Public(
            tally=start_tally(arms),
            tree=tree,
            base=np.zeros(arms),
            width=np.zeros(arms),
            rate=np.zeros(arms),
            score=np.zeros(arms),
            bonus=self.bonus(problem),
            chernoff=self.confidence == "chernoff",
        )
        return public, leaves

    def multiplier_apart(self, problem: Arms, rounds: int) -> float:
        """That of different leaves, whichever arm's."""
        return tree_participation(tree_levels(self._leaves(problem)), rounds)

    def batch_number(self, public: Public, slot: int) -> int:
        """A leaf is a batch."""
        return leaves_released(public.tree, slot)

    def released(self, problem: Arms, public: Public) -> Reading:
        """The arms' means."""
        return of_tree("arm", public.tree, not_due(public.tally.closed, public.tally.due))

    def draws_of_one(self, problem: Any) -> float:
        """A reward is in one node of each level, of at most two trees."""
        return float(2 * MOST_LEVELS)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget of one tree, for any number of rounds."""
        self.check(problem)
        tight = self.calibration == "exact"
        return arms_guarantee(
            self.privacy if tight else self.per_tree(problem).within(self.privacy), problem, horizon=True
        )

    def plays_uniform_below(self, problem: Arms) -> int:
        """While n(n+1) < Γ an arm with one play less always has the larger index."""
        return problem.arms * math.isqrt(int(self.bonus(problem)))
