"""`dpbandits audit`."""

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dpbandits.cli.command import given
from dpbandits.cli.output import (
    JSON,
    check_writable,
    compiling,
    console,
    print_budget,
    print_json,
    print_rows,
    print_verdict,
    print_written,
    stoppable,
    typed_command,
    writing,
)
from dpbandits.errors import AuditError, InvalidInput
from dpbandits.notation import DEFAULT_HELP, budget, default_budget, policy, policy_kind, whole
from dpbandits.policies import Policy
from dpbandits.privacy.budgets import PureDP


def audit(
    ctx: typer.Context,
    name: str = typer.Argument(help="A policy, as for `compare`; with --sampling also `all`."),
    privacy: str = typer.Option(None, help=DEFAULT_HELP),
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
    seed: int = typer.Option(0, help="Seed of the sampled runs."),
    report: Path = typer.Option(None, help="Also write what was done and found to this .md file."),
    store: Path = typer.Option(None, help="Also put the sampled results into this .json file."),
    as_json: bool = JSON,
) -> None:
    """Put a policy's privacy to the test, by replay or by sampling.

    By replay: one person of a stream is replaced, and the exact privacy cost of all that is released
    must be within the claim. This is done for extreme people in every round of a short stream. Then, in
    20 rounds each, for other people, two at once, rounds in flight, save and load, exact noise, other
    budgets, larger problems and a long stream. It takes a minute or two. Other policies, which are wrong
    on purpose, are audited too and must be caught.

    The status is 1 if the claim is not kept, if no replacement costs nearly as much as claimed (then
    nothing was tested), or if a wrong policy was not caught.

    With --sampling, two streams that differ in one person are played many times. How well they can be
    told apart gives a lower bound for ε or μ. The status is 1 if it is above the claim.

    An audit that is stopped keeps nothing, except what --store has.
    """
    check_writable(report=(report, {".md"}), store=(store, {".json"}))
    _refuse_ignored(ctx, name, sampling)
    if sampling:
        from dpbandits.cli.sampling import audit_by_sampling, private_policies  # slow to import

        subjects = private_policies() if name == "all" else [_subject(name, privacy)]
        if name != "all" and not as_json:
            print_budget(subjects[0].privacy)
        options = form, error, seed, as_json, report, store
        kept = audit_by_sampling(subjects, whole(runs, "runs"), *options)
    else:
        kept = _audit_by_replay(name, _subject(name, privacy), rounds, controls, as_json, report)
    if not kept:
        raise typer.Exit(1)


def _subject(name: str, privacy: str | None) -> Policy:
    kind = policy_kind(name)
    wanted = default_budget(kind.problem_kind, [kind]) if privacy is None else budget(privacy)
    return policy(name, wanted)


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
    from dpbandits.audit.filing import CONTROLS, READING, replay_report

    problem = subject.problem_kind.testing.example(rounds or subject.problem_kind.testing.replay_rounds)
    guarantee = subject.guarantee(problem)
    if not guarantee.is_private:
        raise AuditError(f"nothing to audit without a privacy guarantee: {guarantee.why_none}")
    checks = list(battery.battery(subject, rounds))
    wrong = list(battery.controls(problem)) if controls else []
    found, caught, screen = [], [], console()
    if not as_json:
        print_budget(subject.privacy)
        screen.print(f"[bold]{name}[/]: {guarantee}\n", soft_wrap=True)
    with (
        stoppable("nothing is kept", resumes=False),
        compiling(name),
        _steps(len(checks) + len(wrong)) as begin,
    ):
        for title, run in checks:
            begin(title)
            found.append(run())
        for number, control in enumerate(wrong, 1):
            begin(f"policy {number} that is wrong on purpose")
            caught.append(control())
    kept = all(one.passed for one in found) and all(one.caught for one in caught)
    if page is not None:
        with writing("report", page):
            page.write_text(replay_report(name, subject, guarantee, found, caught, typed_command()))
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
    unit = "ε" if isinstance(guarantee.budget, PureDP) else "μ"
    rows: list[dict[str, object]] = [
        {"check": one.title, "passed": one.passed, "found": one.said} for one in found
    ]
    print_rows(rows, f"Replays of small problems (costs in {unit})")
    screen.print(f"{READING}\n", style="dim")
    if caught:
        rows = [{"control": one.wrong, "caught": one.caught, "by": one.by} for one in caught]
        print_rows(rows, CONTROLS)
    print_verdict(kept)
    print_written(page)
    return kept


@contextlib.contextmanager
def _steps(total: int) -> Iterator[Callable[[str], None]]:
    """To be called as each step begins: a bar on a terminal, otherwise a line on the standard error."""
    screen, begun = console(), itertools.count(1)
    if not screen.is_terminal:
        yield lambda title: print(f"{next(begun)}/{total} {title}", file=sys.stderr, flush=True)
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=screen, transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda title: progress.update(task, description=title, completed=next(begun) - 1)
