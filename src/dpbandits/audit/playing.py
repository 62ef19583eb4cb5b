"""Many short runs of a policy on a script, in every form in which policies are run.

- `simulated`: the compiled loop of `simulate`, round by round, on states that are set back to the first
  one between runs. A hundred thousand runs a second, on generators that continue from run to run.
- `plain` and `compiled`: learners as `start` makes them, each on generators of its own.
- `reloaded`: plain learners that are saved halfway, and loaded.
- `local`: people and a server who share nothing but bytes.

What is seen of a run is a row of its choices and a row of numbers: all that `public` held after the
rounds asked for, or in the local form the messages.
"""

import functools
import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.audit.scripts import Design
from dpbandits.engine import Streams, arguments, bare, has_pauses, leaves, pause_if_due, wrapped
from dpbandits.engine.cache import compiled
from dpbandits.engine.loop import Ledger, compiled_for, run_rounds
from dpbandits.engine.state import classes, laid_out, room, words
from dpbandits.engine.verbs import modules_of
from dpbandits.policies import Learner, LocalPolicy
from dpbandits.policies.saving import load
from dpbandits.policies.testing import rehearse

Array = NDArray[np.float64]
FORMS = ("simulated", "plain", "compiled", "reloaded", "local")
Resume = Callable[[Learner], Learner]


class Seen(NamedTuple):
    """What an adversary sees of some runs."""

    chosen: NDArray[np.uint8]  # (runs, rounds, actions)
    numbers: Array  # (runs, rounds looked at, numbers)


class Kept(NamedTuple):
    """What many runs share: the memory of their state, and where they write down what is seen."""

    memory: NDArray[np.int64]
    first: NDArray[np.int64]  # what it is set back to
    looks: NDArray[np.int64]  # the rounds after which it is copied
    chosen: NDArray[np.uint8]
    looked: NDArray[np.int64]  # the copies


# (runs, seed, the rounds to look at) → what was seen
Play = Callable[[int, np.random.SeedSequence, list[int]], Seen]


def player(design: Design, which: int, form: str, resume: Resume | None = None) -> Play:
    """A function that plays runs of one of the two scripts; `resume` saves and loads."""
    if form == "local":
        return functools.partial(_play_apart, design, which)
    if form == "simulated":
        return _simulated(design, which)
    halfway = (resume or save_and_load) if form == "reloaded" else None
    return functools.partial(_play_learners, design, which, form == "compiled", halfway)


def save_and_load(learner: Learner) -> Learner:
    """The learner resumed from a save file."""
    with tempfile.TemporaryDirectory() as folder:
        return load(learner.save(Path(folder) / "learner.dpb"))


def _simulated(design: Design, which: int) -> Play:
    """All of a run's state is laid out in one piece of memory, so that a copy sets it back."""
    begun = (*design.policy.begin(design.problem), design.world(which))
    ends = np.cumsum([room(state) for state in begun])
    memory = np.zeros(ends[-1], np.int64)
    pieces = np.split(memory, ends[:-1])
    states = [laid_out(state, piece) for state, piece in zip(begun, pieces, strict=True)]
    public, first = states[0], memory.copy()
    many: Callable[..., None] = _pausing if has_pauses(public) else _compiled_many(public, states[2])
    ledger = Ledger.on(np.array([design.rounds]))

    def play(runs: int, seed: np.random.SeedSequence, looks: list[int]) -> Seen:
        chosen = np.zeros((runs, design.rounds, design.actions), np.uint8)
        looked = np.zeros((runs, len(looks), pieces[0].size), np.int64)
        kept = Kept(memory, first, np.array(looks, np.int64), chosen, looked)
        many(*states, Streams.of(seed), ledger, kept)
        return Seen(chosen, _read(public, looked))

    return play


def _read(public: Any, looked: NDArray[np.int64]) -> Array:
    """The numbers of `public` from copies of its memory."""
    parts, place = [np.zeros((*looked.shape[:2], 0))], 0
    for _, value in leaves(public):
        if isinstance(value, np.ndarray):
            copied = np.ascontiguousarray(looked[..., place : place + words(value)])
            bytes_ = copied.view(np.uint8)[..., : value.nbytes]
            parts.append(np.ascontiguousarray(bytes_).view(value.dtype).astype(np.float64))
            place += words(value)
    return np.concatenate(parts, axis=2)


