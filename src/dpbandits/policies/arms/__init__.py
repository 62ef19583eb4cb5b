"""Policies for `Arms`. To add one: copy the nearest file, add its name here. Nothing else."""

from dpbandits.policies.arms.gaussian_thompson import GaussianThompson
from dpbandits.policies.arms.lazy_thompson import LazyThompson
from dpbandits.policies.arms.modified_thompson import ModifiedThompson
from dpbandits.policies.arms.noise_aware_imed import NoiseAwareIMED

__all__ = ["GaussianThompson", "LazyThompson", "ModifiedThompson", "NoiseAwareIMED"]
