"""dpbandits: bandits that learn from people without giving any one of them away.

What everybody types is here; the rest is a dot away: `dpb.arms`, `dpb.linear`, `dpb.matroids` and
`dpb.kernels` hold all policies for one kind of problem, `dpb.local` those of the local model,
`dpb.worlds` what `simulate` plays on, `dpb.privacy` accounting, `dpb.audit` and `dpb.testing` the tests
of a policy.
"""

from typing import TYPE_CHECKING

from dpbandits import arms, audit, errors, kernels, linear, local, matroids, privacy, testing, worlds
from dpbandits.policies import Learner, Policy, Released, Ticket, Tickets, TrustedPolicy, load
from dpbandits.policies.arms import BetaThompson, LazyThompson, NoiseAwareIMED
from dpbandits.policies.kernel import KernelThompson, KernelUCB
from dpbandits.policies.linear import LinUCB, RandomizedLinUCB
from dpbandits.policies.matroid import FocusedMatroidUCB
from dpbandits.privacy import (
    ApproxDP,
    Budget,
    GaussianDP,
    Guarantee,
    NonPrivate,
    PureDP,
    RenyiDP,
    Trust,
    Unit,
    ZeroConcentratedDP,
)
from dpbandits.problems import Arms, KernelContexts, LinearActions, LinearContexts, MatroidBases, Problem
from dpbandits.recommend import Recommendation, recommend
from dpbandits.simulation import Trace, simulate
from dpbandits.version import __version__

if not TYPE_CHECKING:  # or every name would pass for one that is there

    def __getattr__(name: str) -> object:
        """Only for a name that is not here: say where it is."""
        for place in (arms, linear, matroids, kernels, local, worlds, privacy):
            if name in place.__all__:
                short = place.__name__.removeprefix("dpbandits.")
                raise AttributeError(f"{name} is in dpbandits.{short}: write dpb.{short}.{name}")
        raise AttributeError(f"module 'dpbandits' has no attribute {name!r}")


__all__ = [
    "ApproxDP",
    "Arms",
    "BetaThompson",
    "Budget",
    "FocusedMatroidUCB",
    "GaussianDP",
    "Guarantee",
    "KernelContexts",
    "KernelThompson",
    "KernelUCB",
    "LazyThompson",
    "Learner",
    "LinUCB",
    "LinearActions",
    "LinearContexts",
    "MatroidBases",
    "NoiseAwareIMED",
    "NonPrivate",
    "Policy",
    "Problem",
    "PureDP",
    "RandomizedLinUCB",
    "Recommendation",
    "Released",
    "RenyiDP",
    "Ticket",
    "Tickets",
    "Trace",
    "Trust",
    "TrustedPolicy",
    "Unit",
    "ZeroConcentratedDP",
    "__version__",
    "arms",
    "audit",
    "errors",
    "kernels",
    "linear",
    "load",
    "local",
    "matroids",
    "privacy",
    "recommend",
    "simulate",
    "testing",
    "worlds",
]
