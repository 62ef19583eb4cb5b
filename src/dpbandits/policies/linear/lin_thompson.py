r"""Linear Thompson sampling (Agrawal & Goyal 2013)."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.policies.linear.shared.algebra import cholesky, sample
from dpbandits.policies.linear.shared.choosing import most_promising_arm, most_rewarding
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
    """How far samples go."""

    spread: float  # v


class Public(LeastSquares):
    """As for all least squares."""

    def choose(self, features: Any, explore: Chance) -> int:
        """The largest reward under a draw from the posterior."""
        spread = self.settings.spread
        if self.mean.shape[0] > 1:
            width = self.width
            return most_promising_arm(features, self.mean, self.shape, width, spread, True, explore)
        cholesky(self.shape[0], 0.0, self.lower, self.mean[0])
        sample(self.mean[0], self.lower, spread, self.draw, explore)
        return most_rewarding(features, self.draw[0], explore)


@dataclass(frozen=True, kw_only=True)
class LinThompson(WithoutBudget):
    r"""Draw parameters from their posterior and play what is best under them. Not private.

    **Definition.** In units of the bounds, V = ρI + Σ zzᵀ with ρ = `regularizer`, θ̂ = V⁻¹ Σ zw; each
    round draws θ ~ N(θ̂, v² V⁻¹), v = `spread`, and plays argmax_x θ·x. (Agrawal & Goyal analyse v = σ
    √(9 d ln(t/δ)), far too wide in practice.) Where arms have parameters of their own, each has V and θ̂
    of its own rows, and of its draw only θ·x is drawn.

    **Guarantee.** None: every decision depends on every reward.

    **Regret.** O(d^{3/2} √T ln T) for their v.

    >>> import dpbandits as dpb
    >>> LinThompson().start(dpb.LinearContexts(2), seed=1, compiled=False).select([[1.0, 0.0]])
    0
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = LinearProblem
    paper: ClassVar[str] = "Agrawal & Goyal 2013"
    compiles: ClassVar[bool] = True

    regularizer: Annotated[float, "The ridge ρ that is added to the Gram matrix."] = 1.0
    spread: Annotated[float, "A factor on the deviation of samples."] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(regularizer=self.regularizer, spread=self.spread)

    def begin(self, problem: LinearProblem) -> tuple[Any, Any]:
        """V = ρI."""
        return start_least_squares(Public, problem, self.regularizer, Settings(float(self.spread)))

    def released(self, problem: LinearProblem, public: Public) -> Reading:
        """The regression, exact."""
        return of_least_squares(problem, public)

    def guarantee(self, problem: LinearProblem) -> Guarantee:
        """None."""
        return no_guarantee(problem, "it uses the rewards as they are")
