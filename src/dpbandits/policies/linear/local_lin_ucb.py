r"""Linear UCB on rows that people randomise themselves (Zheng, Cai, Huang, Li & Wang 2020)."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise, NoSecret
from dpbandits.engine.state import COUNT, Limits, exactly
from dpbandits.mechanisms.gram import block_of, operator_norm, pair_size, unpack_pair
from dpbandits.mechanisms.rounding import rounded, rounding_step
from dpbandits.policies.linear.shared.batched import GRAM_VARIANCE, MOMENT_VARIANCE
from dpbandits.policies.linear.shared.choosing import RADIUS, most_promising_action
from dpbandits.policies.linear.shared.confidence import Assumed, ConfidentPolicy, restate
from dpbandits.policies.linear.shared.protection import linear_guarantee
from dpbandits.policies.linear.shared.reading import of_ellipsoid
from dpbandits.policies.linear.shared.rows import GRID, in_units, on_grid, row_of, shrinkage
from dpbandits.policies.linear.shared.tiles import start_tile
from dpbandits.policies.local import LocalPolicy
from dpbandits.policies.messages import noisy_vector
from dpbandits.policies.released import Reading
from dpbandits.privacy.budgets import GAUSSIAN_OR_NONE
from dpbandits.privacy.calibration import gaussian_scale
from dpbandits.privacy.guarantees import Guarantee, Trust
from dpbandits.problems.linear import LinearContexts, Rewards

Array = NDArray[np.float64]
_OFF, _VECTOR = math.sqrt(GRAM_VARIANCE), math.sqrt(MOMENT_VARIANCE)


class Public(NamedTuple):
    """The sum of all messages and its confidence set."""

    round: NDArray[np.int64]
    total: Array  # Σ messages
    outbox: Array  # room for one message
    gram: Array
    moment: Array
    mean: Array
    shape: Array
    lower: Array
    tile: Array  # scratch, to choose among many features
    width: Array
    settings: Assumed
    max_norm: float
    rewards: Rewards
    scale: float  # 1/μ
    step: float  # to which numbers are rounded

    def limits(self) -> Limits:
        """It counts."""
        return {"round": COUNT, "tile": exactly(0.0)}

    def select(self, context: Any, explore: Chance) -> int:
        """The largest upper confidence bound."""
        return most_promising_action(context[0], self, 1.0, self.mean[0], explore)

    def report(self, context: Any, action: int, reward: float, noise: Noise) -> tuple[Array]:
        """Her row as zzᵀ and zw, every number with noise; nothing of it is put anywhere before."""
        features, row, blocks = context[0], row_of(context[0], action), self.mean.shape[0]
        factor = 0.0 if reward != reward else shrinkage(features, row, self.max_norm)
        value = 0.0
        if factor != 0.0:
            value = on_grid(in_units(reward, self.rewards), GRID)
        for block in range(blocks):
            hers = factor if blocks == 1 or block == action else 0.0
            first, end = block_of(self.outbox, block, blocks)
            _report(self, self.outbox[first:end], features, row, hers, value, noise)
        return (self.outbox,)

    def receive(self, message: tuple[Array]) -> None:
        """Add it up and restate the confidence set."""
        self.round[0] += 1
        for place in range(self.total.size):
            self.total[place] += message[0][place]
        _restate(self)


@register_jitable
def _report(
    public: Public, outbox: Array, features: Any, row: int, factor: float, value: float, noise: Noise
) -> None:
    """A block of her message: of the arm that she was shown, or of zeros."""
    place, size = 0, public.moment.size
    for i in range(size):
        one = _entry(features, row, i, factor)
        for j in range(i, size):
            wide = public.scale * (_VECTOR if i == j else _OFF)
            drawn = noise.normal(one * _entry(features, row, j, factor), wide)
            outbox[place] = rounded(drawn, public.step)
            place += 1
    for i in range(size):
        one = _entry(features, row, i, factor)
        drawn = noise.normal(one * value, public.scale * _VECTOR)
        outbox[place + i] = rounded(drawn, public.step)


@register_jitable(forceinline=True)
def _entry(features: Any, row: int, axis: int, factor: float) -> float:
    """An entry of z; a row that is not used is 0 whatever its features are."""
    return 0.0 if factor == 0.0 else on_grid(features[row, axis] * factor, GRID)


@register_jitable
def _restate(public: Public) -> None:
    done, blocks = float(public.round[0]), public.mean.shape[0]
    variance = done * public.scale * public.scale
    gram_noise, moment_noise = variance * GRAM_VARIANCE, variance * MOMENT_VARIANCE
    for block in range(blocks):
        first, end = block_of(public.total, block, blocks)
        unpack_pair(public.total[first:end], public.gram, public.moment)
        restate(public, block, public.lower, done, done, gram_noise, moment_noise)


@dataclass(frozen=True, kw_only=True)
class LocalLinUCB(LocalPolicy, ConfidentPolicy):
    r"""Play the largest upper confidence bound of rows that people randomised themselves.

    **Definition.** In units of the bounds. A person of features z (of her action) and reward w sends
    zzᵀ + N_G and zw + n_u, of scales 1.5/μ off the diagonal, 1.5√2/μ on it and on the vector. After t
    messages the server adds them up to G̃ and ũ, whose noise has t times that variance, and broadcasts
    θ̂, V⁻¹ and β of `BatchedLinUCB` for k = t releases; she plays argmax_x θ̂·x + β √(xᵀV⁻¹x) on her
    own device. Zheng et al. add N(0, σ²) with σ = 4√(2 ln(2.5/δ))/ε to both parts and take a wider β;
    the noise here is exact.

    **Guarantee.** Neighbours replace one person's features and reward. Her message is one Gaussian
    release of a row: μ-GDP by `mechanisms/gram.py`, whatever the server or the others do, and whatever
    is broadcast: scale and bounds come from her own recipe. Numbers are sent without their last bits
    (`mechanisms/rounding.py`). Her features, her action and her reward are not sent. For arms with
    parameters of their own she sends a block of noise for every arm, with her row in that of hers, at
    the same scales (`linear/shared/batched.py`).

    **Regret.** Õ(T^{3/4}) (Zheng et al. 2020): the noise in G̃ grows like √t. Below some 10⁵ rounds at
    μ = 1 there is little to gain over uniform play.

    >>> import dpbandits as dpb
    >>> policy, problem = dpb.local.LocalLinUCB(privacy=dpb.GaussianDP(1.0)), dpb.LinearContexts(2)
    >>> server = policy.start(problem)
    >>> person = policy.person(problem, server.broadcast())
    >>> person.select([[1.0, 0.0], [0.0, 1.0]]) in (0, 1)
    True
    >>> server.receive(person.report(1.0))
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = LinearContexts
    accepts: ClassVar = GAUSSIAN_OR_NONE
    paper: ClassVar[str] = "Zheng, Cai, Huang, Li & Wang 2020"

    shift: Annotated[
        float, "How much regularisation is added to the noisy Gram matrix, in units of its noise."
    ] = 8.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.growth(above=1.0, shift=self.shift)

    def begin(self, problem: LinearContexts) -> tuple[Any, Any]:
        """Nothing reported yet."""
        dim, blocks = problem.dimension, problem.blocks
        public = Public(
            round=np.zeros(1, np.int64),
            total=np.zeros(blocks * pair_size(dim)),
            outbox=np.zeros(blocks * pair_size(dim)),
            gram=np.zeros((dim, dim)),
            moment=np.zeros(dim),
            mean=np.zeros((blocks, dim)),
            shape=np.tile(np.eye(dim), (blocks, 1, 1)),
            lower=np.zeros((dim, dim)),
            tile=start_tile(dim),
            width=np.ones((blocks, 2)),
            settings=self._assumed(problem, operator_norm(dim), self.shift),
            max_norm=problem.max_norm,
            rewards=problem.rewards,
            scale=gaussian_scale(1.0, self.privacy),
            step=rounding_step(gaussian_scale(_OFF, self.privacy)),
        )
        return public, NoSecret()

    def parse_message(self, problem: LinearContexts, content: Any) -> tuple[Array]:
        """A packed row whose numbers its noise can give."""
        scale = _VECTOR * gaussian_scale(1.0, self.privacy)
        size = problem.blocks * pair_size(problem.dimension)
        return noisy_vector(content, size, 1.0, scale)

    def released(self, problem: LinearContexts, public: Public) -> Reading:
        """The confidence set."""
        known = bool(public.round[0] > 0)
        return of_ellipsoid(problem, public.mean, public.shape, public.width[:, RADIUS], known=known)

    def draws_of_one(self, problem: Any) -> float:
        """All numbers of her message; of two arms, where another would be shown another."""
        return float(min(problem.blocks, 2) * pair_size(problem.dimension))

    def guarantee(self, problem: LinearContexts) -> Guarantee:
        """The budget itself, for every message."""
        return linear_guarantee(self.privacy, problem, trust=Trust.LOCAL)
