"""`dpbandits show`."""

import dataclasses
import inspect
import re
import typing
from typing import Any

import typer

from dpbandits.cli.list import row
from dpbandits.cli.output import JSON, console, print_json, print_rows
from dpbandits.cli.parsing import named
from dpbandits.cli.worlds import environment_kinds
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
    options = _options(kind)
    if as_json:
        told = row(name, kind) if issubclass(kind, Policy) else {"world": name}
        print_json(told | {"page": text.strip(), "options": options})
        return
    console().print(f"[bold]{kind.__name__}[/]  {getattr(kind, 'paper', '')}\n")
    console().print(Markdown(text))
    if example:
        first = "" if "import dpbandits" in example else ">>> from dpbandits import *\n"
        console().print(f"\n[bold]Example[/]\n{first}>>>{example}", markup=True)
    print_rows(options, "\nOptions")


def _options(kind: type[Recipe]) -> list[dict[str, str]]:
    """Each option with its type, its default and, where its type carries one, its sentence."""
    plain, full = typing.get_type_hints(kind), typing.get_type_hints(kind, include_extras=True)
    rows = [
        {
            "option": field.name,
            "type": _shown(plain[field.name]),
            "default": _default(field),
            "meaning": " ".join(map(str, getattr(full[field.name], "__metadata__", ()))),
        }
        for field in dataclasses.fields(kind)
    ]
    return rows if any(one["meaning"] for one in rows) else [_without_meaning(one) for one in rows]


def _without_meaning(option: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in option.items() if key != "meaning"}


def _shown(hint: Any) -> str:
    """A type as it is written, without the modules of its names."""
    text = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    return re.sub(r"\b[A-Za-z_]\w*\.", "", text)


def _default(field: "dataclasses.Field[object]") -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    made = field.default_factory
    return "required" if made is dataclasses.MISSING else repr(made())
