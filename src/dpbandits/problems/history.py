"""Rows of an earlier log, to start a learner from: what was chosen, and what came of it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.features.tables import is_missing

# A row as `observe` reads it: context, action, reward.
Row = tuple[Any, Any, Any]
_COLUMNS = ("reward", "action", "features")


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """What was chosen for whom, and what came of it: each row is one person's round.

    `action`: the arm, the row of a public decision set, or the items of a basis, (n,) or (n, items).
    `reward`: a number for each row, or for each item of it. `features`: where people bring contexts,
    those of the action that was chosen, (n, dim); or those of all actions, (n, K, dim), and `action`
    says which; or, where each arm has parameters of its own, the person's, and `action` is the arm.
    `person`: who it was, where people may return. Columns of polars and pandas will do.

    A reward that is missing (None, NaN) and features that are not finite are part of a row like any
    other: the row counts, and stores nothing. Leave none of them out: how many rows there are, and of
    which actions, is not protected.

    >>> History(action=[0, 1, 1], reward=[1.0, 0.0, 1.0])
    <History, 3 rows>
    """

    reward: Any
    action: Any = None
    features: Any = None
    person: Any = None

    def __post_init__(self) -> None:
        reward = _numbers("history's reward as a column of numbers", self.reward)
        if reward.ndim not in (1, 2) or reward.shape[0] == 0:
            raise InvalidInput(
                f"expected history's reward as a column of at least one number, got shape {reward.shape}"
            )
        object.__setattr__(self, "reward", reward)
        if self.action is not None:
            object.__setattr__(self, "action", _whole_numbers(self.action))
        if self.features is not None:
            features = _numbers("history's features as rows of numbers", self.features)
            object.__setattr__(self, "features", features)
        if self.person is not None:
            object.__setattr__(self, "person", checks.sequence("history's person", self.person))
        for name in ("action", "features", "person"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self):
                raise InvalidInput(
                    f"expected as many rows of {name} as of reward, {len(self):,}, got {len(column):,}"
                )

    def __len__(self) -> int:
        return len(self.reward)

    def __repr__(self) -> str:
        return f"<History, {len(self):,} rows>"  # and nothing of what they hold

    def has_same_rows(self, other: "History") -> bool:
        """Whether both hold the same, whoever it was."""
        columns = ((getattr(one, name) for one in (self, other)) for name in _COLUMNS)
        return all(_equal(one, another) for one, another in columns)

    def numbered(self, count: int, what: str) -> Iterator[Row]:
        """The rows of a problem whose actions have numbers and which has no contexts."""
        if self.features is not None:
            raise InvalidInput(f"{what} come without contexts: leave out history's features")
        action, reward = self.chosen(count, what), self.single_rewards()
        return ((None, *row) for row in zip(action.tolist(), reward.tolist(), strict=True))

    def chosen(self, count: int, what: str, shape: tuple[int, ...] = ()) -> NDArray[np.int64]:
        """The actions, each a number below `count`, or `shape` of them."""
        if self.action is None:
            raise InvalidInput(f"expected history's action: which of {count:,} {what} each row chose")
        action: NDArray[np.int64] = self.action
        if action.shape[1:] != shape:
            size = f"{shape[0]} different {what}" if shape else "one number"
            raise InvalidInput(f"expected {size} for each row of history's action, not {action.shape}")
        _refuse_rows("action", f"one of {count:,} {what}", (action < 0) | (action >= count))
        return action

    def single_rewards(self) -> NDArray[np.float64]:
        """The rewards, one of each row."""
        if self.reward.ndim != 1:
            raise InvalidInput(f"expected one reward for each row of a history, not {self.reward.shape}")
        rewards: NDArray[np.float64] = self.reward
        return rewards


def _numbers(what: str, given: Any) -> NDArray[np.float64]:
    """An array of numbers, NaN where one is missing."""
    try:
        found = None if isinstance(given, np.ma.MaskedArray) else np.asarray(given)
    except Exception:  # rows of different lengths, or whatever the object's own conversion raises
        found = None
    if found is None or found.dtype.kind != "O":
        return checks.array(what, given)
    # Of other objects NumPy makes no numbers, and they are refused.
    filled = [math.nan if is_missing(one) else one for one in found.ravel()]
    return checks.array(what, filled).reshape(found.shape)


def _equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=True)


def _whole_numbers(given: Any) -> NDArray[np.int64]:
    found = checks.array("history's action as a column of whole numbers", given)
    if found.ndim not in (1, 2):
        raise InvalidInput(f"expected history's action as a column of whole numbers, not {found.shape}")
    _refuse_rows("action", "a whole number", ~(np.isfinite(found) & (found == np.floor(found))))
    return np.clip(found, -1, 2.0**52).astype(np.int64)


def _refuse_rows(name: str, expected: str, wrong: NDArray[np.bool_]) -> None:
    """Which row is wrong, but not what it holds: that may be somebody's."""
    if wrong.any():
        row = int(np.argmax(wrong.reshape(len(wrong), -1).any(axis=1)))
        raise InvalidInput(f"expected history's {name} to be {expected}: row {row} is not")
