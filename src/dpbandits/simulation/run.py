"""One policy on one world: compiled rounds, with pauses and progress between chunks."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Streams, pause_if_due
from dpbandits.engine.compiler import noticing
from dpbandits.engine.flight import start_flight
from dpbandits.engine.loop import Block, Ledger, compiled_for
from dpbandits.engine.pcg64 import Words, first_states, is_placed, place_of, set_state, state_words
from dpbandits.engine.state import laid_out, room
from dpbandits.engine.streams import run_seed
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


class Watch:
    """Who looks on while rounds are played, and how many are played between two looks."""

    def __init__(
        self,
        advance: Callable[[int], None] = lambda rounds: None,
        say: Callable[[str], None] = lambda text: None,
        stop: threading.Event | None = None,
        chunk: int | None = None,
    ) -> None:
        """`advance` is called with the rounds just played; `say` with a notice before anything is
        compiled; once `stop` is set no chunk is begun. They last a fifth of a second, or `chunk` rounds.
        """
        self.say, self._advance, self._stop = say, advance, stop
        self._size, self._fixed = chunk or 1000, chunk is not None

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more is to be played."""
        return self._stop is not None and self._stop.is_set()

    def chunk(self, go_on: Callable[[int], int]) -> tuple[int, float]:
        """Play about so many rounds: how many it were, and the seconds they took."""
        began = time.thread_time()
        played = go_on(self._size)
        spent = time.thread_time() - began
        self._advance(played)
        # A chunk that ended early, at a pause or with the last run, says little about longer ones.
        if not self._fixed and (played >= self._size or spent > CHUNK_SECONDS):
            self._size = int(played * min(8.0, max(0.25, CHUNK_SECONDS / max(spent, 1e-6)))) + 1
        return played, spent


class Seeds(NamedTuple):
    """The seed of several runs, and the states that it has their generators begin with."""

    seed: int
    runs: NDArray[np.int64]  # ascending
    states: Words  # (runs, 3, 4)

    @classmethod
    def of(cls, seed: int, runs: Iterable[int]) -> "Seeds":
        """Those of some runs."""
        numbers = np.unique(np.fromiter(runs, np.int64))
        return cls(seed, numbers, first_states(seed, numbers, len(Streams._fields)))

    def __call__(self, runs: Sequence[int]) -> Words:
        """The states of some of them."""
        found: Words = self.states[np.searchsorted(self.runs, runs)]
        return found


class Player:
    """A policy on a world: begun once, and set back to its first state for every run."""

    def __init__(
        self,
        policy: Policy,
        environment: Environment,
        grid: NDArray[np.int64],
        watch: Watch,
        rounds_per_person: int | None = None,
        *,
        leaps: bool = False,
    ) -> None:
        problem = problem_of(environment, int(grid[-1]), rounds_per_person)
        policy.check(problem)
        begun = *policy.begin(problem), environment.world()
        ends = np.cumsum([room(state) for state in begun])
        self._memory = np.zeros(ends[-1], np.int64)
        pieces = np.split(self._memory, ends[:-1])
        self._states = [laid_out(state, piece) for state, piece in zip(begun, pieces, strict=True)]
        self._first, self._grid, self._watch = self._memory.copy(), grid, watch
        self._streams = Streams.of(0)  # every run has them begin anew
        self._places = tuple(place_of(one) for one in self._streams)
        self._code = compiled_for(begun[0], begun[2])
        self._leaps = True if leaps else None  # by its type the compiler knows which loop it is
        nothing = self._begin(np.stack([state_words(one) for one in self._streams])[np.newaxis])
        what = "leaps" if leaps else ""
        with noticing(lambda: watch.say(self._code.notice(policy.name(), begun[0], what))):
            self._go_on(nothing, 0)  # compiles

    def play(self, seeds: Words) -> Iterator[list[Played]]:
        """Runs up to the last round of the grid, in order; those that are finished after each chunk.

        Their generators begin in the states `seeds` (runs, 3, 4). When stopped, it ends early.
        """
        together = len(seeds) if is_placed() else 1
        for at in range(0, len(seeds), together):
            yield from self._play_block(self._begin(seeds[at : at + together]))

    def _play_block(self, block: Block) -> Iterator[list[Played]]:
        rounds, runs = int(self._grid[-1]), len(block.curves)
        pending, seconds = 0, 0.0  # rounds and time not counted to a run yet
        while (done := int(block.finished[0])) < runs and not self._watch.is_stopped:
            played, spent = self._watch.chunk(partial(self._go_on, block))
            pending, seconds = pending + played, seconds + spent
            finished = block.curves[done : block.finished[0]]
            share = seconds * rounds / max(pending, 1)
            yield [Played(curves, share) for curves in finished]
            pending, seconds = pending - rounds * len(finished), seconds - share * len(finished)

    def _begin(self, seeds: Words) -> Block:
        """The first of these runs, about to be played."""
        self._memory[:] = self._first
        for stream, words in zip(self._streams, seeds[0], strict=True):
            set_state(stream, words)
        curves = np.zeros((len(seeds), self._grid.size, 3))
        counts = np.zeros(3), np.zeros(2, np.int64), np.zeros(1, np.int64)
        return Block(self._grid, curves, *counts, self._memory, self._first, seeds, self._places)

    def _go_on(self, block: Block, rounds: int) -> int:
        """Play so many rounds, or fewer, in leaps perhaps more; how many."""
        public, secret, world = self._states
        before = self._count(block)
        if rounds > 0:
            pause_if_due(public, secret, self._streams.noise, int(block.done[0]))
        self._code.run_block(public, secret, world, self._streams, block, rounds, self._leaps)
        return self._count(block) - before

    def _count(self, block: Block) -> int:
        finished, runs = int(block.finished[0]), len(block.curves)
        return finished * int(self._grid[-1]) + (int(block.done[0]) if finished < runs else 0)


