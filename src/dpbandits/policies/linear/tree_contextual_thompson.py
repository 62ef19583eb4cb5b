r"""Contextual Thompson sampling on Laplace trees (Mishra & Thakurta 2015, Algorithm 4), corrected."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.policies.linear.shared.choosing import most_promising_arm, most_rewarding
from dpbandits.policies.linear.tree_contextual_ucb import Contextual, GammaNoise, TreeContextual


class Public(Contextual):
    """The public state of `TreeContextualThompson`; `lower` holds the inverse of Ã's Cholesky factor."""

    def select(self, context: Any, explore: Chance) -> int:
        """The largest reward under a draw from N(μ̂, α² Ã⁻¹)."""
        if self.mean.shape[0] > 1:
            factor, width = self.settings.alpha, self.width
            return most_promising_arm(context[0], self.mean, self.shape, width, factor, True, explore)
        size = self.moment.size
        for i in range(size):
            self.draw[1, i] = explore.standard_normal()
        for i in range(size):
            value = 0.0
            for k in range(i, size):
                value += self.lower[k, i] * self.draw[1, k]
            self.draw[0, i] = self.mean[0, i] + self.settings.alpha * value
        return most_rewarding(context[0], self.draw[0], explore)


class GammaPublic(GammaNoise, Public):
    """The same with the Gamma mechanism's noise."""


@dataclass(frozen=True, kw_only=True)
class TreeContextualThompson(TreeContextual):
    r"""Draw parameters around a regression on noisy sums, play what is best under them.

    **Definition.** In units of the bounds; Ã and b̃ as in `TreeContextualUCB`. Every round draws
    μ̃ ~ N(Ã⁻¹b̃, α²Ã⁻¹), α = `spread`, and plays argmax_x xᵀμ̃; while Ã is not positive definite it is
    replaced by I. Corrected: the paper prints covariance αÃ, and plays by the mean instead of the draw.

    **Guarantee.** As `TreeContextualUCB`: joint DP, from the same trees. The draws are free.

    **Regret.** None is proved.

    >>> import dpbandits as dpb
    >>> policy = dpb.linear.TreeContextualThompson(privacy=dpb.PureDP(1.0))
    >>> print(policy.guarantee(dpb.LinearContexts(5, horizon=1000)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    paper: ClassVar[str] = "Mishra & Thakurta 2015, Algorithm 4"
    state: ClassVar = Public
    gamma_state: ClassVar = GammaPublic

    spread: Annotated[float, "A factor on the deviation of samples."] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(spread=self.spread)

    def _exploration(self) -> float:
        return self.spread
