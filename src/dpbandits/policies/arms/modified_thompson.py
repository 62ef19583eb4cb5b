r"""Thompson sampling with pre-pulls and a wider posterior (Ou et al. 2024, Algorithm 2)."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpbandits import checks
from dpbandits.errors import BudgetNotAccepted, InvalidInput
from dpbandits.policies.arms.gaussian_thompson import (
    GaussianThompson,
    Public,
    begin,
    draws_cost,
    draws_guarantee,
    draws_multiplier,
    draws_spent,
)
from dpbandits.policies.policy import Policy
from dpbandits.policies.trusted import TrustedPolicy
from dpbandits.privacy.budgets import GAUSSIAN_OR_NONE, ROUNDING, Budget, GaussianDP, NonPrivate
from dpbandits.privacy.calibration import Calibration
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms


@dataclass(frozen=True, kw_only=True)
class ModifiedThompson(TrustedPolicy):
    r"""Play every arm b times, then draw θ_i ~ N(μ̂_i, c/(n_i+1)) and play the largest.

    **Definition.** As `GaussianThompson`, with b `prepulls` of each arm first (arm by arm, nothing is
    drawn) and the variance multiplied by c = `variance_scale`. With rounds in flight nothing is drawn
    until b rounds of *every* arm are closed; meanwhile the arm with the fewest decisions is played.

    **Guarantee.** Neighbours replace one reward, of arm j. Given the same decisions it moves only θ_j
    of draws after its round was closed, by at most 1/(n_j+1) with standard deviation √(c/(n_j+1)), n_j
    being the closed rounds of arm j. A decision that is drawn for comes after b closed rounds of every
    arm, so after bN decisions at least: of T decisions at most T − bN are drawn for, and each time
    n_j ≥ b. And n_j ≥ 1 where the reward matters, since its own round is among them. Gaussian draws
    compose adaptively, so all decisions are μ-GDP with

        μ = √( (T − bN) / (c (max(b, 1) + 1)) ),

    reached when arm j is never played again. (Lemma 4 of the paper prints √(T/(c(b+1))): right for
    b ≥ 1 with T in place of T − bN, and too large by √2 at b = 0.)

    **Options.** A budget and `prepulls` give the `variance_scale`; `calibration="paper"` solves it from
    the printed Lemma 4, and the guarantee is still the true one. c is never solved below 1, where the
    regret bound ends; with a large budget the guarantee is then stronger than asked. With neither
    given, b = 2√(T ln T)/μ, at most T/(2N): the b that balances the regret b·N·Δ of the pre-pulls and
    c·N·ln T/Δ of the draws at a gap of Δ = ½.

    **Regret.** bN + O(c√(N (T−bN) ln N)), or bN + Σ O(c ln(T−bN)/Δ_i) (Theorem 5, for c ≥ 1).

    >>> policy = ModifiedThompson(privacy=GaussianDP(1.0), prepulls=2000)
    >>> round(policy.scales(Arms(5, horizon=100_000))[1], 3)
    44.978
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = GAUSSIAN_OR_NONE
    paper: ClassVar[str] = "Ou, Avella Medina & Cummings 2024, Algorithm 2"
    needs_horizon: ClassVar[bool] = True

    prepulls: Annotated[
        int | None,
        "How often each arm is played before the first sample; by default what suits the budget.",
    ] = None
    variance_scale: Annotated[
        float | None, "A factor on the variance of samples; by default what meets the budget."
    ] = None
    calibration: Annotated[
        Calibration, '"exact": the least noise that meets the budget; "paper": as printed.'
    ] = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prepulls is not None:
            checks.integer(least=0, prepulls=self.prepulls)
        if self.variance_scale is not None:
            checks.scale(variance_scale=self.variance_scale)
        checks.one_of(("exact", "paper"), calibration=self.calibration)

    def scales(self, problem: Arms) -> tuple[int, float]:
        """The b and c used on this problem."""
        prepulls = self._prepulls(problem)
        if problem.horizon is not None and prepulls * problem.arms >= problem.horizon:
            raise InvalidInput(
                f"{prepulls} pre-pulls of {problem.arms} arms leave no round of {problem.horizon:,}"
            )
        return prepulls, self._variance_scale(problem, prepulls)

    def _prepulls(self, problem: Arms) -> int:
        if self.prepulls is not None:
            return self.prepulls
        if isinstance(self.privacy, NonPrivate) or problem.horizon is None:
            return 0
        mu, horizon = self.privacy.to_gaussian().mu, problem.horizon
        balanced = 2.0 * math.sqrt(horizon * math.log(horizon)) / mu
        # More pre-pulls than T/μ² − 1 would only push c below 1.
        return max(0, int(min(balanced, horizon / (2 * problem.arms), horizon / mu**2 - 1.0)))

    def _variance_scale(self, problem: Arms, prepulls: int) -> float:
        if self.variance_scale is not None:
            return self.variance_scale
        if isinstance(self.privacy, NonPrivate) or problem.horizon is None:
            return 1.0
        mu = self.privacy.to_gaussian().mu
        if self.calibration == "paper":
            return max(1.0, problem.horizon / (mu * mu * (prepulls + 1.0)))
        return max(1.0, (draws_cost(problem.arms, problem.horizon, prepulls, 1.0) / mu) ** 2)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """The same state as `GaussianThompson`, with b and c."""
        self.guarantee(problem)
        return begin(problem.arms, *self.scales(problem))

    def multiplier(self, problem: Arms) -> float:
        """That of the draws. Where b is not given it is taken to be k or more, which is safe."""
        k = problem.rounds_per_person or 1
        return draws_multiplier(k, k if self.prepulls is None else self.prepulls)

    def released(self, problem: Arms, public: Any) -> None:
        """None: each decision draws from raw sums what it needs, and no estimate is ever released."""

    def draws_of_one(self, problem: Any) -> float:
        """A reward is in the mean that every later draw of its arm is around."""
        return float(problem.horizon or math.inf)

    def guarantee(self, problem: Arms) -> Guarantee:
        """μ-GDP as above, stated in the kind of budget that was asked for."""
        self.check(problem)
        budget: Budget = NonPrivate()
        if problem.horizon is not None:
            mu = draws_cost(problem.arms, problem.horizon, *self.scales(problem))
            if not isinstance(self.privacy, NonPrivate):
                wanted = self.privacy.to_gaussian().mu
                if mu > wanted * (1.0 + ROUNDING):
                    raise BudgetNotAccepted(
                        f"prepulls={self.prepulls} and variance_scale={self.variance_scale} cost "
                        f"{mu:.4g}-GDP, more than {self.privacy} allows; leave one of them out"
                    )
            budget = GaussianDP(mu).within(self.privacy)
        return draws_guarantee(budget, problem)

    def spent(self, public: Public) -> Budget | None:
        """What the draws so far really cost."""
        return draws_spent(public)

    def twin(self) -> Policy:
        """Without pre-pulls, at c = 1."""
        return GaussianThompson()
