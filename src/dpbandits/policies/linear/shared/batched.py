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

**Arms with parameters of their own.** With z in block a of K·d places where arm a was shown, these are
rows of norm at most 1 again, and G = Σ zzᵀ is block diagonal whoever comes: all entries between blocks
are 0 for everybody, so nothing has to be released about them. A batch releases K blocks of d × d and K
vectors of d, with the same noise. Let (a, y) be replaced by (b, y′), who may be shown another arm. In
one block the shift is that of above. In different blocks c = a·b = 0: one block moves by aaᵀ and ay,
another by bbᵀ and by′, which is 2μ²/2.25 < μ² in the formula above. So the scale of each number stays,
while there are K·d(d+3)/2 numbers instead of Kd(Kd+3)/2, and the noise in G̃ has the norm of d × d
matrices. Every block is drawn at every release, whether or not its arm was shown: that is as private as
her features, and no count of it is kept in public.

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
from dpbandits.mechanisms.gram import add_row, block_of, pair_size, pair_widths, unpack_pair
from dpbandits.policies.linear.shared.algebra import norm_bound
from dpbandits.policies.linear.shared.choosing import REACH, ByFeatures
from dpbandits.policies.linear.shared.protection import linear_guarantee
from dpbandits.policies.linear.shared.rows import GRID, grid_row
from dpbandits.policies.linear.shared.tiles import start_tile
from dpbandits.policies.returning import OncePerBatch
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import GAUSSIAN_OR_NONE, NonPrivate
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.linear import LinearActions, LinearProblem, Rewards
from dpbandits.recipes import Ints
from dpbandits.sums.batches import Batches, Buffers, add_public, release_batch, start_batches

Array = NDArray[np.float64]
ROUND, END, BEGAN, LONGEST = 0, 1, 2, 3
# s_G² μ² and s_U² μ² for contexts of one's own; s_U² μ² for a public decision set.
GRAM_VARIANCE, MOMENT_VARIANCE, REWARD_VARIANCE = 2.25, 4.5, 4.0
# Where arms have parameters of their own: fewer and longer batches, since each release is of all arms,
# so shorter blocks; and how many numbers the noise of a block may be, a quarter of a gigabyte.
ARMS_PACE, ARMS_BLOCKS, MOST_BLOCK_NUMBERS = 12.0, (64, 256), 2**25
# The precision that a parameter of an arm has beforehand, times d. Tuned on wine, breast cancer, made-up
# classes and `DisjointContexts`; ten times as much, as suits shared parameters, learns far more slowly.
ARMS_PRIOR = 0.1


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
    gram: Array  # (d, d) G̃ of the block that is read
    moment: Array  # (d,) ũ of the block that is read
    mean: Array  # (blocks, d) m
    shape: Array  # (blocks, d, d) A, for widths √(xᵀAx)
    values: Array  # (d,) scratch, or scales of the posterior
    vectors: Array  # (d, d) scratch, or axes of the posterior
    draw: Array  # (2, d) a Thompson sample and its standard normals
    tile: Array  # scratch, to choose among many features
    width: Array  # (blocks, 2) a factor on widths, and a bound of A
    first_batch: int
    growth: float
    pace: float
    max_norm: float
    rewards: Rewards
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
def read_block(public: Batched, block: int) -> None:
    """What is released about an arm of its own parameters, or about all, into `gram` and `moment`."""
    if public.actions.shape[0] == 0:
        total = public.batches.total[0]
        first, end = block_of(total, block, public.mean.shape[0])
        unpack_pair(total[first:end], public.gram, public.moment)
    else:
        for i in range(public.moment.size):
            public.moment[i] = public.batches.total[0, i]
            for j in range(public.moment.size):
                public.gram[i, j] = public.played[i, j]


@register_jitable
def open_batch(public: Batched) -> None:
    """Plan the next batch."""
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
    return length / (0.5 * length / public.mean.size + noise + 1e-12)


@register_jitable(forceinline=True)
def _add_row(public: Batched, secret: Rows, context: Any, action: int, reward: float) -> None:
    if context is None:
        _add_reward(public, secret, action, reward)
    else:
        value = grid_row(secret.row, context[0], action, reward, public.max_norm, public.rewards, GRID)
        packed = secret.buffers.open[0]
        first, end = block_of(packed, action, public.mean.shape[0])
        add_row(packed[first:end], secret.row, value, secret.row)


