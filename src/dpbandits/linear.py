"""Bandits whose actions have features: the problems and all their policies."""

from dpbandits.policies import linear as _policies
from dpbandits.policies.linear import *
from dpbandits.problems import LinearActions, LinearContexts, LinearProblem

__all__ = ["LinearActions", "LinearContexts", "LinearProblem"]
__all__ += _policies.__all__
