"""`dpbandits.sweep`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbandits.privacy.budgets import Budget
from dpbandits.simulation.progress import RoundsBar
from dpbandits.simulation.replicate import Device
from dpbandits.sweeps.engines import engine_for
from dpbandits.sweeps.folder import Folder
from dpbandits.sweeps.plan import Environments, Plan, Policies
from dpbandits.sweeps.playing import played_units
from dpbandits.sweeps.table import tidy_table
from dpbandits.sweeps.trial import Forecast, forecast

if TYPE_CHECKING:
    import polars as pl
    from distributed import Client


def sweep(
    *,
    policies: Policies,
    environments: Environments,
    budgets: Iterable[Budget | str] | Budget | str = (),
    rounds: int | Iterable[int],
    runs: int = 20,
    seed: int = 0,
    results: str | Path,
    points: int = 100,
    device: Device = "cpu",
    leaps: bool = False,
    threads: int | None = None,
    on: "Client | str | None" = None,
    block: int | None = None,
    progress: bool = True,
) -> "pl.DataFrame":
    """Play every policy at every budget it accepts on every world, and return one tidy table.

    Policies are classes (`dpb.NoiseAwareIMED`) or names with options as on the command line
    (`"lazy-thompson:growth=0.5"`), both played at each budget they accept, or recipes, played at the
    budget they have; a dict gives labels, also to `environments`. What is left out is said. Run r of
    every cell meets the same chances; `rounds` may be several lengths.

    Finished blocks of runs are kept in the folder `results`, named by all that determines them. Stopped
    or killed at any moment, the same call plays only what is missing; several processes or machines
    with one folder share the work. A block has about 2·10⁷ rounds unless `block` says how many runs.

    Units are played in `threads`, on a Dask cluster (`on=client` or the address of its scheduler), with
    the same numbers, or with `device="cuda"` on a GPU, or in `leaps`, with the same law.

    The table has the columns policy, policy_recipe, budget, epsilon, delta, mu, rho, order, divergence,
    world, world_recipe, seed, rounds, run, round, regret, reward and optimum, and one for each option
    that is not at its default, such as world_dim. `dpb.plot_sweep` draws it.
    """
    plan = Plan.of(
        policies=policies,
        environments=environments,
        budgets=budgets,
        rounds=rounds,
        runs=runs,
        seed=seed,
        points=points,
        block=block,
        device=device,
        leaps=leaps,
    )
    return play_plan(plan, Folder(results), threads=threads, on=on, progress=progress)


def play_plan(
    plan: Plan, folder: Folder, *, threads: int | None = None, on: Any = None, progress: bool = True
) -> "pl.DataFrame":
    """Play what is missing, then read all of it."""
    engine = engine_for(plan.device, threads, on)
    units = {unit.name(): (cell, unit) for cell, unit in plan.units()}
    total = sum(unit.total_rounds for _, unit in units.values())
    with RoundsBar(total, "sweeping", show=progress) as bar:
        for sentence in plan.left_out:
            bar.say(f"left out: {sentence}")
        found = played_units({name: unit for name, (_, unit) in units.items()}, folder, engine, bar)
    return tidy_table(plan, ((cell, found[name]) for name, (cell, _) in units.items()))


def forecast_plan(plan: Plan, folder: Folder, *, threads: int | None = None, on: Any = None) -> Forecast:
    """How much there is to play, and about how long it takes where it would be played."""
    engine = engine_for(plan.device, threads, on)
    try:
        slots = engine.slots
    finally:
        engine.end()
    units, finished = [unit for _, unit in plan.units()], folder.names()
    missing = [unit for unit in units if unit.name() not in finished]
    with RoundsBar(0, "trying", show=True) as bar:
        return forecast(len(plan.cells), units, missing, slots, bar)
