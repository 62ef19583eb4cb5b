"""Playing policies on worlds: many runs, in threads, with one answer whatever their number."""

from dpbandits.simulation.replicate import simulate
from dpbandits.simulation.trace import Trace

__all__ = ["Trace", "simulate"]
