"""`dpbandits identify`."""

import typer

from dpbandits import checks
from dpbandits.cli.choosing import choose
from dpbandits.cli.output import JSON, console, print_budget, print_json, print_rows, stoppable
from dpbandits.cli.worlds import environment
from dpbandits.identification import identify as search
from dpbandits.notation import DEFAULT_HELP, budgets, default_budget, policy_kind, whole
from dpbandits.problems import Arms
from dpbandits.wording import counted


def identify(
    policies: list[str] = typer.Argument(
        None,
        help="Policies that search, options after a colon: best-arm-race:error=.01, "
        "sequential-halving:rounds=5000. Without any: best-arm-race.",
    ),
    privacy: list[str] = typer.Option(None, help=f"{DEFAULT_HELP} Several: eps=0.1,1,10,none."),
    env: str = typer.Option(
        "bernoulli-arms", help="Arms, options after a colon: 'bernoulli-arms:means=.9 .5'."
    ),
    runs: str = typer.Option("1000", help="Independent searches of each policy."),
    max_rounds: str = typer.Option("1e7", help="A search that has not stopped by then is ended."),
    seed: int = typer.Option(0, help="The same seed gives the same table."),
    threads: int = typer.Option(None, help="Changes the time it takes, never the result."),
    as_json: bool = JSON,
) -> None:
    """Search for the best arm: how many samples that takes, and how often it is wrong."""
    names = list(policies or ["best-arm-race"])
    world = environment(env)
    kinds = [policy_kind(name) for name in names]
    wanted = budgets(privacy) if privacy else [default_budget(Arms, kinds)]
    repeats, longest = whole(runs, "runs"), whole(max_rounds, "max-rounds")
    checks.seed(seed)
    chosen, notes = choose(names, wanted, world, twins=False)
    if not as_json:
        print_budget(*wanted)
        for note in notes:
            console().print(note, style="dim", soft_wrap=True)
    rows = []
    with stoppable(resumes=False):
        for label, one in chosen.items():
            found = search(
                one, world, runs=repeats, seed=seed, max_rounds=longest, threads=threads, progress=True
            )
            # Its budget is in a column of its own.
            rows.append({**found.row(), "policy": label.removesuffix(f", {one.privacy}")})
    if as_json:
        print_json({"rows": rows, "seed": seed})
        return
    title = f"Searches for the best of {world.in_words()}, {counted(repeats, 'run')}"
    print_rows(rows, title, spare=("unfinished", "runs"))
    console().print(
        "samples: decisions until it stopped. limit: what no search of such a budget and error stays "
        "below on average, if it is right as often on all Bernoulli arms.",
        style="dim",
    )
