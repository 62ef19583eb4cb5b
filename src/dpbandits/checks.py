"""Checks of arguments that name themselves: ``positive(epsilon=-1.0)`` says what it expected."""

import difflib
import math
import numbers
from collections.abc import Callable, Iterable

import numpy as np

from dpbandits.errors import InvalidInput, UnknownName


def number(name: str, value: object) -> float:
    """The value as one real number (not a string, a list or an array)."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(f"expected {name} to be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond double precision
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def reward(value: object) -> float:
    """One number, also as a boolean or an array without axes; NaN and what is no number are refused."""
    if type(value) is not float:
        if value is None:
            value = math.nan
        elif isinstance(value, bool | np.bool_ | np.ndarray) and np.ndim(value) == 0:
            value = float(value)
        value = number("reward", value)
    if math.isnan(value):
        raise InvalidInput("expected reward to be a number, got nan; use skip() for a missing one")
    return float(value)


def _each(condition: Callable[[float], bool], expected: str, values: dict[str, object]) -> None:
    for name, value in values.items():
        # A NaN fails every comparison, so it is refused by each condition.
        if not condition(number(name, value)):
            raise InvalidInput(f"expected {name} {expected}, got {value}")


def positive(**values: object) -> None:
    """Each value is a finite number above 0."""
    _each(lambda x: 0 < x < math.inf, "> 0 and finite", values)


def not_negative(**values: object) -> None:
    """Each value is a finite number, 0 or above."""
    _each(lambda x: 0 <= x < math.inf, ">= 0 and finite", values)


def open_unit(**values: object) -> None:
    """Each value lies strictly between 0 and 1."""
    _each(lambda x: 0 < x < 1, "strictly between 0 and 1", values)


def above_one(**values: object) -> None:
    """Each value is a finite number above 1."""
    _each(lambda x: 1 < x < math.inf, "> 1 and finite", values)


def unit(**values: object) -> None:
    """Each value lies in [0, 1]."""
    _each(lambda x: 0 <= x <= 1, "in [0, 1]", values)


def integer(*, least: int, **values: object) -> None:
    """Each value is a whole number of at least `least`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
            raise InvalidInput(f"expected {name} to be a whole number >= {least}, got {value!r}")


def one_of(options: Iterable[object], **values: object) -> None:
    """Each value is one of the options."""
    allowed = list(options)
    for name, value in values.items():
        if value not in allowed:
            listed = ", ".join(repr(option) for option in allowed)
            raise InvalidInput(f"expected {name} to be one of {listed}, got {value!r}")


def known(kind: str, name: str, names: Iterable[str]) -> str:
    """`name`, if it is one of `names`; otherwise an error that suggests the nearest."""
    options = sorted(names)
    if name in options:
        return name
    near = difflib.get_close_matches(name, options, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(options)}"
    raise UnknownName(f"no {kind} is called {name!r}; {hint}")
