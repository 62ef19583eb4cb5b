"""`dpbandits warm`."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import typer

from dpbandits.cli.output import JSON, console, print_json, stoppable
from dpbandits.cli.worlds import check_fits, environment
from dpbandits.engine.compiler import noticing
from dpbandits.engine.loop import compiled_for
from dpbandits.engine.streams import run_seed
from dpbandits.errors import InvalidInput
from dpbandits.mechanisms.exact import ExactNoise
from dpbandits.notation import DEFAULT_HELP, budget, default_budget, policy, policy_kind
from dpbandits.policies import Policy, TrustedPolicy
from dpbandits.privacy.budgets import Budget
from dpbandits.recommend import recommend
from dpbandits.simulation.run import play
from dpbandits.worlds import Environment

_ROUNDS = 1000  # for policies that need a horizon
# One for each kind of problem.
_WORLDS = (
    "bernoulli-arms",
    "sphere-contexts",
    "fixed-actions:public=true",
    "matroid-arms",
    "kernel-world",
)

Task = tuple[Policy, Environment]


def warm(
    policies: list[str] = typer.Argument(
        None,
        help="Names from `dpbandits list`, options after a colon. Without any: those that "
        "`dpbandits recommend` gives.",
    ),
    env: str = typer.Option(
        None,
        help="A world with the problem they will meet, as for `dpbandits compare`: the number of "
        "features counts, sphere-contexts:dim=8. Unless given, a standard world of each problem.",
    ),
    privacy: str = typer.Option(None, help=DEFAULT_HELP),
    as_json: bool = JSON,
) -> None:
    """Compile policies ahead of time, so that no service waits for it at its first decision.

    For simulations and for learners (`compiled=True`), which then find it on this machine until
    dpbandits is updated. Run it where a service is installed, before it starts.
    """
    rows, wanted = [], None if privacy is None else budget(privacy)
    with stoppable("what is compiled is kept"):
        for (one, world), compiled in _compiled(list(_tasks(policies or [], env, wanted))):
            rows.append({"policy": one.name(), "environment": world.name(), "compiled": compiled})
            if not as_json:
                done = "compiled" if compiled else "was compiled already"
                console().print(f"{one.name()} on {world.name()}, {one.privacy}: {done}")
    if as_json:
        print_json(rows)


def _compiled(tasks: list[Task]) -> Iterator[tuple[Task, bool]]:
    """Each task when it is done, and whether there was anything to do."""
    workers = min(len(tasks), os.cpu_count() or 1)
    if workers == 1:
        yield from ((task, _compile(*task)) for task in tasks)
        return
    # Numba compiles one function at a time in each process.
    with ProcessPoolExecutor(workers, get_context("spawn"), _end_in_silence) as pool:
        yield from zip(tasks, pool.map(_compile, *zip(*tasks, strict=True)), strict=True)


def _end_in_silence() -> None:
    """At Ctrl-C, which this process hears too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _tasks(names: list[str], env: str | None, wanted: Budget | None) -> Iterator[Task]:
    """What to compile, and for which worlds."""
    worlds = [environment(text) for text in ([env] if env else _WORLDS)]
    problems = [(world, world.problem(_ROUNDS)) for world in worlds]
    if not names:
        for world, problem in problems:
            yield recommend(problem, wanted or default_budget(type(problem))).policy, world
    for name in names:
        kind = policy_kind(name)
        one = policy(name, wanted or default_budget(kind.problem_kind, [kind]))
        fitting = [world for world, problem in problems if isinstance(problem, one.problem_kind)]
        if not fitting:
            check_fits(one, problems[0][0])
        yield from ((one, world) for world in fitting)


def _compile(one: Policy, world: Environment) -> bool:
    """Play a little, as simulations and learners do; whether anything was compiled."""
    from dpbandits.testing.driving import drive  # slow to import

    said: list[str] = []

    def say(text: str) -> None:
        if not said:
            print(text, file=sys.stderr, flush=True)
        said.append(text)

    problem, seed = world.problem(_ROUNDS), run_seed(0, 0)
    public = one.begin(problem)[0]
    code = compiled_for(public)
    if not code.is_kept:
        raise InvalidInput("compiled code cannot be kept: no folder can be written in XDG_CACHE_HOME")
    play(one, world, np.array([_ROUNDS]), seed, say=say)
    if isinstance(one, TrustedPolicy):  # in the local model people decide in plain Python
        with noticing(lambda: say(code.notice(one.name(), public))):
            drive(one.start(problem, compiled=True), world, seed, 1)
            ExactNoise(np.random.default_rng(0)).normal(np.zeros(1), 1.0)
    return bool(said)
