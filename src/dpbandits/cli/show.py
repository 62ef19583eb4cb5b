"""`dpbandits show`."""

import inspect

import typer

from dpbandits.cli.list import row
from dpbandits.cli.output import JSON, console, print_json, print_rows
from dpbandits.policies import policy_named


def show(name: str = typer.Argument(help="A name from `dpbandits list`."), as_json: bool = JSON) -> None:
    """A policy's page: definition, guarantee, options, reference."""
    from rich.markdown import Markdown  # slow to import

    kind = policy_named(name)
    text, _, example = (inspect.getdoc(kind) or "").partition(">>>")
    options = [option.shown() for option in kind.options()]
    if as_json:
        print_json(row(name, kind) | {"page": text.strip(), "options": options})
        return
    console().print(f"[bold]{kind.__name__}[/]  {kind.paper}\n")
    console().print(Markdown(text))
    if example:
        first = "" if "import dpbandits" in example else ">>> from dpbandits import *\n"
        console().print(f"\n[bold]Example[/]\n{first}>>>{example}")
    print_rows(options, "Options")
