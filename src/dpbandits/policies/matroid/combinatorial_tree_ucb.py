r"""CUCB-DP (Chen et al. 2020): UCB on sums released by a tree for each item."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import ANYTHING, COUNT, Limits
from dpbandits.errors import InvalidInput
from dpbandits.policies.arms.shared.splitting import split_budget
from dpbandits.policies.arms.tree_ucb import released_reward
from dpbandits.policies.matroid.shared.matroid_policy import TIE, MatroidPolicy
from dpbandits.policies.matroid.shared.pending import (
    News,
    list_news,
    start_news,
    take_news,
    unknown_index,
)
from dpbandits.policies.matroid.shared.protection import matroid_guarantee
from dpbandits.policies.released import Reading, of_tree
from dpbandits.privacy.budgets import EVERY_KIND, NonPrivate, PureDP
from dpbandits.privacy.calibration import Calibration
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import centred
from dpbandits.problems.matroids import MatroidBases
from dpbandits.problems.matroids.bases import Items, Rewards
from dpbandits.problems.matroids.greedy import Greedy, improve, shuffle, start_greedy
from dpbandits.sums.binary_tree import MOST_LEVELS, Leaves, Tree, release_leaf, start_tree

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Public(NamedTuple):
    """Released sums and each item's index, base + √(ln t)·width + ln³t·rate."""

    round: Integers  # (1,) rounds closed so far
    greedy: Greedy
    plays: Integers  # T_e, decisions whose rounds are closed
    waiting: Integers  # those in flight
    news: News
    tree: Tree
    base: Array  # the mean; beyond any index before the first release
    width: Array
    rate: Array
    score: Array
    printed: float  # 12 K/ε where the printed room for noise is left, 0 otherwise

    def limits(self) -> Limits:
        """It counts; the index may be anything."""
        return {**dict.fromkeys(("round", "plays", "waiting"), COUNT), "score": ANYTHING}

    def release(self, secret: Leaves, noise: Noise) -> None:
        """Insert the new rewards into their items' trees and restate these items."""
        for place in range(self.news.size[0]):
            item = take_news(self.news, place)
            release_leaf(self.tree, secret, item, noise)
            plays = float(self.plays[item])
            self.base[item] = released_reward(self.tree, item, plays) / plays
            _widen(self, item)
        self.news.size[0] = 0

    def select(self, context: None, explore: Chance) -> Items:
        """The basis of the largest total index."""
        done = int(self.round[0])
        if done == 0:
            shuffle(self.greedy, explore)
            return (self.greedy.basis,)
        log = math.log(done + 1.0)
        root, cube = math.sqrt(log), log * log * log
        for item in range(self.score.size):
            bonus = root * self.width[item] + cube * self.rate[item]
            self.score[item] = self.base[item] + bonus
        improve(self.greedy, self.score)
        return (self.greedy.basis,)

    def observe(self, secret: Leaves, context: None, action: Items, reward: Rewards) -> None:
        """The rewards since the last release are a leaf of their item's tree."""
        self.round[0] += 1
        items, rewards = action[0], reward[0]
        for place in range(items.size):
            item = items[place]
            secret.open[item, 0] += centred(rewards[place])
            self.plays[item] += 1
        list_news(self.news, items)

    def wait(self, action: Items, change: int) -> None:
        """What is in flight narrows an item's bonus, as if it had come back alike."""
        for item in action[0]:
            self.waiting[item] += change
            if self.plays[item] == 0:
                self.base[item] = unknown_index(self.waiting[item])
            else:
                _widen(self, item)


@register_jitable(forceinline=True)
def _widen(public: Public, item: int) -> None:
    plays = float(public.plays[item] + public.waiting[item])
    public.width[item] = math.sqrt(1.5 / plays)
    if public.printed > 0.0:
        public.rate[item] = public.printed / plays
    else:
        public.width[item] += math.sqrt(2.0 * public.tree.variance[item]) / plays


@dataclass(frozen=True, kw_only=True)
class CombinatorialTreeUCB(MatroidPolicy):
    r"""UCB on noisy sums, a tree for each item, with room for the trees' noise (CUCB-DP).

    **Definition.** The rewards of an item between two decisions, one unless rounds are in flight, are a
    leaf of its tree (`sums/binary_tree.py`, doubling), and w̃_e is the released prefix over the T_e
    plays. Round t plays the basis of the largest Σ U_e with

        U_e = w̃_e + √(3 ln t/(2 T_e)) + √(2 V_e ln t)/T_e,         calibration="exact",
        U_e = w̃_e + √(3 ln t/(2 T_e)) + 12 K ln³t/(ε T_e),         calibration="paper" (ε-DP only),

    V_e the variance of the noise in the released prefix; items never played come first. Decisions in
    flight count in T_e where it is a width, as if they had come back alike; where nothing has come back,
    the items with the fewest of them come first. The printed room for noise outweighs any reward for
    millions of rounds.

    **Guarantee.** Neighbours replace one round's vector of rewards. It is in one leaf of the trees of
    the K items played, each of sensitivity 1; a tree at ε/K (μ/√K) pays for all it ever releases, and
    bases are functions of released nodes and counts of decisions. So all decisions together are ε-DP
    (μ-GDP) by adaptive composition, for any number of rounds.

    **Regret.** O(LK ln²T/Δ) + Õ(LK ln³T/ε) as printed (Chen et al. 2020, Theorem 8); no bound is
    claimed for the variance form.

    >>> from dpbandits.problems import UniformMatroid
    >>> problem = MatroidBases(UniformMatroid(6, 2))
    >>> print(CombinatorialTreeUCB(privacy=PureDP(1.0)).guarantee(problem).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    accepts: ClassVar = EVERY_KIND
    paper: ClassVar[str] = "Chen, Zheng, Zhou, Yang, Chen & Wang 2020, CUCB-DP"

    calibration: Annotated[
        Calibration, '"exact": confidence bounds from the variance of the noise; "paper": as printed.'
    ] = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(("exact", "paper"), calibration=self.calibration)
        if self.calibration == "paper" and not isinstance(self.privacy, PureDP | NonPrivate):
            raise InvalidInput(f"calibration='paper' is for ε-DP, got {self.privacy}")

    def begin(self, problem: MatroidBases) -> tuple[Any, Any]:
        """An empty tree for every item."""
        items, share = problem.items, split_budget(self.privacy, problem.rank)
        tree, leaves = start_tree(items, 1, 1.0, share)
        printed = 0.0
        if self.calibration == "paper" and isinstance(share, PureDP):
            printed = 12.0 / share.epsilon
        public = Public(
            round=np.zeros(1, np.int64),
            greedy=start_greedy(problem.matroid.state(), items, tolerance=TIE),
            plays=np.zeros(items, np.int64),
            tree=tree,
            waiting=np.zeros(items, np.int64),
            news=start_news(items),
            base=np.full(items, unknown_index(0)),
            width=np.zeros(items),
            rate=np.zeros(items),
            score=np.zeros(items),
            printed=printed,
        )
        return public, leaves

    def released(self, problem: MatroidBases, public: Public) -> Reading:
        """The items' means; a reward that is listed as news is not released yet."""
        size, state = public.plays - public.news.listed, problem.matroid.state()
        return of_tree("item", public.tree, size, matroid=state)

    def draws_of_one(self, problem: Any) -> float:
        """One node of each level for each item of her set."""
        return float(2 * MOST_LEVELS * problem.items)

    def guarantee(self, problem: MatroidBases) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return matroid_guarantee(self.privacy, problem)