def begin(
    policy: Policy,
    environment: Environment,
    grid: NDArray[np.int64],
    seeds: Seeds,
    watch: Watch,
    *,
    timing: Timing | None = None,
    rounds_per_person: int | None = None,
    leaps: bool = False,
) -> Callable[[Sequence[int]], Iterator[list[Played]]]:
    """What plays runs of one policy: in order, and those that are finished after each chunk."""
    if timing is None:
        player = Player(policy, environment, grid, watch, rounds_per_person, leaps=leaps)
        return lambda runs: player.play(seeds(runs))

    def play_runs(runs: Sequence[int]) -> Iterator[list[Played]]:
        for run in runs:
            seed = run_seed(seeds.seed, run)
            one = play_in_flight(policy, environment, grid, seed, watch, timing, rounds_per_person)
            if one is None:
                return
            yield [one]

    return play_runs


def play(
    policy: Policy,
    environment: Environment,
    grid: NDArray[np.int64],
    seed: np.random.SeedSequence,
    *,
    timing: Timing | None = None,
    rounds_per_person: int | None = None,
    **looks: Any,
) -> Played | None:
    """One run up to the last round of the grid, `looks` as for a `Watch`; None if it was stopped."""
    watch = Watch(**looks)
    if timing is not None:
        return play_in_flight(policy, environment, grid, seed, watch, timing, rounds_per_person)
    seeds = np.stack([state_words(one) for one in Streams.of(seed)])[np.newaxis]
    player = Player(policy, environment, grid, watch, rounds_per_person)
    return next((one for finished in player.play(seeds) for one in finished), None)


def play_in_flight(
    policy: Policy,
    environment: Environment,
    grid: NDArray[np.int64],
    seed: np.random.SeedSequence,
    watch: Watch,
    timing: Timing,
    rounds_per_person: int | None = None,
) -> Played | None:
    """The same with several rounds open at once, or people who come by a clock."""
    problem = problem_of(environment, int(grid[-1]), rounds_per_person)
    policy.check(problem)
    public, secret = policy.begin(problem)
    world, streams, ledger = environment.world(), Streams.of(seed), Ledger.on(grid)
    flight = start_flight(timing.in_flight, problem.kept_features, problem.kept_items)
    schedule, code = Schedule(timing, seed), compiled_for(public, world)

    def go_on(rounds: int) -> int:
        done = int(ledger.done[0])
        end = min(int(grid[-1]), done + rounds, schedule.up_to(done))
        if rounds > 0:
            pause_if_due(public, secret, streams.noise, int(flight.closed[0]))
        timed = flight, schedule.patience, schedule.first, schedule.times, schedule.delays
        code.run_in_flight(public, secret, world, streams, ledger, end, *timed)
        return int(ledger.done[0]) - done

    with noticing(lambda: watch.say(code.notice(policy.name(), public, "rounds in flight"))):
        go_on(0)  # compiles, plays nothing
    seconds = 0.0
    while ledger.done[0] < grid[-1]:
        if watch.is_stopped:
            return None
        seconds += watch.chunk(go_on)[1]
    return Played(ledger.curves, seconds)


def problem_of(environment: Environment, rounds: int, rounds_per_person: int | None) -> Problem:
    """The environment's problem, with people who return as declared."""
    problem = environment.problem(rounds)
    return (
        problem if rounds_per_person is None else replace(problem, rounds_per_person=rounds_per_person)
    )
