"""Bandits whose rewards are smooth: kernels, the problem and all its policies."""

from dpbandits.policies import kernel as _policies
from dpbandits.policies.kernel import *
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
    "Kernel",
    "KernelContexts",
    "KernelProduct",
    "KernelSum",
    "LinearKernel",
    "Matern",
    "PolynomialKernel",
    "SquaredExponential",
]
__all__ += _policies.__all__
