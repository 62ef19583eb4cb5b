"""Policies for linear problems. To add one: copy the nearest file, add its name here. Nothing else."""

from dpbandits.policies.linear.batched_lin_thompson import BatchedLinThompson
from dpbandits.policies.linear.batched_lin_ucb import BatchedLinUCB
from dpbandits.policies.linear.lin_thompson import LinThompson
from dpbandits.policies.linear.lin_ucb import LinUCB
from dpbandits.policies.linear.randomized_lin_ucb import RandomizedLinUCB
from dpbandits.policies.linear.uniform_actions import UniformActions

__all__ = [
    "BatchedLinThompson",
    "BatchedLinUCB",
    "LinThompson",
    "LinUCB",
    "RandomizedLinUCB",
    "UniformActions",
]
