"""Traces with curves that nobody played, to see what a figure makes of them."""

import numpy as np

from dpbandits import Trace
from dpbandits.experiments import Simulation
from dpbandits.simulation.header import describe


def made_up(simulation: Simulation) -> Trace:
    """Curves that grow, with errors, in place of simulated ones."""
    s, chance = simulation, np.random.default_rng(1)
    rounds = np.unique(np.geomspace(1, s.rounds, s.points).astype(np.int64))
    noise = chance.uniform(0.5, 1.5, (len(s.policies), s.runs, 1, 3))
    curves = dict(zip(s.policies, np.sqrt(rounds)[:, None] * noise, strict=True))
    header = describe(dict(s.policies), s.environment, s.rounds, s.runs, s.seed, s.points)
    return Trace(header, rounds, curves, dict.fromkeys(curves, 0.0))
