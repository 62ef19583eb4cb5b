"""The conformance suites: what every policy and every world promises, as one call each.

What outsiders run is what we run.

>>> from dpbandits.testing import check_environment, check_policy
>>> import dpbandits as dpb
>>> check_policy(dpb.arms.GaussianThompson())
>>> check_environment(dpb.worlds.BernoulliArms([0.6, 0.4]))
"""

from dpbandits.testing.conformance import CHECKS, check_policy
from dpbandits.testing.examples import example_budget, example_environment, example_policies
from dpbandits.testing.worlds import WORLD_CHECKS, check_environment

__all__ = [
    "CHECKS",
    "WORLD_CHECKS",
    "check_environment",
    "check_policy",
    "example_budget",
    "example_environment",
    "example_policies",
]
