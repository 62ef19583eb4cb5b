"""Policies for `KernelContexts`. To add one: copy the nearest file, add its name here. Nothing else."""

from dpbandits.policies.kernel.capri import Capri
from dpbandits.policies.kernel.kernel_thompson import KernelThompson
from dpbandits.policies.kernel.kernel_ucb import KernelUCB
from dpbandits.policies.kernel.local_capri import LocalCapri
from dpbandits.policies.kernel.local_kernel_thompson import LocalKernelThompson
from dpbandits.policies.kernel.uniform_kernel_actions import UniformKernelActions

__all__ = [
    "Capri",
    "KernelThompson",
    "KernelUCB",
    "LocalCapri",
    "LocalKernelThompson",
    "UniformKernelActions",
]
