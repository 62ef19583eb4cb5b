"""All that determines a trace, kept with it."""

import platform
from collections.abc import Mapping
from typing import Any

import numba
import numpy

from dpbandits.policies import Policy
from dpbandits.simulation.run import problem_of
from dpbandits.simulation.timing import Timing
from dpbandits.version import __version__
from dpbandits.worlds import Environment

FORMAT = 1


def describe(
    policies: Mapping[str, Policy],
    environment: Environment,
    rounds: int,
    runs: int | range,
    seed: int,
    points: int = 100,
    *,
    timing: Timing | None = None,
    rounds_per_person: int | None = None,
    leaps: bool = False,
    made_by: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """All that determines a trace, as JSON values; the device, the timing, … where not as usual."""
    problem = problem_of(environment, rounds, rounds_per_person)
    unusual = dict(made_by or {}) | ({} if timing is None else timing.to_dict())
    if rounds_per_person is not None:
        unusual |= {"rounds_per_person": rounds_per_person}
    if leaps:
        unusual |= {"leaps": True}
    if isinstance(runs, range) and runs.start:
        unusual |= {"first_run": runs.start}
    return unusual | {
        "format": FORMAT,
        "version": __version__,
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
        "environment": environment.to_dict(),
        "policies": {label: policy.to_dict() for label, policy in policies.items()},
        "guarantees": {label: p.guarantee(problem).to_dict() for label, p in policies.items()},
        "rounds": rounds,
        "runs": len(runs) if isinstance(runs, range) else runs,
        "seed": seed,
        "points": points,
    }


def run_numbers(header: Mapping[str, Any]) -> range:
    """The runs that a trace with this header holds."""
    first = header.get("first_run", 0)
    return range(first, first + header["runs"])
