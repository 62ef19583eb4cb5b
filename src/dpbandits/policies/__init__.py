"""Every policy, found by its name; a folder per kind of problem, a file per policy.

What several policies of a folder need is in its `shared/`: every other file is a policy.
"""

from types import ModuleType

from dpbandits import checks
from dpbandits.policies import arms, kernel, linear, matroid
from dpbandits.policies.learner import Learner
from dpbandits.policies.local import LocalPolicy, Person, Server
from dpbandits.policies.policy import Policy
from dpbandits.policies.released import Released
from dpbandits.policies.saving import load
from dpbandits.policies.tickets import Ticket, Tickets
from dpbandits.policies.trusted import TrustedPolicy

__all__ = [
    "FAMILIES",
    "Learner",
    "LocalPolicy",
    "Person",
    "Policy",
    "Released",
    "Server",
    "Ticket",
    "Tickets",
    "TrustedPolicy",
    "load",
    "policy_kinds",
    "policy_named",
]

FAMILIES: tuple[ModuleType, ...] = (arms, linear, matroid, kernel)


def policy_kinds() -> dict[str, type[Policy]]:
    """Every policy class by its command-line name, family by family."""
    kinds = (getattr(family, name) for family in FAMILIES for name in family.__all__)
    return {kind.name(): kind for kind in kinds}


def policy_named(name: str) -> type[Policy]:
    """The policy class of a command-line name; a wrong one suggests the nearest."""
    kinds = policy_kinds()
    return kinds[checks.known("policy", name, kinds)]
