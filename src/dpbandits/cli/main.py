"""The `dpbandits` command: its subcommands, and how errors reach the user."""

import contextlib
import os
import sys

import typer
from rich.console import Console
from rich.text import Text

from dpbandits.cli.audit import audit
from dpbandits.cli.command import Command, Group
from dpbandits.cli.compare import compare
from dpbandits.cli.experiment import experiment
from dpbandits.cli.figures import figures
from dpbandits.cli.identify import identify
from dpbandits.cli.keys import keys
from dpbandits.cli.list import list_policies
from dpbandits.cli.privacy import privacy
from dpbandits.cli.recommend import recommend
from dpbandits.cli.reproduce import reproduce
from dpbandits.cli.serve import serve
from dpbandits.cli.show import show
from dpbandits.cli.sweep import sweep
from dpbandits.cli.verify import verify
from dpbandits.cli.warm import warm
from dpbandits.errors import DPBanditsError
from dpbandits.version import __version__

app = typer.Typer(
    cls=Group,
    help="Bandits that learn from people without giving any one of them away.",
    epilog="`compare`, `sweep` and `reproduce` resume where they stopped.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("list", cls=Command)(list_policies)
app.command("show", cls=Command)(show)
app.command("compare", cls=Command)(compare)
app.command("sweep", cls=Command)(sweep)
app.command("identify", cls=Command)(identify)
app.command("figures", cls=Command)(figures)
app.command("reproduce", cls=Command)(reproduce)
app.command("privacy", cls=Command)(privacy)
app.command("recommend", cls=Command)(recommend)
app.command("audit", cls=Command)(audit)
app.command("warm", cls=Command)(warm)
app.command("serve", cls=Command)(serve)
app.add_typer(keys, cls=Group)
app.add_typer(experiment, cls=Group)
app.command("verify", cls=Command)(verify)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpbandits {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Bandits that learn from people without giving any one of them away."""


def main() -> None:
    """Run the command line; a mistake, a full disk and a closed pipe give no traceback."""
    try:
        status = app(prog_name="dpbandits", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _write_no_more()
        status = 1
    except OSError as error:
        _write_no_more()
        where = error.filename or "the output"
        status = _fail(f"cannot read or write {where}: {error.strerror or error}")
    except DPBanditsError as error:
        status = _fail(str(error))
    except Exception as error:
        # The parser's own errors, wherever its version defines them; other errors are ours to mend.
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()  # empty where the help was shown instead
        status = _fail(message) if message else 2
    sys.exit(status or 0)


def _fail(sentence: str) -> int:
    """Say what is wrong."""
    said = Text.assemble(("error: ", "bold red"), sentence)
    with contextlib.suppress(OSError):
        Console(stderr=True).print(said, highlight=False, soft_wrap=True)
    return 2


def _write_no_more() -> None:
    """Nobody reads on, or nothing more fits: what is still in the buffer must not fail at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
