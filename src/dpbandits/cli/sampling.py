"""`dpbandits audit --sampling`."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from dpbandits.audit.filing import report, table
from dpbandits.audit.sampling import Sampled, sample
from dpbandits.cli.output import (
    compiling,
    console,
    print_json,
    print_verdict,
    print_written,
    stoppable,
    typed_command,
    writing,
)
from dpbandits.policies import Policy, policy_kinds
from dpbandits.privacy.budgets import NonPrivate
from dpbandits.testing.examples import example_policies

_EVERY = 10.0  # seconds


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
    kept = "nothing is kept" if store is None else f"finished audits are kept in {store}"
    with stoppable(kept, resumes=False):
        for one in policies:
            found.append(_with_progress(one, runs, form, error, seed))
            if store is not None:
                with writing("store", store):
                    _add(store, found[-1])
    if page is not None:
        with writing("report", page):
            page.write_text(report(found, typed_command()))
    if as_json:
        print_json([result.to_dict() for result in found])
    else:
        _print(report(found, typed_command()) if len(found) == 1 else table(found))
        print_verdict(all(one.kept for one in found))
        print_written(page, store)
    return all(one.kept for one in found)


def _print(text: str) -> None:
    """Markdown, rendered on a terminal and as it is elsewhere."""
    from rich.markdown import Markdown  # slow to import

    screen = console()
    screen.print(Markdown(text) if screen.is_terminal else text, soft_wrap=not screen.is_terminal)


def _with_progress(policy: Policy, runs: int, form: str, error: float, seed: int) -> Sampled:
    progress = _bar if console().is_terminal else _lines
    with progress(f"{policy.name()}: {form} runs", runs) as advance, compiling(policy.name()):
        return sample(policy, runs=runs, form=form, error=error, seed=seed, advance=advance)


@contextlib.contextmanager
def _bar(title: str, runs: int) -> Iterator[Callable[[int], None]]:
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console(), transient=True) as progress:
        task = progress.add_task(f"{title}, choosing streams", total=runs)
        yield lambda played: progress.update(task, advance=played, description=title)


@contextlib.contextmanager
def _lines(title: str, runs: int) -> Iterator[Callable[[int], None]]:
    """Where no bar can be drawn, a line on the standard error every ten seconds."""
    print(f"{title}, choosing streams", file=sys.stderr, flush=True)
    done, said = 0, time.monotonic()

    def advance(played: int) -> None:
        nonlocal done, said
        done += played
        if time.monotonic() - said > _EVERY:
            said = time.monotonic()
            print(f"{title}, {done:,} of {runs:,}", file=sys.stderr, flush=True)

    yield advance


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
