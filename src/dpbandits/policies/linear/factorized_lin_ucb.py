r"""Linear UCB with a fresh private sum in every round from a few buffers."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise
from dpbandits.engine.state import MOST, Limits, exactly
from dpbandits.mechanisms.gram import (
    add_row,
    block_of,
    operator_norm,
    pair_size,
    pair_widths,
    unpack_pair,
)
from dpbandits.policies.linear.shared.batched import GRAM_VARIANCE, MOMENT_VARIANCE
from dpbandits.policies.linear.shared.choosing import RADIUS, most_promising_action
from dpbandits.policies.linear.shared.confidence import Assumed, ConfidentPolicy, restate
from dpbandits.policies.linear.shared.protection import linear_guarantee
from dpbandits.policies.linear.shared.reading import of_ellipsoid
from dpbandits.policies.linear.shared.rows import GRID, grid_row
from dpbandits.policies.linear.shared.tiles import start_tile
from dpbandits.policies.linear.shared.trees import RELEASED, ROUND
from dpbandits.policies.released import Reading
from dpbandits.policies.returning import OncePerBatch
from dpbandits.policies.testing import PolicyTesting
from dpbandits.privacy.budgets import GAUSSIAN_OR_NONE
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.problems.linear import LinearContexts, Rewards
from dpbandits.sums.factorized import (
    MOST_BUFFERS,
    Factorized,
    FactorizedSecret,
    design_factorized,
    release_factorized,
    start_factorized,
)

Array = NDArray[np.float64]


class Secret(NamedTuple):
    """The exact sums, and room for one row."""

    sums: FactorizedSecret
    row: Array


class Public(NamedTuple):
    """The released prefix and its confidence set."""

    clock: NDArray[np.int64]  # rounds closed, those of them that are released
    sums: Factorized
    gram: Array
    moment: Array
    mean: Array
    shape: Array
    lower: Array
    tile: Array  # scratch, to choose among many features
    width: Array
    max_norm: float
    rewards: Rewards
    settings: Assumed

    def limits(self) -> Limits:
        """It counts."""
        return {"clock": (0, np.array([MOST, self.clock[ROUND]])), "tile": exactly(0.0)}

    def observed(self) -> int:
        """Rounds closed so far."""
        return int(self.clock[ROUND])

    def release(self, secret: Secret, noise: Noise) -> None:
        """Release the rounds closed since the last decision as one row; restate the confidence set."""
        if self.clock[ROUND] > self.clock[RELEASED]:
            self.clock[RELEASED] = self.clock[ROUND]
            release_factorized(self.sums, secret.sums, noise)
            _restate(self)

    def select(self, context: Any, explore: Chance) -> int:
        """The largest upper confidence bound."""
        return most_promising_action(context[0], self, 1.0, self.mean[0], explore)

    def observe(self, secret: Secret, context: Any, action: int, reward: float) -> None:
        """Put the person's row into the open sum and count the round."""
        value = grid_row(secret.row, context[0], action, reward, self.max_norm, self.rewards, GRID)
        first, end = block_of(secret.sums.open, action, self.mean.shape[0])
        add_row(secret.sums.open[first:end], secret.row, value, secret.row)
        self.clock[ROUND] += 1


@register_jitable
def _restate(public: Public) -> None:
    done, releases = float(public.clock[ROUND]), float(public.sums.released[0])
    variance, blocks = public.sums.variance[0], public.mean.shape[0]
    gram_noise, moment_noise = variance * GRAM_VARIANCE, variance * MOMENT_VARIANCE
    for block in range(blocks):
        first, end = block_of(public.sums.total, block, blocks)
        unpack_pair(public.sums.total[first:end], public.gram, public.moment)
        restate(public, block, public.lower, done, releases, gram_noise, moment_noise)


