"""`dpbandits sweep`."""

from pathlib import Path
from typing import Any

import typer

from dpbandits import checks
from dpbandits.cli.output import (
    JSON,
    check_folder,
    check_writable,
    console,
    print_json,
    print_rows,
    print_written,
    stoppable,
    writing,
)
from dpbandits.cli.plans import read_plan
from dpbandits.errors import InvalidInput
from dpbandits.notation import typed
from dpbandits.privacy.budgets import Budget
from dpbandits.reports.figures import PICTURES
from dpbandits.sweeps import Plan, plot_sweep
from dpbandits.sweeps.folder import Folder
from dpbandits.sweeps.status import status_rows
from dpbandits.sweeps.sweep import forecast_plan, play_plan
from dpbandits.sweeps.table import NUMBERS, check_plot, summary_rows
from dpbandits.wording import counted

_MOST_ROWS = 200  # on the screen


def sweep(
    plan: Path = typer.Argument(
        help="A TOML file: policies, environments and budgets in the notation of `dpbandits compare`, "
        "rounds, runs, seed, points, block, results."
    ),
    results: Path = typer.Option(
        None, help="The folder of finished units; unless given that of the plan, or PLAN-results."
    ),
    dry_run: bool = typer.Option(
        False, help="Say how many cells there are and about how long they take, and stop."
    ),
    status: bool = typer.Option(False, help="Say what is finished and what is missing, and stop."),
    device: str = typer.Option(
        "cpu", help="Or cuda: every run is a thread on an NVIDIA GPU, with draws of its own."
    ),
    leaps: bool = typer.Option(
        False,
        "--leaps",
        help="One draw for all rounds of a batch, where policies play batches of one arm and arms pay "
        "0 or 1: much quicker, with draws of its own.",
    ),
    threads: int = typer.Option(None, help="Changes the time it takes, never the result."),
    scheduler: str = typer.Option(None, help="Play on a Dask cluster: tcp://HOST:8786."),
    save: Path = typer.Option(None, help="Write the tidy table, e.g. table.parquet."),
    plot: Path = typer.Option(None, help="Write small multiples, e.g. regret.svg."),
    against: str = typer.Option(
        "epsilon", help="What to plot regret against: mu, rounds, round, world_dim, …"
    ),
    as_json: bool = JSON,
) -> None:
    """Play every combination of policies, budgets and worlds, and keep what is finished.

    Stopped or killed at any moment, the same command plays only what is missing; several machines with
    one folder share the work.
    """
    checks.one_of(("cpu", "cuda"), device=device)
    if dry_run and status:
        raise InvalidInput("give --dry-run or --status, not both")
    check_writable(save=(save, {".parquet"}), plot=(plot, PICTURES))
    wanted, place = read_plan(plan, "cuda" if device == "cuda" else "cpu", leaps=leaps)
    folder = Folder(place if results is None else results)
    if plot is not None:
        check_plot(wanted, against)
    if status:
        _print_status(wanted, folder, as_json)
        return
    if dry_run:
        with stoppable():
            _print_forecast(wanted, folder, threads, scheduler, as_json)
        return
    check_folder("results", folder.path)
    with stoppable(f"finished units are kept in {folder.path}"):
        table = play_plan(wanted, folder, threads=threads, on=scheduler)
    if save is not None:  # before printing: whoever reads may not read on
        with writing("save", save):
            table.write_parquet(save)
    rows = summary_rows(table)
    if as_json:
        print_json(rows)
    else:
        _print_table(rows, wanted.runs)
    if plot is not None:
        with writing("plot", plot):
            plot_sweep(table, plot, against=against)
    if not as_json:
        print_written(save, plot)


def _print_table(rows: list[dict[str, Any]], runs: int) -> None:
    print_rows([_shown(row) for row in rows[:_MOST_ROWS]], f"Regret, {counted(runs, 'run')} each")
    console().print("±: standard error of the mean over runs.", style="dim")
    if len(rows) > _MOST_ROWS:
        console().print(f"… and {len(rows) - _MOST_ROWS} more; --save writes all", style="dim")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Without the columns of budgets, which are one text."""
    return {
        "policy": row["policy"],
        "budget": typed(_budget(row)),
        "world": row["world"],
        "rounds": row["rounds"],
        "regret": row["mean_regret"],
        "±": row["standard_error"],
        "worst run": row["worst_run"],
    }


def _budget(row: dict[str, Any]) -> Budget:
    numbers = {name: row[name] for name in NUMBERS if row[name] is not None}
    return Budget.from_dict({"kind": row["budget"]} | numbers)


def _print_forecast(
    plan: Plan, folder: Folder, threads: int | None, scheduler: str | None, as_json: bool
) -> None:
    found = forecast_plan(plan, folder, threads=threads, on=scheduler)
    if as_json:
        print_json(found.to_dict() | {"left_out": list(plan.left_out)})
        return
    for sentence in plan.left_out:
        console().print(f"left out: {sentence}", style="dim", soft_wrap=True)
    console().print(str(found), soft_wrap=True)


def _print_status(plan: Plan, folder: Folder, as_json: bool) -> None:
    rows = status_rows(plan, folder)
    if as_json:
        print_json(rows)
        return
    unfinished = [row for row in rows if row["missing"]]
    units = sum(row["units"] for row in rows)
    missing = sum(row["missing"] for row in rows)
    if not any(row["being_played_by"] for row in unfinished):
        for row in unfinished:
            del row["being_played_by"]
    if unfinished:
        print_rows(unfinished[:_MOST_ROWS], f"Missing in {folder.path}")
    console().print(f"{units - missing:,} of {units:,} units are finished", soft_wrap=True)
