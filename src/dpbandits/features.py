"""Columns of people as rows of numbers within a bound: by what is declared, never by what was seen.

A linear policy protects features by a bound on their length, `max_norm`. Raw columns (ages, countries)
must be brought to numbers within it first, and what that is done by is public: a range taken from the
data would give away its oldest person. So a `FeatureMap` is a recipe of *declarations*: ranges, lists of
categories, numbers of buckets. It has no `fit`.

**Within the bound by construction.** Each of the m declared columns (the intercept is one) becomes a
block of numbers of length at most 1: a number in [−1, 1], or a row with a single 1. All blocks are
multiplied by max_norm/√m, so no row is ever longer than `max_norm`, and none is shortened, which would
blur people who differ.

**What is outside.** A number beyond its range is cut off to the nearer end, one that is missing is what
`missing` says, or refused. `check` counts both. Those counts are raw data: they are for the operator, as
is the warning (`ShortenedFeatures`) when a tenth of the rows or more was cut off.
"""

import hashlib
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput, ShortenedFeatures
from dpbandits.recipes import FloatRows, Recipe

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
# Rows from which on, and the share of them from which on, being cut off is worth a warning.
MANY, SHARE = 100, 0.1


class Block(NamedTuple):
    """A column as numbers: (n, width), and which of its values were cut off, or not known."""

    numbers: Array
    outside: Flags
    missing: Flags


@dataclass(frozen=True)
class Column(Recipe):
    """How one column becomes a block of numbers of length at most 1."""

    abstract: ClassVar[bool] = True

    column: Annotated[str, "The name of the column."]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.column, str) or not self.column:
            raise InvalidInput(
                f"expected column to be the name of a column, got {checks.shown(self.column)}"
            )

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers it becomes."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """What each of them is called."""

    @abstractmethod
    def block(self, values: NDArray[Any]) -> Block:
        """The values of n rows, as numbers; NaN where a number is missing."""


@dataclass(frozen=True)
class Number(Column):
    """A number within [low, high], as one within [−1, 1]; beyond the range it is cut off."""

    low: Annotated[float, "The lowest that is told apart; declared, not the lowest of the data."]
    high: Annotated[float, "The highest that is told apart."]
    missing: Annotated[float | None, "What stands for a missing one, which is refused otherwise."] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("low", self.low), ("high", self.high)):
            if abs(checks.number(name, value)) > checks.MOST_BOUND or math.isnan(value):
                raise InvalidInput(f"expected {name} to be a finite number, got {checks.shown(value)}")
        if not self.low < self.high:
            raise InvalidInput(
                f"expected low < high for column {self.column!r}, got {self.low!r} and {self.high!r}"
            )
        if self.missing is not None and not (
            self.low <= checks.number("missing", self.missing) <= self.high
        ):
            raise InvalidInput(
                f"expected missing to be within {self.low:g} and {self.high:g}, "
                f"got {checks.shown(self.missing)}"
            )

    @property
    def width(self) -> int:
        """One number."""
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        """That of the column."""
        return (self.column,)

    def block(self, values: NDArray[Any]) -> Block:
        """Scaled, cut off."""
        numbers = _numbers(self.column, values)
        missing = np.isnan(numbers)
        if self.missing is not None:
            numbers = np.where(missing, self.missing, numbers)
        outside = (numbers < self.low) | (numbers > self.high)  # NaN is neither
        middle, half = 0.5 * self.low + 0.5 * self.high, 0.5 * self.high - 0.5 * self.low
        scaled = np.clip((np.clip(numbers, self.low, self.high) - middle) / half, -1.0, 1.0)
        return Block(scaled[:, None], outside, missing)


@dataclass(frozen=True)
class Category(Column):
    """One column of 0 and 1 for each of the declared values; anything else is a row of zeros.

    Values are compared as text, whole numbers without a point, so that 3, 3.0 and "3" are the same. With
    `other=True` what is not listed, or missing, has a column of its own.
    """

    values: Annotated[Sequence[Any], "The values that are told apart."]
    other: Annotated[bool, "Whether all other values together have a column of their own."] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of((True, False), other=self.other)
        listed = checks.sequence(f"the values of {self.column!r}", self.values)
        checks.integer(least=1, limit=checks.MOST_FEATURES, values=len(listed))
        texts = tuple(_text(self.column, value) or "" for value in listed)
        if "" in texts or len(set(texts)) < len(texts):
            raise InvalidInput(f"expected the values of {self.column!r} to differ, and none to be empty")
        object.__setattr__(self, "values", texts)

    @property
    def width(self) -> int:
        """One for each value, and one for others."""
        return len(self.values) + self.other

    @property
    def names(self) -> tuple[str, ...]:
        """`column=value`."""
        return tuple(f"{self.column}={value}" for value in (*self.values, *("other",) * self.other))

    def block(self, values: NDArray[Any]) -> Block:
        """One-hot."""
        place = {text: index for index, text in enumerate(self.values)}
        unlisted = len(place) if self.other else -1
        found, missing = _by_text(
            self.column, values, lambda text: place.get(text, unlisted), absent=unlisted
        )
        outside = (found == unlisted) & ~missing
        return Block(_one_hot(found, self.width), outside, missing)


@dataclass(frozen=True)
class Hashed(Column):
    """One of `buckets` columns is 1, by a hash of the value: for more values than can be listed.

    Values that share a bucket are not told apart. The hash (BLAKE2b of the column's name and the value
    as text) has no key, so it is the same everywhere. A missing value is a row of zeros.
    """

    buckets: Annotated[int, "How many columns there are."]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(least=1, limit=checks.MOST_FEATURES, buckets=self.buckets)

    @property
    def width(self) -> int:
        """The buckets."""
        return self.buckets

    @property
    def names(self) -> tuple[str, ...]:
        """`column#bucket`."""
        return tuple(f"{self.column}#{bucket}" for bucket in range(self.buckets))

    def bucket(self, text: str) -> int:
        """That of a value."""
        named = f"{len(self.column)}:{self.column}={text}".encode()
        digest = hashlib.blake2b(named, digest_size=8).digest()
        return int.from_bytes(digest, "little") % self.buckets

    def block(self, values: NDArray[Any]) -> Block:
        """One-hot, by bucket."""
        found, missing = _by_text(self.column, values, self.bucket, absent=-1)
        return Block(_one_hot(found, self.width), np.zeros(found.size, np.bool_), missing)


@dataclass(frozen=True)
class Features(Recipe):
    """What turns a person's columns into features, within `max_norm` and `dimension` of them."""

    abstract: ClassVar[bool] = True

    @property
    @abstractmethod
    def dimension(self) -> int:
        """The number of features."""

    @property
    @abstractmethod
    def max_norm(self) -> float:
        """The longest that a row of them can be."""

    @abstractmethod
    def context(self, offered: Any) -> tuple[Array, bool]:
        """The features of the table that a person brought, and whether anything of it was cut off."""

    @abstractmethod
    def each(self, table: Any) -> list[Array]:
        """The features of every person of a table with one row for each."""


