"""`dpbandits compare`."""

import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import typer

from dpbandits import checks
from dpbandits.cli.command import given
from dpbandits.cli.output import (
    JSON,
    check_writable,
    console,
    print_budget,
    print_json,
    print_rows,
    print_written,
    stoppable,
    typed_command,
    writing,
)
from dpbandits.cli.worlds import check_fits, environment
from dpbandits.engine.cache import cache_home
from dpbandits.errors import InvalidInput
from dpbandits.notation import (
    DEFAULT_HELP,
    budget,
    default_budget,
    policy,
    policy_kind,
    typed,
    whole,
)
from dpbandits.policies import LocalPolicy, Policy, policy_kinds
from dpbandits.policies.kernel.shared.outlook import (
    MIN_LEARNABLE_SHARE,
    expected_cost,
    learnable_share,
    short_horizon,
)
from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.problems import KernelContexts
from dpbandits.reports.figures import PICTURES
from dpbandits.reports.html import Page
from dpbandits.reports.tables import Ratio
from dpbandits.simulation import Trace, simulate
from dpbandits.simulation.gpu import about_gpu
from dpbandits.simulation.header import describe
from dpbandits.simulation.run import problem_of
from dpbandits.simulation.timing import Timing
from dpbandits.wording import ROUNDING, counted, number
from dpbandits.worlds import Environment, LogNormal, MovieRatings
from dpbandits.worlds.movielens import LICENCE

_READING = (
    "±: standard error of the mean over runs; a difference within it is not a gain.",
    "× twin: regret as a multiple of that of the same algorithm without privacy.",
)


def compare(
    ctx: typer.Context,
    policies: list[str] = typer.Argument(
        None,
        help="Names from `dpbandits list`, options after a colon: modified-thompson:prepulls=2000. "
        "Without any: all that accept the budget and trust the server.",
    ),
    privacy: str = typer.Option(None, help=DEFAULT_HELP),
    env: str = typer.Option(
        "bernoulli-arms",
        help="A world, options after a colon: 'bernoulli-arms:means=.9 .5', "
        "sphere-contexts:dim=5,gap=0, matroid-arms, movie-ratings:path=ml-100k, "
        "kernel-world:kernel=matern. All of them: `dpbandits list`.",
    ),
    rounds: str = typer.Option("1e5", help="Rounds of each run."),
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
    threads: int = typer.Option(None, help="Changes the time it takes, never the result."),
    twins: bool = typer.Option(True, help="Add each policy's non-private twin."),
    report: Path = typer.Option(None, help="Write a page with the plot, e.g. report.html."),
    plot: Path = typer.Option(None, help="Write the plot, e.g. regret.svg."),
    save: Path = typer.Option(None, help="Write the trace, e.g. trace.parquet."),
    as_json: bool = JSON,
) -> None:
    """Play private policies and their non-private twins on one problem, to see what privacy costs.

    An interrupted comparison keeps its finished runs; the same command resumes there.
    """
    kinds = [policy_kind(name) for name in policies or []]  # first: a list left unquoted ends up here
    world = environment(env)
    default = default_budget(type(world.problem(None)), kinds)
    wanted = default if privacy is None else budget(privacy)
    check_writable(report=(report, {".html"}), plot=(plot, PICTURES), save=(save, {".parquet"}))
    chosen = _chosen(policies or [], wanted, world, twins)
    if given(ctx, "privacy") and all(one.takes_no_budget() for one in chosen.values()):
        raise InvalidInput(f"none of these policies takes a budget; leave out --privacy {privacy}")
    length, repeats = whole(rounds, "rounds"), whole(runs, "runs")
    checks.integer(least=1, rounds=length, runs=repeats)
    checks.seed(seed)
    checks.one_of(("cpu", "cuda"), device=device)
    if threads is not None:
        checks.integer(least=1, threads=threads)
    if delay is not None and in_flight == 1:
        raise InvalidInput("with one round in flight no reward can be late; say --in-flight too")
    delays = None if delay is None else LogNormal(delay)
    timing = Timing(in_flight=in_flight, delays=delays)
    problem = problem_of(world, length, rounds_per_person)
    if not as_json:
        print_budget(wanted)
    if isinstance(problem, KernelContexts) and not as_json:
        console().print(_outlook(problem, chosen, length), style="dim")
    if isinstance(world, MovieRatings) and not as_json:
        console().print(f"{world.films().edition}. {LICENCE}", style="dim")
    timed: dict[str, Any] = {"timing": timing, "rounds_per_person": rounds_per_person}
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
            threads=threads,
            progress=True,
            checkpoint=checkpoint,
            in_flight=in_flight,
            delays=delays,
            rounds_per_person=rounds_per_person,
        )
    rows, sentences = _rows(trace, chosen), _sentences(trace)
    uniform = length * world.uniform_regret()
    if as_json:
        found = {"rows": rows, "uniform_regret": uniform}
        print_json(found | {"guarantees": trace.header["guarantees"], "seed": seed})
    else:
        title = f"Regret after {_played(trace.header, world)}"
        print_rows([_shown(row) for row in (*rows, _uniform(uniform))], title)
        console().print("\n".join((*_READING, *_whose_twins(chosen), "")), style="dim")
        for labels, sentence in sentences.items():
            console().print(f"[bold]{labels}[/]: {sentence}")
    if report is not None:
        with writing("report", report):
            _page(trace, world, chosen, [*rows, _uniform(uniform)], sentences).write(report)
    _write_trace(trace, plot, save)
    if not as_json:
        print_written(report, plot, save)


