"""dpbandits: bandits that learn from people without giving any one of them away."""

from dpbandits import errors
from dpbandits.environments import *
from dpbandits.environments import __all__ as _environments
from dpbandits.policies import (
    Learner,
    LocalPolicy,
    Person,
    Policy,
    Released,
    Server,
    Ticket,
    Tickets,
    load,
)
from dpbandits.policies.arms import *
from dpbandits.policies.arms import __all__ as _arms
from dpbandits.policies.kernel import *
from dpbandits.policies.kernel import __all__ as _kernel
from dpbandits.policies.linear import *
from dpbandits.policies.linear import __all__ as _linear
from dpbandits.policies.matroid import *
from dpbandits.policies.matroid import __all__ as _matroid
from dpbandits.privacy.accounting import Filter, Odometer, compose
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit
from dpbandits.problems import *
from dpbandits.problems import __all__ as _problems
from dpbandits.recommend import Recommendation, recommend
from dpbandits.simulation import Trace, simulate
from dpbandits.version import __version__

__all__ = sorted(
    [
        "ApproxDP",
        "Budget",
        "Filter",
        "GaussianDP",
        "Guarantee",
        "Learner",
        "LocalPolicy",
        "NonPrivate",
        "Odometer",
        "Person",
        "Policy",
        "PureDP",
        "Recommendation",
        "Released",
        "RenyiDP",
        "Server",
        "Ticket",
        "Tickets",
        "Trace",
        "Trust",
        "Unit",
        "ZeroConcentratedDP",
        "__version__",
        "compose",
        "errors",
        "load",
        "recommend",
        "simulate",
        *_arms,
        *_linear,
        *_environments,
        *_matroid,
        *_kernel,
        *_problems,
    ]
)
