"""Playing policies on worlds: many runs, in threads, with one answer whatever their number."""

from dpbandits.simulation.simulate import simulate
from dpbandits.simulation.trace import Trace

__all__ = ["Trace", "simulate"]
