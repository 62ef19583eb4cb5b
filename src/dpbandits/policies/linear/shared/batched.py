r"""Linear policies that learn from batches of rounds, each person in exactly one released sum.

What `RandomizedLinUCB`, `BatchedLinUCB` and `BatchedLinThompson` share: the rows people add, the
batches, the argument for their privacy. Each brings what it makes of a release, and how it chooses.

**Contexts of her own (joint DP).** A person's row is (z, w): features and reward in units of their
bounds, ‖z‖ ≤ 1, |w| ≤ 1. A batch releases G̃ = Σ zzᵀ and ũ = Σ zw (the rewards' squares are never
used). With noise of scale s_G off the diagonal of G, √2·s_G on it and s_U on u, replacing (a, y) by
(b, y′) shifts the whitened release by at most

    (‖aaᵀ − bbᵀ‖_F² / 2)/s_G² + ‖ay − by′‖²/s_U² ≤ (1 − c²)/s_G² + (2 + 2c)/s_U²,   c = a·b,

for unit vectors and opposite rewards (shorter ones shift less). s_G = 1.5/μ and s_U = 1.5√2/μ give
μ²(2 + c − c²)/2.25, largest at c = ½, where it is μ². A batch is released at the first decision at which
it has as many rounds as planned, or more where several are closed at once: its end counts rounds only.

**A public decision set.** Neighbours differ in one reward, so G is known exactly from the actions, and ũ
alone is released with s_U = 2/μ.

**People who return** are kept apart in batches with noise of their own, each as long as all before it: a
few long ones, and they are weighed by their precision, a = n/(n/(2d) + s_G² + s_U²) for n rounds (signal
against noise in one of d directions) relative to the longest. No weight exceeds 1, so that confidence
sets stay valid: the noise of weighed rewards is no larger than weighed rows make it out to be.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Noise
from dpbandits.engine.state import FROM_RECIPE, MOST, Limits, exactly
from dpbandits.errors import InvalidInput
from dpbandits.mechanisms.gram import add_row, pair_size, pair_widths, unpack_pair
from dpbandits.policies.linear.shared.choosing import ByFeatures
from dpbandits.policies.linear.shared.protection import linear_guarantee
from dpbandits.policies.linear.shared.rows import GRID, grid_row
from dpbandits.policies.linear.shared.tiles import start_tile
from dpbandits.policies.returning import OncePerBatch
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import GAUSSIAN_OR_NONE, NonPrivate
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.linear import LinearActions, LinearProblem
from dpbandits.recipes import Ints
from dpbandits.sums.batches import Batches, Buffers, add_public, release_batch, start_batches

Array = NDArray[np.float64]
ROUND, END, BEGAN, LONGEST = 0, 1, 2, 3
# s_G² μ² and s_U² μ² for contexts of one's own; s_U² μ² for a public decision set.
GRAM_VARIANCE, MOMENT_VARIANCE, REWARD_VARIANCE = 2.25, 4.5, 4.0


class Rows(NamedTuple):
    """The open batch, and room for one row."""

    buffers: Buffers
    row: Array


class _Fields(NamedTuple):
    # Rounds closed, how many of them end the open batch and came before it, the longest batch released.
    clock: NDArray[np.int64]
    batches: Batches
    actions: Array  # (K, d) the public decision set; no rows where everybody brings her own
    played: Array  # (d, d) Σ zzᵀ of the actions played, where they are public
    gram: Array  # (d, d) G̃
    moment: Array  # (d,) ũ
    mean: Array  # (d,) m
    shape: Array  # (d, d) A, for widths √(xᵀAx)
    values: Array  # (d,) scratch, or scales of the posterior
    vectors: Array  # (d, d) scratch, or axes of the posterior
    draw: Array  # (2, d) a Thompson sample and its standard normals
    tile: Array  # scratch, to choose among many features
    width: Array  # (2,) of confidence sets, and a bound of A
    first_batch: int
    growth: float
    pace: float
    max_norm: float
    max_reward: float
    settings: Any  # the policy's own: a named tuple of numbers


class Batched(ByFeatures, _Fields):
    """What is released, and what a policy made of it at the last release."""

    def limits(self) -> Limits:
        """The decision set is declared."""
        done = int(self.clock[ROUND])
        clock = 0, np.array([MOST, MOST, done, done])
        return {"clock": clock, "actions": FROM_RECIPE, "tile": exactly(0.0)}

    def observed(self) -> int:
        """Rounds closed so far."""
        return int(self.clock[ROUND])

    def release(self, secret: Rows, noise: Noise) -> None:
        """At the end of a batch, release it and restate what is known."""
        if batch_ended(self):
            close_batch(self, secret, noise)
            self.restate()

    def restate(self) -> None:
        """What a policy makes of a release: `mean`, `shape` and whatever else it chooses by."""
        raise NotImplementedError

    def observe(self, secret: Rows, context: Any, action: int, reward: float) -> None:
        """Add the person's row to the open batch and count the round."""
        _add_row(self, secret, context, action, reward)
        self.clock[ROUND] += 1


