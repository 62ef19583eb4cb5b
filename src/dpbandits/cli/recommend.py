"""`dpbandits recommend`."""

import dataclasses

import numpy as np
import typer

from dpbandits import checks
from dpbandits.cli.output import JSON, console, print_json
from dpbandits.cli.parsing import PRIVACY_HELP, budget, whole
from dpbandits.errors import InvalidInput
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import (
    Arms,
    KernelContexts,
    LinearContexts,
    MatroidBases,
    Problem,
    UniformMatroid,
)
from dpbandits.recipes import Recipe
from dpbandits.recommend import recommend as choose
from dpbandits.worlds import KernelWorld


def recommend(
    arms: int = typer.Option(
        None, help="Number of arms, 5 unless given. With --features: arms of parameters of their own."
    ),
    features: int = typer.Option(
        None, help="Number of features of each action, for a linear problem instead of arms."
    ),
    items: int = typer.Option(None, help="Instead of arms: number of items to choose several of."),
    rank: int = typer.Option(2, help="With --items: how many are chosen in each round."),
    kernel: str = typer.Option(
        None, help="For kernel bandits in place of arms: squared-exponential or matern, length scale .2."
    ),
    contexts: int = typer.Option(20, help="With --kernel: contexts, evenly on [0, 1]."),
    actions: int = typer.Option(20, help="With --kernel: actions, evenly on [0, 1]."),
    privacy: str = typer.Option(
        None, help=f"{PRIVACY_HELP}. Unless given eps=1; with --features or --kernel eps=1,delta=1e-6."
    ),
    trust: str = typer.Option(None, help="local: nobody may hold raw data."),
    horizon: str = typer.Option(None, help="Number of rounds, where known."),
    as_json: bool = JSON,
) -> None:
    """The policy to use for a problem and a budget, and why."""
    if sum(given is not None for given in (features, items, kernel)) > 1:
        raise InvalidInput("give one of --features, --items and --kernel")
    if arms is not None and (items is not None or kernel is not None):
        raise InvalidInput("--arms does not go with --items or --kernel")
    rounds = None if horizon is None else whole(horizon, "horizon")
    problem: Problem = Arms(5 if arms is None else arms, horizon=rounds)
    default = "eps=1" if features is None and kernel is None else "eps=1,delta=1e-6"
    if features is not None:
        problem = LinearContexts(features, arms=arms, horizon=rounds)
    if items is not None:
        problem = MatroidBases(UniformMatroid(items, rank), horizon=rounds)
    if kernel is not None:
        checks.integer(least=1, contexts=contexts, actions=actions)
        kind = KernelWorld.standard(kernel).kernel
        grids = (tuple((x,) for x in np.linspace(0.0, 1.0, n).tolist()) for n in (contexts, actions))
        problem = KernelContexts(kind, *grids, horizon=rounds)
    if trust is not None:
        checks.one_of(tuple(Trust), trust=trust)
    found = choose(problem, budget(privacy or default), trust=Trust(trust) if trust else None)
    guarantee = found.policy.guarantee(problem)
    if as_json:
        about = {"policy": found.policy.to_dict(), "reason": found.reason}
        print_json(about | {"guarantee": guarantee.to_dict()})
        return
    console().print(f"[bold]{found.policy.name()}[/]: {found.reason}\n\n{guarantee}\n")
    started = "problem" if kernel is not None else _python(problem)  # grids are long
    console().print(f"In Python: {_python(found.policy)}.start({started})", style="dim")


def _python(recipe: Recipe) -> str:
    """A recipe as one would write it, without what is usual."""
    given = {
        field.name: getattr(recipe, field.name)
        for field in dataclasses.fields(recipe)
        if getattr(recipe, field.name) != field.default
    }
    shown = (
        f"{name}={_python(value) if isinstance(value, Recipe) else repr(value)}"
        for name, value in given.items()
    )
    return f"dpb.{type(recipe).__name__}({', '.join(shown)})"
