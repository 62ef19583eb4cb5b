"""The contexts of a log: combinations of values of columns, what was paid in each, their features."""

import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput, LooseBound, ShortenedFeatures
from dpbandits.extras import extra
from dpbandits.features import Category, Column, FeatureMap, Number
from dpbandits.features.maps import SHARE_OF_SHORT, are_many, are_short
from dpbandits.wording import counted
from dpbandits.worlds.logged.table import ACTION, Label, Log, sorted_labels

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]
_MANY = 0.1  # the share of rows from which on being cut off is worth a warning
_MOST_CONTEXTS = 2**18  # a recipe holds features and rates of all
_ONE, _ROW, _COLUMN = "dpbandits:one", "dpbandits:row", "dpbandits:column"
_KNOWN = "dpbandits:known"


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
    rows: Array  # (C, K), as are the others
    weights: Array  # of these rows; as many, unless there are propensities
    totals: Array
    squares: Array

    @classmethod
    def of(cls, pairs: "pl.DataFrame", context: Sequence[str]) -> "LoggedCells":
        """Of the sums of each action in each context."""
        import polars as pl

        actions = sorted_labels(pairs[ACTION].unique().to_list())
        pairs = pairs.with_columns(pl.lit(0).alias(_ONE))  # without contexts there is one
        contexts = pairs.select(_ONE, *context).unique().sort(_ONE, *context).with_row_index(_ROW)
        places = pl.DataFrame({ACTION: actions, _COLUMN: range(len(actions))})
        found = pairs.join(contexts, on=(_ONE, *context), nulls_equal=True).join(places, on=ACTION)
        row, column = found[_ROW].to_numpy(), found[_COLUMN].to_numpy()
        sums = np.zeros((4, contexts.height, len(actions)))
        for place, name in enumerate(("rows", "weight", "total", "squares")):
            sums[place, row, column] = found[name]
        return cls(actions, contexts.drop(_ONE, _ROW), *sums)

    def rates(self, prior_rows: float) -> Array:
        """Of each pair, with so many rows at its action's rate in all contexts besides its own.

        Where the log has none of its own, that rate. Of a single context, `prior_rows` are at the rate
        of all actions, as in `LoggedArms`.
        """
        means = self._means()
        towards = np.broadcast_to(self._overall(), means.shape)
        if len(means) == 1:
            towards = np.full_like(means, self.totals.sum() / self.weights.sum())
        added = (self.rows * means + prior_rows * towards) / np.maximum(self.rows + prior_rows, 1e-300)
        drawn = np.where(self.rows > 0, added if prior_rows else means, towards)
        return np.clip(drawn, 0.0, 1.0)  # whatever was rounded

    def credible_rows(self) -> float:
        r"""How many rows tell as much of a pair's rate as that of its action in all contexts does.

        The k of Bühlmann and Straub (1970): the variance v of rewards within pairs over the variance a
        of rates between the contexts of an action, both estimated without bias. For C pairs of n rows
        with rewards r of mean y, and K actions of N rows with mean ȳ,

        v = Σ (r − y)²/Σ (n − 1),    a = (Σ n (y − ȳ)² − v (C − K))/Σ (N − Σ n²/N).

        A rate drawn to ȳ by k = v/a rows has the least mean square error of all that are linear in y.
        Where rates differ no more between contexts than chance would make them, a is not above 0: then,
        and at most, k is the number of all rows.
        """
        rows, variance = self.rows, self.variance()
        most = float(rows.sum())
        if variance is None:
            return most
        between = float((rows * (self._means() - self._overall()) ** 2).sum())
        between -= variance * (int((rows > 0).sum()) - len(self.actions))
        total = rows.sum(axis=0)
        between /= max(float((total - (rows**2).sum(axis=0) / total).sum()), 1e-300)
        return most if between * most <= variance else variance / between

    def variance(self) -> float | None:
        """That of rewards within pairs; None where each has a single row."""
        spare = float(np.maximum(self.rows - 1.0, 0.0).sum())
        if not spare:
            return None
        squares = self.squares / np.where(self.rows > 0, self.weights, 1.0)
        return float((self.rows * np.maximum(squares - self._means() ** 2, 0.0)).sum()) / spare

    def _means(self) -> Array:
        return self.totals / np.where(self.rows > 0, self.weights, 1.0)

    def _overall(self) -> Array:
        overall: Array = self.totals.sum(axis=0) / self.weights.sum(axis=0)
        return overall

    def features_of_actions(self, log: Log, columns: Sequence[str]) -> "pl.DataFrame":
        """These columns of every pair, contexts in turn; refused where they change or are not known."""
        import polars as pl

        context = self.contexts.columns
        kinds = [pl.col(name).n_unique().alias(f"{_ONE}{name}") for name in columns]
        first = [pl.col(name).min() for name in columns]
        known = pl.lit(value=True).alias(_KNOWN)
        found = log.collect(log.frame.group_by(ACTION, *context).agg(known, *kinds, *first))
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
        absent = whole.filter(pl.col(_KNOWN).is_null())
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
            warnings.simplefilter("ignore", LooseBound)  # said below, likewise
            rows = checks.array("features as rows of numbers", features.rows(frame))
        _warn_if_loose(rows, features.max_norm, name, weights)
        return rows, features.max_norm
    for column in columns:
        if not (frame[column].dtype.is_numeric() or frame[column].dtype == pl.Boolean):
            example = checks.shown(_first_text(frame[column]))
            raise InvalidInput(
                f"column {column!r} of {name} holds texts, such as {example}; declare what they can be "
                f"by features=FeatureMap(…), or --features '{column}=a|b'"
            )
    rows = frame.cast(pl.Float64).to_numpy()
    longest = float(np.linalg.norm(rows, axis=1).max())
    if longest > 1.0:
        raise InvalidInput(
            f"columns {', '.join(columns)} of {name} are features of length up to {longest:.4g}, and 1 "
            f"is the longest; declare their ranges by features=FeatureMap(…), or --features "
            f"{columns[0]}=0..100"
        )
    _warn_if_loose(rows, 1.0, name, weights)
    return np.ascontiguousarray(rows), 1.0


