r"""CAPRI: explore uniformly, estimate privately, eliminate (Pavlovic, Salgia & Zhao)."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.state import COUNT, FROM_RECIPE, NOT_NEGATIVE, POSITIVE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.policies.kernel.shared.confidence import Confidence, first_useful_horizon
from dpbandits.policies.kernel.shared.epochs import (
    Array,
    Sums,
    Tables,
    TrustedEpochs,
    cumulative,
    epoch_limits,
    limits_of_maps,
    renew,
    shares_between,
    uniform_table,
)
from dpbandits.policies.kernel.shared.posterior import design
from dpbandits.policies.kernel.shared.projection import differences, estimate, keep, projected, whitened
from dpbandits.policies.kernel.shared.protection import kernel_guarantee
from dpbandits.policies.kernel.shared.trusted_kernel import TrustedKernelPolicy
from dpbandits.policies.local import LocalPolicy
from dpbandits.policies.policy import Policy
from dpbandits.policies.released import Reading, of_values
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import GAUSSIAN_OR_NONE, ApproxDP, Budget, GaussianDP
from dpbandits.privacy.calibration import Calibration, gaussian_scale
from dpbandits.privacy.guarantees import Guarantee, Trust
from dpbandits.problems.kernel_contexts import Features, KernelContexts

# Epochs double: no later one would end.
_LAST = 63


class Known(NamedTuple):
    """What was estimated of each pair in the last epoch in which it was active; not used in play."""

    value: Array  # (contexts, actions)
    half: Array  # of its interval
    coming: Array  # the same of the epoch that is open


class _Fields(NamedTuple):
    round: NDArray[np.int64]  # (1,) rounds closed so far
    next_pause: NDArray[np.int64]  # (1,) the round that ends the epoch
    epoch: NDArray[np.int64]  # (1,) r; 0 before the first
    length: NDArray[np.int64]  # (1,) T_r
    active: NDArray[np.bool_]  # (contexts, actions)
    table: Array  # cumulative, uniform over the active ones
    maps: Array  # (|W|, m) u(w) / reach, of norm at most 1; 0 for pairs that are not active
    reach: Array  # (1,) max |u(w)| over the active pairs of all contexts
    margin: Array  # (contexts, actions, actions): how far an estimated difference may be off
    weights: Array  # κ
    features: Features
    confidence: Confidence
    scale: float  # of the noise on Σ maps·y
    copies: bool
    known: Known
    waiting: NDArray[np.int64]  # (1,) rounds in flight: one number, since actions are not public
    tables: Tables
    bound: float  # B, of rewards


class Public(TrustedEpochs, _Fields):
    """The active actions, and the map by which rewards of this epoch are released."""

    def limits(self) -> Limits:
        """Those of its epoch, and of what is eliminated in it."""
        return {"waiting": COUNT, **elimination_limits(self)}

    def pause(self, secret: Sums, noise: Any) -> None:
        """Release the epoch's sum, eliminate, open the next epoch."""
        if self.epoch[0] > 0:
            # Not by BLAS: the location must not depend on the number of its threads.
            location = np.einsum("wm,w->m", self.maps, secret.sums)
            secret.sums[:] = 0.0
            renew(self, eliminate(self, noise.normal(location, self.scale)), self.weights)
        length, closed = open_epoch(self), int(self.round[0])
        # All of these rounds are decided with tables that are known by now: the next one comes when the
        # last of them is closed.
        prepare_epoch(self, shares_between(self.tables, closed, closed + length), noise)


def elimination_limits(public: Any) -> Limits:
    """Some action of every context is active, and no map is longer than the noise is for."""
    return {
        **epoch_limits(public),
        "epoch": (0, _LAST),
        "active": (~public.active.any(axis=1, keepdims=True), True),
        "maps": limits_of_maps(public.maps),
        "reach": POSITIVE,
        "margin": NOT_NEGATIVE,
        "weights": FROM_RECIPE,
    }


def eliminate(public: Any, released: Array) -> Array:
    """Drop the actions that cannot be the best any more; the table of those that are left."""
    values = (public.reach[0] ** 2 * estimate(public.maps, released)).reshape(public.active.shape)
    public.known.value[public.active] = values[public.active]
    public.known.half[public.active] = public.known.coming[public.active]
    public.active[...] = keep(public.active, values, public.margin)
    return cumulative(public.active)


def open_epoch(public: Any) -> int:
    """Count the next epoch; its length."""
    public.epoch[0] += 1
    if public.epoch[0] > 1:
        public.length[0] *= 2
    public.next_pause[0] += public.length[0]
    return int(public.length[0])


