"""Bandits with a fixed number of arms: the problem and all its policies."""

from dpbandits.policies import arms as _policies
from dpbandits.policies.arms import *
from dpbandits.problems import Arms

__all__ = ["Arms"]
__all__ += _policies.__all__
