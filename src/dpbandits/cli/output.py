"""One way to print: tables for people, JSON for machines."""

import contextlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

import dpbandits
from dpbandits.engine.compiler import noticing
from dpbandits.errors import InvalidInput
from dpbandits.extras import check_installed
from dpbandits.notation import typed
from dpbandits.privacy.budgets import Budget
from dpbandits.reports.figures import PICTURES
from dpbandits.reports.tables import Row, terminal_table
from dpbandits.simulation import ending

JSON = typer.Option(False, "--json", help="Print JSON.")
_EXTRAS = {".parquet": ("tables",), **dict.fromkeys(PICTURES | {".html"}, ("plot",))}
_WIDE = 180  # keeps tables whole where nobody said how wide the page is


def check_writable(**outputs: tuple[Path | None, set[str]]) -> None:
    """Refuse a file that could not be written, before any work is done for it."""
    for name, (path, suffixes) in outputs.items():
        if path is None:
            continue
        if path.suffix not in suffixes:
            expected = " or ".join(sorted(suffixes))
            raise InvalidInput(f"expected --{name} to end in {expected}, got {path}")
        if path.is_dir():
            raise InvalidInput(f"cannot write --{name} {path}: it is a folder")
        if not path.parent.is_dir():
            raise InvalidInput(f"cannot write --{name} {path}: there is no folder {path.parent}")
        check_installed(*_EXTRAS.get(path.suffix, ()))
        with writing(name, path):
            existed = path.exists()
            path.open("ab").close()  # the only sure way to know; what is there stays as it is
            if not existed:
                path.unlink()


def check_folder(name: str, path: Path) -> None:
    """Refuse a folder that could not be made or written into, before any work is done for it."""
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise InvalidInput(f"cannot write --{name} {path}: {nearest} is not a folder")
    with writing(name, path):
        tempfile.TemporaryFile(dir=nearest).close()


@contextlib.contextmanager
def writing(name: str, path: Path) -> Iterator[None]:
    """A refusal of the operating system, such as a full disk, as a sentence about this option."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidInput(f"cannot write --{name} {path}: {reason}") from None


@contextlib.contextmanager
def stoppable(kept: str = "", *, resumes: bool = True) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the command with a sentence about what is kept, not with a traceback."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stop:
        if isinstance(stop, SystemExit) and stop.code != ending.STATUS:
            raise
        said = f"stopped; {kept}" if kept else "stopped"
        if kept and resumes:
            said += ", and the same command resumes there"
        Console(stderr=True).print(said, soft_wrap=True)
        raise typer.Exit(130 if isinstance(stop, KeyboardInterrupt) else ending.STATUS) from None


def compiling(name: str) -> contextlib.AbstractContextManager[None]:
    """Say once, on the standard error, when anything is compiled for a policy."""
    said: list[str] = []

    def say() -> None:
        if not said:
            print(f"compiling {name} …", file=sys.stderr, flush=True)
        said.append(name)

    return noticing(say)


def console() -> Console:
    """Standard output; as wide as COLUMNS says, or wide enough for tables where it is not a terminal."""
    screen = Console(highlight=False)
    if screen.is_terminal or os.environ.get("COLUMNS"):
        return screen
    return Console(highlight=False, width=_WIDE)


def print_budget(*held: Budget) -> None:
    """The first line of a command that takes a budget, or several."""
    named = "Budget" if len(held) == 1 else "Budgets"
    options = " ".join(f"--privacy {typed(one)}" for one in held)
    console().print(f"{named}: {', '.join(map(str, held))} ({options})", style="dim")


def print_verdict(kept: bool) -> None:
    """The last line of an audit, which never says more than it can know."""
    from dpbandits.audit.filing import verdict  # slow to import

    console().print(f"[bold {'green' if kept else 'red'}]{verdict(kept)}[/]")


def print_written(*paths: Path | None) -> None:
    """Where to look, a line for each file that was asked for."""
    for path in paths:
        if path is not None:
            console().print(f"written: {path}", style="dim", soft_wrap=True)


def typed_command() -> str:
    """The command line that this is, to be pasted into a terminal."""
    return shlex.join(["dpbandits", *sys.argv[1:]])


def print_json(value: Any) -> None:
    """Plain JSON, one document."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=1))


def print_rows(rows: Sequence[Row], title: str | None = None, *, spare: Sequence[str] = ()) -> None:
    """Rows as a table; its title may be wider. `spare` columns go first where there is no room."""
    screen = console()
    if title:
        screen.print(title, style="bold", markup=False)
    dropped: list[str] = []
    for key in spare:
        if _width(screen, rows) > screen.width:
            rows = [{name: row[name] for name in row if name != key} for row in rows]
            dropped.append(key)
    screen.print(terminal_table(rows))
    if dropped:
        screen.print(f"not shown, for want of room: {', '.join(dropped)}", style="dim")


def _width(screen: Console, rows: Sequence[Row]) -> int:
    """How wide a table would be if nothing of it were broken."""
    return screen.measure(terminal_table(rows), options=screen.options.update(width=9999)).maximum


def spelled(kind: type) -> str:
    """A public class as users write it: `dpb.Arms`, `dpb.local.LocalUCB`."""
    for place in ("local", "arms", "linear", "matroids", "kernels", "worlds"):
        if kind.__name__ not in dpbandits.__all__ and kind.__name__ in getattr(dpbandits, place).__all__:
            return f"dpb.{place}.{kind.__name__}"
    return f"dpb.{kind.__name__}"
