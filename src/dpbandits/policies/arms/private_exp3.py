r"""Exp3 on short batches of one arm each: for arms that may change, whatever they pay."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpbandits import checks
from dpbandits.policies.arms.exp3 import Exp3
from dpbandits.policies.arms.shared.exponential_weights import Weights, of_released, start_weights
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.policy import Policy
from dpbandits.policies.released import Reading
from dpbandits.policies.returning import OncePerBatch
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import EVERY_KIND
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.arms import Arms


@dataclass(frozen=True, kw_only=True)
class PrivateExp3(OncePerBatch):
    r"""Draw an arm by exponential weights, play it for a short batch, and weigh what that paid.

    For arms that may change in any way, where policies that learn means can be lost.

    **Definition.** An arm I is drawn with the probabilities

        p_i = (1 − γ)·exp(η Ĝ_i)/Σ_j exp(η Ĝ_j) + γ/K

    and played for a batch of B rounds, whose sum y = Σ (r − ½) + noise is released; Ĝ_I grows by y/p_I.
    With b the scale of the noise (1/ε, or σ = 1/μ) and V its variance (2/ε², or σ²): B = max(1, ⌈2b⌉),
    M = max(B, 2b), c = 1.1(B/4 + V/B) + M, and before round t + 1

        η = min(√(ln K/(2cK(t + B))), 1/(2KM)),    γ = ηKM ≤ ½.

    No horizon is needed. `rate` is a factor on the root. With a `memory` of m rounds every release first
    multiplies all Ĝ by e^{−B/m}, and t is m at most: older rounds fade, so that changes are followed.
    With rounds in flight another arm is drawn as soon as the batch is decided; a batch is released with
    all it holds, weighed by the odds with which its arm was drawn last.

    **Guarantee.** Neighbours replace one reward. It is in one batch, whose sum moves by at most 1 and is
    released once: ε-DP with Laplace(1/ε), μ-GDP with N(0, 1/μ²). Batches end by counts of decisions,
    draws are functions of released sums and free randomness, and dividing by p, which is public, comes
    after the noise: no reward is ever weighed before it. So all decisions together cost one release, for
    any number of rounds and however arms change. (Sums weighed before the release, as in Tossou &
    Dimitrakakis 2017, have sensitivity K/γ. Batches that mix arms need noise for each, and Σ 1/p_i of
    it in place of K; Asi, Raman & Talwar 2025 play one arm in each, as here.)

    **Regret.** Against the best fixed arm of rewards fixed beforehand, at most
    (1 + o(1))·√(8cKT ln K), where c ≤ 3.7/ε for ε ≤ 1 and 2/ε a whole number: O(√(KT ln K/ε)). *Proof.*
    Let x = η y/p_i for the batch's arm, x = u + v by reward and noise. As p ≥ γ/K = ηM, |u| ≤ ½, and
    the scale β of v is at most ½. For Laplace noise E eˣ − 1 − E x = eᵘ/(1 − β²) − 1 − u ≤
    0.6u² + 2.2β² ≤ 1.1 E x²; for Gaussian noise likewise. So the step of exponential weights (Bubeck &
    Cesa-Bianchi 2012, Theorem 3.1) costs at most 1.1 η Σ_i q_i E y²/p_i ≤ 1.1 ηK(B²/4 + V)/(1 − γ) a
    batch, q being the weights before mixing, which costs at most γB. Together that is at most
    (1 + o(1))·ηKcB; add up, and ln K/η at the last η. That is the mean: single runs can be far above
    it. No bound is claimed with a `memory`. Both are measured in the figure `changing-arms`.

    >>> from dpbandits.privacy.budgets import PureDP
    >>> print(PrivateExp3(privacy=PureDP(1.0)).guarantee(Arms(5)).budget)
    1-DP
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = EVERY_KIND
    paper: ClassVar[str] = "dpbandits, after Asi, Raman & Talwar 2025"
    testing: ClassVar = PolicyTesting(batch=2)

    batch: Annotated[int | None, "Rounds in a batch; by default twice the scale of the noise."] = None
    rate: Annotated[float, "A factor on the learning rate; 1 is that of the bound."] = 1.0
    memory: Annotated[int | None, "Rounds after which what was learned fades; by default never."] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(rate=self.rate)
        for name in ("batch", "memory"):
            if getattr(self, name) is not None:
                checks.integer(least=1, **{name: getattr(self, name)})

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Nothing played yet."""
        return start_weights(problem, self.privacy, self.batch, self.rate, self.memory)

    def twin(self) -> Policy | None:
        """Every round is a batch, unless their length was given."""
        if self.batch is not None:
            return super().twin()
        return Exp3(rate=self.rate, memory=self.memory)

    def released(self, problem: Arms, public: Weights) -> Reading:
        """The means of all released batches."""
        return of_released(public)

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return arms_guarantee(self.privacy, problem)
