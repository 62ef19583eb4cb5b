"""Arms that pay what the actions of a log paid."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.extras import extra
from dpbandits.recipes import FloatRows, Floats
from dpbandits.worlds.arms import ArmsEnvironment, BernoulliWorld
from dpbandits.worlds.environment import means_in_words
from dpbandits.worlds.logged.sums import SHARE, sums_by
from dpbandits.worlds.logged.table import (
    ACTION,
    Label,
    Log,
    Source,
    check_range,
    positions_of,
    read_log,
    sorted_labels,
)

Array = NDArray[np.float64]
# Rewards between are kept in so many equal parts of their range, each with its mean.
PARTS = 128


@dataclass(frozen=True)
class LoggedArms(ArmsEnvironment):
    """Arms that pay like the actions of a log: each reward is drawn from those that its action had.

    An empirical world: any policy can be played on it for any number of rounds, with exact regret. It
    assumes that rounds are independent, that an action pays the same to whomever and whenever, and that
    the rates of the log are the true ones: where actions have few rows, the best of them looks better
    than it is. `read` makes it of a table. It holds counts of the log, as does every trace: both are
    for those who may see the log, and no private release of it.

    >>> log = {"item": ["a", "a", "b", "b"], "click": [0, 1, 0, 0]}
    >>> LoggedArms.read(log, action="item", reward="click").arm_means()
    (0.5, 0.0)
    """

    actions: Annotated[Sequence[Label], "The name of each action."]
    rewards: Annotated[FloatRows, "For each action, the different rewards that it had."]
    weights: Annotated[FloatRows, "For each of them, in how many rows (with propensities: of how many)."]
    reward_range: Annotated[Floats, "The smallest and the largest reward there can be."] = (0.0, 1.0)
    title: Annotated[str, "What the log is called in reports."] = "a log"

    def __post_init__(self) -> None:
        labels = tuple(checks.sequence("actions", self.actions))
        check_actions(labels, "the log")
        low, high = check_range(self.reward_range)
        object.__setattr__(self, "actions", labels)
        object.__setattr__(self, "reward_range", (low, high))
        for name in ("rewards", "weights"):
            rows = checks.sequence(name, getattr(self, name))
            object.__setattr__(self, name, tuple(_numbers(name, row) for row in rows))
        if not len(labels) == len(self.rewards) == len(self.weights):
            raise InvalidInput("expected rewards and weights for each of the actions")
        for label, rewards, weights in zip(labels, self.rewards, self.weights, strict=True):
            if not 0 < len(rewards) == len(weights):
                raise InvalidInput(f"expected a weight for each reward of action {label!r}")
            if not all(low <= reward <= high for reward in rewards):
                raise InvalidInput(f"expected rewards within {low:g} and {high:g} of action {label!r}")
            checks.positive(**{f"weight of action {label!r}": min(weights)})

    @classmethod
    def read(
        cls,
        source: Source,
        *,
        action: str,
        reward: str,
        propensity: str | None = None,
        position: str | None = None,
        at: Label | None = None,
        actions: Sequence[Label] | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> Self:
        """The world of a table: a .parquet or .csv file (or logs/*.parquet), a frame, a dict of columns.

        The others name columns. Rewards are scaled from their declared `reward_range` to [0, 1]. With
        `propensity`, the chance with which the action shown was chosen, a row counts 1/propensity: then
        an action's rate is everybody's, and not that of those for whom it was chosen. `at` takes the
        rows of one `position` (`read_positions` makes a world of each). `actions` are all there may be.
        """
        log = read_log(
            source,
            action=action,
            reward=reward,
            propensity=propensity,
            position=position,
            at=at,
            reward_range=reward_range,
        )
        found = paid_by_action(log, reward_range)
        labels = sorted_labels(list(found))
        if actions is not None:
            labels = _declared(list(actions), labels, log.name)
        check_actions(tuple(labels), log.name)
        paid = [found[label] for label in labels]
        return cls(
            actions=tuple(labels),
            rewards=tuple(tuple(one) for one in paid),
            weights=tuple(tuple(one.values()) for one in paid),
            reward_range=reward_range,
            title=log.name if at is None else f"{log.name}, {position} {at}",
        )

    @classmethod
    def read_positions(
        cls, source: Source, *, action: str, reward: str, position: str, **options: Any
    ) -> dict[Label, Self]:
        """A world for each position, with the options of `read`."""
        columns: dict[str, Any] = {"action": action, "reward": reward, "position": position}
        places = positions_of(source, position)
        return {place: cls.read(source, at=place, **columns, **options) for place in places}

    def arm_means(self) -> tuple[float, ...]:
        """The average reward of each action in the log, scaled to [0, 1]."""
        low, high = self.reward_range
        return tuple(
            min(1.0, max(0.0, (_average(rewards, weights) - low) / (high - low)))
            for rewards, weights in zip(self.rewards, self.weights, strict=True)
        )

    def in_words(self) -> str:
        """How many actions of which log, and the range of their means."""
        means = self.arm_means()
        return means_in_words(len(means), "action", means) + f" in {self.title}"

    def world(self) -> "BernoulliWorld | EmpiricalWorld":
        """Coins where rewards are one end of the range or the other; otherwise the log's own rewards."""
        means = np.array(self.arm_means())
        if all(set(rewards) <= set(self.reward_range) for rewards in self.rewards):
            return BernoulliWorld(means, float(means.max()))
        low, high = self.reward_range
        size = max(map(len, self.rewards))
        values, ends = np.zeros((2, len(means), size))
        for arm, (rewards, weights) in enumerate(zip(self.rewards, self.weights, strict=True)):
            values[arm, : len(rewards)] = (np.array(rewards) - low) / (high - low)
            ends[arm, : len(rewards)] = np.cumsum(weights) / math.fsum(weights)
            ends[arm, len(rewards) - 1 :] = 1.0  # whatever was rounded
        return EmpiricalWorld(np.clip(values, 0.0, 1.0), ends, means, float(means.max()))


class EmpiricalWorld(NamedTuple):
    """State of `LoggedArms` where rewards are not only the ends of their range."""

    values: Array  # (arms, rewards), with room for those of the arm that had most
    ends: Array  # (arms, rewards) the chance of this reward or one before it
    means: Array
    best: float

    def limits(self) -> Limits:
        """What no round changes."""
        return dict.fromkeys(("values", "ends", "means"), FROM_RECIPE)

    def offer(self, chance: Chance) -> None:
        """No context."""

    def pay(self, context: None, action: int, chance: Chance) -> float:
        """The first reward whose end is beyond this round's uniform, found by halving."""
        uniform = chance.random()
        low, high = 0, self.ends.shape[1] - 1
        while low < high:
            middle = (low + high) // 2
            if uniform < self.ends[action, middle]:
                high = middle
            else:
                low = middle + 1
        return float(self.values[action, low])

    def settle(self, context: None, action: int, reward: float) -> tuple[float, float, float]:
        """The best mean, the arm's mean, the reward."""
        return self.best, self.means[action], reward


def check_actions(labels: Sequence[Label], name: str) -> None:
    """At least two, and not one for every row."""
    if len(labels) < 2:
        raise InvalidInput(f"expected at least 2 actions in {name}, got {len(labels)}")
    if len(set(labels)) < len(labels):
        raise InvalidInput("expected each action once")
    checks.integer(least=2, limit=checks.MOST_ACTIONS, **{f"actions of {name}": len(labels)})


def paid_by_action(log: Log, reward_range: tuple[float, float]) -> dict[Label, dict[float, float]]:
    """The rewards of each action with their weights, in one pass over the log.

    Of rewards in one of the `PARTS` of the range, only the mean is kept where they differ.
    """
    with extra("tables"):
        import polars as pl

    low, high = check_range(reward_range)
    part = (pl.col(SHARE) * PARTS).floor().clip(0, PARTS - 1).cast(pl.Int32).alias("part")
    sums = sums_by(log, (ACTION, part), (low, high)).sort(ACTION, "part")
    found: dict[Label, dict[float, float]] = {}
    for row in sums.iter_rows(named=True):
        least, most = row["least"], row["most"]
        mean = least if least == most else min(most, max(least, low + (high - low) * row["mean"]))
        found.setdefault(row[ACTION], {})[mean] = row["weight"]
    return found


def _declared(declared: list[Label], found: list[Label], name: str) -> list[Label]:
    """As declared, if those are what the log has."""
    unknown = [label for label in found if label not in declared]
    if unknown:
        raise InvalidInput(f"{name} has action {unknown[0]!r}, which is not one of those declared")
    absent = [label for label in declared if label not in found]
    if absent:
        raise InvalidInput(
            f"{name} has no row of action {absent[0]!r}, so nothing is known of its rewards"
        )
    return declared


def _numbers(name: str, row: Any) -> tuple[float, ...]:
    return tuple(checks.number(f"{name}[…]", value) for value in checks.sequence(name, row))


def _average(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(v * w for v, w in zip(values, weights, strict=True)) / math.fsum(weights)