@register_jitable(forceinline=True)
def batch_ended(public: Batched) -> bool:
    """Whether the open batch is complete; a function of the number of rounds."""
    return bool(public.clock[ROUND] >= public.clock[END])


@register_jitable
def close_batch(public: Batched, secret: Rows, noise: Noise) -> None:
    """Release the open batch, and open the next."""
    release_batch(public.batches, secret.buffers, 0, noise)
    if public.actions.shape[0] == 0 and public.batches.weights.size == 1:
        _weigh(public)
    open_batch(public)


@register_jitable
def open_batch(public: Batched) -> None:
    """Unpack what is known now, and plan the next batch."""
    if public.actions.shape[0] == 0:
        unpack_pair(public.batches.total[0], public.gram, public.moment)
    else:
        for i in range(public.moment.size):
            public.moment[i] = public.batches.total[0, i]
            for j in range(public.moment.size):
                public.gram[i, j] = public.played[i, j]
    done = float(public.clock[ROUND])
    length = max(float(public.first_batch), min(public.growth * done, public.pace * math.sqrt(done)))
    public.clock[END] = public.clock[ROUND] + int(length)


@register_jitable
def _weigh(public: Batched) -> None:
    """Weigh the batch just released by its precision, relative to that of the longest."""
    batches, clock = public.batches, public.clock
    length = clock[ROUND] - clock[BEGAN]
    longest = max(clock[LONGEST], length)
    highest = _precision(public, longest)
    before, share = _precision(public, clock[LONGEST]) / highest, _precision(public, length) / highest
    for axis in range(batches.total.shape[1]):
        last = batches.last[0, axis]
        batches.total[0, axis] = before * (batches.total[0, axis] - last) + share * last
    noise = batches.scale * batches.scale
    batches.variance[0] = before * before * (batches.variance[0] - noise) + share * share * noise
    clock[BEGAN] = clock[ROUND]
    clock[LONGEST] = longest


@register_jitable(forceinline=True)
def _precision(public: Batched, length: float) -> float:
    noise = public.batches.scale * public.batches.scale * (GRAM_VARIANCE + MOMENT_VARIANCE)
    return length / (0.5 * length / public.moment.size + noise + 1e-12)


@register_jitable(forceinline=True)
def _add_row(public: Batched, secret: Rows, context: Any, action: int, reward: float) -> None:
    if context is None:
        _add_reward(public, secret, action, reward)
    else:
        value = grid_row(
            secret.row, context[0], action, reward, public.max_norm, public.max_reward, GRID
        )
        add_row(secret.buffers.open[0], secret.row, value, secret.row)


@register_jitable(forceinline=True)
def _add_reward(public: Batched, secret: Rows, action: int, reward: float) -> None:
    """For a public decision set: G counts the decision, with or without a reward."""
    known = 0.0 if reward != reward else reward
    value = grid_row(secret.row, public.actions, action, known, public.max_norm, public.max_reward, GRID)
    for i in range(secret.row.size):
        secret.buffers.open[0, i] += secret.row[i] * value
        for j in range(secret.row.size):
            public.played[i, j] += secret.row[i] * secret.row[j]


@register_jitable(forceinline=True)
def noise_variance(public: Batched) -> tuple[float, float]:
    """The variance of the noise in an off-diagonal entry of G̃, and in an entry of ũ."""
    variance = public.batches.variance[0]
    if public.actions.shape[0] == 0:
        return variance * GRAM_VARIANCE, variance * MOMENT_VARIANCE
    return 0.0, variance * REWARD_VARIANCE


