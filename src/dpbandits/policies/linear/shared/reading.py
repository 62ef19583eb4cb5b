"""What may be read of a linear policy: its parameters, or what they say about a public decision set."""

import math
from typing import Any

import numpy as np

from dpbandits.policies.released import Reading, Z, of_values
from dpbandits.problems.linear import LinearContexts, LinearProblem


def of_ellipsoid(problem: LinearProblem, mean: Any, shape: Any, radius: Any, *, known: bool) -> Reading:
    """Parameters that are within radius·√(xᵀAx) of m in the direction of x, in units of the bounds.

    In those of rewards and features: each parameter, in blocks where every arm has its own, or the mean
    reward of each action of a public decision set. m, A and radius are those of each block. Parameters
    are those of the reward less the middle of its range.
    """
    unit = problem.max_reward / problem.max_norm
    if isinstance(problem, LinearContexts):
        values, squares = unit * mean, np.diagonal(shape, axis1=1, axis2=2)
    else:
        rows = problem.actions
        values = unit * np.einsum("ki,bi->bk", rows, mean)
        squares = np.einsum("ki,bij,kj->bk", rows, shape, rows)
    half = unit * np.reshape(radius, (-1, 1)) * np.sqrt(np.maximum(squares, 0.0))
    if not known:
        values, half = np.full((2, *values.shape), math.nan)
    if not isinstance(problem, LinearContexts):
        return of_values("action", values[0], half[0], bound=problem.max_reward)
    if problem.arms is None:
        values, half = values[0], half[0]
    return of_values("parameter", values, half)


def of_posterior(problem: LinearProblem, public: Any, *, known: bool) -> Reading:
    """The m of `RandomizedLinUCB`, with 2A for its covariance.

    2/(2 + λ₊²/D) = 1/(1 + λ₊²/(λ₊ + 2τ²)): a prior N(0, I), rewards of variance 1, which is the most
    that there can be, and noise of twice its variance. Arms with parameters of their own have a wider
    or narrower prior, by their number of features.
    """
    return of_ellipsoid(problem, public.mean, public.shape, Z * math.sqrt(2.0), known=known)
