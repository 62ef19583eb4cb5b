"""`dpbandits recommend`."""

import typer

from dpbandits.cli.output import JSON, console, print_json
from dpbandits.cli.parsing import PRIVACY_HELP, budget, whole
from dpbandits.problems import Arms, LinearContexts, MatroidBases, Problem, UniformMatroid
from dpbandits.recommend import recommend as choose


def recommend(
    arms: int = typer.Option(5, help="Number of arms."),
    features: int = typer.Option(
        None, help="Number of features of each action, for a linear problem instead of arms."
    ),
    items: int = typer.Option(None, help="Instead of arms: number of items to choose several of."),
    rank: int = typer.Option(2, help="With --items: how many are chosen in each round."),
    privacy: str = typer.Option("eps=1", help=PRIVACY_HELP),
    horizon: str = typer.Option(None, help="Number of rounds, where known."),
    as_json: bool = JSON,
) -> None:
    """The policy to use for a problem and a budget, and why."""
    rounds = None if horizon is None else whole(horizon, "horizon")
    problem: Problem = Arms(arms, horizon=rounds)
    if features is not None:
        problem = LinearContexts(features, horizon=rounds)
    if items is not None:
        problem = MatroidBases(UniformMatroid(items, rank), horizon=rounds)
    found = choose(problem, budget(privacy))
    guarantee = found.policy.guarantee(problem)
    if as_json:
        about = {"policy": found.policy.to_dict(), "reason": found.reason}
        print_json(about | {"guarantee": guarantee.to_dict()})
        return
    console().print(f"[bold]{found.policy.name()}[/]: {found.reason}\n\n{guarantee}\n")
    console().print(f"In Python: dpb.{found.policy!r}", style="dim")
