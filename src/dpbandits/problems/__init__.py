"""What a policy must know beforehand: how many actions, what range, how long."""

from dpbandits.problems.arms import Arms
from dpbandits.problems.history import History
from dpbandits.problems.kernel_contexts import KernelContexts
from dpbandits.problems.kernels import (
    Kernel,
    KernelProduct,
    KernelSum,
    LinearKernel,
    Matern,
    PolynomialKernel,
    SquaredExponential,
)
from dpbandits.problems.linear import LinearActions, LinearContexts, LinearProblem
from dpbandits.problems.matroids import (
    GraphicMatroid,
    LaminarMatroid,
    LinearMatroid,
    Matroid,
    MatroidBases,
    PartitionMatroid,
    RestrictedMatroid,
    TransversalMatroid,
    TruncatedMatroid,
    UniformMatroid,
)
from dpbandits.problems.problem import Problem

__all__ = [
    "Arms",
    "GraphicMatroid",
    "History",
    "Kernel",
    "KernelContexts",
    "KernelProduct",
    "KernelSum",
    "LaminarMatroid",
    "LinearActions",
    "LinearContexts",
    "LinearKernel",
    "LinearMatroid",
    "LinearProblem",
    "Matern",
    "Matroid",
    "MatroidBases",
    "PartitionMatroid",
    "PolynomialKernel",
    "Problem",
    "RestrictedMatroid",
    "SquaredExponential",
    "TransversalMatroid",
    "TruncatedMatroid",
    "UniformMatroid",
]
