r"""Upper confidence bounds of random width on a posterior that knows about the privacy noise."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.policies.linear.shared.algebra import eigen, norm_bound
from dpbandits.policies.linear.shared.batched import Batched, BatchedLinear, noise_variance
from dpbandits.policies.linear.shared.choosing import any_action, most_promising
from dpbandits.policies.linear.shared.reading import of_ellipsoid
from dpbandits.policies.released import Reading, Z
from dpbandits.problems.linear import LinearActions, LinearProblem


class Settings(NamedTuple):
    """How wide bounds are."""

    width: float  # v


class Public(Batched):
    """As for all batched policies."""

    def restate(self) -> None:
        """M and A in the eigenbasis of G̃."""
        gram_noise, moment_noise = noise_variance(self)
        size = self.moment.size
        eigen(self.gram, self.values, self.vectors)
        for i in range(size):
            self.mean[i] = 0.0
            for j in range(size):
                self.shape[i, j] = 0.0
        for k in range(size):
            direction = 0.0
            for i in range(size):
                direction += self.vectors[i, k] * self.moment[i]
            known = max(self.values[k], 0.0)
            # Cov(ũ − G̃θ) for rewards of variance ½ and ‖θ‖ = 1, in units of the bounds. (The small
            # constant only keeps 0/0 away where nothing is known and nothing is hidden.)
            spread = 0.5 * known + gram_noise + moment_noise + 1e-12
            precision = known * known / spread
            middle = known * direction / spread / (size + precision)
            for i in range(size):
                self.mean[i] += self.vectors[i, k] * middle
                for j in range(size):
                    self.shape[i, j] += self.vectors[i, k] * self.vectors[j, k] / (2.0 + precision)
        self.width[1] = norm_bound(self.shape, self.mean)

    def choose(self, features: Any, explore: Chance) -> int:
        """Uniform in the first batch; then the largest bound, of one random width for all actions."""
        if self.batches.released[0] == 0:
            return any_action(features, explore)
        width = self.settings.width * abs(explore.standard_normal())
        mean, shape, reach, tile = self.mean, self.shape, self.width[1], self.tile
        return most_promising(features, mean, shape, width, reach, mean, tile, explore)


@dataclass(frozen=True, kw_only=True)
class RandomizedLinUCB(BatchedLinear):
    r"""Play the largest upper bound m·x + v·|Z|·√(xᵀAx), with one fresh public Z ~ N(0, 1) a round.

    **Definition.** In units of the bounds (‖z‖ ≤ 1, |w| ≤ 1). The first batch of b₀ = max(16, ⌈15/μ⌉)
    rounds is uniform play; then, at round t, a batch has max(b₀, min(`growth`·t, `pace`·√t)) rounds,
    with .1 and 1.2/μ unless given. A release gives G̃ and ũ with noise variances s_G² and s_U² per
    entry. With G̃ = U diag(λ) Uᵀ, a = Uᵀũ, λ₊ = max(λ, 0), τ² = s_G² + s_U² and D = λ₊/2 + τ²,

        m = U [(λ₊ a/D) / (d + λ₊²/D)],   A = U diag(1/(2 + λ₊²/D)) Uᵀ,   v = `width`,

    1 unless given, and .8 for a public decision set. ũ = G̃θ + e with Cov e ≈ σ²G + (s_U² + s_G²‖θ‖²)
    I: this is the posterior of θ under errors in both. Where λ ≫ τ it is least squares; where λ ≪ τ
    the mean shrinks to 0 and the width stays that of the prior, so directions that are only noise
    never look explored. With diverse contexts all widths are alike, |Z| cancels and it acts greedily;
    on a fixed set |Z| makes every batch a mixture of actions.

    **Guarantee.** Neighbours replace one person's features and reward; joint DP. Her row is in one
    released batch, whose noise makes everything ever released μ-GDP (`linear/shared/batched.py`,
    `sums/batches.py`), on adaptive streams and for any horizon. Batches end by the count of rounds,
    and m, A and later decisions are functions of releases, of other people's own features, and of free
    randomness. On `LinearActions` one reward is replaced, all decisions are protected, and G needs no
    noise.

    **Regret.** Measured, not proved: the width is a heuristic (privacy does not depend on it).
    `BatchedLinUCB` has valid confidence sets. docs/reproduction.md compares them.

    >>> import numpy as np, dpbandits as dpb
    >>> policy = dpb.RandomizedLinUCB(privacy=dpb.ApproxDP(1.0, 1e-6))
    >>> learner = policy.start(dpb.LinearContexts(2), compiled=False)
    >>> action = learner.select(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]))
    >>> learner.update(action, 1.0)
    """

    status: ClassVar[str] = "proved"
    state: ClassVar = Public

    width: Annotated[
        float | None, "A factor on the random width; by default 1, and 0.8 for a public decision set."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width is not None:
            checks.width(width=self.width)

    def begin(self, problem: LinearProblem) -> tuple[Any, Any]:
        """Nothing known: uniform play."""
        usual = 0.8 if isinstance(problem, LinearActions) else 1.0
        return self._begin(problem, Settings(float(usual if self.width is None else self.width)))

    def released(self, problem: LinearProblem, public: Public) -> Reading:
        """The mean m, with 2A for its covariance.

        2/(2 + λ₊²/D) = 1/(1 + λ₊²/(λ₊ + 2τ²)): a prior N(0, I), rewards of variance 1, which is the most
        that there can be, and noise of twice its variance.
        """
        known = bool(public.batches.released[0] > 0)
        return of_ellipsoid(problem, public.mean, public.shape, Z * math.sqrt(2.0), known=known)
