"""Columns of whatever has named columns, as arrays; and their values as numbers or texts."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
_LARGEST = 10**1000  # whole numbers that are written out


def is_table(offered: Any) -> bool:
    """Whether it has named columns: what a `FeatureMap` is for; arrays hold features as they are."""
    if isinstance(offered, list | tuple):
        return len(offered) > 0 and isinstance(offered[0], Mapping)
    return isinstance(offered, Mapping) or _names_of(offered) is not None


def _names_of(table: Any) -> list[str] | None:
    """The names of its columns, where it has any."""
    if isinstance(table, np.ndarray):
        return None if table.dtype.names is None else list(table.dtype.names)
    names = getattr(table, "column_names", None)  # Arrow's `columns` are the columns themselves
    if names is None:
        names = getattr(table, "columns", None)
    if names is None and hasattr(table, "to_dict"):
        names = getattr(table, "index", None)  # one row of a frame
    try:
        return None if names is None else list(names)
    except TypeError:
        return None


def columns_of(table: Any, wanted: list[str]) -> list[NDArray[Any]]:
    """The wanted columns, equally long."""
    if hasattr(table, "collect_schema") and hasattr(table, "collect"):  # polars' lazy frame
        _refuse_unknown(wanted, table.collect_schema().names())
        table = table.select(wanted).collect()
    if isinstance(table, Mapping) and _is_of_one(table, wanted):
        table = [table]
    if isinstance(table, list | tuple) and table and isinstance(table[0], Mapping):
        table = _from_rows(table, wanted)
    if isinstance(table, np.ndarray) and table.dtype.names is None:
        if table.ndim != 2 or table.shape[1] != len(wanted):
            raise InvalidInput(f"expected an array of {len(wanted)} columns, got shape {table.shape}")
        columns = list(table.T)
    else:
        names = list(table) if isinstance(table, Mapping) else _names_of(table)
        if names is None:
            raise InvalidInput(
                f"expected a table with columns {', '.join(wanted)}, got {checks.kind_of(table)}"
            )
        _refuse_unknown(wanted, names)
        columns = [_values(name, table[name]) for name in wanted]
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise InvalidInput(f"expected columns of one length, got {sorted(lengths)}")
    if lengths == {0}:
        raise InvalidInput("expected a table with at least one row, got none")
    return columns


def _is_of_one(table: Mapping[Any, Any], wanted: list[str]) -> bool:
    """Whether it has one person's values, by those that are wanted, or by all if none of them is."""
    there = [name for name in wanted if name in table] or list(table)
    return all(_is_single(table[name]) for name in there)


def _refuse_unknown(wanted: Iterable[str], names: Iterable[Any]) -> None:
    known = [name for name in names if isinstance(name, str)]
    for name in wanted:
        checks.known("column", name, known)


def _from_rows(rows: Sequence[Any], wanted: list[str]) -> dict[str, list[Any]]:
    if not all(isinstance(row, Mapping) for row in rows):
        raise InvalidInput("expected a list of dictionaries, one for each row")
    # What a person leaves out is missing: refused, her round would not count.
    return {name: [row.get(name) for row in rows] for name in wanted}


def _values(name: str, values: Any) -> NDArray[Any]:
    """A column as an array; one value of one person as a column of one."""
    if _is_single(values):
        values = [values]
    if isinstance(values, list | tuple) and not all(isinstance(one, int | float) for one in values):
        found = np.empty(len(values), object)
        found[:] = values
        return found
    try:
        array = np.asarray(values)
    except Exception:  # whatever the object's own conversion raises
        raise InvalidInput(f"column {name!r} cannot be read, got {checks.kind_of(values)}") from None
    if array.ndim != 1:
        raise InvalidInput(f"expected one value a row in column {name!r}, got shape {array.shape}")
    return array


def _is_single(value: Any) -> bool:
    return isinstance(value, str | bytes) or not hasattr(value, "__len__")


def is_missing(value: Any) -> bool:
    """None, NaN, and what pandas has instead."""
    return value is None or (isinstance(value, float) and value != value) or _is_na(value)


def _is_na(value: Any) -> bool:
    return type(value).__name__ in ("NAType", "NaTType")


def numbers_of(name: str, values: NDArray[Any]) -> Array:
    """A column of numbers; NaN where one is missing."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind == "O":
        return np.array([_number(name, value) for value in values], np.float64)
    raise InvalidInput(f"column {name!r} is declared to hold numbers, got {values.dtype}")


def _number(name: str, value: Any) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, Decimal):
        return math.nan if value.is_nan() else float(value)  # one that signals is no float
    if isinstance(value, bool | np.bool_):
        return float(value)
    try:
        return checks.number(name, value)
    except InvalidInput:
        raise InvalidInput(
            f"column {name!r} is declared to hold numbers, got {checks.kind_of(value)}"
        ) from None


def text_of(name: str, value: Any) -> str | None:
    """A category as text, the same whether a file held it as text or as a number; None if missing.

    So is a number of more digits than Python writes: a person may bring what she likes.
    """
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value)) if abs(int(value)) < _LARGEST else None
    if isinstance(value, float | np.floating):
        number = float(value)
        return None if number != number else str(int(number)) if number.is_integer() else repr(number)
    raise InvalidInput(f"column {name!r} is to hold texts or numbers, got {checks.kind_of(value)}")


def places_of(
    name: str, values: NDArray[Any], place: Callable[[str], int], *, absent: int
) -> tuple[NDArray[np.int64], Flags]:
    """The place of every value, found once for each that differs; and which are missing."""
    if values.dtype.kind == "O":
        codes: dict[Any, int] = {}
        # True is 1 for a dictionary, and not for us.
        keys = (value if type(value) is str else (type(value), value) for value in values)
        try:
            inverse = np.array([codes.setdefault(key, len(codes)) for key in keys], np.int64)
        except TypeError:  # of what cannot be a key, such as a list
            raise InvalidInput(f"column {name!r} is to hold texts or numbers") from None
        distinct: Iterable[Any] = (key if type(key) is str else key[1] for key in codes)
    else:
        found, inverse = np.unique(values, return_inverse=True)
        distinct = found.tolist() if values.dtype.kind in "biufU" else found
    texts = [text_of(name, value) for value in distinct]
    places = np.array([absent if text is None else place(text) for text in texts], np.int64)
    missing = np.array([text is None for text in texts], np.bool_)
    return places[inverse], missing[inverse]


def one_hot(places: NDArray[np.int64], width: int) -> Array:
    """A 1 at each row's place; a row of zeros where that is below 0."""
    block = np.zeros((places.size, width))
    known = np.flatnonzero(places >= 0)
    block[known, places[known]] = 1.0
    return block
