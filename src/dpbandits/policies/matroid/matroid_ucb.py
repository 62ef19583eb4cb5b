r"""Optimistic matroid maximization (Kveton et al. 2014), without privacy."""

import math
from dataclasses import dataclass
from typing import ClassVar

from dpbandits.policies.matroid.shared.exact_means import ExactMeans, ExactPolicy


class Public(ExactMeans):
    """Exact means."""

    def restate(self) -> None:
        """The index of every item."""
        done = int(self.round[0])
        radius = math.sqrt(2.0 * math.log(done))
        for item in range(self.score.size):
            self.score[item] = self.mean[item] + radius * self.width[item]


@dataclass(frozen=True, kw_only=True)
class MatroidUCB(ExactPolicy):
    r"""Play the basis whose items have the largest upper confidence bounds (OMM).

    **Definition.** After t rounds play the basis of the largest total weight Σ U_e with

        U_e = ŵ_e + √(2 ln t/T_e),

    ŵ_e the mean of the T_e rewards of item e; items never played come first, in random order. A greedy
    pass finds that basis. Decisions in flight count in T_e, as if they had come back alike; where
    nothing has come back, the items with the fewest of them come first. With first_round="look" all
    items are looked at in the first round, as in the paper; that is no basis and earns nothing.

    **Guarantee.** None: decisions follow exact means.

    **Regret.** Σ_e 16 ln T/Δ_e + O(1), summed over the items outside the best basis, Δ_e the
    smallest gap between e and an item it can replace (Kveton et al. 2014, Theorem 2).

    >>> from dpbandits.problems import MatroidBases, UniformMatroid
    >>> learner = MatroidUCB().start(MatroidBases(UniformMatroid(4, 2)), seed=1)
    >>> items = learner.select()
    >>> learner.update(items, [1.0, 0.0])
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "Kveton, Wen, Ashkan, Eydgahi & Eriksson 2014, OMM"
    state: ClassVar = Public
