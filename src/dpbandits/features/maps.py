"""Rows of features, of one row of declared columns or of pairs of a person and an action."""

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from dpbandits import checks
from dpbandits.errors import InvalidInput, LooseBound, ShortenedFeatures
from dpbandits.features.columns import Column, Number
from dpbandits.features.tables import Array, Flags, columns_of
from dpbandits.recipes import FloatRows, Recipe

# Rows from which on, and the share of them from which on, being cut off is worth a warning.
MANY, SHARE = 100, 0.1
# A row is short below this share of `max_norm`; and the share of such rows that is worth a warning.
SHORT, SHARE_OF_SHORT = 0.5, 0.9


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
    """Declared columns as rows of numbers no longer than `max_norm`; see `dpbandits.features`.

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
        of two dimensions with just those columns, in this order. In a dictionary of one person's values
        what is not there is missing.
        """
        rows, outside, missing = self._read(table)
        for column, absent in zip(self.columns, missing, strict=True):
            if not column.allows_missing and absent.any():
                raise InvalidInput(
                    f"column {column.column!r} has no number in row {int(absent.argmax())}: say what "
                    f"stands for it, Number({column.column!r}, …, missing=0); rows must not be left out "
                    "for what they hold"
                )
        cut = np.logical_or.reduce(_numbers_only(self.columns, outside))
        if are_many(int(np.sum(cut)), rows.shape[0]):
            warn_of_shortened(2)
        short = are_short(np.vecdot(rows, rows), self.max_norm)
        if are_many(int(np.sum(short)), rows.shape[0], SHARE_OF_SHORT):
            warn_of_loose(2)
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
        found = columns_of(table, [column.column for column in self.columns])
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

    >>> from dpbandits.features import Category
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


def are_many(count: float, rows: float, share: float = SHARE) -> bool:
    """Whether so many rows were shortened or cut off (or are short) that it is worth a warning."""
    return count >= MANY and count >= share * rows


def are_short(squares: Any, max_norm: float) -> Any:
    """Whether rows, by squares of their lengths, are far within the bound; zeros tell nothing of it."""
    return (squares > 0.0) & (squares < (SHORT * max_norm) ** 2)


def warn_of_shortened(stacklevel: int) -> None:
    """Without the count, which is raw data."""
    warnings.warn(
        "many features are beyond the declared bounds, so they are cut off or shortened, and less is "
        "learned from them: declare ranges and max_norm that suit them, by public knowledge",
        ShortenedFeatures,
        stacklevel=stacklevel + 1,
    )


def warn_of_loose(stacklevel: int) -> None:
    """Without the count, which is raw data."""
    warnings.warn(
        "nearly all features are shorter than half of max_norm, and noise is made for rows as long as "
        "that: declare a smaller max_norm or narrower ranges, by public knowledge or by "
        "dpbandits.features.private_norm",
        LooseBound,
        stacklevel=stacklevel + 1,
    )


def _numbers_only(columns: Sequence[Column], flags: Sequence[Flags]) -> list[Flags]:
    """Those of numbers: a category that is not listed is cut off by intent."""
    chosen = zip(columns, flags, strict=True)
    return [one for column, one in chosen if isinstance(column, Number)] or [np.zeros(1, np.bool_)]
