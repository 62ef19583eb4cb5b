"""One policy on one world for one run: compiled rounds, with pauses and progress between chunks."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Streams, pause_if_due
from dpbandits.engine.loop import Ledger, compiled_for
from dpbandits.environments import Environment
from dpbandits.policies import Policy

# Chunks end about this often, for progress and Ctrl-C; where they end changes no result.
_CHUNK_SECONDS = 0.2


class Played(NamedTuple):
    """The curves of one run (points, 3) and the processor time its rounds took."""

    curves: NDArray[np.float64]
    seconds: float


def play(
    policy: Policy,
    environment: Environment,
    grid: NDArray[np.int64],
    seed: np.random.SeedSequence,
    *,
    advance: Callable[[int], None] = lambda rounds: None,
    stop: threading.Event | None = None,
    chunk: int | None = None,
) -> Played | None:
    """Play up to the last round of the grid; None if `stop` was set before that."""
    rounds = int(grid[-1])
    problem = environment.problem(rounds)
    policy.check(problem)
    public, secret = policy.begin(problem)
    world, streams, ledger = environment.world(), Streams.of(seed), Ledger.on(grid)
    code = compiled_for(public, world)
    code.run(public, secret, world, *streams, ledger, 0)  # compiles, plays nothing
    size, seconds = chunk or 1000, 0.0
    while (done := int(ledger.done[0])) < rounds:
        if stop is not None and stop.is_set():
            return None
        began = time.thread_time()
        pause_if_due(public, secret, streams.noise, done)
        code.run(public, secret, world, *streams, ledger, min(rounds, done + size))
        spent = time.thread_time() - began
        seconds += spent
        advance(int(ledger.done[0]) - done)
        if chunk is None:
            size = int(size * min(8.0, max(0.25, _CHUNK_SECONDS / max(spent, 1e-6)))) + 1
    return Played(ledger.curves, seconds)
