"""Ridge regression updated every round, without noise: what the non-private policies share."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine import Noise, NoSecret
from dpbandits.engine.state import ANYTHING, COUNT, FROM_RECIPE, NOT_NEGATIVE, NOTHING, Limits, exactly
from dpbandits.policies.linear.shared.algebra import multiply, norm_bound
from dpbandits.policies.linear.shared.choosing import ByFeatures, offered
from dpbandits.policies.linear.shared.confidence import REACH
from dpbandits.policies.linear.shared.reading import of_ellipsoid
from dpbandits.policies.linear.shared.rows import FINE, grid_row
from dpbandits.policies.linear.shared.tiles import start_tile
from dpbandits.policies.released import Reading, Z
from dpbandits.problems.linear import LinearProblem

Array = NDArray[np.float64]


class _Fields(NamedTuple):
    round: NDArray[np.int64]
    actions: Array  # the public decision set; no rows where everybody brings her own
    moment: Array  # (d,) Σ zw
    mean: Array  # (d,) θ̂
    shape: Array  # (d, d) V⁻¹
    log_det: Array  # (1,) ln det V − d ln ρ
    width: Array  # (2,) β, and a bound of V⁻¹
    row: Array  # (2, d) one row, and V⁻¹ times it
    draw: Array  # (2, d) a Thompson sample and its standard normals
    lower: Array  # (d, d) scratch
    tile: Array  # scratch, to choose among many features
    max_norm: float
    max_reward: float
    settings: Any  # the policy's own: a named tuple of numbers


class LeastSquares(ByFeatures, _Fields):
    """V = ρI + Σ zzᵀ, kept as its inverse, and θ̂ = V⁻¹ Σ zw."""

    def limits(self) -> Limits:
        """What is declared, and a V⁻¹ that another row can be added to."""
        finite = np.isfinite(self.shape).all()
        fits = finite and np.linalg.eigvalsh(self.shape + self.shape.T)[0] > -1.0
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
    row, image, size = public.row[0], public.row[1], public.moment.size
    value = grid_row(row, features, action, reward, public.max_norm, public.max_reward, FINE)
    multiply(public.shape, row, image, row)
    growth = 1.0
    for i in range(size):
        growth += row[i] * image[i]
        public.moment[i] += row[i] * value
    for i in range(size):
        for j in range(size):
            public.shape[i, j] -= image[i] * image[j] / growth
    public.log_det[0] += math.log(growth)
    multiply(public.shape, public.moment, public.mean, row)
    public.width[REACH] = norm_bound(public.shape, row)


def start_least_squares(
    kind: type[LeastSquares], problem: LinearProblem, regularizer: float, settings: Any
) -> tuple[Any, Any]:
    """No data yet: V = ρI."""
    dim = problem.dimension
    public = kind(
        round=np.zeros(1, np.int64),
        actions=problem.actions,
        moment=np.zeros(dim),
        mean=np.zeros(dim),
        shape=np.eye(dim) / regularizer,
        log_det=np.zeros(1),
        width=np.array([0.0, 1.0 / regularizer]),
        row=np.zeros((2, dim)),
        draw=np.zeros((2, dim)),
        lower=np.zeros((dim, dim)),
        tile=start_tile(dim),
        max_norm=problem.max_norm,
        max_reward=problem.max_reward,
        settings=settings,
    )
    return public, NoSecret()


def of_least_squares(problem: LinearProblem, public: LeastSquares) -> Reading:
    """θ̂, with V⁻¹ for its covariance: at least that for rewards of variance 1 and a prior N(0, I/ρ)."""
    return of_ellipsoid(problem, public.mean, public.shape, Z, known=bool(public.round[0] > 0))
