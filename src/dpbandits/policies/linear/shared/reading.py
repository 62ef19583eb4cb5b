"""What may be read of a linear policy: its parameters, or what they say about a public decision set."""

import math
from typing import Any

import numpy as np

from dpbandits.policies.released import Reading, of_values
from dpbandits.problems.linear import LinearContexts, LinearProblem


def of_ellipsoid(
    problem: LinearProblem, mean: Any, shape: Any, radius: float, *, known: bool
) -> Reading:
    """Parameters that are within radius·√(xᵀAx) of m in the direction of x, in units of the bounds.

    In those of rewards and features: each parameter, in blocks where every arm has its own, or the mean
    reward of each action of a public decision set.
    """
    unit = problem.max_reward / problem.max_norm
    rows = np.eye(problem.dimension) if isinstance(problem, LinearContexts) else problem.actions
    values = unit * np.einsum("ki,i->k", rows, mean)
    squares = np.einsum("ki,ij,kj->k", rows, shape, rows)
    half = unit * radius * np.sqrt(np.maximum(squares, 0.0))
    if not known:
        values, half = np.full((2, values.size), math.nan)
    if not isinstance(problem, LinearContexts):
        return of_values("action", values, half, bound=problem.max_reward)
    if problem.arms is not None:
        values, half = values.reshape(problem.arms, -1), half.reshape(problem.arms, -1)
    return of_values("parameter", values, half)