def prepare_epoch(public: Any, shares: Array, noise: Any) -> None:
    """Design, map and widths of an epoch in which each pair is played so often.

    Rounds decided before their pair was dropped are left out of design and sum.
    """
    rows, length, active = public.features.rows, int(public.length[0]), public.active.ravel()
    if public.copies:
        drawn, counts = (np.where(active, _copy(shares, length, noise), 0) for _ in range(2))
        moved, z = projected(rows, drawn, counts)
    else:
        moved, z = rows, design(rows, np.where(active, shares, 0.0), length)
    maps, back = whitened(moved, z, public.confidence.tau)
    printed = public.confidence.printed
    # Over every context, also those that never come by κ: whoever comes is protected.
    public.reach[0] = printed_deviation(public, maps, moved) if printed else longest(maps[active])
    public.maps[...] = 0.0
    public.maps[active] = maps[active] / public.reach[0]
    if printed:
        public.maps[...] = shortened(public.maps)
    spans, squares = (differences(vectors, public.active.shape[0]) for vectors in (maps, back))
    epoch, reach = int(public.epoch[0]), float(public.reach[0])
    public.margin[...] = public.confidence.at(epoch, length, spans, squares, reach, public.scale)
    spans, squares = (np.einsum("wm,wm->w", vectors, vectors) for vectors in (maps, back))
    half = public.confidence.half(length, spans, squares, reach, public.scale)
    public.known.coming[...] = half.reshape(public.active.shape)


def printed_deviation(public: Any, maps: Array, moved: Array) -> float:
    """The largest σ̃ of (6) over active pairs of contexts that come by κ; 1 where all are 0.

    τσ̃² = k(w, w) − k_SᵀVk_S, which is φᵀ(ΠZΠ + τI)⁻¹φ times τ. Π commutes with that matrix, which is τI
    beside the span of S, so σ̃² = |u(w)|² + |φ(w) − Πφ(w)|²/τ: at least the |u(w)|² that is needed.
    """
    rows, tau = public.features.rows, public.confidence.tau
    missed = np.maximum(_squares(rows) - _squares(moved), 0.0)
    comes = np.repeat(public.weights > 0.0, public.active.shape[1]) & public.active.ravel()
    largest = float(np.max((_squares(maps) + missed / tau)[comes]))
    return math.sqrt(largest) if largest > 0.0 else 1.0


def shortened(maps: Array) -> Array:
    """No map is longer than 1, which is what the noise is for."""
    return np.asarray(maps / np.maximum(np.sqrt(_squares(maps)), 1.0)[:, None])


def _squares(vectors: Array) -> Array:
    return np.asarray(np.einsum("wm,wm->w", vectors, vectors))


def longest(maps: Array) -> float:
    """The largest norm of a row, also where squares would underflow; 1 where all are 0."""
    unit = float(np.max(np.abs(maps)))
    if unit == 0.0:
        return 1.0
    return unit * math.sqrt(float(np.max(np.einsum("wm,wm->w", maps / unit, maps / unit))))


def _copy(shares: Array, length: int, noise: Any) -> NDArray[np.int64]:
    """How often each of `length` public draws from the design is which pair."""
    found, left, mass = np.zeros(shares.size, np.int64), length, 1.0
    for pair in range(shares.size):
        if left > 0 and shares[pair] > 0.0:
            # Coins whose odds are public: free exploration that happens to be drawn here.
            found[pair] = noise.binomial(left, min(1.0, shares[pair] / mass))
            left -= int(found[pair])
        mass = max(mass - shares[pair], shares[pair] * 1e-12)
    found[int(np.argmax(shares))] += left
    return found


