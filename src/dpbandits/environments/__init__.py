"""Worlds that offer rounds and pay rewards; each knows its best action, so regret is exact."""

from dpbandits.environments.arms import BernoulliArms, TruncatedExponentialArms
from dpbandits.environments.environment import Environment
from dpbandits.environments.kernels import KernelWorld

__all__ = ["BernoulliArms", "Environment", "KernelWorld", "TruncatedExponentialArms"]
