"""Policies for linear problems. To add one: copy the nearest file, add its name here. Nothing else."""

from dpbandits.policies.linear.randomized_lin_ucb import RandomizedLinUCB

__all__ = ["RandomizedLinUCB"]
