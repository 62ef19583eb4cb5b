r"""Linear UCB on batches, with confidence sets that hold under the privacy noise."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.mechanisms.gram import operator_norm
from dpbandits.policies.linear.shared.batched import Batched, BatchedLinear, noise_variance, read_block
from dpbandits.policies.linear.shared.choosing import RADIUS, most_promising_action
from dpbandits.policies.linear.shared.confidence import ConfidentPolicy, restate
from dpbandits.policies.linear.shared.reading import of_ellipsoid
from dpbandits.policies.released import Reading
from dpbandits.problems.linear import LinearContexts, LinearProblem


class Public(Batched):
    """As for all batched policies; `settings` is what the confidence set assumes."""

    def restate(self) -> None:
        """The confidence set."""
        done, released = float(self.clock[0]), float(self.batches.released[0])
        gram_noise, moment_noise = noise_variance(self)
        for block in range(self.mean.shape[0]):
            read_block(self, block)
            restate(self, block, self.vectors, done, released, gram_noise, moment_noise)

    def choose(self, features: Any, explore: Chance) -> int:
        """The largest upper bound; before the first release all actions of one length are alike."""
        return most_promising_action(features, self, 1.0, self.mean[0], explore)


@dataclass(frozen=True, kw_only=True)
class BatchedLinUCB(BatchedLinear, ConfidentPolicy):
    r"""Play the largest upper bound of a confidence set that is restated after every batch, and valid.

    **Definition.** In units of the bounds. At round t a batch has max(b₀, min(`growth`·t, `pace`·√t))
    rounds, with b₀ = max(16, ⌈15/μ⌉), .1 and 3.7/μ unless given. After the k-th release, of noise scales
    s_G and s_U per entry and at round t, with l = ln(π²k²/(2α)), α = `failure` or 1/t,

        Υ = s_G (E‖Z‖ + 2√l),   V = G̃ + (1 + c Υ) I,   c = `shift`,
        ρ_min = 1 + (c − 1)Υ,   ρ_max = 1 + (c + 1)Υ,   γ = s_U (√d + √(2l))/√ρ_min,
        β = σ √(2l + ln det V − d ln ρ_min) + S √ρ_max + γ + (S√d + 1) √t/2¹³,

    and until the next release it plays argmax_x θ̂·x + β √(xᵀV⁻¹x), θ̂ = V⁻¹ũ. Z is a symmetric Gaussian
    matrix (diagonal of variance 2); the last term pays for rounding rows to a grid. On `LinearActions`
    G is exact and V = G + (1 + s_U) I. Where K arms have parameters of their own, each has such a set of
    its own blocks of G̃ and ũ, with α/K, and batches have at most 12/μ·√t rounds.

    **Guarantee.** As `RandomizedLinUCB`: each person is in one released batch, so all that is ever
    released is μ-GDP, for any horizon; joint DP for contexts, all decisions for a public decision set.

    **Regret.** The noise in G̃ has norm at most Υ with probability 1 − e^−l (its norm is a 1-Lipschitz
    function of √2 times standard normals, about E‖Z‖), that in ũ at most s_U(√d + √(2l)), and the
    rewards' noise obeys the self-normalised bound at the fixed t and ρ_min of the release: three
    events of probability 2α/(π²k²) each. So with `failure` all confidence sets hold together with
    probability 1 − α, and SS18's Theorems 5 and 6 apply with ρ_min, ρ_max and γ of the last release,
    up to batches.

    >>> import dpbandits as dpb
    >>> policy = BatchedLinUCB(privacy=dpb.GaussianDP(1.0))
    >>> print(policy.guarantee(dpb.LinearContexts(5)).budget)
    1-GDP
    """

    status: ClassVar[str] = "proved"
    state: ClassVar = Public
    # Its sets pay for every release by a union bound, so it makes fewer.
    usual_pace: ClassVar[float] = 3.7
    usual_blocks: ClassVar[tuple[int, ...]] = (64, 256, 1024)

    shift: Annotated[
        float, "How much regularisation is added to the noisy Gram matrix, in units of its noise."
    ] = 16.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.growth(above=1.0, shift=self.shift)

    def begin(self, problem: LinearProblem) -> tuple[Any, Any]:
        """Nothing known: every direction as wide."""
        operator = operator_norm(problem.dimension) if isinstance(problem, LinearContexts) else 0.0
        return self._begin(problem, self._assumed(problem, operator, self.shift))

    def released(self, problem: LinearProblem, public: Public) -> Reading:
        """The confidence set."""
        known = bool(public.batches.released[0] > 0)
        return of_ellipsoid(problem, public.mean, public.shape, public.width[:, RADIUS], known=known)
