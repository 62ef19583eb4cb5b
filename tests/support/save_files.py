"""Learners at work, and their saves taken apart and put together again."""

import io
import json
import warnings
from typing import Any

import numpy as np

from dpbandits.policies import Learner, Policy
from dpbandits.policies.testing import rehearse
from dpbandits.testing import example_environment
from dpbandits.testing.driving import drive
from dpbandits.worlds import Environment

Parts = tuple[dict[str, Any], dict[str, Any]]


def started(
    policy: Policy, in_flight: int, world: Environment | None = None
) -> tuple[Learner, Environment]:
    world = world or example_environment(policy.problem_kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a local policy has few rounds here
        return rehearse(policy, world.problem(2000), seed=1, in_flight=in_flight, compiled=False), world


def play(learner: Learner, world: Environment, rounds: int, seed: int = 0) -> None:
    arrivals = None if learner.in_flight == 1 else np.random.default_rng(seed)
    drive(learner, world, np.random.default_rng(seed), rounds, arrivals=arrivals)


def saved(policy: Policy, rounds: int = 60, in_flight: int = 3) -> Parts:
    learner, world = started(policy, in_flight)
    play(learner, world, rounds)
    return opened(learner.snapshot())


def opened(saved: bytes) -> Parts:
    with np.load(io.BytesIO(saved)) as archive:
        arrays = dict(archive)
    return json.loads(arrays.pop("header").tobytes()), arrays


def closed(header: Any, arrays: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    return buffer.getvalue()
