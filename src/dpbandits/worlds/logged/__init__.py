"""Worlds made of a log: what privacy would have cost on it."""

from dpbandits.worlds.logged.arms import LoggedArms
from dpbandits.worlds.logged.contexts import LoggedContexts

__all__ = ["LoggedArms", "LoggedContexts"]
