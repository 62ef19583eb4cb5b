"""The `dpbandits` command: its subcommands, and how errors reach the user."""

import sys

import typer
from rich.console import Console
from rich.markup import escape

from dpbandits.cli.audit import audit
from dpbandits.cli.compare import compare
from dpbandits.cli.figures import figures
from dpbandits.cli.list import list_policies
from dpbandits.cli.privacy import privacy
from dpbandits.cli.recommend import recommend
from dpbandits.cli.reproduce import reproduce
from dpbandits.cli.show import show
from dpbandits.cli.warm import warm
from dpbandits.errors import DPBanditsError
from dpbandits.version import __version__

app = typer.Typer(
    help="Bandits that learn from people without giving any one of them away.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("list")(list_policies)
app.command("show")(show)
app.command("compare")(compare)
app.command("figures")(figures)
app.command("reproduce")(reproduce)
app.command("privacy")(privacy)
app.command("recommend")(recommend)
app.command("audit")(audit)
app.command("warm")(warm)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpbandits {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show it."),
) -> None:
    """Bandits that learn from people without giving any one of them away."""


def main() -> None:
    """Run the command line; an error of ours is one sentence, not a traceback."""
    try:
        app(standalone_mode=True)
    except DPBanditsError as error:
        Console(stderr=True).print(
            f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True
        )
        sys.exit(2)
