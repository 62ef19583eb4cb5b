"""Frozen descriptions that survive a round trip through JSON.

Budgets, problems, policies and worlds are all recipes: frozen keyword-only dataclasses of
simple values. Data and randomness are never part of one; they arrive as arguments.
"""

import dataclasses
import json
import numbers
import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, Self, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput

# What is taken for a tuple of numbers, or of rows of them, which a recipe turns it into.
Floats = Sequence[float] | NDArray[Any]
Ints = Sequence[int] | NDArray[Any]
FloatRows = Sequence[Sequence[float]] | NDArray[Any]
IntRows = Sequence[Sequence[int]] | NDArray[Any]

# By name, then by where it was written: outside this package a name may be given twice.
_KINDS: dict[str, dict[str, type["Recipe"]]] = {}


class Option(NamedTuple):
    """A field of a recipe, and what it is for."""

    name: str
    type: Any
    default: Any  # `dataclasses.MISSING` where it must be given
    about: str

    def shown(self) -> dict[str, str]:
        """As text, for a table."""
        kind = str(
            getattr(self.type, "__name__", self.type) if get_origin(self.type) is None else self.type
        )
        default = "required" if self.default is dataclasses.MISSING else repr(self.default)
        return {
            "option": self.name,
            "type": kind.replace("typing.", ""),
            "default": default,
            "about": self.about,
        }


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Base of every frozen description; subclasses register by class name in a closed table."""

    abstract: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.abstract = "abstract" in cls.__dict__ and bool(cls.__dict__["abstract"])
        if not cls.abstract:
            _register(cls)

    def __post_init__(self) -> None:
        """Plain numbers only: NumPy's small integers would overflow in the arithmetic of a guarantee."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):
                value = value.item()
            if isinstance(value, numbers.Real) and not isinstance(value, int | float):
                value = (
                    int(value)
                    if isinstance(value, numbers.Integral)
                    else checks.number(field.name, value)
                )
            object.__setattr__(self, field.name, value)

    @classmethod
    def name(cls) -> str:
        """The class name as typed on the command line: ``ModifiedThompson`` → ``modified-thompson``."""
        split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", cls.__name__)
        return split.lower()

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Its fields, each with the sentence of its `Annotated` type."""
        hints, about = get_type_hints(cls), _sentences(cls)
        return tuple(
            Option(field.name, hints[field.name], _default(field), about.get(field.name, ""))
            for field in dataclasses.fields(cls)
        )

    def to_dict(self) -> dict[str, Any]:
        """This recipe as plain JSON values, with its kind."""
        pairs = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))
        return {"kind": type(self).__name__} | {key: _plain(value) for key, value in pairs}

    def to_json(self) -> str:
        """This recipe as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """The recipe a record describes; unknown kinds and fields are refused by name."""
        if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
            raise InvalidInput(f"expected a record with a 'kind', got {checks.shown(record)}")
        kind = _kind_named(record["kind"])
        if not issubclass(kind, cls):
            raise InvalidInput(f"expected a {cls.__name__}, got the record of a {kind.__name__}")
        values = {key: _recipe(value) for key, value in record.items() if key != "kind"}
        for key in values:
            checks.known(f"field of {kind.__name__}", key, (f.name for f in dataclasses.fields(kind)))
        try:
            return kind(**values)
        except TypeError as error:
            raise InvalidInput(f"the record of a {kind.__name__} is incomplete: {error}") from None

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The recipe one line of JSON describes."""
        try:
            record = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"not a recipe: {error}") from None
        return cls.from_dict(record)


def _sentences(cls: type[Recipe]) -> dict[str, str]:
    """By field; one that a subclass declares again without a sentence keeps that of its base."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        for name, declared in vars(base).get("__annotations__", {}).items():
            if get_origin(declared) is Annotated:
                found[name] = get_args(declared)[1]
    return found


def _default(field: "dataclasses.Field[Any]") -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


def _register(cls: type[Recipe]) -> None:
    """Put a class into the table. What a record of this package means cannot be changed from outside."""
    place, named = f"{cls.__module__}.{cls.__qualname__}", _KINDS.setdefault(cls.__name__, {})
    ours = [other for other in named if _is_ours(other) and other != place]
    if ours:
        raise InvalidInput(f"{place} has the name of {ours[0]}, whose records it would take over")
    if _is_ours(place):
        named.clear()
    named[place] = cls


def _is_ours(place: str) -> bool:
    return place.startswith("dpbandits.")


def _kind_named(name: str) -> type[Recipe]:
    named = _KINDS[checks.known("recipe", name, _KINDS)]
    if len(named) > 1:
        raise InvalidInput(f"several recipes are called {name!r}: {', '.join(sorted(named))}")
    return next(iter(named.values()))


def _plain(value: Any) -> Any:
    if isinstance(value, Recipe):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _recipe(value: Any) -> Any:
    if isinstance(value, dict):
        return Recipe.from_dict(value)
    if isinstance(value, list):
        return tuple(_recipe(item) for item in value)
    return value
