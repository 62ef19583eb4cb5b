"""The tidy table of a sweep: a row for each point of each run, with all that made it in columns."""

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dpbandits import checks
from dpbandits.extras import extra
from dpbandits.recipes import Recipe
from dpbandits.reports.sweeps import check_axis
from dpbandits.simulation import Trace
from dpbandits.sweeps.choices import recipe_text
from dpbandits.sweeps.plan import Cell, Plan

if TYPE_CHECKING:
    import polars as pl

NUMBERS = ("epsilon", "delta", "mu", "rho", "order", "divergence")  # of budgets of all kinds
_OF_RUNS = ("run", "round", "regret", "reward", "optimum")


def tidy_table(plan: Plan, parts: Iterable[tuple[Cell, Trace]]) -> "pl.DataFrame":
    """The rows of all units, in the order of the plan.

    Text columns are categorical. An option that somewhere is not at its default has a column of its own.
    """
    with extra("tables"):
        import polars as pl

    described = {cell: _described(plan, cell) for cell in plan.cells}
    names = list(dict.fromkeys(name for row in described.values() for name in row))
    types = {name: _type(pl, [row.get(name) for row in described.values()]) for name in names}
    types |= {name: pl.Float64 for name in NUMBERS}
    frames = []
    for cell, trace in parts:
        columns = [pl.lit(described[cell].get(name), types[name]).alias(name) for name in names]
        frames.append(trace.table().select(*columns, *_OF_RUNS))
    return pl.concat(frames, rechunk=True)


def check_plot(plan: Plan, against: str) -> None:
    """Refuse an axis that the table of this plan will not have, before anything is played."""
    described = [_described(plan, cell) for cell in plan.cells]
    columns = dict.fromkeys(name for row in described for name in row)
    checks.known("column of this sweep", against, [*columns, *_OF_RUNS])
    if against not in _OF_RUNS:
        found = (row.get(against) for row in described)
        check_axis(against, [value for value in found if value is not None])


def _described(plan: Plan, cell: Cell) -> dict[str, Any]:
    budget = cell.policy.privacy
    row: dict[str, Any] = {
        "policy": cell.label,
        "policy_recipe": recipe_text(type(cell.policy), vars(cell.policy)),
    }
    row |= _options("policy", cell.policy, [one.policy for one in plan.cells])
    row |= {"budget": type(budget).__name__} | {name: getattr(budget, name, None) for name in NUMBERS}
    row |= {
        "world": cell.world,
        "world_recipe": recipe_text(type(cell.environment), vars(cell.environment)),
    }
    row |= _options("world", cell.environment, [one.environment for one in plan.cells])
    return row | {"seed": str(plan.seed) if plan.seed >= 2**63 else plan.seed, "rounds": cell.rounds}


def _options(what: str, recipe: Recipe, all_of_them: Iterable[Recipe]) -> dict[str, Any]:
    """Its options by name, of those that somebody has set: plain numbers, words and switches."""
    unusual = {
        field.name
        for one in set(all_of_them)
        for field in dataclasses.fields(one)
        if isinstance(getattr(one, field.name), int | float | str)
        and getattr(one, field.name) != field.default
    }
    return {f"{what}_{name}": getattr(recipe, name, None) for name in sorted(unusual)}


def _type(pl: Any, values: list[Any]) -> Any:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return pl.Boolean
    if kinds <= {int}:
        return pl.Int64
    return pl.Float64 if kinds <= {int, float} else pl.Categorical


def summary_rows(table: "pl.DataFrame") -> list[dict[str, Any]]:
    """One row for each cell: mean final regret, its standard error, the worst run."""
    import polars as pl

    final = pl.col("regret")
    keys = ["policy", "budget", *NUMBERS, "world", "rounds"]
    rows = (
        table.filter(pl.col("round") == pl.col("rounds"))
        .group_by(keys, maintain_order=True)
        .agg(
            final.len().alias("runs"),
            final.mean().alias("mean_regret"),
            (final.std() / final.len().sqrt()).alias("standard_error"),
            final.max().alias("worst_run"),
        )
    )
    return rows.to_dicts()