@dataclass(frozen=True)
class FeatureMap(Features):
    """Declared columns as rows of numbers no longer than `max_norm`; see the head of this file.

    >>> import dpbandits as dpb
    >>> from dpbandits.features import Category, FeatureMap, Number
    >>> features = FeatureMap([Number("age", 18, 90), Category("country", ["de", "fr"])])
    >>> features.names
    ('intercept', 'age', 'country=de', 'country=fr')
    >>> features.rows({"age": [18, 54], "country": ["fr", "at"]}).round(2)
    array([[ 0.58, -0.58,  0.  ,  0.58],
           [ 0.58,  0.  ,  0.  ,  0.  ]])

    A map belongs to a problem, whose learners then take such tables:

    >>> problem = dpb.LinearContexts.of(features, arms=3)
    >>> learner = dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(1.0)).start(problem, compiled=False)
    >>> learner.select({"age": 31, "country": "de"}) in range(3)
    True
    """

    columns: Annotated[Sequence[Column], "How each column becomes numbers."]
    intercept: Annotated[bool, "Whether there is a first feature that is the same for everybody."] = (
        field(default=True, kw_only=True)
    )
    max_norm: Annotated[float, "No row is longer than this."] = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        columns = tuple(checks.sequence("columns", self.columns))
        wrong = [column for column in columns if not isinstance(column, Column)]
        if wrong or not columns:
            found = checks.shown(wrong[0]) if wrong else "none"
            raise InvalidInput(
                f'expected columns such as Number("age", 18, 90) or Category("country", ["de", "fr"]), '
                f"got {found}"
            )
        named = [column.column for column in columns]
        twice = [name for name in named if named.count(name) > 1]
        if twice:
            raise InvalidInput(f"column {twice[0]!r} is declared twice")
        object.__setattr__(self, "columns", columns)
        checks.one_of((True, False), intercept=self.intercept)
        checks.bound(max_norm=self.max_norm)
        checks.integer(least=1, limit=checks.MOST_FEATURES, dimension=self.dimension)

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self.intercept + sum(column.width for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """What each feature is called."""
        names = [name for column in self.columns for name in column.names]
        return (*("intercept",) * self.intercept, *names)

    def rows(self, table: Any) -> Array:
        """The features of every row, (n, dimension), in double precision.

        `table` has the declared columns (others are left alone): a frame of polars or pandas, an Arrow
        table, a dictionary of sequences or of one person's values, a list of dictionaries, or an array
        of two dimensions with just those columns, in this order.
        """
        rows, outside, missing = self._read(table)
        for column, absent in zip(self.columns, missing, strict=True):
            if isinstance(column, Number) and column.missing is None and absent.any():
                raise InvalidInput(
                    f"column {column.column!r} has no number in row {int(absent.argmax())}: drop such "
                    f"rows, or say what stands for it: Number({column.column!r}, …, missing=0)"
                )
        cut = np.logical_or.reduce(_numbers_only(self.columns, outside))
        if are_many(int(np.sum(cut)), rows.shape[0]):
            warn_of_shortened(2)
        return rows

    def check(self, table: Any) -> "Checked":
        """How well the declarations fit a table. Raw data: for the operator, not to be published."""
        rows, outside, missing = self._read(table)
        names = [column.column for column in self.columns]
        return Checked(
            rows.shape[0],
            {name: int(flags.sum()) for name, flags in zip(names, outside, strict=True)},
            {name: int(flags.sum()) for name, flags in zip(names, missing, strict=True)},
        )

    def context(self, offered: Any) -> tuple[Array, bool]:
        """One row for each that was brought; NaN where a number is missing, so that the round counts."""
        rows, outside, _ = self._read(offered)
        return rows, any(flags.any() for flags in _numbers_only(self.columns, outside))

    def each(self, table: Any) -> list[Array]:
        """One vector for each; NaN where a number is missing."""
        return list(self._read(table)[0])

    def _read(self, table: Any) -> tuple[Array, list[Flags], list[Flags]]:
        found = _columns_of(table, [column.column for column in self.columns])
        size = len(found[0])
        checks.room("features of this table", size * self.dimension)
        blocks = [column.block(values) for column, values in zip(self.columns, found, strict=True)]
        parts = [np.ones((size, 1))] * self.intercept + [block.numbers for block in blocks]
        # A trifle shorter, so that rounding makes no row longer.
        scale = self.max_norm / math.sqrt(len(parts)) * (1.0 - 1e-12)
        rows = np.concatenate(parts, axis=1)
        rows *= scale
        return rows, [block.outside for block in blocks], [block.missing for block in blocks]


@dataclass(frozen=True)
class CrossedFeatures(Features):
    """Features of every pair of a person and an action: all products of a feature of each.

    `actions` are the features of the K actions that there are, public and the same for everybody; a
    person brings her own columns alone. The features of the pair are the outer product of both rows, so
    their length is the product of both lengths. Where both maps have an intercept, what a person or an
    action is like by itself is among the products. For parameters of its own for every action, which
    need no features of actions, there is ``LinearContexts.of(person, arms=K)``.

    >>> person = FeatureMap([Number("age", 18, 90)])
    >>> action = FeatureMap([Category("kind", ["film", "series"])])
    >>> pairs = CrossedFeatures.of(person, action, {"kind": ["film", "series", "film"]})
    >>> pairs.context({"age": 40})[0].shape
    (3, 6)
    """

    person: Annotated[FeatureMap, "How the columns of a person become numbers."]
    actions: Annotated[FloatRows, "One row of numbers for each action; public."]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.person, FeatureMap):
            raise InvalidInput(f"expected person to be a FeatureMap, got {checks.shown(self.person)}")
        rows = checks.array("actions as rows of equally many numbers", self.actions)
        if rows.ndim != 2 or rows.size == 0 or not np.isfinite(rows).all():
            raise InvalidInput("expected actions as rows of equally many finite numbers")
        checks.integer(least=1, limit=checks.MOST_ACTIONS, actions=rows.shape[0])
        object.__setattr__(self, "actions", tuple(tuple(row) for row in rows.tolist()))
        checks.bound(max_norm=self.max_norm)
        checks.integer(least=1, limit=checks.MOST_FEATURES, dimension=self.dimension)

    @classmethod
    def of(cls, person: FeatureMap, action: FeatureMap, table: Any) -> "CrossedFeatures":
        """The actions are the rows of a public table, by a map of their own."""
        return cls(person, action.rows(table))

    @property
    def dimension(self) -> int:
        """Features of a person times those of an action."""
        return self.person.dimension * len(self.actions[0])

    @property
    def max_norm(self) -> float:
        """The longest that a pair can be."""
        return self.person.max_norm * max(math.hypot(*row) for row in self.actions)

    def context(self, offered: Any) -> tuple[Array, bool]:
        """The features of all K pairs of one person, (K, dimension)."""
        rows, cut = self.person.context(offered)
        if rows.shape[0] != 1:
            raise InvalidInput(f"expected the columns of one person, got {rows.shape[0]} rows")
        return self.pairs(rows[0]), cut

    def each(self, table: Any) -> list[Array]:
        """(K, dimension) for each."""
        return [self.pairs(hers) for hers in self.person.each(table)]

    def pairs(self, hers: Array) -> Array:
        """The features of all K pairs of a person whose own are these."""
        products: Array = np.array(self.actions)[:, :, None] * hers
        return products.reshape(len(self.actions), -1)


