"""`dpbandits compare`."""

import hashlib
import json
from pathlib import Path
from typing import Any

import typer

from dpbandits import checks
from dpbandits.cli.choosing import choose
from dpbandits.cli.command import given
from dpbandits.cli.comparison import Comparison
from dpbandits.cli.data import Typed, about, from_propensities, logged_world, refuse_without_data
from dpbandits.cli.output import (
    JSON,
    check_writable,
    console,
    print_budget,
    print_json,
    print_rows,
    print_written,
    stoppable,
    writing,
)
from dpbandits.cli.worlds import environment
from dpbandits.engine.cache import cache_home
from dpbandits.errors import InvalidInput
from dpbandits.notation import (
    DEFAULT_HELP,
    budgets,
    default_budget,
    policy_kind,
    whole,
)
from dpbandits.policies import Policy
from dpbandits.policies.kernel.shared.local_kernel import LocalKernelPolicy
from dpbandits.policies.kernel.shared.outlook import expected_cost, short_horizon
from dpbandits.privacy.budgets import NonPrivate
from dpbandits.problems import KernelContexts, Problem
from dpbandits.reports.figures import PICTURES, save_figure
from dpbandits.simulation import simulate
from dpbandits.simulation.gpu import about_gpu
from dpbandits.simulation.header import describe
from dpbandits.simulation.leaps import policy_can_leap, world_can_leap
from dpbandits.simulation.run import problem_of
from dpbandits.simulation.timing import Timing
from dpbandits.worlds import Environment, LoggedArms, LoggedContexts, LogNormal, MovieRatings
from dpbandits.worlds.movielens import LICENCE

_MOST_ROWS = 1_000_000  # of a log that are as many rounds, unless said otherwise


def compare(
    ctx: typer.Context,
    policies: list[str] = typer.Argument(
        None,
        help="Names from `dpbandits list`, options after a colon: modified-thompson:prepulls=2000. "
        "Without any: all that accept the budget and trust the server.",
    ),
    privacy: list[str] = typer.Option(
        None,
        help=f"{DEFAULT_HELP} Several: eps=0.1,1,10,none or eps=1,4,delta=1e-6, or the option "
        "once for each.",
    ),
    env: str = typer.Option(
        "bernoulli-arms",
        help="A world, options after a colon: 'bernoulli-arms:means=.9 .5', "
        "sphere-contexts:dim=5,gap=0, matroid-arms, movie-ratings:path=ml-100k, "
        "kernel-world:kernel=matern. All of them: `dpbandits list`.",
    ),
    data: Path = typer.Option(
        None, help="Instead of --env: a log of yours, .parquet or .csv, or 'logs/*.parquet'."
    ),
    action: str = typer.Option(None, help="With --data: the column that names the action shown."),
    reward: str = typer.Option(None, help="With --data: the column of its reward."),
    reward_range: str = typer.Option(
        None, help="With --data: what rewards can be, such as 1,5. Unless given 0,1."
    ),
    propensity: str = typer.Option(
        None,
        help="With --data: the column of the chance with which the action was chosen; "
        "rows then count 1/propensity.",
    ),
    position: str = typer.Option(
        None, help="With --data: only rows of one position (or anything else): position=1."
    ),
    features: str = typer.Option(
        None,
        help="With --data: columns of what is known of a person, and what they can be: "
        "'age=18..90?40,device=phone|desktop|*,city=#16' (?: where it is missing; *: all others; "
        "#: by 16 buckets).",
    ),
    prior_rows: float = typer.Option(
        None,
        help="With --data: draw an action's rate to the mean of all actions, by so many rows; unless "
        "given 0. With --features, its rate in a context to that in all, by as many as the log calls "
        "for unless given.",
    ),
    rounds: str = typer.Option(
        "1e5", help="Rounds of each run. With --data as many as the log has rows, up to 1e6."
    ),
    runs: str = typer.Option("20", help="Independent runs of each policy."),
    seed: int = typer.Option(0, help="The same seed gives the same table."),
    in_flight: int = typer.Option(
        1, help="Rounds open at once: how many others may be decided for before a reward comes."
    ),
    delay: float = typer.Option(
        None, help="Median delay of rewards, in decisions; those later than --in-flight are lost."
    ),
    rounds_per_person: int = typer.Option(
        None, help="People return: at most this many rounds of one person are learned from."
    ),
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
    twins: bool = typer.Option(True, help="Add each policy's non-private twin."),
    all_rows: bool = typer.Option(
        False, "--all", help="Print all rows, where several budgets make them many; reports have them."
    ),
    report: Path = typer.Option(None, help="Write a page with the plot, e.g. report.html."),
    plot: Path = typer.Option(None, help="Write the plot, e.g. regret.svg."),
    save: Path = typer.Option(None, help="Write the trace, e.g. trace.parquet."),
    as_json: bool = JSON,
) -> None:
    """Play private policies and their non-private twins on one problem, to see what privacy costs.

    An interrupted comparison keeps its finished runs; the same command resumes there.
    """
    kinds = [policy_kind(name) for name in policies or []]  # first: a list left unquoted ends up here
    columns = Typed(action, reward, reward_range, propensity, position, features, prior_rows)
    world, warned = _world(ctx, env, data, columns)
    default = default_budget(type(world.problem(None)), kinds)
    wanted = budgets(privacy) if privacy else [default]
    check_writable(report=(report, {".html"}), plot=(plot, PICTURES), save=(save, {".parquet"}))
    if isinstance(world, LoggedArms | LoggedContexts) and world.rows and not given(ctx, "rounds"):
        rounds = str(min(world.rows, _MOST_ROWS))
    length, repeats = whole(rounds, "rounds"), whole(runs, "runs")
    checks.integer(least=1, rounds=length, runs=repeats)
    chosen, notes = choose(policies or [], wanted, world, length, twins=twins)
    notes += warned
    if privacy and all(one.takes_no_budget() for one in chosen.values()):
        raise InvalidInput(f"none of these policies takes a budget; leave out --privacy {privacy[0]}")
    if data is not None and isinstance(world, LoggedArms | LoggedContexts):
        notes += from_propensities(data, columns, world)
    checks.seed(seed)
    checks.one_of(("cpu", "cuda"), device=device)
    if threads is not None:
        checks.integer(least=1, threads=threads)
    if delay is not None and in_flight == 1:
        raise InvalidInput("with one round in flight no reward can be late; say --in-flight too")
    delays = None if delay is None else LogNormal(delay)
    timing = Timing(in_flight=in_flight, delays=delays)
    problem = problem_of(world, length, rounds_per_person)
    if leaps and not policies and world_can_leap(world):
        chosen, slow = _that_leap(chosen, problem)
        notes += slow
    if not as_json:
        print_budget(*wanted)
        for note in notes:
            console().print(note, style="dim", soft_wrap=True)
    if isinstance(problem, KernelContexts) and not as_json:
        console().print(_outlook(problem, chosen, length), style="dim")
    if isinstance(world, MovieRatings) and not as_json:
        console().print(f"{world.films().edition}. {LICENCE}", style="dim")
    timed: dict[str, Any] = {"timing": timing, "rounds_per_person": rounds_per_person, "leaps": leaps}
    timed |= {"made_by": about_gpu() if device == "cuda" else {}}
    checkpoint = _checkpoint(describe(chosen, world, length, repeats, seed, **timed))
    if checkpoint.exists() and not as_json:
        console().print("resuming where this comparison was stopped", style="dim")
    with stoppable("finished runs are kept"):
        trace = simulate(
            chosen,
            world,
            length,
            repeats,
            seed,
            device="cuda" if device == "cuda" else "cpu",
            leaps=leaps,
            threads=threads,
            progress=True,
            checkpoint=checkpoint,
            in_flight=in_flight,
            delays=delays,
            rounds_per_person=rounds_per_person,
        )
    found = Comparison(trace, world, chosen, wanted, notes, shows_all=all_rows or bool(policies))
    # Before printing: whoever reads may not read on.
    if report is not None:
        with writing("report", report):
            found.page().write(report)
    if plot is not None:
        with writing("plot", plot):
            save_figure(found.picture(), plot)
    if save is not None:
        with writing("save", save):
            trace.save(save)
    if as_json:
        record = {"rows": found.rows, "uniform_regret": found.uniform_regret}
        record |= {"uniform_kept": found.kept_by_uniform(), "notes": notes}
        if isinstance(world, LoggedArms | LoggedContexts):
            record["about"] = about(world)
        made = {"guarantees": trace.header["guarantees"], "seed": seed, "leaps": trace.leaps}
        print_json(record | made)
    else:
        _print(found)
        print_written(report, plot, save)


