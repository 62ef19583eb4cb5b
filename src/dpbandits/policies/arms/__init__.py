"""Policies for `Arms`. To add one: copy the nearest file, add its name here. Nothing else."""

from dpbandits.policies.arms.gaussian_thompson import GaussianThompson
from dpbandits.policies.arms.modified_thompson import ModifiedThompson

__all__ = ["GaussianThompson", "ModifiedThompson"]
