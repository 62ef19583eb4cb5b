"""The one compiled loop."""

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine.cache import OPTIONS, compiled
from dpbandits.engine.flight import (
    kept_action,
    kept_context,
    kept_reward,
    lose_reward,
    put_context,
    put_outcome,
    wait,
)
from dpbandits.engine.pcg64 import Place, Words
from dpbandits.engine.sizes import known_size
from dpbandits.engine.state import classes
from dpbandits.engine.verbs import (
    asks_pause,
    check_policy_verbs,
    check_world_verbs,
    decide,
    learn,
    modules_of,
    waits,
)


class Ledger(NamedTuple):
    """What a simulated run keeps: running totals, and their values at the rounds of a thin grid."""

    grid: NDArray[np.int64]
    curves: NDArray[np.float64]  # (points, 3): regret, reward, optimum
    totals: NDArray[np.float64]  # (3,)
    done: NDArray[np.int64]  # rounds played, points written

    @classmethod
    def on(cls, grid: NDArray[np.int64]) -> "Ledger":
        """An empty ledger over a grid of round numbers."""
        return cls(grid, np.zeros((grid.size, 3)), np.zeros(3), np.zeros(2, np.int64))


@register_jitable(forceinline=True)
def _keep(ledger: Ledger, point: int, regret: float, earned: float, optimum: float) -> int:
    """Write the totals down at a round of the grid; the next point."""
    ledger.curves[point, 0] = regret
    ledger.curves[point, 1] = earned
    ledger.curves[point, 2] = optimum
    return point + 1


@register_jitable(forceinline=True)
def _add_up(paid: Any, regret: float, earned: float, optimum: float) -> tuple[float, float, float]:
    """The totals, with what a round is settled at: the best mean, the chosen one, the reward."""
    best, mean, income = paid
    return regret + (best - mean), earned + income, optimum + best


@register_jitable(forceinline=True)
def _mark(grid: Any, point: int) -> int:
    """The next round of the grid; a look at the array in every round would take a tenth of the time."""
    return int(grid[point]) if point < grid.size else -1


@register_jitable(**OPTIONS)
def run_rounds(
    public: Any, secret: Any, world: Any, streams: Any, ledger: Any, stop: int, gather: Any = None
) -> None:
    """Play rounds until `stop` or until the policy asks for its pause.

    Where runs `gather` (`gpu.py`), also until a decision takes long.
    """
    done, point = ledger.done[0], ledger.done[1]
    regret, earned, optimum = ledger.totals[0], ledger.totals[1], ledger.totals[2]
    mark = _mark(ledger.grid, point)
    noise, explore, chance = streams
    while done < stop:
        if asks_pause(public, done) or waits(public, gather):
            break
        context = world.offer(chance)
        action = decide(public, secret, context, noise, explore)
        reward = world.pay(context, action, chance)
        learn(public, secret, context, action, reward, noise)
        regret, earned, optimum = _add_up(world.settle(context, action, reward), regret, earned, optimum)
        done += 1
        if done == mark:
            point = _keep(ledger, point, regret, earned, optimum)
            mark = _mark(ledger.grid, point)
    ledger.done[0], ledger.done[1] = done, point
    ledger.totals[0], ledger.totals[1], ledger.totals[2] = regret, earned, optimum


@register_jitable(**OPTIONS)
def leap_rounds(public: Any, secret: Any, world: Any, streams: Any, ledger: Any, stop: int) -> None:
    """Play rounds in leaps, until `stop` or beyond: the rounds of an episode are one draw.

    A leap ends with the episode or at a round of the grid, and nowhere else. Where one is cut, draws are
    others: so it is not where a chunk ends, which is a matter of time.
    """
    done, point = ledger.done[0], ledger.done[1]
    regret, earned, optimum = ledger.totals[0], ledger.totals[1], ledger.totals[2]
    mark = _mark(ledger.grid, point)
    noise, explore, chance = streams
    while done < stop:
        context = world.offer(chance)
        action = decide(public, secret, context, noise, explore)
        count = max(1, min(public.rounds_ahead(action), mark - done))
        total = world.pay_many(action, count, chance)
        public.observe_many(secret, action, count, total)
        best, mean, income = world.settle(context, action, total)
        regret, earned, optimum = regret + count * (best - mean), earned + income, optimum + count * best
        done += count
        if done == mark:
            point = _keep(ledger, point, regret, earned, optimum)
            mark = _mark(ledger.grid, point)
    ledger.done[0], ledger.done[1] = done, point
    ledger.totals[0], ledger.totals[1], ledger.totals[2] = regret, earned, optimum


class Block(NamedTuple):
    """Runs of one policy that are played one after the other, by the same state and generators."""

    grid: NDArray[np.int64]
    curves: NDArray[np.float64]  # (runs, points, 3)
    totals: NDArray[np.float64]  # of the run that is being played, as in a ledger
    done: NDArray[np.int64]
    finished: NDArray[np.int64]  # one number: of runs
    memory: NDArray[np.int64]  # all arrays of the state
    first: NDArray[np.int64]  # what it is set back to
    seeds: Words  # (runs, streams, 4): the states that the generators begin with
    places: tuple[Place, ...]  # where they are kept


@register_jitable(**OPTIONS)
def begin_run(block: Block, run: int) -> None:
    """Set everything back, and the generators to where the run's seed has them begin."""
    for word in range(block.memory.size):
        block.memory[word] = block.first[word]
    for stream in range(len(block.places)):
        state, spare = block.places[stream]
        for word in range(state.size):
            state[word] = block.seeds[run, stream, word]
        spare[0] = 0
    block.done[:] = 0
    block.totals[:] = 0.0


