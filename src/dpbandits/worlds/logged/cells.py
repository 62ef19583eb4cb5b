"""The contexts of a log: combinations of values of columns, what was paid in each, their features."""

import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput, ShortenedFeatures
from dpbandits.extras import extra
from dpbandits.features import Category, FeatureMap, Number
from dpbandits.wording import counted
from dpbandits.worlds.logged.table import ACTION, Label, Log, sorted_labels

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]
_MANY = 0.1  # the share of rows from which on being cut off is worth a warning
_MOST_CONTEXTS = 2**18  # a recipe holds features and rates of all
_ONE, _ROW, _COLUMN = "dpbandits:one", "dpbandits:row", "dpbandits:column"


class Features(Protocol):
    """What makes features of columns, such as a `FeatureMap`."""

    @property
    def max_norm(self) -> float:
        """How long a row can be."""

    def rows(self, frame: Any) -> Array:
        """The (n, d) features of the n rows of a frame."""


class LoggedCells(NamedTuple):
    """What was paid in each context for each action."""

    actions: list[Label]
    contexts: "pl.DataFrame"  # (C rows)
    weights: Array  # (C, K)
    totals: Array  # (C, K)

    @classmethod
    def of(cls, pairs: "pl.DataFrame", context: Sequence[str]) -> "LoggedCells":
        """Of the sums of each action in each context."""
        import polars as pl

        actions = sorted_labels(pairs[ACTION].unique().to_list())
        pairs = pairs.with_columns(pl.lit(0).alias(_ONE))  # without contexts there is one
        contexts = pairs.select(_ONE, *context).unique().sort(_ONE, *context).with_row_index(_ROW)
        places = pl.DataFrame({ACTION: actions, _COLUMN: range(len(actions))})
        found = pairs.join(contexts, on=(_ONE, *context)).join(places, on=ACTION)
        row, column = found[_ROW].to_numpy(), found[_COLUMN].to_numpy()
        weights, totals = np.zeros((2, contexts.height, len(actions)))
        weights[row, column], totals[row, column] = found["weight"], found["total"]
        return cls(actions, contexts.drop(_ONE, _ROW), weights, totals)

    def rates(self) -> Array:
        """Of each pair; that of the action in all contexts where the log has none."""
        overall = self.totals.sum(axis=0) / self.weights.sum(axis=0)
        return np.where(
            self.weights > 0, self.totals / np.where(self.weights > 0, self.weights, 1), overall
        )

    def features_of_actions(self, log: Log, columns: Sequence[str]) -> "pl.DataFrame":
        """These columns of every pair, contexts in turn; refused where they change or are not known."""
        import polars as pl

        context = self.contexts.columns
        kinds = [pl.col(name).n_unique().alias(f"{_ONE}{name}") for name in columns]
        first = [pl.col(name).min() for name in columns]
        found = log.collect(log.frame.group_by(ACTION, *context).agg(*kinds, *first))
        for name in columns:
            several = found.filter(pl.col(f"{_ONE}{name}") > 1)
            if several.height:
                raise InvalidInput(
                    f"column {name!r} of {log.name} changes for action {several[ACTION][0]!r}; features "
                    "of an action are the same in all rows of a context: name the context's columns"
                )
        order = pl.DataFrame({ACTION: self.actions, _COLUMN: range(len(self.actions))})
        pairs = self.contexts.with_row_index(_ROW).join(order, how="cross")
        whole = pairs.join(found, on=(ACTION, *context), how="left", nulls_equal=True)
        absent = whole.filter(pl.col(columns[0]).is_null())
        if absent.height:
            raise InvalidInput(
                f"{log.name} has no row of action {absent[ACTION][0]!r} in "
                f"{counted(absent.height, 'context')}, so its features are not known there"
            )
        return whole.sort(_ROW, _COLUMN).select(columns)


def check_cells(log: Log, context: Sequence[str]) -> None:
    """Refuse a column with a value for every row before all of them are in memory."""
    with extra("tables"):
        import polars as pl

    if not context:
        return
    counts = log.collect(log.frame.select(pl.col(name).approx_n_unique() for name in context)).row(0)
    many = {name: count for name, count in zip(context, counts, strict=True) if count > _MOST_CONTEXTS}
    for name, count in many.items():
        raise InvalidInput(
            f"column {name!r} of {log.name} has about {count:,} values; contexts are combinations of "
            "values: round them, or leave the column out"
        )


def features_of(
    frame: "pl.DataFrame",
    columns: Sequence[str],
    features: Features | None,
    name: str,
    weights: Array,
) -> tuple[Array, float]:
    """Features of the rows of a frame, each of which is `weights` rows of a log, and their bound."""
    import polars as pl

    frame = frame.select(_read_numbers(frame[column]) for column in columns)
    checks.integer(least=1, limit=_MOST_CONTEXTS, **{f"contexts of {name}": frame.height})
    if features is not None:
        if isinstance(features, FeatureMap):
            _check_declared(frame, features, name, weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShortenedFeatures)  # said above, by rows
            rows = checks.array("features as rows of numbers", features.rows(frame))
        return rows, features.max_norm
    for column in columns:
        if not (frame[column].dtype.is_numeric() or frame[column].dtype == pl.Boolean):
            raise InvalidInput(
                f"column {column!r} of {name} holds texts; declare what they can be by features="
                f"FeatureMap(…), or --features '{column}=a|b'"
            )
    rows = frame.cast(pl.Float64).to_numpy()
    longest = float(np.linalg.norm(rows, axis=1).max())
    if longest > 1.0:
        raise InvalidInput(
            f"columns {', '.join(columns)} of {name} are features of length up to {longest:.4g}, and 1 "
            f"is the longest; declare their ranges by features=FeatureMap(…), or --features "
            f"{columns[0]}=0..100"
        )
    return np.ascontiguousarray(rows), 1.0


def _check_declared(frame: "pl.DataFrame", features: FeatureMap, name: str, weights: Array) -> None:
    """Refuse categories that never occur, and warn of ranges that many rows of the log are beyond."""
    for declared in features.columns:
        if declared.column not in frame.columns:
            continue  # which the map itself refuses
        values = frame[declared.column]
        outside = declared.block(values.to_numpy()).outside
        if isinstance(declared, Category) and outside.all():
            raise InvalidInput(_no_such(declared, name, values[0]))
        share = float(weights[outside].sum() / weights.sum())
        if isinstance(declared, Number) and share > _MANY:
            warnings.warn(
                f"column {declared.column!r} is beyond {declared.low:g} to {declared.high:g} in "
                f"{100 * share:.0f} % of the rows of {name}, and cut off there: declare a wider range",
                ShortenedFeatures,
                stacklevel=4,
            )


def _no_such(declared: Category, name: str, example: Any) -> str:
    listed = " or ".join(map(repr, declared.values))
    said = f"no row of {declared.column!r} in {name} is {listed}; "
    ends = re.fullmatch(r"([\d.]+)\s*[-:]\s*([\d.]+)", declared.values[0])
    if ends and len(declared.values) == 1:
        return said + f"a range is written {ends[1]}..{ends[2]}"
    return said + f"the column has values such as {checks.shown(example)}"


def _read_numbers(column: "pl.Series") -> "pl.Series":
    """A column of texts that are all numbers, as a CSV file has them, as numbers."""
    import polars as pl

    if column.dtype != pl.String:
        return column
    read = column.cast(pl.Float64, strict=False)
    return column if read.null_count() else read


def column_names(what: str, columns: Any) -> tuple[str, ...]:
    """Names of columns; one text is not several."""
    return tuple(checks.sequence(f"{what} as names of columns", columns))