@dataclass(frozen=True, kw_only=True)
class BatchedLinear(OncePerBatch):
    """A linear policy whose every person is in one released batch."""

    abstract: ClassVar[bool] = True
    problem_kind: ClassVar = LinearProblem
    accepts: ClassVar = GAUSSIAN_OR_NONE
    paper: ClassVar[str] = "dpbandits"
    compiles: ClassVar[bool] = True
    one_slot: ClassVar[bool] = True
    state: ClassVar[type[Batched]]
    # Short batches notice new kinds of contexts soon, and many of them need long blocks.
    usual_pace: ClassVar[float] = 1.2
    testing: ClassVar = PolicyTesting(first_batch=2, blocks=(2, 3))
    usual_blocks: ClassVar[tuple[int, ...]] = (512, 1024)

    first_batch: Annotated[
        int | None, "The first batch, in rounds; by default what suits the budget."
    ] = None
    growth: Annotated[float, "A batch is at most this many times as long as all rounds before it."] = 0.1
    pace: Annotated[
        float | None,
        "A batch is at most this many times √t long at round t; by default what suits the budget.",
    ] = None
    blocks: Annotated[
        Ints | None,
        "How many releases' noise is drawn together, block by block; the last size repeats.",
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first_batch is not None:
            checks.integer(least=1, first_batch=self.first_batch)
        checks.growth(growth=self.growth)
        if self.pace is not None:
            checks.width(pace=self.pace)
        if self.blocks is not None:
            blocks = checks.sequence("blocks", self.blocks)
            for block in blocks:
                checks.integer(least=1, limit=checks.MOST_BLOCK, block=block)
            if not blocks:
                raise InvalidInput("expected at least one size of blocks, got none")
            object.__setattr__(self, "blocks", tuple(int(block) for block in blocks))

    def _begin(self, problem: LinearProblem, settings: Any) -> tuple[Any, Any]:
        dim, public_set = problem.dimension, isinstance(problem, LinearActions)
        mu = math.inf if isinstance(self.privacy, NonPrivate) else self.privacy.to_gaussian().mu
        widths = np.full(dim, math.sqrt(REWARD_VARIANCE)) if public_set else pair_widths(dim)
        # Long blocks of large matrices would fill the memory.
        blocks = tuple(self.blocks or (self.usual_blocks if dim <= 64 else (512,)))
        batches, buffers = start_batches(1, widths.size, 1.0, self.privacy, block=blocks, widths=widths)
        first = max(16, math.ceil(15.0 / mu)) if self.first_batch is None else self.first_batch
        # With noise of its own every batch costs as much, so that there should be few.
        usual = math.inf if blocks == (1,) else self.usual_pace / mu
        pace = usual if self.pace is None else self.pace
        public = self.state(
            clock=np.array([0, first, 0, 0], np.int64),
            batches=batches,
            actions=problem.actions,
            played=np.zeros((dim, dim) if public_set else (0, 0)),
            gram=np.zeros((dim, dim)),
            moment=np.zeros(dim),
            mean=np.zeros(dim),
            shape=np.eye(dim),
            values=np.zeros(dim),
            vectors=np.zeros((dim, dim)),
            draw=np.zeros((2, dim)),
            tile=start_tile(dim),
            width=np.array([0.0, 1.0]),
            first_batch=first,
            growth=self.growth,
            pace=pace,
            max_norm=problem.max_norm,
            max_reward=problem.max_reward,
            settings=settings,
        )
        return public, Rows(buffers, np.zeros(dim))

    def take_public(self, public: Batched, secret: Rows, seen: Batched, sums: Rows) -> None:
        """As the first batch."""
        if public.batches.weights.size == 1 and public.actions.shape[0] == 0:
            raise InvalidInput(
                "batches with noise of their own are weighed by it, so they cannot follow public rows: "
                "give blocks=(512,), or history="
            )
        public.clock[ROUND] = public.clock[BEGAN] = seen.clock[ROUND]
        add_public(public.batches, secret.buffers, 0, sums.buffers.open[0])
        public.played[...] = seen.played
        open_batch(public)
        public.restate()

    def suited_to_returning(self) -> Self:
        """Batches with noise of their own, each as long as all before it."""
        return self if self.blocks else replace(self, blocks=(1,), growth=max(self.growth, 1.0))

    def blocks_used(self) -> tuple[int, ...]:
        """As given, or as usual."""
        return tuple(self.blocks or self.usual_blocks)

    def numbers_of_one(self, problem: Any) -> int:
        """All of G and u."""
        return pair_size(problem.dimension)

    def guarantee(self, problem: LinearProblem) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return linear_guarantee(self.privacy, problem)