def _run_block(
    public: Any, secret: Any, world: Any, streams: Any, block: Any, rounds: int, leaps: Any = None
) -> None:
    """Play on for so many rounds, of one run after the other, or until the policy asks for its pause.

    In `leaps`, unless that is None, it may be more. The compiler drops the loop that is not asked for.
    """
    while True:
        run, before = block.finished[0], block.done[0]
        ledger = Ledger(block.grid, block.curves[run], block.totals, block.done)
        stop = min(block.grid[-1], before + rounds)
        if leaps is None:
            run_rounds(public, secret, world, streams, ledger, stop)
        else:
            leap_rounds(public, secret, world, streams, ledger, stop)
        rounds -= block.done[0] - before
        if block.done[0] < block.grid[-1]:
            break
        block.finished[0] = run + 1
        if run + 1 == block.curves.shape[0]:
            break
        begin_run(block, run + 1)


def _run_in_flight(
    public: Any,
    secret: Any,
    world: Any,
    streams: Any,
    ledger: Any,
    stop: int,
    flight: Any,
    patience: float,
    first: int,
    times: Any,
    delays: Any,
) -> None:
    """The same with rounds in flight; `times` and `delays` are those of the decisions from `first` on.

    At a decision the oldest rounds are closed while the flight is full, or while one has been open for
    the patience. A reward that has not arrived by then is missing.
    """
    done, point, closed = ledger.done[0], ledger.done[1], flight.closed[0]
    regret, earned, optimum = ledger.totals[0], ledger.totals[1], ledger.totals[2]
    places, mark = flight.began.size, _mark(ledger.grid, point)
    noise, explore, chance = streams
    while done < stop:
        now = times[done - first]
        while closed < done and (
            done - closed == places or now - flight.began[closed % places] >= patience
        ):
            if asks_pause(public, closed):
                break
            place = closed % places
            if flight.due[place] >= now:
                lose_reward(flight, place)
            action = kept_action(flight, place)
            wait(public, action, -1)
            learn(public, secret, kept_context(flight, place), action, kept_reward(flight, place), noise)
            closed += 1
        if asks_pause(public, closed):
            break
        context = world.offer(chance)
        action = decide(public, secret, context, noise, explore)
        reward = world.pay(context, action, chance)
        place = done % places
        put_context(flight, place, context, action)
        put_outcome(flight, place, action, reward)
        flight.began[place] = now
        flight.due[place] = now + delays[done - first]
        wait(public, action, 1)
        regret, earned, optimum = _add_up(world.settle(context, action, reward), regret, earned, optimum)
        done += 1
        if done == mark:
            point = _keep(ledger, point, regret, earned, optimum)
            mark = _mark(ledger.grid, point)
    ledger.done[0], ledger.done[1], flight.closed[0] = done, point, closed
    ledger.totals[0], ledger.totals[1], ledger.totals[2] = regret, earned, optimum


def _decide(public: Any, secret: Any, context: Any, noise: Any, explore: Any) -> Any:
    """In one call: handing over the state and each generator is what takes a compiled learner's time."""
    return decide(public, secret, context, noise, explore)


def _learn(public: Any, secret: Any, context: Any, action: Any, reward: Any, noise: Any) -> None:
    learn(public, secret, context, action, reward, noise)


def _select(public: Any, context: Any, explore: Any) -> Any:
    return public.select(context, explore)


class Compiled(NamedTuple):
    """The compiled loop, for one run, several, and rounds in flight, and the halves of a round; and a
    choice without a release, for replays.
    """

    run: Callable[..., None]
    run_block: Callable[..., None]
    run_in_flight: Callable[..., None]
    decide: Callable[..., Any]
    learn: Callable[..., None]
    select: Callable[..., Any]

    def notice(self, name: str, public: Any, what: str = "") -> str:
        """What to say while this is compiled for a policy; `what` has its own loop, where it is said."""
        if (size := known_size(public)) is not None:
            name = f"{name} for {size} features"
        often = f"once on this machine for {what}" if what else "once on this machine"
        if not self.is_kept:
            often = "in every process: no folder can be written"
        return f"compiling {name}, {often} …"

    @property
    def is_kept(self) -> bool:
        """Whether it is written to the disk."""
        dispatcher: Any = self.run
        return dispatcher.stats.cache_path is not None


def compiled_for(public: Any, world: Any = None) -> Compiled:
    """The compiled functions for a policy's state (and a world), from the disk where possible.

    Numba's cache does not notice an edit in the file of a function that is *called*, so the cache
    lives in a folder named by a hash of every source that could be: this package's, and the modules
    of verbs that come from outside it.
    """
    check_policy_verbs(type(public))  # a missing verb is named before anything is compiled
    states = tuple(classes(public))
    if world is not None:
        check_world_verbs(type(world))
        states += tuple(classes(world))
    with _LOCK:
        return _compile(modules_outside(states), states)


def modules_outside(states: Iterable[type]) -> tuple[str, ...]:
    """The modules of verbs that come from outside this package."""
    modules = set().union(*(modules_of(state) for state in states))
    return tuple(sorted(module for module in modules if not module.startswith("dpbandits.")))


_LOCK = threading.Lock()  # threads that ask at once get the same functions


@functools.cache
def _compile(outside: tuple[str, ...], states: tuple[type, ...]) -> Compiled:
    """Functions of their own for each combination of state classes.

    Numba's dispatcher tells named tuples apart by name and shape only: two classes called `Public` with
    fields of the same types would run each other's verbs.
    """
    del states  # only the key
    return Compiled(
        *compiled(run_rounds, _run_block, _run_in_flight, _decide, _learn, _select, outside=outside)
    )
