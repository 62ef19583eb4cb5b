"""The reference of public names: a page for each module, made of signatures, docstrings and options."""

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from dpbandits.policies import Policy, policy_kinds
from dpbandits.recipes import Recipe

# In the order of a reader's interest. A name is described on the page of the first module that has it,
# but on the page of `dpbandits` only where no other module does.
MODULES = (
    "dpbandits",
    "dpbandits.privacy",
    "dpbandits.arms",
    "dpbandits.linear",
    "dpbandits.matroids",
    "dpbandits.kernels",
    "dpbandits.local",
    "dpbandits.worlds",
    "dpbandits.features",
    "dpbandits.sweeps",
    "dpbandits.limits",
    "dpbandits.offline",
    "dpbandits.errors",
    "dpbandits.audit",
    "dpbandits.testing",
    "dpbandits.adapters",
    "dpbandits.client",
)


# What users are given, and do not make themselves: how it is made is of no interest.
_GIVEN = ("Learner", "Person", "Recommendation", "Released", "Server", "Ticket", "Tickets", "Trace")


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: its list, or, of errors, which has none, its classes."""
    listed = getattr(module, "__all__", None)
    return (
        list(listed)
        if listed is not None
        else [n for n, v in vars(module).items() if inspect.isclass(v)]
    )


def homes() -> dict[int, str]:
    """By the identity of each public object: the module on whose page it is described."""
    found: dict[int, str] = {}
    for name in (*MODULES[1:], MODULES[0]):
        module = importlib.import_module(name)
        for public in public_names(module):
            found.setdefault(id(getattr(module, public)), name)
    return found


def reference_pages() -> dict[str, str]:
    """The pages of all modules, by path."""
    home = homes()
    return {
        f"reference/api/{name}.md": module_page(importlib.import_module(name), home) for name in MODULES
    }


def module_page(module: ModuleType, home: dict[int, str]) -> str:
    """What a module is for, all its names with where they are described, and those described here."""
    names = sorted(public_names(module), key=str.lower)
    table = "".join(_listed(module, name, home) for name in names)
    here = [name for name in names if _is_here(module, name, home)]
    entries = "\n".join(entry(module.__name__, name, getattr(module, name)) for name in here)
    return (
        f"# {module.__name__}\n\n{inspect.cleandoc(module.__doc__ or '')}\n\n## Names\n\n"
        f"| name | |\n| --- | --- |\n{table}\n" + (f"## Described here\n\n{entries}" if here else "")
    )


def _is_here(module: ModuleType, name: str, home: dict[int, str]) -> bool:
    what = getattr(module, name)
    return not isinstance(what, ModuleType) and not is_policy(what) and home[id(what)] == module.__name__


def is_policy(what: object) -> bool:
    """Whether it has a page of its own."""
    return inspect.isclass(what) and issubclass(what, Policy) and what in policy_kinds().values()


def _listed(module: ModuleType, name: str, home: dict[int, str]) -> str:
    """A row of a module's table."""
    what = getattr(module, name)
    if isinstance(what, ModuleType):
        target = f"{what.__name__}.md"
    elif is_policy(what):
        target = f"../policies/{what.name()}.md"
    else:
        target = f"#{home[id(what)]}.{name}"
    return f"| [`{name}`]({target}) | {first_sentence(what)} |\n"


def first_sentence(what: Any) -> str:
    """What something is, in short. Plain values have no docstring."""
    if not (inspect.isclass(what) or callable(what) or isinstance(what, ModuleType)):
        return f"{type(what).__name__}"
    text = re.split(r"(?<=[.])\s", " ".join((inspect.getdoc(what) or "").split("\n\n")[0].split()))[0]
    return text.rstrip(":").replace("|", "\\|")


def entry(module: str, name: str, what: Any) -> str:
    """A class, a function or a value, with all that can be said about it."""
    if inspect.isclass(what):
        return class_entry(module, name, what)
    if callable(what):
        return _described("function", module, f"{name}{signature(what)}", markdown(what))
    return _described(
        "data",
        module,
        name,
        f"A {type(what).__name__} of {len(what)}." if name != "__version__" else "The version.",
    )


