"""Arms that pay what the actions of a log paid."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import scipy  # whose parts, slow to import, are loaded at their first use
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.extras import extra
from dpbandits.recipes import FloatRows, Floats
from dpbandits.wording import number
from dpbandits.worlds.arms import ArmsEnvironment, BernoulliWorld
from dpbandits.worlds.environment import means_in_words
from dpbandits.worlds.logged.sums import SHARE, sums_by
from dpbandits.worlds.logged.table import (
    ACTION,
    Label,
    Log,
    Source,
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
    rows: Annotated[int | None, "How many rows it has."] = None

    def __post_init__(self) -> None:
        labels = tuple(checks.sequence("actions", self.actions))
        check_actions(labels, "the log")
        low, high = checks.low_and_high("reward_range", self.reward_range)
        check_source(self.title, self.rows)
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
        prior_rows: float = 0.0,
    ) -> Self:
        """The world of a table: a .parquet or .csv file (or logs/*.parquet), a frame, a dict of columns.

        The others name columns. Rewards are scaled from their declared `reward_range` to [0, 1]. With
        `propensity`, the chance with which the action shown was chosen, a row counts 1/propensity: then
        an action's rate is everybody's, and not that of those for whom it was chosen. `at` takes the
        rows of one `position` (`read_positions` makes a world of each). `actions` are all there may be.

        With `prior_rows` each action has so many rows of the average action besides its own: rates that
        few rows made extreme are drawn to the mean. None unless given: whether actions differ at all
        is what a comparison is about, and `chance_of_spread` tells where the log does not show it.
        """
        checks.not_negative(prior_rows=prior_rows)
        log = read_log(
            source,
            action=action,
            reward=reward,
            propensity=propensity,
            position=position,
            at=at,
            reward_range=reward_range,
        )
        found = paid_by_action(log, reward_range, prior_rows)
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
            title=_title(log.name, position, at, prior_rows),
            rows=log.rows,
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

    def chance_of_spread(self) -> float | None:
        """How likely rates as different as these would be if all actions paid alike (χ² test).

        None where rows were weighted, or all rewards are the same.
        """
        if self.rows is None or sum(map(math.fsum, self.weights)) != self.rows:
            return None
        arms = list(zip(self.rewards, self.weights, strict=True))
        paid = [Paid(*one) for arm in arms for one in zip(*arm, strict=True)]
        mean = _mean_of(paid).reward
        variance = math.fsum((one.reward - mean) ** 2 * one.weight for one in paid) / self.rows
        if variance <= 0.0:
            return None
        spread = math.fsum(math.fsum(w) * (_average(r, w) - mean) ** 2 for r, w in arms) / variance
        return float(scipy.special.chdtrc(len(self.actions) - 1, spread))

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


def _title(name: str, position: str | None, at: Label | None, prior_rows: float) -> str:
    """Which rows, and whether there are others besides."""
    said = name if at is None else f"{name}, {position} {at}"
    if prior_rows:
        said += f", {number(prior_rows)} rows of the average action added to each"
    return said


def check_actions(labels: Sequence[Label], name: str) -> None:
    """At least two, and not one for every row."""
    if len(labels) < 2:
        raise InvalidInput(f"expected at least 2 actions in {name}, got {len(labels)}")
    if len(set(labels)) < len(labels):
        raise InvalidInput("expected each action once")
    checks.integer(least=2, limit=checks.MOST_ACTIONS, **{f"actions of {name}": len(labels)})


def check_source(title: object, rows: object) -> None:
    """What a log is called, and how many rows it has where that is known."""
    if not isinstance(title, str):
        raise InvalidInput(f"expected title to be a text, got {checks.shown(title)}")
    if rows is not None:
        checks.integer(least=1, rows=rows)


def paid_by_action(
    log: Log, reward_range: tuple[float, float], prior_rows: float = 0.0
) -> dict[Label, dict[float, float]]:
    """The rewards of each action with their weights, in one pass over the log.

    Of rewards in one of the `PARTS` of the range, only the mean is kept where they differ.
    """
    with extra("tables"):
        import polars as pl

    low, high = checks.low_and_high("reward_range", reward_range)
    part = (pl.col(SHARE) * PARTS).floor().clip(0, PARTS - 1).cast(pl.Int32).alias("part")
    found: dict[Label, dict[int, Paid]] = {}
    rows: Counter[Label] = Counter()
    for row in sums_by(log, (ACTION, part), (low, high)).sort(ACTION, "part").iter_rows(named=True):
        least, most = row["least"], row["most"]
        mean = least if least == most else min(most, max(least, low + (high - low) * row["mean"]))
        found.setdefault(row[ACTION], {})[row["part"]] = Paid(mean, row["weight"])
        rows[row[ACTION]] += row["rows"]
    if not prior_rows:
        return {action: dict(own.values()) for action, own in found.items()}
    together = _all_actions(found)
    return {
        # A row that is added weighs as much as one of the action's own.
        action: _added(own, together, prior_rows * _mean_of([*own.values()]).weight / rows[action])
        for action, own in found.items()
    }


class Paid(NamedTuple):
    """A reward, and in how many rows it was paid."""

    reward: float
    weight: float


def _all_actions(found: Mapping[Label, Mapping[int, Paid]]) -> dict[int, Paid]:
    """The rewards of all actions together."""
    everything: dict[int, list[Paid]] = {}
    for own in found.values():
        for place, paid in own.items():
            everything.setdefault(place, []).append(paid)
    return {place: _mean_of(paid) for place, paid in everything.items()}


def _added(own: Mapping[int, Paid], others: Mapping[int, Paid], weight: float) -> dict[float, float]:
    """An action's rewards, and those of all actions, which weigh so much together."""
    total = math.fsum(paid.weight for paid in others.values())
    both: dict[int, list[Paid]] = {place: [paid] for place, paid in own.items()}
    for place, paid in others.items():
        both.setdefault(place, []).append(Paid(paid.reward, weight * paid.weight / total))
    return dict(_mean_of(both[place]) for place in sorted(both))


def _mean_of(paid: Sequence[Paid]) -> Paid:
    """Their mean, which is theirs where they are the same."""
    rewards, weights = zip(*paid, strict=True)
    same = len(set(rewards)) == 1
    return Paid(rewards[0] if same else _average(rewards, weights), math.fsum(weights))


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