@dataclass(frozen=True, kw_only=True)
class FactorizedLinUCB(OncePerBatch, ConfidentPolicy):
    r"""Play the largest upper bound of a confidence set that is restated in every round, and valid.

    **Definition.** In units of the bounds. The sums G̃ and ũ are released before every round by a
    factorized sum (`sums/factorized.py`) of `buffers` buffers, made for `length` rounds (very many
    unless given); Υ, V, ρ_min, ρ_max, γ and β are those of `BatchedLinUCB` with k releases (k = t
    where rounds are closed one by one) of the noise that a prefix then carries, and it plays
    argmax_x θ̂·x + β √(xᵀV⁻¹x). It is what `TreeLinUCB` becomes with the best known noise for a sum in
    every round. Batches carry less noise still; this is for those who need each decision to know all
    before it.

    **Guarantee.** Neighbours replace one person's features and reward; joint DP. Her row is added to one
    row of one factorized sum calibrated over infinitely many rounds: μ-GDP on adaptive streams, for
    ever. For arms with parameters of their own, blocks are released as in `linear/shared/batched.py`.

    **Regret.** As `BatchedLinUCB`, of whose confidence sets these are, with a union bound over rounds.

    >>> import dpbandits as dpb
    >>> policy = FactorizedLinUCB(privacy=dpb.GaussianDP(1.0))
    >>> print(policy.guarantee(dpb.LinearContexts(5)).budget)
    1-GDP
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = LinearContexts
    accepts: ClassVar = GAUSSIAN_OR_NONE
    paper: ClassVar[str] = "dpbandits"
    testing: ClassVar = PolicyTesting(length=20)
    compiles: ClassVar[bool] = True
    one_slot: ClassVar[bool] = True

    buffers: Annotated[
        int, "How many running sums the noise is made of: more of them means less noise."
    ] = 8
    length: Annotated[int | None, "How many rounds the noise is made for; very many by default."] = None
    shift: Annotated[
        float, "How much regularisation is added to the noisy Gram matrix, in units of its noise."
    ] = 8.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(least=1, limit=MOST_BUFFERS, buffers=self.buffers)
        if self.length is not None:
            checks.integer(least=1, length=self.length)
        checks.growth(above=1.0, shift=self.shift)

    def begin(self, problem: LinearContexts) -> tuple[Any, Any]:
        """Nothing known: every direction as wide."""
        dim, blocks = problem.dimension, problem.blocks
        sums, secret = start_factorized(
            blocks * pair_size(dim),
            1.0,
            self.privacy,
            widths=np.tile(pair_widths(dim), blocks),
            buffers=self.buffers,
            length=self.length,
        )
        public = Public(
            clock=np.zeros(2, np.int64),
            sums=sums,
            gram=np.zeros((dim, dim)),
            moment=np.zeros(dim),
            mean=np.zeros((blocks, dim)),
            shape=np.tile(np.eye(dim), (blocks, 1, 1)),
            lower=np.zeros((dim, dim)),
            tile=start_tile(dim),
            width=np.ones((blocks, 2)),
            max_norm=problem.max_norm,
            rewards=problem.rewards,
            settings=self._assumed(problem, operator_norm(dim), self.shift),
        )
        return public, Secret(secret, np.zeros(dim))

    def refuses_exact_noise(self, problem: Any) -> str:
        """A person is in every draw after her round, if only a little, and each is rounded."""
        return "its sums are drawn anew in every round without end"

    def multiplier_apart(self, problem: LinearContexts, rounds: int) -> float:
        """That of different rows."""
        return design_factorized(self.buffers, self.length).participation(rounds)

    def batch_number(self, public: Public, slot: int) -> int:
        """A row is a batch."""
        return int(public.sums.released[0])

    def released(self, problem: LinearContexts, public: Public) -> Reading:
        """The confidence set."""
        known = bool(public.sums.released[0] > 0)
        return of_ellipsoid(problem, public.mean, public.shape, public.width[:, RADIUS], known=known)

    def guarantee(self, problem: LinearContexts) -> Guarantee:
        """The budget itself, for any number of rounds."""
        return linear_guarantee(self.privacy, problem)
