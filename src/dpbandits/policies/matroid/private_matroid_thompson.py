r"""DPTS-MAT (Chandak, Hu & Hegde, Algorithm 3): Thompson sampling on doubling batches that forget."""

import math
from dataclasses import dataclass
from typing import ClassVar

from dpbandits.engine import Chance
from dpbandits.policies.matroid import private_matroid_ucb
from dpbandits.policies.matroid.private_matroid_ucb import ForgetfulBatches
from dpbandits.policies.matroid.shared.pending import any_basis
from dpbandits.problems.matroids.bases import Items
from dpbandits.problems.matroids.greedy import rebuild


class Public(private_matroid_ucb.Public):
    """The batches of `PrivateMatroidUCB`, released and observed as there."""

    def select(self, context: None, explore: Chance) -> Items:
        """A fresh sample for every item, free of charge, and the best basis of the samples."""
        done = int(self.round[0])
        if done == 0:
            return any_basis(self, explore)
        spread = 3.0 * math.log(self.greedy.basis.size * (done + self.ahead))
        for item in range(self.score.size):
            self.score[item] = self.mean[item]
            if self.plays[item] > 0:
                centre = self.mean[item] + spread * self.tail[item]
                self.score[item] = explore.normal(centre, self.width[item])
        rebuild(self.greedy, self.score)
        return (self.greedy.basis,)


@dataclass(frozen=True, kw_only=True)
class PrivateMatroidThompson(ForgetfulBatches):
    r"""Draw every item's mean from a posterior raised by the noise; play the best basis (DPTS-MAT).

    **Definition.** Batches as in `PrivateMatroidUCB`: 1, 2, 4, … decisions, each released once with
    Laplace(1/ε₀) noise, ε₀ = ε/K, and then forgotten; decisions in flight count as there. Round t plays
    the basis of the largest Σ θ_e with

        θ_e ~ N(w̃_e + 3 ln(Kt)/(ε₀ T_e), 1/T_e),

    w̃_e the released mean of the T_e decisions of the item's last full batch. Items without a
    released batch come first. With calibration="paper" all L items are looked at in the first
    round, as printed, which is no basis and earns nothing.

    **Guarantee.** Neighbours replace one round's vector of rewards. It is in one batch of each of the K
    items played, each sum moves by at most 1 and is released once with Laplace(K/ε); batch ends count
    decisions, and samples are drawn from released sums. So all decisions together are ε-DP, for any
    number of rounds. Under μ-GDP each of the K releases is μ/√K-GDP. As printed, the first person's L
    rewards are all released: εL/K (μ√(L/K)), and that is reported.

    **Regret.** That of `PrivateMatroidUCB` plus O(Σ_k ln(KT)/Δ_k) over the best basis (Theorem 4).

    >>> from dpbandits.privacy.budgets import PureDP
    >>> from dpbandits.problems import MatroidBases, UniformMatroid
    >>> problem = MatroidBases(UniformMatroid(6, 2))
    >>> print(PrivateMatroidThompson(privacy=PureDP(1.0)).guarantee(problem).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "Chandak, Hu & Hegde, DPTS-MAT"
    state: ClassVar = Public