@dataclass(frozen=True, kw_only=True)
class EliminatingPolicy(Policy):
    """What `Capri` and its local form share: options, schedule, confidence, noise, what may be read."""

    abstract: ClassVar[bool] = True
    problem_kind: ClassVar = KernelContexts
    accepts: ClassVar = GAUSSIAN_OR_NONE
    paper: ClassVar[str] = "Pavlovic, Salgia & Zhao, Algorithm 1"
    testing: ClassVar = PolicyTesting(first_epoch=7)

    first_epoch: Annotated[int | None, "The first epoch, in rounds; 500 by default."] = None
    width: Annotated[float, "A factor on the confidence margins: below 1 they are heuristic."] = 1.0
    failure: Annotated[float, "The probability with which the confidence margins may fail."] = 0.1
    tau: Annotated[float | None, "The ridge τ; by default what suits the budget."] = None
    copies: Annotated[
        bool | None,
        "Whether estimates use random copies of an epoch, as printed, not their expectation.",
    ] = None
    calibration: Annotated[
        Calibration, '"exact": the least noise and tight margins; "paper": both as printed.'
    ] = "exact"

    @property
    def local(self) -> bool:
        """Whether people add the noise themselves."""
        return isinstance(self, LocalPolicy)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first_epoch is not None:
            checks.integer(least=1, first_epoch=self.first_epoch)
        if self.copies is not None:
            checks.one_of((True, False), copies=self.copies)
        checks.one_of(("exact", "paper"), calibration=self.calibration)
        checks.scale(width=self.width)
        if self.tau is not None:
            checks.scale(tau=self.tau)
        checks.risk(failure=self.failure)

    def check(self, problem: Any) -> None:
        """The paper's constants need a horizon, and an (ε, δ) budget."""
        super().check(problem)
        if self.calibration == "paper":
            if problem.horizon is None:
                raise InvalidInput(
                    "the paper's constants need the horizon: KernelContexts(..., horizon=…)"
                )
            if not isinstance(self.privacy, ApproxDP):
                raise InvalidInput("the paper's constants are for an (ε, δ) budget, ApproxDP(1.0, 1e-5)")

    def _begin(self, problem: KernelContexts) -> dict[str, Any]:
        """What both models begin with."""
        features = problem.features()
        shape = len(problem.contexts), len(problem.actions)
        return {
            "round": np.zeros(1, np.int64),
            "next_pause": np.zeros(1, np.int64),
            "epoch": np.zeros(1, np.int64),
            "length": np.full(1, self.schedule(problem), np.int64),
            "active": np.ones(shape, np.bool_),
            "table": uniform_table(problem),
            "maps": np.zeros(features.rows.shape),
            "reach": np.ones(1),
            "margin": np.zeros((*shape, shape[1])),
            "weights": problem.context_weights(),
            "features": features,
            "confidence": self._confidence(problem),
            "scale": self._scale(problem),
            "copies": self.calibration == "paper" if self.copies is None else self.copies,
            "known": Known(np.zeros(shape), np.zeros(shape), np.zeros(shape)),
        }

    def schedule(self, problem: KernelContexts) -> int:
        """T_1."""
        if self.first_epoch is not None:
            return self.first_epoch
        if self.calibration == "paper" and problem.horizon is not None:
            return math.ceil(math.sqrt(problem.horizon))
        return 500

    def ridge(self) -> float:
        """τ."""
        return 10.0 if self.tau is None else self.tau

    def _confidence(self, problem: KernelContexts) -> Confidence:
        """The numbers that margins are made of."""
        return Confidence.of(
            problem,
            self.privacy,
            printed=self.calibration == "paper",
            width=self.width,
            failure=self.failure,
            tau=self.ridge(),
            local=self.local,
        )

    def _scale(self, problem: KernelContexts) -> float:
        """The scale of the noise on a sum of vectors of norm at most B."""
        if self.calibration == "exact" or not isinstance(self.privacy, ApproxDP):
            return gaussian_scale(2.0 * problem.max_reward, self.privacy)
        epsilon, delta = self.privacy.epsilon, self.privacy.delta
        log = math.log(max(problem.horizon or 0, 8))
        return 4.0 * problem.max_reward * log / epsilon * math.sqrt(math.log(1.25 * log / delta))

    def plays_uniform_below(self, problem: KernelContexts) -> int:
        """With the paper's widths, the horizon at which anything could first be dropped."""
        if self.calibration == "exact":
            return 0
        assert isinstance(self.privacy, ApproxDP)
        return first_useful_horizon(problem, self.privacy, self.failure, self.ridge(), self.local)

    def suited_to_returning(self) -> Self:
        """As it is. Nothing is printed for several rounds of one person."""
        if self.calibration == "paper":
            raise InvalidInput(
                "the paper's constants are for one round of each person: leave them out, or "
                "rounds_per_person"
            )
        return self

    def released(self, problem: KernelContexts, public: Any) -> Reading:
        """The last estimate of every pair; of one that was dropped, that of the epoch before."""
        value, half = public.known.value, public.known.half
        if public.epoch[0] < 2:
            value, half = np.full((2, *value.shape), np.nan)
        return of_values("pair", value, half, bound=problem.max_reward, active=public.active.copy())

    def numbers_of_one(self, problem: Any) -> int:
        """A number for each feature, of which there are at most as many as pairs."""
        return len(problem.contexts) * len(problem.actions)

    def guarantee(self, problem: KernelContexts) -> Guarantee:
        """The budget itself; with the printed noise, what that really gives."""
        held: Budget = self.privacy
        if self.calibration == "paper" and isinstance(self.privacy, ApproxDP):
            held = GaussianDP(2.0 * problem.max_reward / self._scale(problem))
        return kernel_guarantee(held, problem, trust=Trust.LOCAL if self.local else Trust.JOINT)


