r"""Linear Thompson sampling on batches, as wide as the privacy noise makes it."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.mechanisms.gram import operator_norm
from dpbandits.policies.linear.shared.algebra import eigen
from dpbandits.policies.linear.shared.batched import (
    ARMS_PRIOR,
    Batched,
    BatchedLinear,
    noise_variance,
    read_block,
    restate_posterior,
)
from dpbandits.policies.linear.shared.choosing import any_action, most_promising_arm, most_rewarding
from dpbandits.policies.linear.shared.reading import of_ellipsoid, of_posterior
from dpbandits.policies.released import Reading, Z
from dpbandits.problems.linear import LinearContexts, LinearProblem


class Settings(NamedTuple):
    """How far samples go, and what the noise may hide."""

    spread: float  # v
    operator: float  # E‖Z‖


class Public(Batched):
    """As for all batched policies; `values` holds the posterior's scales."""

    def restate(self) -> None:
        """Mean and scales in the eigenbasis of G̃."""
        gram_noise, moment_noise = noise_variance(self)
        level = math.log(float(self.clock[0]) * max(float(self.batches.released[0]), 1.0))
        norm = math.sqrt(gram_noise) * (self.settings.operator + 2.0 * math.sqrt(max(level, 0.0)))
        floor = max(0.3 * norm, 1.0)
        for block in range(self.mean.shape[0]):
            read_block(self, block)
            eigen(self.gram, self.values, self.vectors, self.mean.shape[0] > 1)
            if self.mean.shape[0] == 1:
                _restate(self, self.mean[0], floor, 1.0 + gram_noise + moment_noise)
            else:
                prior = ARMS_PRIOR * self.moment.size
                restate_posterior(self, block, prior, prior, gram_noise + moment_noise)

    def choose(self, features: Any, explore: Chance) -> int:
        """Uniform in the first batch; then the largest reward under a fresh draw from the posterior."""
        if self.batches.released[0] == 0:
            return any_action(features, self.mean.shape[0], explore)
        if self.mean.shape[0] > 1:
            width, spread = self.width, self.settings.spread
            return most_promising_arm(features, self.mean, self.shape, width, spread, True, explore)
        size, theta, normal = self.moment.size, self.draw[0], self.draw[1]
        for k in range(size):
            normal[k] = self.values[k] * explore.standard_normal()
        for i in range(size):
            value = self.mean[0, i]
            for k in range(size):
                value += self.vectors[i, k] * normal[k]
            theta[i] = value
        return most_rewarding(features, theta, explore)


@register_jitable
def _restate(public: Public, mean: Any, floor: float, rest: float) -> None:
    size, lifted = public.moment.size, 0.0
    for k in range(size):
        lifted = max(lifted, floor - public.values[k])
    rest += 0.25 * lifted * lifted
    for i in range(size):
        mean[i] = 0.0
    for k in range(size):
        direction = 0.0
        for i in range(size):
            direction += public.vectors[i, k] * public.moment[i]
        lower = max(public.values[k], floor)
        for i in range(size):
            mean[i] += public.vectors[i, k] * direction / lower
        spread = math.sqrt(max(public.values[k], 0.0) + rest)
        public.values[k] = public.settings.spread * spread / lower


@dataclass(frozen=True, kw_only=True)
class BatchedLinThompson(BatchedLinear):
    r"""Draw parameters from a posterior restated after every batch, play what is best under them.

    **Definition.** In units of the bounds; batches as in `RandomizedLinUCB`, the first of uniform play.
    After the k-th release at round t, of noise scales s_G and s_U per entry, with G̃ = U diag(λ) Uᵀ,
    Υ = s_G (E‖Z‖ + 2√ln(kt)), f = max(.3Υ, 1), Λ = max(λ, f) and c = max(f − λ, 0) over all directions,

        θ_t ~ N(U Λ⁻¹ Uᵀ ũ,  v² U Λ⁻² (λ₊ + 1 + s_G² + s_U² + c²/4) Uᵀ),

    fresh in every round, and argmax_x θ_t·x is played; v = `spread`, .4 for contexts of one's own and
    .6 for a public decision set (where s_G = 0 and G is exact). Where arms have parameters of their own,
    θ_a ~ N(m, v²A) with m and A of `RandomizedLinUCB` for its blocks of G̃ and ũ, batches as long as
    there, and v = .3.

    **Guarantee.** As `RandomizedLinUCB`: each person is in one released batch, so all that is ever
    released is μ-GDP, for any horizon; joint DP for contexts, all decisions for a public decision set.
    The draws are free: they are made of releases and of randomness that hides nothing.

    **Regret.** Measured, not proved; docs/reproduction.md.

    >>> import dpbandits as dpb
    >>> policy = dpb.linear.BatchedLinThompson(privacy=dpb.GaussianDP(1.0))
    >>> print(policy.guarantee(dpb.LinearContexts(5)).budget)
    1-GDP
    """

    status: ClassVar[str] = "proved"
    state: ClassVar = Public

    spread: Annotated[
        float | None, "A factor on the deviation of samples; by default what did best."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.spread is not None:
            checks.scale(spread=self.spread)

    def begin(self, problem: LinearProblem) -> tuple[Any, Any]:
        """Nothing known: uniform play."""
        own = isinstance(problem, LinearContexts)
        spread = self.spread or (0.3 if problem.blocks > 1 else 0.4 if own else 0.6)
        operator = operator_norm(problem.dimension) if own else 0.0
        return self._begin(problem, Settings(float(spread), operator))

    def released(self, problem: LinearProblem, public: Public) -> Reading:
        """The posterior at v = 1, which has all that is known of its error."""
        known = bool(public.batches.released[0] > 0)
        if problem.blocks > 1:
            return of_posterior(problem, public, known=known)
        factor, radius = public.vectors * public.values, Z / float(public.settings.spread)
        return of_ellipsoid(problem, public.mean, (factor @ factor.T)[None], radius, known=known)
