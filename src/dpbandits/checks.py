"""Checks of arguments that name themselves: ``positive(epsilon=-1.0)`` says what it expected.

The limits here are public: within them no arithmetic of a run overflows or loses whole numbers, and no
state is larger than memory; beyond them an argument is refused before anything starts.
"""

import difflib
import math
import numbers
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.errors import InvalidInput, UnknownName

# Rounds, and the lengths of batches: exact in double precision, and a thousandfold fits 64 bits.
MOST_ROUNDS = 10**15
# Options that multiply such lengths.
MOST_GROWTH = 1000.0
# Options that are plain factors, either way: their products, squares and inverses are numbers.
MOST_SCALE = 1e12
# Bounds on data, either way: of 1e-310 the inverse is infinite.
MOST_BOUND = 1e100
_BOUND = "within 1e-100 and 1e+100, so that squares are numbers: use other units"
_MOST_LISTED = 60  # names in an error
MOST_ACTIONS = 100_000  # arms, rows of features, pairs of context and action
MOST_ITEMS = 10_000  # of a matroid
MOST_FEATURES = 1_000  # whose Gram matrix is a million numbers
MOST_BLOCK = 4_096  # batches whose noise is drawn together
MOST_IN_FLIGHT = 10_000_000
MOST_ROUNDS_PER_PERSON = 10_000
MOST_NUMBERS = 2**28  # of one array of a state: two gigabytes