@dataclass(frozen=True)
class Checked:
    """How many values of each column a map cut off (or did not list), and how many were missing."""

    rows: int
    outside: Mapping[str, int]
    missing: Mapping[str, int]

    def __str__(self) -> str:
        lines = [f"{self.rows:,} rows (these counts are raw data: not to be published)"]
        for name, count in self.outside.items():
            lines.append(f"{name}: {count:,} outside, {self.missing[name]:,} missing")
        return "\n".join(lines)


def is_table(offered: Any) -> bool:
    """Whether it has named columns: what a `FeatureMap` is for; arrays hold features as they are."""
    if isinstance(offered, list | tuple):
        return len(offered) > 0 and isinstance(offered[0], Mapping)
    return isinstance(offered, Mapping) or _names_of(offered) is not None


def are_many(shortened: int, rows: int) -> bool:
    """Whether so many rows were shortened or cut off that it is worth a warning."""
    return shortened >= MANY and shortened >= SHARE * rows


def warn_of_shortened(stacklevel: int) -> None:
    """Without the count, which is raw data."""
    warnings.warn(
        "many features are beyond the declared bounds, so they are cut off or shortened, and less is "
        "learned from them: declare ranges and max_norm that suit them, by public knowledge",
        ShortenedFeatures,
        stacklevel=stacklevel + 1,
    )


