"""Driving a learner through a world by hand, and looking at what it became."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpbandits import engine
from dpbandits.engine import Streams, arguments, bare, wrapped
from dpbandits.policies import Learner, LocalPolicy, Person, Policy, Server, Ticket
from dpbandits.simulation.run import play
from dpbandits.simulation.timing import Timing
from dpbandits.worlds import Environment


@dataclass(frozen=True)
class Driven:
    """What a driven run left: its actions, the sums the simulation keeps, its last state."""

    actions: list[Any]
    totals: list[float]
    state: bytes


def alike(reward: float, action: Any) -> Any:
    """This reward for an action, or for each of the items that are one."""
    return np.full(np.shape(action), reward)[()]


def drive(
    learner: Learner,
    world: Environment,
    chance: np.random.Generator | np.random.SeedSequence,
    rounds: int,
    state: Any = None,
    arrivals: np.random.Generator | None = None,
) -> Driven:
    """Play rounds in plain Python on the chances that `simulate` would use for the same seed.

    Given a `state`, the world continues from there. Given `arrivals`, rewards come in random order, each
    before its round is closed; otherwise at once.
    """
    if isinstance(chance, np.random.SeedSequence):
        chance = Streams.of(chance).chance
    state = world.world() if state is None else state
    actions, totals = [], [0.0, 0.0, 0.0]
    waiting: list[tuple[int, Ticket, Any]] = []  # the last moment, and the answer
    for index in range(rounds):
        context = state.offer(chance)
        ticket = learner.decide(*arguments(context))
        action = ticket.action
        reward = state.pay(context, wrapped(action), chance)
        last = index if arrivals is None else index + learner.in_flight - 1
        waiting.append((last, ticket, np.copy(bare(reward))[()]))
        while waiting and waiting[0][0] <= index:
            learner.update(*waiting.pop(0)[1:])
        while waiting and arrivals is not None and arrivals.random() < 0.5:
            learner.update(*waiting.pop(int(arrivals.integers(len(waiting))))[1:])
        best, mean, income = state.settle(context, wrapped(action), reward)
        totals = [totals[0] + (best - mean), totals[1] + income, totals[2] + best]
        actions.append(action if isinstance(action, int) else tuple(action))
    for _, *answer in waiting:
        learner.update(*answer)
    return Driven(actions, [float(total) for total in totals], state_bytes(learner))


def drive_apart(
    policy: LocalPolicy, world: Environment, seed: np.random.SeedSequence, rounds: int
) -> list[Any]:
    """The actions of people and a server who share nothing but bytes, on the chances of a rehearsal.

    Only here do people share generators: a rehearsal draws all their noise from one.
    """
    problem, streams, state = world.problem(rounds), Streams.of(seed), world.world()
    server, chance, actions = Server(policy, problem, streams), Streams.of(seed).chance, []
    for _ in range(rounds):
        person = Person(policy, problem, server.broadcast(), streams, seeded=True)
        context = state.offer(chance)
        action = person.select(*arguments(context))
        server.receive(person.report(state.pay(context, action, chance)))
        actions.append(action if isinstance(action, int) else tuple(action))
    return actions


def simulated_totals(
    policy: Policy,
    world: Environment,
    seed: np.random.SeedSequence,
    rounds: int,
    chunk: int,
    in_flight: int = 1,
) -> list[float]:
    """The same sums from the compiled loop, played in chunks of a fixed size."""
    timing = None if in_flight == 1 else Timing(in_flight=in_flight)
    played = play(policy, world, np.array([rounds]), seed, chunk=chunk, timing=timing)
    assert played is not None
    return [float(value) for value in played.curves[-1]]


def state_bytes(learner: Learner) -> bytes:
    """Everything the learner knows, bit for bit."""
    return b"|".join(engine.state_bytes(learner._public, learner._secret))


def state_size(learner: Learner) -> int:
    """The bytes of its state."""
    return len(state_bytes(learner))