def _warn_if_loose(rows: Array, bound: float, name: str, weights: Array) -> None:
    """Where nearly all rows of the log are far within the bound that noise is made for."""
    short = are_short(np.vecdot(rows, rows), bound)
    if are_many(weights[short].sum(), weights.sum(), SHARE_OF_SHORT):
        warnings.warn(
            f"features of nearly all rows of {name} are shorter than half of {bound:g}, and noise is "
            "made for rows as long as that: declare narrower ranges by features=FeatureMap(…), or "
            "--features",
            LooseBound,
            stacklevel=4,
        )


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
        if share > _MANY and (said := _outside(declared, values.filter(outside)[0])):
            where = f"in {100 * share:.0f} % of the rows of {name}"
            warnings.warn(said.format(where=where), ShortenedFeatures, stacklevel=4)


def _outside(declared: Column, example: Any) -> str | None:
    """What becomes of values that were not declared, unless that is declared too."""
    if isinstance(declared, Number):
        said = f"is beyond {declared.low:g} to {declared.high:g} {{where}}, and cut off there: "
        said += "declare a wider range"
    elif isinstance(declared, Category) and not declared.other:
        said = f"has values that were not declared {{where}}, such as {checks.shown(example)}: by it "
        said += "nobody is told apart there; declare them, or a feature for all others (other=True)"
    else:
        return None
    return f"column {declared.column!r} {said}"


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


def _first_text(column: "pl.Series") -> str:
    """The first that is no number: that is why they are texts."""
    import polars as pl

    texts = column.drop_nulls()
    return str(texts.filter(texts.cast(pl.String).cast(pl.Float64, strict=False).is_null())[0])


def column_names(what: str, columns: Any) -> tuple[str, ...]:
    """Names of columns; one text is not several."""
    return tuple(checks.sequence(f"{what} as names of columns", columns))