def number(name: str, value: object) -> float:
    """The value as one real number (not a string, a list or an array)."""
    # A time span passes for a whole number with NumPy.
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, numbers.Real):
        raise InvalidInput(f"expected {name} to be a number, got {shown(value)}")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond double precision
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def shown(value: object) -> str:
    """The value in an error: short, on one line, and there even if it cannot be printed."""
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__} that cannot be printed"
    text = " ".join(text.split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def kind_of(value: object) -> str:
    """What sort of thing it is. Not what it holds: data of people must not reach logs by an error."""
    shape = value.shape if isinstance(value, np.ndarray) else None
    return type(value).__name__ + ("" if shape is None else f" of shape {shape}")


def array(what: str, value: Any) -> NDArray[np.float64]:
    """The value as a fresh array of real numbers; `what` says what was expected.

    Texts, dates, complex numbers and objects are refused, not converted: what NumPy makes of them is
    seldom what was meant. So are masked arrays, whose hidden entries it would take.
    """
    try:
        found = None if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
    except Exception:  # rows of different lengths, or whatever the object's own conversion raises
        found = None
    if found is None or found.dtype.kind not in "biuf":
        raise InvalidInput(f"expected {what}, got {kind_of(value)}")
    if found.dtype.itemsize <= 8:
        return np.array(found, dtype=np.float64, order="C")
    with np.errstate(over="ignore"):  # of longer numbers
        return np.array(found, dtype=np.float64, order="C")


def sequence(what: str, values: Any) -> list[Any]:
    """The values as a list; a text is none."""
    try:
        listed = None if isinstance(values, str | bytes) else list(values)
    except Exception:  # whatever the object's own iterator raises
        listed = None
    if listed is None:
        raise InvalidInput(f"expected {what} as a sequence, got {kind_of(values)}")
    return listed


def room(what: str, count: int) -> None:
    """Refuse an array of more numbers than fit into memory."""
    if count > MOST_NUMBERS:
        raise InvalidInput(
            f"{what} takes {count:,} numbers, more than {MOST_NUMBERS:,}: make it smaller"
        )


def seed(value: object) -> None:
    """A whole number, 0 or above, of up to 1,000 digits."""
    integer(least=0, limit=None, seed=value)
    if int(value) >= 10**1000:  # type: ignore[call-overload]
        raise InvalidInput("expected seed to have at most 1,000 digits")


def reward(value: object) -> float:
    """One number, also as a boolean or an array without axes; NaN and all else are refused."""
    if type(value) is not float:
        if value is None:
            value = math.nan
        elif isinstance(value, bool | np.bool_ | np.ndarray) and np.ndim(value) == 0:
            value = float(array("reward to be a number", value))
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise InvalidInput(f"expected reward to be a number, got {kind_of(value)}")
        value = number("reward", value)
    if math.isnan(value):
        raise InvalidInput("expected reward to be a number, got nan; use skip() for a missing one")
    return float(value)


def _each(condition: Callable[[float], bool], expected: str, values: dict[str, object]) -> None:
    for name, value in values.items():
        # A NaN fails every comparison, so it is refused by each condition.
        if not condition(number(name, value)):
            raise InvalidInput(f"expected {name} {expected}, got {shown(value)}")


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


def scale(**values: object) -> None:
    """Each value is a factor that does not overflow: from 1/`MOST_SCALE` to `MOST_SCALE`."""
    low, high = 1.0 / MOST_SCALE, MOST_SCALE
    _each(lambda x: low <= x <= high, f"within {low:g} and {high:g}", values)


def growth(*, above: float = 0.0, **values: object) -> None:
    """Each value is a factor that lengths may grow by: above `above`, at most `MOST_GROWTH`."""
    most = MOST_GROWTH
    _each(lambda x: above < x <= most, f"> {above:g} and at most {most:g}", values)


def width(**values: object) -> None:
    """Each value is a factor that may be 0: at most `MOST_SCALE`."""
    _each(lambda x: 0 <= x <= MOST_SCALE, f">= 0 and at most {MOST_SCALE:g}", values)


def risk(**values: object) -> None:
    """Each value is a small probability: at least 1/`MOST_SCALE`, below 1."""
    least = 1.0 / MOST_SCALE
    _each(lambda x: least <= x < 1, f"at least {least:g} and below 1", values)


def bound(**values: object) -> None:
    """Each value is a bound on data, in any units in which its square is a number."""
    _each(lambda x: 1.0 / MOST_BOUND <= x <= MOST_BOUND, _BOUND, values)


def low_and_high(name: str, given: object) -> tuple[float, float]:
    """Two numbers, the smaller first."""
    ends = sequence(name, given)
    if len(ends) != 2:
        raise InvalidInput(f"expected {name} as (low, high), got {shown(given)}")
    low, high = (number(name, end) for end in ends)
    if not -MOST_BOUND <= low < high <= MOST_BOUND:
        raise InvalidInput(f"expected {name} as (low, high), low below high; got {(low, high)}")
    return low, high


def integer(*, least: int, limit: int | None = MOST_ROUNDS, **values: object) -> None:
    """Each value is a whole number of at least `least`, and at most `limit` where that is not None."""
    for name, value in values.items():
        if isinstance(value, bool | np.timedelta64) or not isinstance(value, numbers.Integral):
            found = least - 1
        else:
            found = int(value)
        if found < least:
            raise InvalidInput(f"expected {name} to be a whole number >= {least}, got {shown(value)}")
        if limit is not None and found > limit:
            raise InvalidInput(f"expected {name} to be at most {limit:,}, got {shown(value)}")


def one_of(options: Iterable[object], **values: object) -> None:
    """Each value is one of the options."""
    allowed = list(options)
    for name, value in values.items():
        # By type as well: 1 is not True, and an array is equal to nothing.
        if not any(type(value) is type(option) and value == option for option in allowed):
            listed = ", ".join(repr(option) for option in allowed)
            raise InvalidInput(f"expected {name} to be one of {listed}, got {shown(value)}")


def known(kind: str, name: str, names: Iterable[str]) -> str:
    """`name`, if it is one of `names`; otherwise an error that suggests the nearest."""
    options = sorted(names)
    if not isinstance(name, str):
        raise UnknownName(f"expected the name of a {kind}, got {shown(name)}")
    if name in options:
        return name
    near = difflib.get_close_matches(name, options, n=1, cutoff=0.6)
    near = near or difflib.get_close_matches(name.lower(), options, n=1, cutoff=0.6)
    near = near or [option for option in options if name and name in option]
    listed = ", ".join(options[:_MOST_LISTED]) + (", …" if len(options) > _MOST_LISTED else "")
    hint = f"did you mean {near[0]!r}?" if near else f"known are: {listed}"
    raise UnknownName(f"no {kind} is called {name!r}; {hint}")
