"""What a policy must know beforehand: how many actions, what range, how long."""

from dpbandits.problems.arms import Arms
from dpbandits.problems.kernel_contexts import KernelContexts
from dpbandits.problems.kernels import (
    Kernel,
    KernelProduct,
    KernelSum,
    Linear,
    Matern,
    Polynomial,
    SquaredExponential,
)
from dpbandits.problems.problem import Problem

__all__ = [
    "Arms",
    "Kernel",
    "KernelContexts",
    "KernelProduct",
    "KernelSum",
    "Linear",
    "Matern",
    "Polynomial",
    "Problem",
    "SquaredExponential",
]
