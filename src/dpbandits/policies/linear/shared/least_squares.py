"""Ridge regression updated every round, without noise: what the non-private policies share."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Noise, NoSecret
from dpbandits.engine.state import ANYTHING, COUNT, FROM_RECIPE, NOT_NEGATIVE, NOTHING, Limits, exactly
from dpbandits.policies.linear.shared.algebra import multiply, norm_bound
from dpbandits.policies.linear.shared.choosing import REACH, ByFeatures, offered
from dpbandits.policies.linear.shared.reading import of_ellipsoid
from dpbandits.policies.linear.shared.rows import FINE, grid_row
from dpbandits.policies.linear.shared.tiles import start_tile
from dpbandits.policies.released import Reading, Z
from dpbandits.problems.linear import LinearProblem, Rewards

Array = NDArray[np.float64]


class _Fields(NamedTuple):
    round: NDArray[np.int64]
    actions: Array  # the public decision set; no rows where everybody brings her own
    moment: Array  # (blocks, d) Σ zw
    mean: Array  # (blocks, d) θ̂
    shape: Array  # (blocks, d, d) V⁻¹
    log_det: Array  # (blocks,) ln det V − d ln ρ
    width: Array  # (blocks, 2) β, and a bound of V⁻¹
    row: Array  # (2, d) one row, and V⁻¹ times it
    draw: Array  # (2, d) a Thompson sample and its standard normals
    lower: Array  # (d, d) scratch
    tile: Array  # scratch, to choose among many features
    max_norm: float
    rewards: Rewards
    settings: Any  # the policy's own: a named tuple of numbers


class LeastSquares(ByFeatures, _Fields):
    """V = ρI + Σ zzᵀ, kept as its inverse, and θ̂ = V⁻¹ Σ zw; of each arm, where they have their own."""

    def limits(self) -> Limits:
        """What is declared, and a V⁻¹ that another row can be added to."""
        finite = np.isfinite(self.shape).all()
        fits = finite and np.linalg.eigvalsh(self.shape + self.shape.mT).min() > -1.0
        known: Limits = {"shape": ANYTHING if fits else NOTHING, "log_det": NOT_NEGATIVE}
        return {"round": COUNT, "actions": FROM_RECIPE, "tile": exactly(0.0), **known}

    def release(self, secret: NoSecret, noise: Noise) -> None:
        """Nothing is hidden, so nothing needs a release."""

    def observe(self, secret: NoSecret, context: Any, action: int, reward: float) -> None:
        """Sherman & Morrison's update of V⁻¹."""
        _add(self, offered(context, self.actions)[0], action, reward)
        self.round[0] += 1


@register_jitable(forceinline=True)
def _add(public: LeastSquares, features: Any, action: int, reward: float) -> None:
    row, image, size = public.row[0], public.row[1], public.mean.shape[1]
    block = action if public.mean.shape[0] > 1 else 0
    mean, shape, moment = public.mean[block], public.shape[block], public.moment[block]
    value = grid_row(row, features, action, reward, public.max_norm, public.rewards, FINE)
    multiply(shape, row, image, row)
    growth = 1.0
    for i in range(size):
        growth += row[i] * image[i]
        moment[i] += row[i] * value
    for i in range(size):
        for j in range(size):
            shape[i, j] -= image[i] * image[j] / growth
    public.log_det[block] += math.log(growth)
    multiply(shape, moment, mean, row)
    public.width[block, REACH] = norm_bound(shape, row)


def start_least_squares(
    kind: type[LeastSquares], problem: LinearProblem, regularizer: float, settings: Any
) -> tuple[Any, Any]:
    """No data yet: V = ρI."""
    dim, blocks = problem.dimension, problem.blocks
    public = kind(
        round=np.zeros(1, np.int64),
        actions=problem.actions,
        moment=np.zeros((blocks, dim)),
        mean=np.zeros((blocks, dim)),
        shape=np.tile(np.eye(dim) / regularizer, (blocks, 1, 1)),
        log_det=np.zeros(blocks),
        width=np.tile([1.0, 1.0 / regularizer], (blocks, 1)),
        row=np.zeros((2, dim)),
        draw=np.zeros((2, dim)),
        lower=np.zeros((dim, dim)),
        tile=start_tile(dim),
        max_norm=problem.max_norm,
        rewards=problem.rewards,
        settings=settings,
    )
    return public, NoSecret()


def of_least_squares(problem: LinearProblem, public: LeastSquares) -> Reading:
    """θ̂, with V⁻¹ for its covariance: at least that for rewards of variance 1 and a prior N(0, I/ρ)."""
    return of_ellipsoid(problem, public.mean, public.shape, Z, known=bool(public.round[0] > 0))
