"""One way to print: tables for people, JSON for machines."""

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from dpbandits.engine.compiler import noticing
from dpbandits.errors import InvalidInput
from dpbandits.extras import check_installed
from dpbandits.reports.tables import Row, terminal_table

JSON = typer.Option(False, "--json", help="Print JSON for machines instead.")


PICTURES = {".svg", ".png", ".pdf"}
_EXTRAS = {".parquet": ("tables",), **dict.fromkeys(PICTURES | {".html"}, ("plot",))}


def check_writable(**outputs: tuple[Path | None, set[str]]) -> None:
    """Refuse an output that could not be written, before any work is done for it."""
    for name, (path, suffixes) in outputs.items():
        if path is None:
            continue
        if path.suffix not in suffixes:
            expected = " or ".join(sorted(suffixes))
            raise InvalidInput(f"expected --{name} to end in {expected}, got {path}")
        if not path.parent.is_dir() or path.is_dir():
            raise InvalidInput(f"cannot write --{name} {path}: no such folder, or a folder itself")
        check_installed(*_EXTRAS.get(path.suffix, ()))


@contextlib.contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """Ctrl-C ends the command with a sentence about what is kept, not with a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True).print(f"stopped{kept and f'; {kept}, the same command goes on from there'}")
        raise typer.Exit(130) from None


def compiling(name: str) -> contextlib.AbstractContextManager[None]:
    """Say once, on the standard error, when anything is compiled for a policy."""
    said: list[str] = []

    def say() -> None:
        if not said:
            print(f"compiling {name} …", file=sys.stderr, flush=True)
        said.append(name)

    return noticing(say)


def console() -> Console:
    """Standard output; wide enough to keep tables whole when it is not a terminal."""
    screen = Console(highlight=False)
    return screen if screen.is_terminal else Console(highlight=False, width=180)


def print_json(value: Any) -> None:
    """Plain JSON, one document."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=1))


def print_rows(rows: Sequence[Row], title: str | None = None) -> None:
    """Rows as a table."""
    console().print(terminal_table(rows, title))
