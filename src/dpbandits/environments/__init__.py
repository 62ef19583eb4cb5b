"""Worlds that offer rounds and pay rewards; each knows its best action, so regret is exact."""

from dpbandits.environments.arms import BernoulliArms, TruncatedExponentialArms
from dpbandits.environments.environment import Environment

__all__ = ["BernoulliArms", "Environment", "TruncatedExponentialArms"]
