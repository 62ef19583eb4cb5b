"""A small grid, all kernels, and a kernel matrix from its definition."""

from typing import Any

import numpy as np

import dpbandits as dpb

GRID = tuple((x,) for x in np.linspace(0.0, 1.0, 5).tolist())
KERNELS = [
    dpb.kernels.SquaredExponential(0.2),
    dpb.kernels.Matern(0.2, 0.5),
    dpb.kernels.Matern(0.2, 1.5),
    dpb.kernels.Matern(0.2, 2.5),
    dpb.kernels.LinearKernel(),
    dpb.kernels.PolynomialKernel(3, 0.5),
    dpb.kernels.SquaredExponential(0.3, on="context") * dpb.kernels.Matern(0.4, 1.5, on="action"),
    dpb.kernels.LinearKernel(on="action") + dpb.kernels.SquaredExponential(0.5),
]


def dense(problem: dpb.KernelContexts) -> np.ndarray:
    """The kernel matrix from the definition, pair by pair, scaled as a problem does."""
    contexts: Any = problem.contexts
    actions: Any = problem.actions
    pairs = np.array([[*c, *x] for c in contexts for x in actions])
    split = len(contexts[0])
    matrix = np.array(
        [[problem.kernel.between(a[None], b[None], split)[0, 0] for b in pairs] for a in pairs]
    )
    return matrix / max(1.0, float(matrix.diagonal().max()))
