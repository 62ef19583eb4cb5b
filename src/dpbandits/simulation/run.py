"""One policy on one world for one run: compiled rounds, with pauses and progress between chunks."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Streams, pause_if_due
from dpbandits.engine.compiler import noticing
from dpbandits.engine.flight import start_flight
from dpbandits.engine.loop import Compiled, Ledger, compiled_for
from dpbandits.policies import Policy
from dpbandits.problems import Problem
from dpbandits.simulation.timing import Schedule, Timing
from dpbandits.worlds import Environment

# Chunks end about this often, for progress and Ctrl-C; where they end changes no result.
CHUNK_SECONDS = 0.2


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
    say: Callable[[str], None] = lambda text: None,
    stop: threading.Event | None = None,
    chunk: int | None = None,
    timing: Timing | None = None,
    rounds_per_person: int | None = None,
) -> Played | None:
    """Play up to the last round of the grid; None if `stop` was set before that.

    `advance` is called with the rounds just played; `say` with a notice before anything is compiled.
    """
    rounds = int(grid[-1])
    problem = problem_of(environment, rounds, rounds_per_person)
    policy.check(problem)
    public, secret = policy.begin(problem)
    world, streams, ledger = environment.world(), Streams.of(seed), Ledger.on(grid)
    code = compiled_for(public, world)
    go_on = _one_at_a_time(code) if timing is None else _in_flight(code, problem, timing, seed)
    with noticing(lambda: say(code.notice(policy.name(), in_flight=timing is not None))):
        go_on(public, secret, world, streams, ledger, 0)  # compiles, plays nothing
    size, seconds = chunk or 1000, 0.0
    while (done := int(ledger.done[0])) < rounds:
        if stop is not None and stop.is_set():
            return None
        began = time.thread_time()
        go_on(public, secret, world, streams, ledger, min(rounds, done + size))
        spent = time.thread_time() - began
        seconds += spent
        advance(int(ledger.done[0]) - done)
        if chunk is None:
            grown = size * min(8.0, max(0.25, CHUNK_SECONDS / max(spent, 1e-6)))
            size = min(int(grown) + 1, rounds)  # a schedule's blocks are shorter: it would grow for ever
    return Played(ledger.curves, seconds)


def problem_of(environment: Environment, rounds: int, rounds_per_person: int | None) -> Problem:
    """The environment's problem, with people who return as declared."""
    problem = environment.problem(rounds)
    return (
        problem if rounds_per_person is None else replace(problem, rounds_per_person=rounds_per_person)
    )


def _one_at_a_time(code: Compiled) -> Callable[..., None]:
    def go_on(public: Any, secret: Any, world: Any, streams: Streams, ledger: Ledger, stop: int) -> None:
        if stop > 0:
            pause_if_due(public, secret, streams.noise, int(ledger.done[0]))
        code.run(public, secret, world, streams, ledger, stop)

    return go_on


def _in_flight(
    code: Compiled, problem: Problem, timing: Timing, seed: np.random.SeedSequence
) -> Callable[..., None]:
    flight = start_flight(timing.in_flight, problem.kept_features, problem.kept_items)
    schedule = Schedule(timing, seed)

    def go_on(public: Any, secret: Any, world: Any, streams: Streams, ledger: Ledger, stop: int) -> None:
        end = min(stop, schedule.up_to(int(ledger.done[0])))
        if stop > 0:
            pause_if_due(public, secret, streams.noise, int(flight.closed[0]))
        timed = flight, schedule.patience, schedule.first, schedule.times, schedule.delays
        code.run_in_flight(public, secret, world, streams, ledger, end, *timed)

    return go_on
