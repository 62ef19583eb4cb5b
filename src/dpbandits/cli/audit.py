"""`dpbandits audit`."""

from pathlib import Path

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dpbandits.cli.command import given
from dpbandits.cli.output import (
    JSON,
    check_writable,
    compiling,
    console,
    print_json,
    print_rows,
    stoppable,
    writing,
)
from dpbandits.cli.parsing import PRIVACY_HELP, budget, policy, whole
from dpbandits.errors import AuditError, InvalidInput
from dpbandits.policies import Policy
from dpbandits.privacy.budgets import PureDP


def audit(
    ctx: typer.Context,
    name: str = typer.Argument(help="A policy, as for `compare`; with --sampling also `all`."),
    privacy: str = typer.Option("mu=1", help=PRIVACY_HELP),
    rounds: int = typer.Option(
        None, help="Length of the short streams: 48, or less where rounds are costly."
    ),
    controls: bool = typer.Option(True, help="Also audit policies that are wrong on purpose."),
    sampling: bool = typer.Option(False, "--sampling", help="Sample instead of replaying."),
    runs: str = typer.Option("2e5", help="How many runs to sample."),
    form: str = typer.Option(
        "simulated", help="What is sampled: simulated, plain, compiled, reloaded, local."
    ),
    error: float = typer.Option(1e-3, help="The rate at which sampling may refute a true claim."),
    seed: int = typer.Option(0, help="Of sampled runs."),
    report: Path = typer.Option(None, help="Also write what was done and found to this .md file."),
    store: Path = typer.Option(None, help="Also put the sampled results into this .json file."),
    as_json: bool = JSON,
) -> None:
    """Put a policy's privacy to the test, by replay or by sampling.

    By replay: the exact cost of its releases on neighbouring streams, which must be within the claim.
    Short streams of extreme people at every position, with batches made short so that several end; and,
    at 20 positions each, people in between, two at once, rounds in flight, save and load, exact noise,
    other budgets, more dimensions, a long stream of the policy as configured. Takes a minute or two.
    Ends with status 1 if the guarantee is not kept, if no neighbour comes near it (then nothing was
    tested), or if a control was not caught.

    With --sampling, play two neighbouring streams many times and tell them apart: a lower bound for ε or
    μ of what is executed. Ends with status 1 if that is above the claim.
    """
    check_writable(report=(report, {".md"}), store=(store, {".json"}))
    _refuse_ignored(ctx, name, sampling)
    if sampling:
        from dpbandits.cli.sampling import audit_by_sampling, private_policies  # slow to import

        subjects = private_policies() if name == "all" else [policy(name, budget(privacy))]
        options = form, error, seed, as_json, report, store
        kept = audit_by_sampling(subjects, whole(runs, "runs"), *options)
    else:
        kept = _audit_by_replay(name, policy(name, budget(privacy)), rounds, controls, as_json, report)
    if not kept:
        raise typer.Exit(1)


def _refuse_ignored(ctx: typer.Context, name: str, sampling: bool) -> None:
    """Each way of auditing has options of its own."""
    if name == "all" and not sampling:
        raise InvalidInput("`audit all` goes with --sampling; by replay, audit one policy at a time")
    if name == "all" and given(ctx, "privacy"):
        raise InvalidInput("`audit all` audits each policy at every kind of budget; leave out --privacy")
    replaying, drawing = ("rounds", "controls"), ("runs", "form", "error", "seed", "store")
    for option in given(ctx, *(replaying if sampling else drawing)):
        raise InvalidInput(f"{option} goes {'without' if sampling else 'with'} --sampling")


def _audit_by_replay(
    name: str, subject: Policy, rounds: int | None, controls: bool, as_json: bool, page: Path | None
) -> bool:
    from dpbandits.audit import battery  # slow to import
    from dpbandits.audit.filing import replay_report

    problem = subject.problem_kind.testing.example(rounds or subject.problem_kind.testing.replay_rounds)
    guarantee = subject.guarantee(problem)
    if not guarantee.is_private:
        raise AuditError(f"nothing to audit: {guarantee}")
    checks = list(battery.battery(subject, rounds))
    wrong = list(battery.controls(problem)) if controls else []
    found, caught, screen = [], [], console()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with (
        stoppable(""),
        compiling(name),
        Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress,
    ):
        task = progress.add_task(name, total=len(checks) + len(wrong))
        for title, run in checks:
            progress.update(task, description=title)
            found.append(run())
            progress.advance(task)
        for control in wrong:
            progress.update(task, description="policies that are wrong on purpose")
            caught.append(control())
            progress.advance(task)
    kept = all(one.passed for one in found) and all(one.caught for one in caught)
    if page is not None:
        with writing("report", page):
            page.write_text(replay_report(name, subject, guarantee, found, caught))
    if as_json:
        print_json(
            {
                "policy": subject.to_dict(),
                "guarantee": guarantee.to_dict(),
                "checks": [one._asdict() for one in found],
                "controls": [one._asdict() for one in caught],
                "passed": kept,
            }
        )
        return kept
    screen.print(f"[bold]{name}[/]: {guarantee}\n", soft_wrap=True)
    unit = "ε" if isinstance(guarantee.budget, PureDP) else "μ"
    rows: list[dict[str, object]] = [
        {"check": one.title, "passed": one.passed, "found": one.said} for one in found
    ]
    print_rows(rows, f"Replays (costs in {unit}, on small problems of unusual bounds)")
    if caught:
        rows = [{"control": one.wrong, "caught": one.caught, "by": one.by} for one in caught]
        print_rows(rows, "Policies that are wrong on purpose")
    screen.print("[bold green]passed[/]" if kept else "[bold red]FAILED[/]")
    return kept