def _many(public: Any, secret: Any, world: Any, streams: Any, ledger: Any, kept: Any) -> None:
    """The loop of `simulate`, again and again from the first state."""
    memory, first, looks, chosen, looked = kept
    for run in range(chosen.shape[0]):
        for word in range(memory.size):
            memory[word] = first[word]
        ledger.done[0], place = 0, 0
        for t in range(chosen.shape[1]):
            run_rounds(public, secret, world, streams, ledger, t + 1)
            if place < looks.size and looks[place] == t:
                for word in range(looked.shape[2]):
                    looked[run, place, word] = memory[word]
                place += 1
        for t in range(chosen.shape[1]):
            for action in range(chosen.shape[2]):
                chosen[run, t, action] = world.script.chosen[t, action]


def _compiled_many(public: Any, world: Any) -> Callable[..., None]:
    """As `compiled_for` of the loop: by classes, kept on disk under a hash of all sources."""
    kinds = (*classes(public), *classes(world))
    modules = set().union(*(modules_of(kind) for kind in kinds))
    return _compile(tuple(sorted(m for m in modules if not m.startswith("dpbandits."))), kinds)


@functools.cache
def _compile(outside: tuple[str, ...], kinds: tuple[type, ...]) -> Callable[..., None]:
    del kinds  # only the key
    return compiled(_many, outside=outside)[0]


def _pausing(public: Any, secret: Any, world: Any, streams: Any, ledger: Any, kept: Any) -> None:
    """The same for a policy whose pauses are in plain Python."""
    rounds = compiled_for(public, world).run
    for run in range(kept.chosen.shape[0]):
        kept.memory[:] = kept.first
        ledger.done[0] = 0
        for t in range(kept.chosen.shape[1]):
            pause_if_due(public, secret, streams.noise, t)
            rounds(public, secret, world, streams, ledger, t + 1)
            kept.looked[run, kept.looks == t] = kept.memory[: kept.looked.shape[2]]
        kept.chosen[run] = world.script.chosen


def _numbers(public: Any) -> Array:
    """All numbers of a state's arrays."""
    arrays = (value for _, value in leaves(public) if isinstance(value, np.ndarray))
    return np.concatenate([np.ravel(array).astype(np.float64) for array in arrays])


def _play_learners(
    design: Design,
    which: int,
    compiled: bool,
    halfway: Resume | None,
    runs: int,
    seed: np.random.SeedSequence,
    looks: list[int],
) -> Seen:
    chosen, numbers = [], []
    for child in seed.spawn(runs):
        world, chance = design.world(which), np.random.default_rng(0)
        learner = rehearse(design.policy, design.problem, seed=child, compiled=compiled)
        looked = []
        for index in range(design.rounds):
            if halfway is not None and index == design.rounds // 2:
                learner = halfway(learner)
            context = world.offer(chance)
            action = learner.select(*arguments(context))
            reward = world.pay(context, wrapped(action), chance)
            learner.update(action, np.copy(bare(reward))[()])
            world.settle(context, wrapped(action), reward)
            if index in looks:
                looked.append(_numbers(learner._public))
        chosen.append(world.script.chosen)
        numbers.append(looked)
    return Seen(np.array(chosen), np.array(numbers, np.float64))


def _play_apart(
    design: Design, which: int, runs: int, seed: np.random.SeedSequence, looks: list[int]
) -> Seen:
    """Here the numbers are those of messages."""
    policy, problem = design.policy, design.problem
    assert isinstance(policy, LocalPolicy)
    chosen, numbers = [], []
    for child in seed.spawn(runs):
        world, chance = design.world(which), np.random.default_rng(0)
        server, looked = policy.start(problem, seed=child), []
        for index, own in enumerate(child.spawn(design.rounds)):
            context = world.offer(chance)
            person = policy.person(problem, server.broadcast(), seed=own)
            action = person.select(*arguments(context))
            reward = world.pay(context, action, chance)
            message = person.report(reward)
            server.receive(message)
            world.settle(context, action, reward)
            if index in looks:
                looked.append(list(_flat(json.loads(message)["content"])))
        chosen.append(world.script.chosen)
        numbers.append(looked)
    return Seen(np.array(chosen), np.array(numbers, np.float64))


def _flat(content: Any) -> Iterable[float]:
    if isinstance(content, list):
        for part in content:
            yield from _flat(part)
    else:
        yield float(content)