def _played(header: dict[str, Any], world: Environment) -> str:
    """What was played, where, and how rounds followed each other if not one by one."""
    rounds, runs = counted(header["rounds"], "round"), counted(header["runs"], "run")
    said = f"{rounds} on {world.in_words()}, {runs}"
    if "in_flight" in header:
        said += f", {counted(header['in_flight'], 'round')} in flight"
    if "delays" in header:
        said += f", rewards after {number(header['delays']['median'])} decisions (median)"
    if "gpu" in header:
        said += f", on {header['gpu']}"
    if "rounds_per_person" in header:
        said += f", at most {header['rounds_per_person']} of one person"
    return said


def _outlook(problem: KernelContexts, chosen: dict[str, Policy], rounds: int) -> str:
    """What the runs will take, and a word where a local policy has too few rounds."""
    locals_ = [one for one in chosen.values() if isinstance(one, LocalPolicy)]
    private = next((one for one in locals_ if not isinstance(one.privacy, NonPrivate)), None)
    said = f"{expected_cost(problem, rounds, local=bool(locals_))}, roughly"
    if private is not None:
        share = learnable_share(problem, private.privacy, rounds, local=True)
        if share < MIN_LEARNABLE_SHARE:
            said += f"; note: {short_horizon(problem, private.privacy, share)}"
    return said


def _chosen(names: list[str], wanted: Budget, world: Environment, twins: bool) -> dict[str, Policy]:
    """The policies asked for, or all that accept the budget, each followed by its twin."""
    kind = type(world.problem(None))
    if not names:
        names = [
            name
            for name, policy_kind in policy_kinds().items()
            if issubclass(kind, policy_kind.problem_kind)
            and isinstance(wanted, policy_kind.accepts)
            and not issubclass(policy_kind, LocalPolicy)  # another trust: asked for by name
        ]
    if not names:
        raise InvalidInput(
            f"no policy for {world.name()} accepts --privacy {typed(wanted)}; see `dpbandits list`"
        )
    found: dict[str, Policy] = {}
    for name in names:
        one = policy(name, wanted)
        check_fits(one, world)
        label = f"{one.name()}{name[name.index(':') :] if ':' in name else ''}"
        if one in found.values():
            raise InvalidInput(f"{label} was given twice")
        found[label] = one
    for label, one in list(found.items()):
        twin = one.twin() if twins and not isinstance(one.privacy, NonPrivate) else None
        if twin is not None and twin not in found.values():
            short = f"{twin.name()} (twin)"
            found[f"{label} (twin)" if short in found else short] = twin
    return found


def _checkpoint(header: dict[str, Any]) -> Path:
    """Where this very comparison keeps its finished runs when it is interrupted."""
    digest = hashlib.sha256(json.dumps(header).encode()).hexdigest()[:20]
    return cache_home() / f"compare-{digest}.npz"


