r"""Linear UCB (Abbasi-Yadkori, Pál & Szepesvári 2011): optimism over a confidence ellipsoid."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.policies.linear.shared.choosing import RADIUS, most_promising_action
from dpbandits.policies.linear.shared.confidence import ConfidentPolicy
from dpbandits.policies.linear.shared.least_squares import (
    LeastSquares,
    of_least_squares,
    start_least_squares,
)
from dpbandits.policies.linear.shared.protection import no_guarantee
from dpbandits.policies.released import Reading
from dpbandits.policies.trusted import WithoutBudget
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.linear import LinearProblem


class Settings(NamedTuple):
    """What the confidence set is made of."""

    sigma: float  # σ
    prior: float  # S√ρ
    alpha: float  # α, or 0 for 1/t


class Public(LeastSquares):
    """As for all least squares."""

    def choose(self, features: Any, explore: Chance) -> int:
        """The largest upper confidence bound."""
        sigma, prior, alpha = self.settings
        blocks = self.mean.shape[0]
        level = math.log((self.round[0] + 1.0) * blocks if alpha == 0.0 else blocks / alpha)
        for block in range(blocks):
            beta = sigma * math.sqrt(2.0 * level + self.log_det[block]) + prior
            self.width[block, RADIUS] = beta
        return most_promising_action(features, self, 1.0, self.mean[0], explore)


@dataclass(frozen=True, kw_only=True)
class LinUCB(WithoutBudget, ConfidentPolicy):
    r"""Play the action whose reward could be largest, given everything seen so far. Not private.

    **Definition.** In units of the bounds, V = ρI + Σ zzᵀ with ρ = `regularizer`, θ̂ = V⁻¹ Σ zw, and

        argmax_x  θ̂·x + β √(xᵀV⁻¹x),   β = σ √(2 ln(1/α) + ln det V − d ln ρ) + S√ρ,

    with σ = `noise_level`/max_reward (1 unless given: bounded rewards are subgaussian), S the bound
    `parameter_norm` on ‖θ*‖ (so that |⟨x, θ*⟩| ≤ max_reward unless given), and α = `failure`, or 1/t.
    Where K arms have parameters of their own, each has V, θ̂ and β of its own rows, with α/K.

    **Guarantee.** None: every decision depends on every reward.

    **Regret.** O(d √T ln T), and O(d² ln² T/Δ) with a gap Δ (SS18's Theorems 5 and 6 at H = ρI;
    `regret_bound`).

    >>> import dpbandits as dpb
    >>> LinUCB().start(dpb.LinearContexts(2), seed=1, compiled=False).select([[1.0, 0.0]])
    0
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = LinearProblem
    paper: ClassVar[str] = "Abbasi-Yadkori, Pál & Szepesvári 2011"
    compiles: ClassVar[bool] = True

    regularizer: Annotated[float, "The ridge ρ that is added to the Gram matrix."] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(regularizer=self.regularizer)

    def begin(self, problem: LinearProblem) -> tuple[Any, Any]:
        """V = ρI."""
        assumed = self._assumed(problem)
        prior = assumed.size * math.sqrt(self.regularizer)
        settings = Settings(assumed.sigma, prior, assumed.alpha)
        return start_least_squares(Public, problem, self.regularizer, settings)

    def released(self, problem: LinearProblem, public: Public) -> Reading:
        """The regression, exact."""
        return of_least_squares(problem, public)

    def guarantee(self, problem: LinearProblem) -> Guarantee:
        """None."""
        return no_guarantee(problem, "it uses the rewards as they are")