@dataclass(frozen=True, kw_only=True)
class Capri(EliminatingPolicy, TrustedKernelPolicy):
    r"""Play every action that may still be the best equally often; after each epoch, drop some.

    **Definition.** φ(w) are features of the pairs with ⟨φ(w), φ(w')⟩ = k(w, w'), rewards are clipped to
    ±B, κ are the declared weights of the contexts. Epoch r of T_r = 2^{r−1} T_1 rounds plays in context
    c any of the active actions X_r(c), all at first. With the design Z = T_r Σ_w κ(c)/|X_r(c)|·φφᵀ,
    LLᵀ = Z + τI and u(w) = L⁻¹φ(w), its end releases

        g = Σ u(w_t) y_t + N(0, σ₀² I),    σ₀ = 2B·max|u(w)|/μ over all c and x ∈ X_r(c),

    estimates μ̂(w) = ⟨u(w), g⟩ and drops x from X(c) where another of its actions is ahead by more than
    m(x, x'). An epoch ends when its rounds are closed; where some are in flight, the first rounds
    of the next were decided with more actions, and Z averages over the sets that its rounds were decided
    with: how many with each is known beforehand. Rounds with an action that was dropped meanwhile are
    left out of Z and g. This is the paper's estimator; with `copies` Z is made of R and
    projected on S, two public random copies of the epoch's pairs, as printed, where the default uses
    their known expectation. T_1 is `first_epoch`: 500 unless given; τ is `tau`, 10 unless given.

    For the difference d = φ(c, x) − φ(c, x'), q = |L⁻¹d|, b =
    |(Z+τI)⁻¹d| and ℓ = ln(2|C||X|(|X|−1)r(r+1)/δ) with δ = `failure`,

        m(x, x') = `width`·(B√(2ℓ(q² − τb²)) + ⅔ℓB·q·max|u| + τb‖f‖ + σ₀q√(2ℓ)):

    Bernstein's inequality for iid pairs, the bias of τ, and the noise. At `width=1` (the one dial) all
    of them hold together with probability 1 − δ, given that contexts come by κ and that ‖f‖ is at most
    the problem's `max_norm`, up to the features' `error`; with copies also up to the copies' own error.
    `calibration="paper"` is all as printed: T_1 = ⌈√T⌉, copies, the largest σ̃ of (6) over contexts that
    come by κ in place of max|u|, and x is dropped where μ̂ is 4Δ_r behind as in (7), with β and, because
    the β₁ of (7) is too small, both constants of Lemma 6.6: nothing is ever dropped below about 10⁸
    rounds. With Π the projection on S, σ̃² = |u|² + |φ − Πφ|²/τ.

    **Guarantee.** Neighbours replace one person's context and reward, and with them her action. She is
    in one epoch, in one term of norm at most B·max|u|, so g moves by at most 2B·max|u|: μ-GDP. The
    maximum is over every context: the printed one, over contexts that come by κ, would not protect
    somebody whose context is not among them. κ, epochs' ends, how many rounds were decided with which
    sets and, given earlier releases, X_r, Z and u do not depend on her; later epochs see her only
    through g, so each epoch has the whole budget and the actions of all others are μ-GDP, for any number
    of rounds. The printed σ₀ = σ̃·s divides (ε, δ) by ln T. As σ̃ ≥ |u| wherever contexts come, and a
    longer u of a context that should not come is shortened to σ̃, g moves by at most 2Bσ̃: the guarantee
    is 2B/s-GDP, at usual ε much stronger than (ε, δ), and that is reported.

    **Regret.** Õ(√(γ_T T) + γ_T/ε) in the paper, with constants that keep it at uniform play in
    practice; `capri-regret` measures it.

    >>> problem = KernelContexts.testing.example(1000)
    >>> learner = Capri(privacy=GaussianDP(1.0)).start(problem, seed=1)
    >>> action = learner.select(0)
    >>> learner.update(action, reward=1.0)
    """

    status: ClassVar[str] = "proved"
    state: ClassVar = Public

    def batch_number(self, public: Any, slot: int) -> int:
        """The epoch."""
        return int(public.epoch[0])
