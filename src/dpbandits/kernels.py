"""Bandits whose rewards are smooth: kernels, the problem and all its policies."""

from dpbandits.policies.kernel import (
    Capri,
    KernelThompson,
    KernelUCB,
    UniformKernelActions,
)
from dpbandits.problems import (
    Kernel,
    KernelContexts,
    KernelProduct,
    KernelSum,
    LinearKernel,
    Matern,
    PolynomialKernel,
    SquaredExponential,
)

__all__ = [
    "Capri",
    "Kernel",
    "KernelContexts",
    "KernelProduct",
    "KernelSum",
    "KernelThompson",
    "KernelUCB",
    "LinearKernel",
    "Matern",
    "PolynomialKernel",
    "SquaredExponential",
    "UniformKernelActions",
]