def _numbers_only(columns: Sequence[Column], flags: Sequence[Flags]) -> list[Flags]:
    """Those of numbers: a category that is not listed is cut off by intent."""
    chosen = zip(columns, flags, strict=True)
    return [one for column, one in chosen if isinstance(column, Number)] or [np.zeros(1, np.bool_)]


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


def _columns_of(table: Any, wanted: list[str]) -> list[NDArray[Any]]:
    """The wanted columns, equally long."""
    if hasattr(table, "collect_schema") and hasattr(table, "collect"):  # polars' lazy frame
        _refuse_unknown(wanted, table.collect_schema().names())
        table = table.select(wanted).collect()
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


def _refuse_unknown(wanted: Iterable[str], names: Iterable[Any]) -> None:
    known = [name for name in names if isinstance(name, str)]
    for name in wanted:
        checks.known("column", name, known)


def _from_rows(rows: Sequence[Any], wanted: list[str]) -> dict[str, list[Any]]:
    if not all(isinstance(row, Mapping) for row in rows):
        raise InvalidInput("expected a list of dictionaries, one for each row")
    _refuse_unknown(wanted, {name for row in rows for name in row})
    return {name: [row.get(name) for row in rows] for name in wanted}


def _values(name: str, values: Any) -> NDArray[Any]:
    """A column as an array; one value of one person as a column of one."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
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


def _is_missing(value: Any) -> bool:
    """None, NaN, and what pandas has instead."""
    return value is None or (isinstance(value, float) and value != value) or _is_na(value)


def _is_na(value: Any) -> bool:
    return type(value).__name__ in ("NAType", "NaTType")


def _numbers(name: str, values: NDArray[Any]) -> Array:
    """A column of numbers; NaN where one is missing."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind == "O":
        return np.array([_number(name, value) for value in values], np.float64)
    raise InvalidInput(f"column {name!r} is declared to hold numbers, got {values.dtype}")


def _number(name: str, value: Any) -> float:
    if _is_missing(value):
        return math.nan
    if isinstance(value, bool | np.bool_ | Decimal):
        return float(value)
    try:
        return checks.number(name, value)
    except InvalidInput:
        raise InvalidInput(
            f"column {name!r} is declared to hold numbers, got {checks.kind_of(value)}"
        ) from None


def _text(name: str, value: Any) -> str | None:
    """A category as text, the same whether a file held it as text or as a number; None if missing."""
    if isinstance(value, str):
        return str(value)
    if _is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return None if number != number else str(int(number)) if number.is_integer() else repr(number)
    raise InvalidInput(f"column {name!r} is to hold texts or numbers, got {checks.kind_of(value)}")


def _by_text(
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
    texts = [_text(name, value) for value in distinct]
    places = np.array([absent if text is None else place(text) for text in texts], np.int64)
    missing = np.array([text is None for text in texts], np.bool_)
    return places[inverse], missing[inverse]


def _one_hot(places: NDArray[np.int64], width: int) -> Array:
    block = np.zeros((places.size, width))
    known = np.flatnonzero(places >= 0)
    block[known, places[known]] = 1.0
    return block
