"""Policies for `KernelContexts`. To add one: copy the nearest file, add its name here. Nothing else."""

from dpbandits.policies.kernel.kernel_thompson import KernelThompson

__all__ = ["KernelThompson"]
