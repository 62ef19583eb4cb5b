"""`dpbandits show`."""

import inspect

import typer

import dpbandits
from dpbandits.cli.list import row
from dpbandits.cli.output import JSON, console, print_json, print_rows
from dpbandits.cli.worlds import environment_kinds
from dpbandits.notation import named
from dpbandits.policies import Policy, policy_kinds
from dpbandits.recipes import Recipe


def show(
    name: str = typer.Argument(help="A policy or a world from `dpbandits list`."), as_json: bool = JSON
) -> None:
    """A policy's page: definition, guarantee, options, reference. Or a world's."""
    from rich.markdown import Markdown  # slow to import

    kinds: dict[str, type[Recipe]] = {**policy_kinds(), **environment_kinds()}
    name = named("policy or world", name, kinds)
    kind = kinds[name]
    text, _, example = (inspect.getdoc(kind) or "").partition(">>>")
    options = [option.shown() for option in kind.options()]
    if as_json:
        about = row(name, kind) if issubclass(kind, Policy) else {"world": name}
        print_json(about | {"page": text.strip(), "options": options})
        return
    console().print(f"[bold]{kind.__name__}[/]  {getattr(kind, 'paper', '')}\n")
    console().print(Markdown(text))
    if example:
        first = "" if "import dpbandits" in example else f">>> {_imports(kind)}\n"
        console().print(f"\n[bold]Example[/]\n{first}>>>{example}", markup=True)
    print_rows(options, "\nOptions")


def _imports(kind: type[Recipe]) -> str:
    """What makes the names of its example known."""
    modules = ("arms", "linear", "matroids", "kernels", "local", "worlds")
    listed = [name for name in modules if kind.__name__ in getattr(dpbandits, name).__all__]
    return "\n>>> ".join(
        f"from {name} import *" for name in ("dpbandits", *(f"dpbandits.{x}" for x in listed))
    )
