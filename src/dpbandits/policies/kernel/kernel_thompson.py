r"""Thompson sampling on a kernel's posterior, from one noisy sum per epoch."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.state import ANYTHING, FROM_RECIPE, NOTHING, Limits
from dpbandits.policies.kernel.shared.epochs import (
    Array,
    Sums,
    Tables,
    TrustedEpochs,
    cumulative,
    renew,
    shares_between,
    uniform_table,
)
from dpbandits.policies.kernel.shared.posterior import absorb, design, samples, votes
from dpbandits.policies.kernel.shared.protection import kernel_guarantee
from dpbandits.policies.kernel.shared.trusted_kernel import TrustedKernelPolicy
from dpbandits.policies.policy import Policy
from dpbandits.policies.released import Reading, Z, of_values
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import GAUSSIAN_OR_NONE
from dpbandits.privacy.calibration import gaussian_scale
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.kernel_contexts import Features, KernelContexts


class Posterior(NamedTuple):
    """What is known of the mean reward: θ ~ N(P⁻¹h, P⁻¹), and how it is turned into a table."""

    precision: Array  # P, (m, m)
    evidence: Array  # h, (m,)
    weights: Array  # κ
    bound: float  # B
    spread: float
    draws: int
    growth: float

    def limits(self) -> Limits:
        """A precision that is one."""
        positive = np.isfinite(self.precision).all() and np.linalg.eigvalsh(self.precision)[0] > 0.0
        return {"precision": ANYTHING if positive else NOTHING, "weights": FROM_RECIPE}


class _Fields(NamedTuple):
    round: NDArray[np.int64]  # (1,) rounds closed so far
    next_pause: NDArray[np.int64]  # (1,) the round that ends the epoch
    length: NDArray[np.int64]  # (1,) of the epoch
    table: Array  # cumulative π(x | c)
    posterior: Posterior
    features: Features
    scale: float  # of the noise
    waiting: NDArray[np.int64]  # (1,) rounds in flight: one number, since actions are not public
    tables: Tables
    bound: float  # B, of rewards


class Public(TrustedEpochs, _Fields):
    """The table to choose from until the epoch ends, and what it was made of."""

    def pause(self, secret: Sums, noise: Any) -> None:
        """Release Σφy, update the posterior, draw the next table."""
        # Not by BLAS: the location must not depend on the number of its threads.
        location = np.einsum("wm,w->m", self.features.rows, secret.sums)
        released = noise.normal(location, self.scale)
        secret.sums[:] = 0.0
        closed = int(self.round[0])
        shares = shares_between(self.tables, closed - int(self.length[0]), closed)
        table = end_epoch(self, released, self.scale**2, shares, noise)
        renew(self, table, self.posterior.weights)


def end_epoch(public: Any, released: Array, variance: float, shares: Array, noise: Any) -> Array:
    """Add an epoch's release, with so much noise in each coordinate, to the posterior; the next table.

    `shares` says how often each pair was played in the epoch, on average.
    """
    held = public.posterior
    z = design(public.features.rows, shares, int(public.length[0]))
    held.precision[...], held.evidence[...] = absorb(
        held.precision, held.evidence, z, released, held.bound, variance
    )
    return next_table(public, noise)


def next_table(public: Any, noise: Any) -> Array:
    """Draw the table of the next epoch from the posterior, and set how long that is."""
    held, rows, length = public.posterior, public.features.rows, int(public.length[0])
    # Around 0, no secret: free exploration that happens to be drawn here.
    normals = noise.normal(0.0, 1.0, (rows.shape[1], held.draws))
    vectors = samples(held.precision, held.evidence, normals, held.spread)
    public.length[0] = math.ceil(length * (1.0 + held.growth))
    public.next_pause[0] += public.length[0]
    return cumulative(votes(rows, vectors, public.table.shape[0]))


@dataclass(frozen=True, kw_only=True)
class PosteriorPolicy(Policy):
    """What `KernelThompson` and its local form share: options, prior, noise and what may be read."""

    abstract: ClassVar[bool] = True
    problem_kind: ClassVar = KernelContexts
    accepts: ClassVar = GAUSSIAN_OR_NONE
    paper: ClassVar[str] = "dpbandits"
    testing: ClassVar = PolicyTesting(first_epoch=7, growth=0.5, draws=3)

    first_epoch: Annotated[
        int | None, "The first epoch, in rounds; by default what suits the budget."
    ] = None
    growth: Annotated[float, "An epoch is about this many times as long as all before it together."] = (
        1.0
    )
    prior: Annotated[
        float, "The variance of the mean reward that is assumed, in units of max_reward²."
    ] = 0.05
    spread: Annotated[float, "A factor on the deviation of samples."] = 0.5
    draws: Annotated[int, "How many samples each epoch's table of probabilities is made of."] = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first_epoch is not None:
            checks.integer(least=1, first_epoch=self.first_epoch)
        checks.growth(growth=self.growth)
        checks.scale(prior=self.prior, spread=self.spread)
        checks.integer(least=1, limit=checks.MOST_ACTIONS, draws=self.draws)

    def _begin(self, problem: KernelContexts) -> dict[str, Any]:
        """What both models begin with."""
        features, first = problem.features(), self.schedule()
        return {
            "round": np.zeros(1, np.int64),
            "next_pause": np.full(1, first, np.int64),
            "length": np.full(1, first, np.int64),
            "table": uniform_table(problem),
            "posterior": self._prior(problem, features),
            "features": features,
            "scale": self._scale(problem, features),
        }

    def schedule(self) -> int:
        """The length of the first epoch: a function of the budget, never of data."""
        if self.first_epoch is not None:
            return self.first_epoch
        return max(100, math.ceil(gaussian_scale(100.0, self.privacy)))

    def _scale(self, problem: KernelContexts, features: Features) -> float:
        """N."""
        return gaussian_scale(2.0 * problem.max_reward * features.radius, self.privacy)

    def _prior(self, problem: KernelContexts, features: Features) -> Posterior:
        size = features.rows.shape[1]
        return Posterior(
            precision=np.eye(size) / (self.prior * problem.max_reward**2),
            evidence=np.zeros(size),
            weights=problem.context_weights(),
            bound=float(problem.max_reward),
            spread=self.spread,
            draws=self.draws,
            growth=self.growth,
        )

    def released(self, problem: KernelContexts, public: Any) -> Reading:
        """The posterior of every pair's mean, for θ ~ N(0, ‖f‖² I) beforehand, ‖f‖ the declared norm.

        That takes less for granted than the prior that is played by. Errors of the features are not in
        it, nor those of declared weights.
        """
        held, rows = public.posterior, public.features.rows
        wider = 1.0 / problem.norm**2 - 1.0 / (self.prior * held.bound**2)
        precision = held.precision + wider * np.eye(rows.shape[1])
        solved = np.linalg.solve(precision, np.column_stack([held.evidence, rows.T]))
        mean, variance = rows @ solved[:, 0], np.einsum("wm,mw->w", rows, solved[:, 1:])
        half = Z * np.sqrt(np.maximum(variance, 0.0))
        if public.next_pause[0] == public.length[0]:  # the first epoch is open
            mean, half = np.full((2, mean.size), np.nan)
        shape = public.table.shape
        return of_values("pair", mean.reshape(shape), half.reshape(shape), bound=held.bound)

    def numbers_of_one(self, problem: Any) -> int:
        """A number for each feature, of which there are at most as many as pairs."""
        return len(problem.contexts) * len(problem.actions)


@dataclass(frozen=True, kw_only=True)
class KernelThompson(PosteriorPolicy, TrustedKernelPolicy):
    r"""Release Σφy once per epoch with isotropic noise; then play by draws from one posterior.

    **Definition.** φ(w) are features of the pairs with ⟨φ(w), φ(w')⟩ = k(w, w'), rewards are clipped to
    ±B, κ are the declared weights of the contexts. Epoch r of T_r rounds plays x with probability
    π_r(x|c) in context c: at first uniformly. At its end

        b̃_r = Σ φ(c_t, x_t) y_t + N(0, n² I),    n = 2B·max|φ|/μ,

    is released. With the known design Z_r = T_r Σ_w κ(c)π_r(x|c) φφᵀ it is a measurement of Z_r θ with
    covariance at most C_r = B² Z_r + n² I. All epochs form one posterior: precision P = I/(s B²) + Σ_r
    Z_r C_r⁻¹ Z_r with s = `prior`, mean P⁻¹ Σ_r Z_r C_r⁻¹ b̃_r. The next π(x|c) is the share of `draws`
    vectors from N(mean, `spread`² P⁻¹) for which x is best in c. An epoch is
    1 + `growth` times as long as the one before; the first has `first_epoch` rounds (unless given, 100
    or 100/μ, whichever is more). An epoch ends when its rounds
    are closed; where some are in flight, the first rounds of the next were decided by older π, and π_r
    in Z_r is the average over the tables that its rounds were decided with.

    **Guarantee.** Neighbours replace one person's context and reward, and with them her action. She is
    in one epoch, in one term φy of norm at most B·max|φ| over *all* pairs, so b̃_r moves by at most
    2B·max|φ|: μ-GDP. κ, the epochs' ends, how many rounds were decided with which table and, given
    earlier releases, π_r and Z_r do not depend on her; later epochs see her only through b̃_r. So the
    actions of all others are μ-GDP, for any number of rounds. Her own action is shown to nobody else.
    Z_r made of realised counts, or κ made of users, would be a release without noise. Rounding of the
    features' sums is not covered.

    **Regret.** No bound is proved. `capri-regret` measures it: a few per cent of uniform play after 10⁶
    rounds at ε = 1, where eliminating (`Capri`) is at a third.

    >>> problem = KernelContexts.testing.example(1000)
    >>> from dpbandits.privacy.budgets import GaussianDP
    >>> learner = KernelThompson(privacy=GaussianDP(1.0)).start(problem, seed=1)
    >>> action = learner.select(0)
    >>> learner.update(action, reward=1.0)
    """

    status: ClassVar[str] = "proved"
    state: ClassVar = Public

    def batch_number(self, public: Any, slot: int) -> int:
        """Epochs are numbered by the round that ends them."""
        return int(public.next_pause[0])

    def guarantee(self, problem: KernelContexts) -> Guarantee:
        """The budget itself."""
        return kernel_guarantee(self.privacy, problem)
