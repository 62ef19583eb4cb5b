"""Policies for linear problems. To add one: copy the nearest file, add its name here. Nothing else."""

from dpbandits.policies.linear.batched_lin_thompson import BatchedLinThompson
from dpbandits.policies.linear.batched_lin_ucb import BatchedLinUCB
from dpbandits.policies.linear.factorized_lin_ucb import FactorizedLinUCB
from dpbandits.policies.linear.lin_thompson import LinThompson
from dpbandits.policies.linear.lin_ucb import LinUCB
from dpbandits.policies.linear.local_lin_ucb import LocalLinUCB
from dpbandits.policies.linear.randomized_lin_ucb import RandomizedLinUCB
from dpbandits.policies.linear.tree_contextual_thompson import TreeContextualThompson
from dpbandits.policies.linear.tree_contextual_ucb import TreeContextualUCB
from dpbandits.policies.linear.tree_lin_ucb import TreeLinUCB
from dpbandits.policies.linear.uniform_actions import UniformActions

__all__ = [
    "BatchedLinThompson",
    "BatchedLinUCB",
    "FactorizedLinUCB",
    "LinThompson",
    "LinUCB",
    "LocalLinUCB",
    "RandomizedLinUCB",
    "TreeContextualThompson",
    "TreeContextualUCB",
    "TreeLinUCB",
    "UniformActions",
]
