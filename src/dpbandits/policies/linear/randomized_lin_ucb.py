r"""Upper confidence bounds of random width on a posterior that knows about the privacy noise."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.policies.linear.shared.algebra import eigen
from dpbandits.policies.linear.shared.batched import (
    ARMS_PRIOR,
    Batched,
    BatchedLinear,
    noise_variance,
    read_block,
    restate_posterior,
)
from dpbandits.policies.linear.shared.choosing import any_action, most_promising_action
from dpbandits.policies.linear.shared.reading import of_posterior
from dpbandits.policies.released import Reading
from dpbandits.problems.linear import LinearActions, LinearProblem


class Settings(NamedTuple):
    """How wide bounds are."""

    width: float  # v
    known: float  # the precision of a parameter beforehand, for m
    unknown: float  # and for A


class Public(Batched):
    """As for all batched policies."""

    def restate(self) -> None:
        """M and A in the eigenbasis of G̃."""
        gram_noise, moment_noise = noise_variance(self)
        for block in range(self.mean.shape[0]):
            read_block(self, block)
            eigen(self.gram, self.values, self.vectors, self.mean.shape[0] > 1)
            restate_posterior(
                self, block, self.settings.known, self.settings.unknown, gram_noise + moment_noise
            )

    def choose(self, features: Any, explore: Chance) -> int:
        """Uniform in the first batch; then the largest bound, of one random width for all actions."""
        if self.batches.released[0] == 0:
            return any_action(features, self.mean.shape[0], explore)
        width = self.settings.width * abs(explore.standard_normal())
        return most_promising_action(features, self, width, self.mean[0], explore)


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

    Where arms have parameters of their own, each has m and A of its own blocks of G̃ and ũ, with .1·d in
    place of d and of 2, v = .4, and batches of at most 12/μ·√t rounds.

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
        float | None,
        "A factor on the random width; by default 1, 0.8 for a public decision set, and 0.4 where arms "
        "have parameters of their own.",
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width is not None:
            checks.width(width=self.width)

    def begin(self, problem: LinearProblem) -> tuple[Any, Any]:
        """Nothing known: uniform play."""
        dim, usual = float(problem.dimension), 0.8 if isinstance(problem, LinearActions) else 1.0
        known, unknown = dim, 2.0
        if problem.blocks > 1:
            usual, known, unknown = 0.4, ARMS_PRIOR * dim, ARMS_PRIOR * dim
        width = float(usual if self.width is None else self.width)
        return self._begin(problem, Settings(width, known, unknown))

    def released(self, problem: LinearProblem, public: Public) -> Reading:
        """The mean m, with 2A for its covariance."""
        return of_posterior(problem, public, known=bool(public.batches.released[0] > 0))
