"""`dpbandits audit --sampling`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from dpbandits.audit.filing import report, table
from dpbandits.audit.sampling import Sampled, sample
from dpbandits.cli.output import compiling, console, print_json, stoppable, writing
from dpbandits.policies import Policy, policy_kinds
from dpbandits.privacy.budgets import NonPrivate
from dpbandits.testing.examples import example_policies


def private_policies() -> list[Policy]:
    """Every private policy, at each kind of budget that is calibrated in a way of its own."""
    kinds = (kind for kind in policy_kinds().values() if not kind.takes_no_budget())
    found = (one for kind in kinds for one in example_policies(kind))
    return [one for one in found if not isinstance(one.privacy, NonPrivate)]


def audit_by_sampling(
    policies: Iterable[Policy],
    runs: int,
    form: str,
    error: float,
    seed: int,
    as_json: bool,
    page: Path | None,
    store: Path | None,
) -> bool:
    """Sample, print, and write what was asked for; whether nothing was shown against any claim."""
    found = []
    with stoppable("" if store is None else "what is stored"):
        for one in policies:
            found.append(_with_progress(one, runs, form, error, seed))
            if store is not None:
                with writing("store", store):
                    _add(store, found[-1])
    if page is not None:
        with writing("report", page):
            page.write_text(report(found))
    if as_json:
        print_json([result.to_dict() for result in found])
    else:
        console().print(report(found) if len(found) == 1 else table(found), soft_wrap=True)
        verdict = "[bold green]passed[/]" if all(one.kept for one in found) else "[bold red]FAILED[/]"
        console().print(verdict)
    return all(one.kept for one in found)


def _with_progress(policy: Policy, runs: int, form: str, error: float, seed: int) -> Sampled:
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    screen = console()
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task(f"{type(policy).name()}: choosing streams", total=runs)

        def advance(played: int) -> None:
            progress.update(task, advance=played, description=f"{type(policy).name()}: {form} runs")

        with compiling(policy.name()):
            return sample(policy, runs=runs, form=form, error=error, seed=seed, advance=advance)


def _add(store: Path, result: Sampled) -> None:
    """Put a result in the place of an earlier one of the same policy, claim and form."""
    kept: list[dict[str, Any]] = json.loads(store.read_text()) if store.exists() else []
    row = result.to_dict()
    key = ("policy", "form")
    same = [
        index
        for index, old in enumerate(kept)
        if all(old[name] == row[name] for name in key) and old["claim"] == row["claim"]
    ]
    if same:
        kept[same[0]] = row
    else:
        kept.append(row)
    store.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n")
