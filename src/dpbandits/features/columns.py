"""How a column becomes a block of numbers of length at most 1, by declaration."""

import hashlib
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.features.tables import Array, Flags, numbers_of, one_hot, places_of, text_of
from dpbandits.recipes import Recipe


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

    @property
    def allows_missing(self) -> bool:
        """Whether it says what a missing value becomes."""
        return True

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
        if self._half == 0.0:
            raise InvalidInput(f"expected low and high of column {self.column!r} further apart")
        if self.missing is not None and not (
            self.low <= checks.number("missing", self.missing) <= self.high
        ):
            raise InvalidInput(
                f"expected missing to be within {self.low:g} and {self.high:g}, "
                f"got {checks.shown(self.missing)}"
            )

    @property
    def _half(self) -> float:
        return 0.5 * self.high - 0.5 * self.low

    @property
    def width(self) -> int:
        """One number."""
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        """That of the column."""
        return (self.column,)

    @property
    def allows_missing(self) -> bool:
        """If something stands for it."""
        return self.missing is not None

    def block(self, values: NDArray[Any]) -> Block:
        """Scaled, cut off."""
        numbers = numbers_of(self.column, values)
        missing = np.isnan(numbers)
        if self.missing is not None:
            numbers = np.where(missing, self.missing, numbers)
        outside = (numbers < self.low) | (numbers > self.high)  # NaN is neither
        middle = 0.5 * self.low + 0.5 * self.high
        scaled = np.clip((np.clip(numbers, self.low, self.high) - middle) / self._half, -1.0, 1.0)
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
        texts = tuple(text_of(self.column, value) or "" for value in listed)
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
        found, missing = places_of(
            self.column, values, lambda text: place.get(text, unlisted), absent=unlisted
        )
        outside = (found == unlisted) & ~missing
        return Block(one_hot(found, self.width), outside, missing)


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
        named = f"{len(self.column)}:{self.column}={text}".encode(errors="surrogatepass")
        digest = hashlib.blake2b(named, digest_size=8).digest()
        return int.from_bytes(digest, "little") % self.buckets

    def block(self, values: NDArray[Any]) -> Block:
        """One-hot, by bucket."""
        found, missing = places_of(self.column, values, self.bucket, absent=-1)
        return Block(one_hot(found, self.width), np.zeros(found.size, np.bool_), missing)
