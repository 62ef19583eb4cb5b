"""dpbandits: bandits that learn from people without giving any one of them away.

What everybody types is here; the rest is a dot away: `dpb.arms`, `dpb.linear`, `dpb.matroids` and
`dpb.kernels` hold all policies for one kind of problem, `dpb.local` those of the local model,
`dpb.worlds` what `simulate` and `sweep` play on, `dpb.features` what makes features of columns,
`dpb.privacy` accounting, `dpb.limits` lower bounds on regret, `dpb.offline` replays and estimates on
logs, `dpb.adapters` the shapes of other libraries, `dpb.audit` and `dpb.testing` the tests of a
policy.
"""

import importlib
from typing import TYPE_CHECKING

from dpbandits import (
    arms,
    errors,
    features,
    kernels,
    limits,
    linear,
    local,
    matroids,
    privacy,
    sweeps,
    worlds,
)
from dpbandits.features import FeatureMap
from dpbandits.identification import Identification, identify
from dpbandits.policies import Learner, Policy, Released, Ticket, Tickets, TrustedPolicy, load
from dpbandits.policies.arms import BetaThompson, LazyThompson, NoiseAwareIMED, SequentialHalving
from dpbandits.policies.kernel import KernelThompson, KernelUCB
from dpbandits.policies.linear import LinThompson, LinUCB, RandomizedLinUCB
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
from dpbandits.problems import (
    Arms,
    History,
    KernelContexts,
    LinearActions,
    LinearContexts,
    MatroidBases,
    Problem,
)
from dpbandits.recommend import Recommendation, recommend
from dpbandits.simulation import Trace, simulate
from dpbandits.sweeps import plot_sweep, sweep
from dpbandits.version import __version__

if TYPE_CHECKING:
    from dpbandits import adapters, audit, offline, testing
else:

    def __getattr__(name: str) -> object:
        """What is slow to import and seldom used; and where a name is that is not here."""
        if name in ("adapters", "audit", "offline", "testing"):
            return importlib.import_module(f"dpbandits.{name}")
        for place in (arms, linear, matroids, kernels, local, worlds, features, privacy, errors):
            if name in getattr(place, "__all__", vars(place)):
                short = place.__name__.removeprefix("dpbandits.")
                raise AttributeError(f"{name} is in dpbandits.{short}: write dpb.{short}.{name}")
        raise AttributeError(f"module 'dpbandits' has no attribute {name!r}")


__all__ = [
    "ApproxDP",
    "Arms",
    "BetaThompson",
    "Budget",
    "FeatureMap",
    "FocusedMatroidUCB",
    "GaussianDP",
    "Guarantee",
    "History",
    "Identification",
    "KernelContexts",
    "KernelThompson",
    "KernelUCB",
    "LazyThompson",
    "Learner",
    "LinThompson",
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
    "SequentialHalving",
    "Ticket",
    "Tickets",
    "Trace",
    "Trust",
    "TrustedPolicy",
    "Unit",
    "ZeroConcentratedDP",
    "__version__",
    "adapters",
    "arms",
    "audit",
    "errors",
    "features",
    "identify",
    "kernels",
    "limits",
    "linear",
    "load",
    "local",
    "matroids",
    "offline",
    "plot_sweep",
    "privacy",
    "recommend",
    "simulate",
    "sweep",
    "sweeps",
    "testing",
    "worlds",
]
