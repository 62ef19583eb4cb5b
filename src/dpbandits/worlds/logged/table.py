"""A log as people keep it, as one lazy table whose columns are checked: polars reads it in pieces."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.extras import extra
from dpbandits.features import Column, FeatureMap, Number
from dpbandits.wording import counted

if TYPE_CHECKING:
    import polars as pl

# A path, a frame of polars or pandas, an Arrow table, or columns by name.
Source: TypeAlias = Any
Label: TypeAlias = str | int
# What the columns of a log are called here, whatever they were called there.
ACTION, REWARD, PROPENSITY = "dpbandits:action", "dpbandits:reward", "dpbandits:propensity"
POSITION = "dpbandits:position"
_SHOWN = 10  # values of a column, in a sentence


@dataclass(frozen=True)
class Log:
    """Checked rows: `ACTION`, `REWARD` as a number, whatever else was asked for, and their source.

    Context columns keep their names. Nothing is in memory: `frame` reads the source again each time.
    """

    frame: "pl.LazyFrame"
    name: str
    rows: int

    def collect(self, query: "pl.LazyFrame") -> "pl.DataFrame":
        """The result of a query on `frame`, piece by piece."""
        return _collect(query, self.name)


def read_log(
    source: Source,
    *,
    action: str,
    reward: str,
    propensity: str | None = None,
    position: str | None = None,
    at: Label | None = None,
    context: Sequence[str] = (),
    features: Any = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
) -> Log:
    """Look at every row once, and refuse in one sentence what is not a log.

    With `at`, only the rows whose `position` is that. Rewards must be within `reward_range`. Columns of
    the `context` that a map of `features` declares are read as it says, and may be empty if it says so.
    """
    table = scan(source)
    named = {"action": action, "reward": reward, "propensity": propensity, "position": position}
    table.check_columns({role: name for role, name in named.items() if name is not None}, context)
    low, high = checks.low_and_high("reward_range", reward_range)
    chosen = [table.label(action, ACTION), table.number(reward, REWARD)]
    faults = [table.missing(action), *table.no_numbers(reward)]
    faults.append(table.beyond(reward, low, high))
    if propensity is not None:
        chosen.append(table.number(propensity, PROPENSITY))
        faults += [*table.no_numbers(propensity), table.no_propensity(propensity)]
    if position is not None:
        chosen.append(table.label(position, POSITION))
        faults.append(table.missing(position))
    declared = declared_columns(features)
    for name in context:
        chosen.append(table.value(name, declared.get(name)))
        faults += table.no_values(name, declared.get(name))
    if position is None and at is not None:
        raise InvalidInput(f"which column says the position? say position=…, or leave out at={at!r}")
    if position is not None:
        table = table.only(position, at)
    return Log(table.frame.select(chosen), table.name, table.refuse(faults))


def declared_columns(features: Any) -> dict[str, Column]:
    """The columns of a map by name; what else makes features declares none."""
    columns = features.columns if isinstance(features, FeatureMap) else ()
    return {column.column: column for column in columns}


@dataclass(frozen=True)
class Fault:
    """Rows that cannot be right, and what is wrong with them."""

    rows: "pl.Expr"
    said: str
    advice: str = ""
    shows: str | None = None  # the column whose first such value is shown


@dataclass(frozen=True)
class Table:
    """A lazy frame and what is known of it before any row is read."""

    frame: "pl.LazyFrame"
    name: str
    kinds: "pl.Schema"
    is_text: bool = False  # a CSV file, all of whose columns are texts until they are needed

    def check_columns(self, roles: Mapping[str, str], context: Sequence[str] = ()) -> None:
        """Each is there, and has one role."""
        if not self.kinds:
            raise InvalidInput(f"{self.name} has no columns")
        taken: dict[str, str] = {}
        listed = checks.sequence("context columns", context)
        for role, name in (*roles.items(), *(("context", name) for name in listed)):
            checks.known(f"column of {self.name}", name, self.kinds.names())
            if name in taken:
                raise InvalidInput(f"column {name!r} cannot be both {taken[name]} and {role}")
            taken[name] = role

    def label(self, name: str, role: str) -> "pl.Expr":
        """A column that names things: whole numbers or texts."""
        with extra("tables"):
            import polars as pl

        kind = self.kinds[name]
        if kind.is_integer() or kind == pl.String:
            return pl.col(name).alias(role)
        if kind in (pl.Boolean, pl.Categorical, pl.Enum, pl.Null):
            return pl.col(name).cast(pl.String).alias(role)
        raise InvalidInput(f"column {name!r} of {self.name} is {kind}; expected names or whole numbers")

    def number(self, name: str, role: str) -> "pl.Expr":
        """A column of numbers; true and false are 1 and 0."""
        with extra("tables"):
            import polars as pl

        kind = self.kinds[name]
        if self.is_text:
            word = pl.col(name).str.strip_chars()
            truth = word.str.to_lowercase()
            flag = pl.when(truth == "true").then(1.0).when(truth == "false").then(0.0)
            # Not by `replace`, for which all of the column would be in memory.
            return pl.coalesce(word.cast(pl.Float64, strict=False), flag).alias(role)
        if kind.is_numeric() or kind in (pl.Boolean, pl.Null):
            return pl.col(name).cast(pl.Float64).alias(role)
        raise InvalidInput(
            f"column {name!r} of {self.name} is {kind}; expected numbers{_of_a_date(kind)}"
        )

    def value(self, name: str, declared: Column | None = None) -> "pl.Expr":
        """A column of a context: numbers or names; a NaN is nothing where nothing is allowed."""
        with extra("tables"):
            import polars as pl

        kind = self.kinds[name]
        if isinstance(declared, Number):
            return self.number(name, name).fill_nan(None)
        if kind.is_float():
            return pl.col(name).fill_nan(None)
        if kind.is_numeric() or kind in (pl.Boolean, pl.String, pl.Null):
            return pl.col(name)
        if kind in (pl.Categorical, pl.Enum):
            return pl.col(name).cast(pl.String)
        raise InvalidInput(
            f"column {name!r} of {self.name} is {kind}; expected numbers or names{_of_a_date(kind)}"
        )

    def missing(self, name: str) -> Fault:
        """Rows without a value."""
        with extra("tables"):
            import polars as pl

        return Fault(pl.col(name).is_null(), f"column {name!r} is empty")

    def no_numbers(self, name: str) -> list[Fault]:
        """Rows without a finite number."""
        read = self.number(name, name)
        infinite = Fault(~read.is_finite(), f"column {name!r} is nan or infinite")
        return [self.missing(name), infinite, *self.unread(name)]

    def unread(self, name: str) -> list[Fault]:
        """Rows with a text that is no number."""
        if not self.is_text:
            return []
        rows = self.number(name, name).is_null() & ~self.missing(name).rows
        return [Fault(rows, f"column {name!r} is not a number", shows=name)]

    def no_values(self, name: str, declared: Column | None = None) -> list[Fault]:
        """Rows without a value, where one is needed, or with one that cannot be."""
        is_number = isinstance(declared, Number)
        if declared is not None and declared.allows_missing:
            if not (is_number or self.kinds[name].is_float()):
                return []
            infinite = Fault(self.number(name, name).is_infinite(), f"column {name!r} is infinite")
            return [infinite, *self.unread(name)]
        read_as_number = is_number or self.kinds[name].is_numeric()
        empty, *others = self.no_numbers(name) if read_as_number else [self.missing(name)]
        advice = f"; it may be if it is declared, as Number({name!r}, …, missing=…), Category or Hashed"
        return [dataclasses.replace(empty, advice=advice), *others]

    def beyond(self, name: str, low: float, high: float) -> Fault:
        """Rewards outside the declared range."""
        read = self.number(name, name)
        return Fault(
            (read < low) | (read > high),
            f"column {name!r} is outside the range {low:g} to {high:g}",
            "; declare the range of rewards, reward_range=(low, high), by what they can be and not by "
            "what they were",
        )

    def no_propensity(self, name: str) -> Fault:
        """What is not the probability of something that happened."""
        read = self.number(name, name)
        return Fault(
            ~((read > 0.0) & (read <= 1.0)),
            f"column {name!r} is no probability above 0 and up to 1",
            "; a propensity is the chance with which the action shown was chosen",
        )

    def positions(self, position: str) -> list[Label]:
        """The different values of a column."""
        with extra("tables"):
            pass

        self.check_columns({"position": position})
        read = self.frame.select(self.label(position, POSITION).unique())
        return sorted_labels(_collect(read, self.name)[POSITION].drop_nulls().to_list())

    def only(self, position: str, at: Label | None) -> "Table":
        """The rows at one position, which must be one that there is."""
        with extra("tables"):
            pass

        known = self.positions(position)
        found = [place for place in known if str(place) == str(at)]
        if not found:
            has = f"column {position!r} of {self.name}"
            listed = ", ".join(map(str, known[:_SHOWN])) + (", …" if len(known) > _SHOWN else "")
            if at is not None:
                raise InvalidInput(f"{has} is never {at!r}; it has {listed}")
            raise InvalidInput(f"which position? {has} has {listed}; say at={(known or ['…'])[0]!r}")
        chosen = self.frame.filter(self.label(position, POSITION) == found[0])
        return Table(chosen, self.name, self.kinds, self.is_text)

    def refuse(self, faults: Sequence[Fault]) -> int:
        """How many rows there are; one sentence about the first fault that any of them has."""
        with extra("tables"):
            import polars as pl

        sums = [fault.rows.fill_null(value=False).sum().alias(str(i)) for i, fault in enumerate(faults)]
        rows, *found = _collect(self.frame.select(pl.len().alias("rows"), *sums), self.name).row(0)
        if rows == 0:
            raise InvalidInput(f"{self.name} has no rows")
        for count, fault in zip(found, faults, strict=True):
            if count:
                found_rows = self.frame.with_row_index("dpbandits:row").filter(fault.rows).head(1)
                first = _collect(found_rows, self.name).row(0, named=True)
                value = f", {checks.shown(first[fault.shows])}" if fault.shows else ""
                raise InvalidInput(
                    f"{fault.said} in {counted(count, 'row')} of {self.name}, first in row "
                    f"{first['dpbandits:row'] + 1:,}{value}{fault.advice}"
                )
        return int(rows)


def _of_a_date(kind: "pl.DataType") -> str:
    return "; make one of it first, such as its day of the week" if kind.is_temporal() else ""


def positions_of(source: Source, position: str) -> list[Label]:
    """The different values of a column, in order."""
    return scan(source).positions(position)


def scan(source: Source) -> Table:
    """Whatever the user has, as a lazy table; a file is only opened."""
    with extra("tables"):
        import polars as pl

    if isinstance(source, str | Path):
        return _scan_file(source)
    name = "the table"
    with _reading(name):
        if isinstance(source, pl.LazyFrame):
            return Table(source, name, source.collect_schema())
        frame = _framed(source)
    return Table(frame.lazy(), name, frame.schema)


def _framed(source: Source) -> "pl.DataFrame":
    """Tables in memory. Of pandas' only its arrays are used, so that pyarrow is not needed."""
    import polars as pl

    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, Mapping):
        return pl.DataFrame(dict(source), strict=False)
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return pl.DataFrame({str(name): _column(source[name]) for name in source.columns})
    if hasattr(source, "__arrow_c_stream__"):
        return pl.DataFrame(source)
    raise InvalidInput(
        "expected a log as the path of a .parquet or .csv file, a frame of polars or pandas, an Arrow "
        f"table or a dict of columns; got {checks.kind_of(source)}"
    )