def class_entry(module: str, name: str, kind: type) -> str:
    """A class with its options or fields, and the methods that it defines itself."""
    parts = [markdown(kind)]
    bases = [base.__name__ for base in kind.__mro__[1:] if base.__module__.startswith("dpbandits")]
    if bases:
        parts.append(f"Extends {', '.join(f'`{base}`' for base in bases)}.")
    if issubclass(kind, Recipe) and dataclasses.fields(kind):
        parts.append(options_table(kind))
    elif (
        fields := [(f.name, f.type) for f in dataclasses.fields(kind)]
        if dataclasses.is_dataclass(kind)
        else []
    ):
        types = {field: str(_type(hint)).replace("|", "\\|") for field, hint in fields}
        rows = "".join(f"| `{field}` | `{one}` |\n" for field, one in types.items())
        parts.append("| field | type |\n| --- | --- |\n" + rows)
    parts.extend(_members(module, name, kind))
    shown = signature(kind) if _has_constructor(kind) else ""
    return _described("class", module, f"{name}{shown}", "\n\n".join(parts), colons=5)


def _has_constructor(kind: type) -> bool:
    """Whether users make one themselves: abstract classes, enumerations and errors they do not."""
    return (
        kind.__name__ not in _GIVEN
        and not inspect.isabstract(kind)
        and not issubclass(kind, Exception)
        and not hasattr(kind, "__members__")
        and not (issubclass(kind, Recipe) and kind.abstract)
    )


def _members(module: str, name: str, kind: type) -> Iterator[str]:
    for word, raw in vars(kind).items():
        if word.startswith("_") or word in {field.name for field in _fields(kind)}:
            continue
        what = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
        if isinstance(raw, property):
            yield _described("property", module, f"{name}.{word}", markdown(raw.fget), colons=4)
        elif inspect.isfunction(what) and what.__doc__:
            how = {classmethod: ":classmethod:", staticmethod: ":staticmethod:"}.get(type(raw), "")
            text = f"{name}.{word}{signature(what, bound=not isinstance(raw, staticmethod))}"
            yield _described("method", module, text, markdown(what), colons=4, extra=how)


def _fields(kind: type) -> Any:
    return dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()


def options_table(kind: type[Recipe], anchor: str = "") -> str:
    """The options of a recipe; with an anchor, each can be linked to."""
    rows = []
    for option in (one.shown() for one in kind.options()):
        named = f"`{option['option']}`"
        if anchor:
            named = f"[{named}]{{#{anchor}-{option['option'].replace('_', '-')}}}"
        cells = (f"`{one}`".replace("|", "\\|") for one in (_type(option["type"]), option["default"]))
        rows.append(f"| {named} | {' | '.join(cells)} | {option['about']} |\n")
    return "| option | type | default | |\n| --- | --- | --- | --- |\n" + "".join(rows)


def markdown(what: Any) -> str:
    """A docstring, with its examples as a block."""
    text, _, example = (inspect.getdoc(what) or "").partition(">>>")
    return text.strip() + (f"\n\n```python\n>>>{example.rstrip()}\n```" if example else "")


def signature(what: Any, *, bound: bool = False) -> str:
    """As users call it: types where they are short, no private defaults."""
    try:
        found = inspect.signature(what)
    except (TypeError, ValueError):
        return "()"
    parameters = list(found.parameters.values())[1 if bound else 0 :]
    recipe = inspect.isclass(what) and issubclass(what, Recipe)
    cleaned = [
        one.replace(
            annotation=inspect.Parameter.empty if recipe else _Text(_type(one.annotation)),
            default=_default(one.default),
        )
        for one in parameters
        if not one.name.startswith("_")
    ]
    empty = inspect.Signature.empty
    returned = (
        empty
        if inspect.isclass(what) or found.return_annotation is empty
        else _Text(_type(found.return_annotation))
    )
    return str(inspect.Signature(cleaned, return_annotation=returned))


class _Text(str):
    """Shown without quotes, as a type or a default."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _type(hint: Any) -> Any:
    """A type by its last names: no modules, no sentences of `Annotated`."""
    if hint is inspect.Parameter.empty:
        return hint
    text = hint if isinstance(hint, str) else inspect.formatannotation(hint)
    text = re.sub(r"Annotated\[(.*?), ['\"].*?['\"]\]", r"\1", text)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", text).replace("NoneType", "None")
    text = re.sub(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[\w+(?:\[Any\])?\]\]", "ndarray", text)
    return re.sub(
        r"['\"]([A-Z][^'\"]*)['\"]", r"\1", text
    )  # names of classes, and not values of `Literal`


def _default(value: Any) -> Any:
    if value is inspect.Parameter.empty or value is None or isinstance(value, int | float | str | tuple):
        return value
    text = repr(value)
    return _Text("…" if "<" in text else text)


def _described(
    kind: str, module: str, text: str, about: str, *, colons: int = 3, extra: str = ""
) -> str:
    fence = ":" * colons
    extra = f"{extra}\n" if extra else ""
    return f"{fence}{{py:{kind}}} {text}\n:module: {module}\n{extra}\n{about}\n{fence}\n"