@register_jitable(forceinline=True)
def _add_reward(public: Batched, secret: Rows, action: int, reward: float) -> None:
    """For a public decision set: G counts the decision, with or without a reward."""
    known = public.rewards.middle if reward != reward else reward
    value = grid_row(secret.row, public.actions, action, known, public.max_norm, public.rewards, GRID)
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


@register_jitable
def restate_posterior(public: Batched, block: int, known: float, unknown: float, noise: float) -> None:
    """M and A of `RandomizedLinUCB`, by the eigenvalues and eigenvectors of G̃, for a block.

    `known` and `unknown` are what a parameter's precision is beforehand, for m and for A; `noise` is
    the variance of what hides Gθ.
    """
    size, mean, shape = public.moment.size, public.mean[block], public.shape[block]
    for i in range(size):
        mean[i] = 0.0
        for j in range(size):
            shape[i, j] = 0.0
    for k in range(size):
        direction = 0.0
        for i in range(size):
            direction += public.vectors[i, k] * public.moment[i]
        length = max(public.values[k], 0.0)
        # Cov(ũ − G̃θ) for rewards of variance ½ and ‖θ‖ = 1, in units of the bounds. (The small
        # constant only keeps 0/0 away where nothing is known and nothing is hidden.)
        spread = 0.5 * length + noise + 1e-12
        precision = length * length / spread
        middle = length * direction / spread / (known + precision)
        for i in range(size):
            mean[i] += public.vectors[i, k] * middle
            for j in range(size):
                shape[i, j] += public.vectors[i, k] * public.vectors[j, k] / (unknown + precision)
    public.width[block, REACH] = norm_bound(shape, public.moment)


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
        dim, arms = problem.dimension, problem.blocks
        public_set = isinstance(problem, LinearActions)
        mu = math.inf if isinstance(self.privacy, NonPrivate) else self.privacy.to_gaussian().mu
        widths = np.full(dim, math.sqrt(REWARD_VARIANCE)) if public_set else pair_widths(dim)
        widths = np.tile(widths, arms)
        blocks = tuple(self.blocks or self._fitting_blocks(dim, arms))
        batches, buffers = start_batches(1, widths.size, 1.0, self.privacy, block=blocks, widths=widths)
        first = max(16, math.ceil(15.0 / mu)) if self.first_batch is None else self.first_batch
        # With noise of its own every batch costs as much, so that there should be few.
        usual = math.inf if blocks == (1,) else (self.usual_pace if arms == 1 else ARMS_PACE) / mu
        pace = usual if self.pace is None else self.pace
        public = self.state(
            clock=np.array([0, first, 0, 0], np.int64),
            batches=batches,
            actions=problem.actions,
            played=np.zeros((dim, dim) if public_set else (0, 0)),
            gram=np.zeros((dim, dim)),
            moment=np.zeros(dim),
            mean=np.zeros((arms, dim)),
            shape=np.tile(np.eye(dim), (arms, 1, 1)),
            values=np.zeros(dim),
            vectors=np.zeros((dim, dim)),
            draw=np.zeros((2, dim)),
            tile=start_tile(dim),
            width=np.ones((arms, 2)),
            first_batch=first,
            growth=self.growth,
            pace=pace,
            max_norm=problem.max_norm,
            rewards=problem.rewards,
            settings=settings,
        )
        return public, Rows(buffers, np.zeros(dim))

    def _fitting_blocks(self, dim: int, arms: int) -> tuple[int, ...]:
        """As usual, but long blocks of large matrices would fill the memory."""
        if arms == 1:
            return self.usual_blocks if dim <= 64 else (512,)
        most = max(1, MOST_BLOCK_NUMBERS // (arms * pair_size(dim)))
        return tuple(sorted({min(block, most) for block in ARMS_BLOCKS}))

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

    def numbers_of_one(self, problem: LinearProblem) -> int:
        """All of G and u; of two arms, where she and who replaces her are shown different ones."""
        return min(problem.blocks, 2) * pair_size(problem.dimension)

    def guarantee(self, problem: LinearProblem) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return linear_guarantee(self.privacy, problem)
