"""Draws in compiled code, for generators that are named tuples.

Compiled code finds a method by the type it is called on, and the first declaration wins: so there is one
for each kind of draw, which looks at the class of the tuple.
"""

from collections.abc import Callable
from typing import Any

from numba import types

from dpbandits.engine.verbs import INLINED, declare_method

SIGNATURES: dict[str, tuple[str, ...]] = {
    "random": ("self",),
    "standard_normal": ("self",),
    "normal": ("self", "loc", "scale"),
    "laplace": ("self", "loc", "scale"),
    "binomial": ("self", "n", "p"),
    "chisquare": ("self", "df"),
}
_FUNCTIONS: dict[tuple[type, str], Callable[..., Any]] = {}


def compile_draws(generator: type, **functions: Callable[..., Any]) -> None:
    """What compiled code calls for these methods of a class of generators."""
    for method, function in functions.items():
        _FUNCTIONS[generator, method] = function


def _declare(method: str, names: tuple[str, ...]) -> None:
    # Fields all of one type: not for all named tuples, since some have a field called `laplace`.
    declare_method(
        types.NamedUniTuple, method, names, lambda kind: _FUNCTIONS.get((kind, method)), INLINED
    )


for _method, _names in SIGNATURES.items():
    _declare(_method, _names)
