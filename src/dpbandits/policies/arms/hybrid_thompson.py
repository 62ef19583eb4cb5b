r"""Thompson sampling on sums of the hybrid mechanism (Hu & Hegde 2022, DP-TS)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.arms.shared.sampling import beta_sample
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
from dpbandits.policies.trusted import TrustedPolicy
from dpbandits.privacy.budgets import EVERY_KIND, PureDP
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms, centred
from dpbandits.sums.binary_tree import MOST_LEVELS, Leaves, Tree, release_leaf, start_tree


class Public(NamedTuple):
    """Released sums, one per arm."""

    tally: Tally
    tree: Tree
    reward: NDArray[np.float64]  # n_i·μ̃_i
    optimism: NDArray[np.float64]  # n_i·υ_i/√(ln t)
    width: float  # 6√8/ε; 0 under Gaussian budgets

    def release(self, secret: Leaves, noise: Noise) -> None:
        """Insert what came in into the trees, a leaf for each arm, and restate these arms."""
        while any_due(self.tally.due):
            arm = take_due(self.tally.due)
            release_leaf(self.tree, secret, arm, noise)
            closed = self.tally.closed[arm]
            self.reward[arm] = self.tree.total[arm, 0] + 0.5 * closed
            if self.tree.laplace:
                self.optimism[arm] = self.width * math.sqrt(math.log(closed + 1.0))
            else:
                self.optimism[arm] = math.sqrt(2.0 * self.tree.variance[arm])

    def select(self, context: None, explore: Chance) -> int:
        """Each arm once, then the largest sample of the optimistic posteriors."""
        if self.tally.unknown[0] > 0:
            return fewest(self.tally.plays)
        root = math.sqrt(math.log(self.tally.round[0] + 1.0))
        best, highest = 0, -1.0
        for arm in range(self.reward.size):
            closed = float(self.tally.closed[arm])
            wins = min(max(self.reward[arm] + root * self.optimism[arm], 0.0), closed)
            value = beta_sample(wins + 1.0, closed - wins + 1.0, explore)
            if value > highest:
                best, highest = arm, value
        return best

    def observe(self, secret: Leaves, context: None, action: int, reward: float) -> None:
        """The reward is a leaf of its arm's tree, or part of one."""
        secret.open[action, 0] += centred(reward)
        count_closed(self.tally, action)

    def wait(self, action: int, change: int) -> None:
        """A decision in flight is one of those so far."""
        count_in_flight(self.tally, action, change)


@dataclass(frozen=True, kw_only=True)
class HybridThompson(TrustedPolicy):
    r"""Beta Thompson sampling on noisy running sums, shifted up by what the noise may hide.

    **Definition.** Every arm's rewards go through the hybrid mechanism: trees of 1, 2, 4, … leaves whose
    roots are added up (the logarithmic mechanism, half of the budget) and whose inner nodes give the
    prefixes within the open tree (the binary mechanism, the other half). With n_i the plays, t the
    round and μ̃_i the released sum over n_i,

        p_i = μ̃_i + υ_i brought into [0, 1],   υ_i = 6√(8 ln(n_i+1) ln t)/(ε n_i),
        θ_i ~ Beta(p_i n_i + 1, (1 − p_i) n_i + 1),

    and after one play of each arm the largest θ_i is played. Under Gaussian budgets
    υ_i = √(2 V_i ln t)/n_i, with V_i the variance of the noise in the released sum.

    The form of υ_i is uncertain: it is from notes on the paper, which was not at hand; its regret bound
    would rather need 6√8 ln(n_i+1) ln t/(ε n_i). Privacy does not depend on it.

    **Guarantee.** Neighbours replace one reward. It is in one leaf, of sensitivity 1; the r-th
    tree holds it in at most r inner nodes of scale 2r/ε and in one root of scale 2/ε (1/ε in the first,
    which is a root only), each released once: together ε. Under Gaussian budgets the scales are
    √(2r)/μ and √2/μ (1/μ): together μ-GDP. Decisions are functions of released nodes, counts of
    decisions and free randomness, so this holds for all of them and any number of rounds
    (`sums/binary_tree.py`).

    **Regret.** Σ O(ln T/min(ε, Δ_i)·ln(ln T/(ε Δ_i))) in the paper, for its υ_i. With the one above
    some runs lose the best arm under ε-DP with ε ≤ 1; none was seen to under Gaussian budgets.

    >>> print(HybridThompson(privacy=PureDP(1.0)).guarantee(Arms(5)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = EVERY_KIND
    paper: ClassVar[str] = "Hu & Hegde 2022, DP-TS"

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """No tree begun."""
        arms = problem.arms
        tree, leaves = start_tree(arms, 1, 1.0, self.privacy)
        epsilon = self.privacy.epsilon if isinstance(self.privacy, PureDP) else math.inf
        public = Public(
            tally=start_tally(arms),
            tree=tree,
            reward=np.zeros(arms),
            optimism=np.zeros(arms),
            width=6.0 * math.sqrt(8.0) / epsilon,
        )
        return public, leaves

    def released(self, problem: Arms, public: Public) -> Reading:
        """The arms' means."""
        return of_tree("arm", public.tree, not_due(public.tally.closed, public.tally.due))

    def draws_of_one(self, problem: Any) -> float:
        """A reward is in one node of each level, of at most four sums."""
        return float(4 * MOST_LEVELS)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return arms_guarantee(self.privacy, problem)