def _rows(trace: Trace, chosen: dict[str, Policy]) -> list[dict[str, Any]]:
    """The summary, best first, with each private policy's regret as a multiple of its twin's."""
    rows = sorted(trace.rows(), key=lambda row: float(row["mean_regret"]))
    regret = {row["policy"]: row["mean_regret"] for row in rows}
    labels: dict[Policy | None, str] = {policy: label for label, policy in chosen.items()}
    for row in rows:
        if math.isnan(row["standard_error"]):  # of a single run
            row["standard_error"] = None
        twin = chosen[row["policy"]].twin()
        of_twin = regret[labels[twin]] if twin in labels else 0.0
        row["times_twin"] = Ratio(row["mean_regret"] / of_twin) if of_twin > ROUNDING else None
    return rows


def _uniform(regret: float) -> dict[str, Any]:
    """A row to compare the others with."""
    empty = ("standard_error", "worst_run", "ns_per_round", "times_twin")
    learned = {"policy": "uniform play", "guarantee": "", "mean_regret": regret}
    return learned | dict.fromkeys(empty)


def _whose_twins(chosen: dict[str, Policy]) -> list[str]:
    """A sentence for each twin that has another name."""
    said = []
    for label, one in chosen.items():
        others = [name for name, other in chosen.items() if other.twin() == one]
        if any(chosen[name].name() != one.name() for name in others):
            said.append(f"{label} is the twin of {', '.join(others)}.")
    return said


def _sentences(trace: Trace) -> dict[str, str]:
    """Each guarantee once, by the policies that give it."""
    labels: dict[str, list[str]] = {}
    for label in trace.policies:
        labels.setdefault(str(trace.guarantee(label)), []).append(label)
    return {", ".join(named): sentence for sentence, named in labels.items()}


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """What fits into 80 columns: how long it took is in the report and in the JSON."""
    return {
        "policy": row["policy"],
        "guarantee": row["guarantee"],
        "regret": row["mean_regret"],
        "±": row["standard_error"],
        "worst run": row["worst_run"],
        "× twin": row["times_twin"],
    }


def _takeaway(row: dict[str, Any]) -> str:
    error = "" if row["standard_error"] is None else f" ± {row['standard_error']:,.0f}"
    return (
        f"{row['policy']} at {row['guarantee']}: {row['mean_regret']:,.0f}{error}, "
        f"{row['times_twin']} times the regret of its twin."
    )


def _page(
    trace: Trace,
    world: Environment,
    chosen: dict[str, Policy],
    rows: list[dict[str, Any]],
    sentences: dict[str, str],
) -> Page:
    """All of it, to be passed on."""
    header = trace.header
    page = Page(
        "What does privacy cost?", f"Regret over {_played(header, world)}, seed {header['seed']}."
    )
    page.text(*(_takeaway(row) for row in rows if row["times_twin"]))
    page.picture(trace.plot(), "Mean regret; shaded from the best to the worst run.")
    page.section("Regret at the last round").table(rows)
    page.section("Guarantees").text(*(f"{labels}: {text}" for labels, text in sentences.items()))
    page.section("How to read this").text(
        "Regret is what was lost against always playing the best action. A twin is the same "
        "algorithm without a privacy budget. ε-DP and (ε, δ)-DP are the usual definitions; under "
        "μ-GDP, somebody who sees all decisions can guess which of two values one person brought no "
        "better than whether a draw is from N(0, 1) or from N(μ, 1). Policies that first try every arm "
        "do so in the order given, which is why a curve may start flat.",
        " ".join((*_READING, *_whose_twins(chosen))),
    )
    page.section("How to make this page again")
    page.command(typed_command() if sys.argv[1:2] == ["compare"] else "compare")
    page.text(
        f"dpbandits {header['version']}, numpy {header['numpy']}, numba {header['numba']}, "
        f"seed {header['seed']}; `compare --save` keeps every curve with its recipes."
    )
    return page


def _write_trace(trace: Trace, plot: Path | None, save: Path | None) -> None:
    if plot is not None:
        with writing("plot", plot):
            trace.plot(plot)
    if save is not None:
        with writing("save", save):
            trace.save(save)
