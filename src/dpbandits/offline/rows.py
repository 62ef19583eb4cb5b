"""The rows of a log in memory, checked: what replays and estimates work on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.extras import extra
from dpbandits.features import FeatureMap
from dpbandits.worlds.logged.table import (
    ACTION,
    PROPENSITY,
    REWARD,
    Label,
    Source,
    read_log,
    sorted_labels,
)

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """n rounds as they were logged: the number of the action shown, its reward, and what else is known.

    `labels` has the name of each of the K actions, `propensities` the chance with which each row's
    action was chosen, `contexts` what was known of each person: (n, d) features, or the numbers of
    contexts from a grid. `read` makes them of a file or a frame.
    """

    actions: NDArray[np.int64]
    rewards: Array
    labels: tuple[Label, ...]
    propensities: Array | None = None
    contexts: NDArray[Any] | None = None
    features: FeatureMap | None = None
    reward_range: tuple[float, float] = field(default=(0.0, 1.0))

    def __post_init__(self) -> None:
        labels = tuple(checks.sequence("labels", self.labels))
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise InvalidInput(f"expected labels of at least two different actions, got {len(labels)}")
        actions = _whole_numbers(self.actions, len(labels))
        size = actions.size
        low, high = checks.low_and_high("reward_range", self.reward_range)
        rewards = _of_rows("rewards", self.rewards, size)
        if not ((rewards >= low) & (rewards <= high)).all():  # nor is NaN
            raise InvalidInput(f"expected rewards within {low:g} and {high:g}; declare reward_range")
        given: dict[str, Any] = {"actions": actions, "rewards": rewards, "labels": labels}
        given["reward_range"] = low, high
        if self.propensities is not None:
            chances = _of_rows("propensities", self.propensities, size)
            if not ((chances > 0.0) & (chances <= 1.0)).all():
                raise InvalidInput("expected propensities above 0 and up to 1")
            given["propensities"] = chances
        if self.contexts is not None:
            given["contexts"] = _contexts(self.contexts, size)
        if self.features is not None and not isinstance(self.features, FeatureMap):
            raise InvalidInput(
                f"expected features to be a FeatureMap, got {checks.shown(self.features)}"
            )
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return int(self.actions.size)

    def __repr__(self) -> str:
        return f"<Rows: {len(self):,} rounds of {len(self.labels)} actions>"


def read(
    source: Source,
    *,
    action: str,
    reward: str,
    propensity: str | None = None,
    position: str | None = None,
    at: Label | None = None,
    features: FeatureMap | None = None,
    labels: Sequence[Label] | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
) -> Rows:
    """The rows of a log: a .parquet or .csv file, a frame of polars or pandas, Arrow, a dict of columns.

    `labels` are all actions that there are; those that the log has unless said otherwise.

    >>> log = {"item": ["a", "b", "a"], "click": [1, 0, 0], "p": [0.5, 0.5, 0.5]}
    >>> read(log, action="item", reward="click", propensity="p")
    <Rows: 3 rounds of 2 actions>
    """
    if features is not None and not isinstance(features, FeatureMap):
        raise InvalidInput(f"expected features to be a FeatureMap, got {checks.shown(features)}")
    context = [] if features is None else [column.column for column in features.columns]
    roles: dict[str, Any] = {"propensity": propensity, "position": position, "at": at}
    log = read_log(
        source,
        action=action,
        reward=reward,
        context=context,
        features=features,
        reward_range=reward_range,
        **roles,
    )
    frame = log.collect(log.frame)
    known = sorted_labels(frame[ACTION].unique().to_list())
    if labels is not None:
        known = checks.sequence("labels", labels)
    return Rows(
        actions=_places(frame[ACTION], action, known),
        rewards=frame[REWARD].to_numpy(),
        labels=tuple(known),
        propensities=None if propensity is None else frame[PROPENSITY].to_numpy(),
        contexts=None if features is None else features.rows(frame),
        features=features,
        reward_range=reward_range,
    )


def _places(names: "pl.Series", column: str, labels: list[Label]) -> NDArray[np.int64]:
    """The number of each row's action, found by its name as text: a CSV file has nothing else."""
    with extra("tables"):
        import polars as pl

    place = {str(label): index for index, label in enumerate(labels)}
    if len(place) < len(labels):
        raise InvalidInput("expected labels that differ as texts")
    found = names.cast(pl.String).replace_strict(place, default=None, return_dtype=pl.Int64)
    if found.null_count():
        unknown = names.filter(found.is_null())[0]
        raise InvalidInput(
            f"column {column!r} has {checks.shown(unknown)}, which is not among the labels"
        )
    return found.to_numpy()


def _whole_numbers(given: Any, count: int) -> NDArray[np.int64]:
    found = np.asarray(given)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InvalidInput(f"expected actions as numbers of labels, got {checks.kind_of(found)}")
    if found.size == 0:
        raise InvalidInput("expected at least one row, got none")
    if found.min() < 0 or found.max() >= count:
        raise InvalidInput(f"expected actions to be numbers of labels, 0 to {count - 1}")
    return found.astype(np.int64)


def _of_rows(name: str, given: Any, size: int) -> Array:
    found = checks.array(f"{name} as numbers", given)
    if found.shape != (size,):
        raise InvalidInput(f"expected {size:,} {name}, one a row, got shape {found.shape}")
    return found


def _contexts(given: Any, size: int) -> NDArray[Any]:
    found = np.asarray(given)
    if found.ndim == 1 and found.dtype.kind in "iu":
        checked: NDArray[Any] = found
    else:
        checked = checks.array("contexts as rows of numbers", given)
        if checked.ndim != 2 or not np.isfinite(checked).all():
            raise InvalidInput("expected contexts as rows of finite numbers")
    if checked.shape[0] != size:
        raise InvalidInput(f"expected {size:,} contexts, one a row, got {checked.shape[0]:,}")
    return checked
