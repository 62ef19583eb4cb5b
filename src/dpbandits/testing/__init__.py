"""The conformance suite: what every policy promises, as one call. What outsiders run is what we run.

>>> from dpbandits.testing import check_policy
>>> import dpbandits as dpb
>>> check_policy(dpb.arms.GaussianThompson())
"""

from dpbandits.testing.conformance import CHECKS, check_policy
from dpbandits.testing.examples import example_budget, example_environment, example_policies

__all__ = ["CHECKS", "check_policy", "example_budget", "example_environment", "example_policies"]