def _world(
    ctx: typer.Context, env: str, data: Path | None, columns: Typed
) -> tuple[Environment, list[str]]:
    """The log, or the world that was named; and what to know of it."""
    if data is None:
        refuse_without_data(ctx)
        return environment(env), []
    if given(ctx, "env"):
        raise InvalidInput("--env and --data are different worlds; give one of them")
    return logged_world(data, columns)


def _that_leap(chosen: dict[str, Policy], problem: Problem) -> tuple[dict[str, Policy], list[str]]:
    """Those that can be played in leaps, and a sentence about the others."""
    able = {label: one for label, one in chosen.items() if policy_can_leap(one, problem)}
    others = [label for label in chosen if label not in able]
    said = f"left out, because they cannot be played in leaps: {', '.join(others)}"
    return able, [said] if others else []


def _print(found: Comparison) -> None:
    """The table, how to read it, and the guarantees or, of several budgets, the answer."""
    print_rows(found.shown(), f"Regret after {found.played()}", spare=("× limit", "worst run"))
    for sentence in found.about_hidden():
        console().print(f"{sentence} --all prints them; --report and --json have all.", style="dim")
    console().print("\n".join((*found.reading(), "")), style="dim")
    if found.is_of_several:
        for sentence in found.takeaways():
            console().print(sentence)
    else:
        for sentence in found.sentences():
            labels, _, text = sentence.partition(": ")
            console().print(f"[bold]{labels}[/]: {text}")
    if isinstance(found.world, LoggedArms | LoggedContexts):
        console().print("\n" + "\n".join(about(found.world)), style="dim")


def _outlook(problem: KernelContexts, chosen: dict[str, Policy], rounds: int) -> str:
    """What the runs will take, and a word where a local policy has too few rounds."""
    locals_ = [one.for_people(problem) for one in chosen.values() if isinstance(one, LocalKernelPolicy)]
    said = f"{expected_cost(problem, rounds, local=bool(locals_))}, roughly"
    for one in locals_:
        if not isinstance(one.privacy, NonPrivate):
            short = short_horizon(problem, one.privacy, one.deviation(problem.max_reward))
            return said if short is None else f"{said}; note: {short}"
    return said


def _checkpoint(header: dict[str, Any]) -> Path:
    """Where this very comparison keeps its finished runs when it is interrupted."""
    digest = hashlib.sha256(json.dumps(header).encode()).hexdigest()[:20]
    return cache_home() / f"compare-{digest}.npz"
