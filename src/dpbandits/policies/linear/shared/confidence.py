r"""Confidence sets of regularised least squares, with SS18's Proposition 4 for regularisers that change.

With V = G + H, ρ_min I ≤ H ≤ ρ_max I, ‖h‖_{H⁻¹} ≤ γ and θ̂ = V⁻¹(u + h), θ* lies within β of θ̂ in the
norm of V:

    β = σ √(2 ln(1/α) + ln det V − d ln ρ_min) + S √ρ_max + γ.

Everything is in units of the bounds: rewards of σ-subgaussian noise and ‖θ*‖ ≤ S there. Where each of K
arms has parameters of its own, each has such a set, of its own rows and d parameters, at α/K: which arm
a person is shown is decided before her reward, so the bound holds for the rows of each arm alone.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.policies.linear.shared.algebra import cholesky, invert, multiply, norm_bound
from dpbandits.policies.linear.shared.choosing import RADIUS, REACH
from dpbandits.policies.linear.shared.rows import GRID
from dpbandits.policies.policy import Policy
from dpbandits.problems.linear import LinearProblem


class Assumed(NamedTuple):
    """What a confidence set takes for granted, in units of the bounds."""

    sigma: float  # σ of the rewards' noise
    size: float  # S, a bound on ‖θ*‖
    alpha: float  # α, or 0 for 1/t
    operator: float  # E‖Z‖
    shift: float  # c


@register_jitable(forceinline=True)
def estimate(
    gram: Any, moment: Any, ridge: float, mean: Any, shape: Any, lower: Any, width: Any, axes: Any
) -> float:
    """θ̂ and V⁻¹ for V = gram + ridge·I into `mean` and `shape`; returns ln det V.

    `lower` is left with the inverse of V's Cholesky factor. A matrix that is not positive definite has
    its ridge raised until it is: post-processing, and rarer than the policies' α.
    """
    log_det, step = cholesky(gram, ridge, lower, axes), abs(ridge) + 1e-9
    while log_det != log_det and step < math.inf:
        ridge += step  # which may have been negative
        step *= 2.0
        log_det = cholesky(gram, ridge, lower, axes)
    invert(lower, shape, axes)
    multiply(shape, moment, mean, axes)
    width[REACH] = norm_bound(shape, axes)
    return log_det


@register_jitable(forceinline=True)
def radius(
    level: float, log_det: float, dim: float, low: float, high: float, gamma: float, settings: Any
) -> float:
    """β, for level = ln(1/α), ρ_min = low, ρ_max = high, γ = gamma and the σ and S of the settings."""
    spread = max(2.0 * level + log_det - dim * math.log(low), 0.0)
    beta: float = settings.sigma * math.sqrt(spread) + settings.size * math.sqrt(high) + gamma
    return beta


@register_jitable
def restate(
    public: Any,
    block: int,
    lower: Any,
    done: float,
    releases: float,
    gram_noise: float,
    moment_noise: float,
) -> None:
    """The confidence set of `BatchedLinUCB` after some releases, with these noise variances.

    Of one block, whose Gram matrix and vector are in `gram` and `moment`.
    """
    settings, size = public.settings, public.moment.size
    alpha = settings.alpha if settings.alpha > 0.0 else 1.0 / done
    # Three events for each block at each release, and Σ 1/k² = π²/6.
    level = math.log(0.5 * math.pi * math.pi * releases * releases / alpha * public.mean.shape[0])
    norm = math.sqrt(gram_noise) * (settings.operator + 2.0 * math.sqrt(level))
    # Where G is exact, the regulariser only has to match the noise in ũ.
    ridge = 1.0 + (settings.shift * norm if gram_noise > 0.0 else math.sqrt(moment_noise))
    low, high = ridge - norm, ridge + norm
    mean, shape, width = public.mean[block], public.shape[block], public.width[block]
    log_det = estimate(public.gram, public.moment, ridge, mean, shape, lower, width, public.moment)
    gamma = math.sqrt(moment_noise / low) * (math.sqrt(size) + math.sqrt(2.0 * level))
    # Rounding to the grid moves a reward's mean by this much; n of them at most √n as much in all.
    rounding = (settings.size * math.sqrt(size) + 1.0) / GRID * math.sqrt(done)
    beta = radius(level, log_det, float(size), low, high, gamma, settings)
    width[RADIUS] = beta + rounding


@dataclass(frozen=True, kw_only=True)
class ConfidentPolicy(Policy):
    """What confidence sets assume of the world, in the units of rewards and features."""

    abstract: ClassVar[bool] = True

    failure: Annotated[
        float | None, "The probability with which confidence sets may fail; 1/t by default."
    ] = None
    noise_level: Annotated[float | None, "The subgaussian level of rewards; max_reward by default."] = (
        None
    )
    parameter_norm: Annotated[
        float | None, "A bound on the norm of the parameters; max_reward over max_norm by default."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.failure is not None:
            checks.risk(failure=self.failure)
        for name in ("noise_level", "parameter_norm"):
            if getattr(self, name) is not None:
                checks.scale(**{name: getattr(self, name)})

    def _assumed(self, problem: LinearProblem, operator: float = 0.0, shift: float = 0.0) -> Assumed:
        """What is assumed of this problem, with the E‖Z‖ and the shift of the noise, where there is any.

        Rewards within ±B are B-subgaussian about their mean; S = B/L makes |⟨x, θ*⟩| ≤ B.
        """
        unit = problem.max_reward / problem.max_norm
        sigma = 1.0 if self.noise_level is None else self.noise_level / problem.max_reward
        size = 1.0 if self.parameter_norm is None else self.parameter_norm / unit
        alpha = 0.0 if self.failure is None else self.failure
        return Assumed(sigma, size, alpha, operator, float(shift))
