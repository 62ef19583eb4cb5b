r"""Combinatorial Thompson sampling (Wang & Chen 2018) on matroids, without privacy."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.policies.arms.shared.sampling import beta_sample
from dpbandits.policies.matroid.shared.exact_means import ExactMeans, ExactPolicy
from dpbandits.policies.matroid.shared.pending import any_basis
from dpbandits.problems.matroids.bases import Items
from dpbandits.problems.matroids.greedy import rebuild


class Public(ExactMeans):
    """Exact means; the option is 1 for Beta posteriors, 0 for Gaussian ones."""

    def select(self, context: None, explore: Chance) -> Items:
        """The basis of the largest total posterior sample."""
        if self.round[0] == 0:
            first = any_basis(self, explore)
            if first[0].size > self.greedy.basis.size:
                return first
        for item in range(self.score.size):
            plays = float(self.plays[item])
            if self.option > 0.0:
                wins = min(max(self.mean[item], 0.0), 1.0) * plays if plays > 0.0 else 0.0
                self.score[item] = beta_sample(wins + 1.0, plays - wins + 1.0, explore)
            else:
                self.score[item] = self.mean[item]
                if plays > 0.0:
                    self.score[item] = explore.normal(self.mean[item], self.width[item])
        rebuild(self.greedy, self.score)
        return (self.greedy.basis,)


@dataclass(frozen=True, kw_only=True)
class MatroidThompson(ExactPolicy):
    r"""Draw every item's mean from its posterior and play the best basis of the draws (CTS).

    **Definition.** Each round plays the basis of the largest Σ θ_e, drawn afresh:

        θ_e ~ N(ŵ_e, 1/T_e)                                 with prior="gaussian",
        θ_e ~ Beta(1 + ŵ_e T_e, 1 + (1 − ŵ_e) T_e)          with prior="beta",

    ŵ_e the mean of the T_e rewards of item e. With Gaussian posteriors, items never played come first,
    decisions in flight count in T_e, as if they had come back alike, and where nothing has come back,
    the items with the fewest of them come first. (The paper tosses a coin for a reward between 0 and 1;
    here it counts as it is.)

    **Guarantee.** None: posteriors follow exact means.

    **Regret.** O(Σ_e ln T/Δ_e) plus a constant of order L/Δ⁴ with Beta posteriors (Wang & Chen 2018).

    >>> from dpbandits.problems import MatroidBases, UniformMatroid
    >>> MatroidThompson(prior="beta").start(MatroidBases(UniformMatroid(4, 2)), seed=1).select().size
    2
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "Wang & Chen 2018, CTS"
    state: ClassVar = Public

    prior: Annotated[Literal["gaussian", "beta"], 'The law of samples: "gaussian" or "beta".'] = (
        "gaussian"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(("gaussian", "beta"), prior=self.prior)

    def option(self) -> float:
        """Which posterior."""
        return 1.0 if self.prior == "beta" else 0.0