def _column(series: Any) -> "pl.Series":
    """A column of pandas: its missing texts are nan, which is no text."""
    import polars as pl

    values = series.to_numpy()
    if values.dtype.kind == "O":
        return pl.Series([None if value != value else value for value in values.tolist()])
    return pl.Series(values)


def _scan_file(source: str | Path) -> Table:
    """By its suffix; a pattern such as logs/*.parquet is all files that fit it."""
    import polars as pl

    path = Path(source)
    files = [path] if path.exists() else sorted(path.parent.glob(path.name or "*"))
    if not files:
        raise InvalidInput(f"there is no file {path}")
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; for all files in it write {path}/*.parquet")
    suffix = path.suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise InvalidInput(f"expected a log to end in .parquet or .csv, got {path}")
    if not any(file.stat().st_size for file in files):
        raise InvalidInput(f"{path.name} is empty")
    with _reading(path.name):
        if suffix == ".parquet":
            frame = pl.scan_parquet(files, glob=False)
        else:  # as texts: types guessed from the first rows would be wrong for some later one
            frame = pl.scan_csv(files, infer_schema=False, glob=False, null_values=[""])
        kinds = frame.collect_schema()
    if suffix == ".csv":
        _check_commas(path.name, kinds.names())
    return Table(frame, path.name, kinds, suffix == ".csv")


def _check_commas(name: str, columns: Sequence[str]) -> None:
    """Refuse what looks like a file of another sort by the names of its columns."""
    if any("\0" in column for column in columns):
        raise InvalidInput(f"{name} is not in UTF-8: save it so")
    if len(columns) == 1 and re.search("[;\t|]", columns[0]):
        raise InvalidInput(
            f"{name} has a single column, {checks.shown(columns[0])}: save it with commas between "
            "columns"
        )


def _collect(query: "pl.LazyFrame", name: str) -> "pl.DataFrame":
    with _reading(name):
        return query.collect(engine="streaming")


@contextlib.contextmanager
def _reading(name: str) -> Iterator[None]:
    """What polars says against a table, as one sentence."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError, TypeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InvalidInput(f"cannot read {name}: {reason}") from None


def sorted_labels(labels: Sequence[Label]) -> list[Label]:
    """In order; texts that are all whole numbers, as a CSV file has them, by their size."""
    if all(
        isinstance(label, str) and label.isdecimal() and str(int(label)) == label for label in labels
    ):
        return sorted(labels, key=int)
    return sorted(labels)
