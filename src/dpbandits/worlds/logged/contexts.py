"""Contexts drawn from a log, and rewards at the rate that their action had there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.extras import extra
from dpbandits.problems import LinearContexts
from dpbandits.recipes import FloatRows, Floats
from dpbandits.wording import counted
from dpbandits.worlds.environment import Environment
from dpbandits.worlds.logged.arms import check_actions, check_source
from dpbandits.worlds.logged.cells import Features, LoggedCells, check_cells, column_names, features_of
from dpbandits.worlds.logged.sums import sums_by
from dpbandits.worlds.logged.table import (
    ACTION,
    REWARD,
    Label,
    Log,
    Source,
    declared_columns,
    read_log,
    scan,
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LoggedContexts(Environment):
    """Contexts come as often as the log has them, and an action pays 1 or 0 at the rate it had there.

    An empirical world: any linear policy can be played on it, and its regret is exact, against the best
    action of each context. It assumes that rounds are independent and that the rates are the true ones.
    They need not be linear in the features; a policy that assumes so loses by it, as it would in use. An
    action that was never chosen in a context pays there as it did in all; where it was seldom chosen,
    its rate is drawn to that (`prior_rows`). Rewards between the ends of their range are drawn as one
    end or the other, with the same mean: no rewards are noisier.

    Where contexts have features, each action has its own parameters (`LinearContexts(d, arms=K)`). With
    `per_action` the actions have features, a row for each context and action (`LinearContexts(d)`).
    `read` makes it of a log, `from_labels` of classified examples. It holds counts of them, and is for
    those who may see them.

    >>> log = {"hour": [0, 0, 1, 1], "item": ["a", "b", "a", "b"], "click": [1, 0, 0, 1]}
    >>> columns = {"action": "item", "reward": "click", "context": ["hour"]}
    >>> LoggedContexts.read(log, **columns, prior_rows=0).uniform_regret()
    0.5
    >>> LoggedContexts.read(log, **columns).prior_rows  # a row of each pair shows no difference
    4.0
    """

    actions: Annotated[Sequence[Label], "The name of each action."]
    features: Annotated[FloatRows, "A row for each context, or for each action of each context."]
    shares: Annotated[Floats, "How often the log has each context."]
    rates: Annotated[FloatRows, "For each context, the mean reward of each action, scaled to [0, 1]."]
    per_action: Annotated[bool, "Whether features are of an action, and not of a context."] = False
    max_norm: Annotated[float, "How long features can be."] = 1.0
    title: Annotated[str, "What the log is called in reports."] = "a log"
    rows: Annotated[int | None, "How many rows it has."] = None
    prior_rows: Annotated[float, "By how many rows a rate was drawn to its action's in all."] = 0.0
    variance: Annotated[float | None, "That of rewards of an action in a context, if known."] = None

    def __post_init__(self) -> None:
        labels = tuple(checks.sequence("actions", self.actions))
        check_actions(labels, "the log")
        checks.one_of((False, True), per_action=self.per_action)
        checks.bound(max_norm=self.max_norm)
        check_source(self.title, self.rows)
        checks.not_negative(prior_rows=self.prior_rows)
        if self.variance is not None:
            checks.not_negative(variance=self.variance)
        features = checks.array("features as rows of equally many numbers", self.features)
        shares = checks.array("shares as numbers", self.shares)
        rates = checks.array("rates as a row of numbers for each context", self.rates)
        rows = shares.size * (len(labels) if self.per_action else 1)
        if shares.ndim != 1 or not shares.size or not np.all((shares > 0) & np.isfinite(shares)):
            raise InvalidInput("expected shares as numbers above 0, one for each context")
        if rates.shape != (shares.size, len(labels)) or not np.all((rates >= 0) & (rates <= 1)):
            raise InvalidInput("expected rates in [0, 1], for each context one of each action")
        if features.ndim != 2 or features.shape[0] != rows or not features.shape[1]:
            raise InvalidInput(f"expected {counted(rows, 'row')} of features, got {features.shape}")
        if not np.linalg.norm(features, axis=1).max() <= self.max_norm * (1.0 + 1e-9):
            raise InvalidInput(f"expected features of norm at most max_norm = {self.max_norm:g}")
        for name, value in (("features", features), ("rates", rates)):
            object.__setattr__(self, name, tuple(map(tuple, value.tolist())))
        object.__setattr__(self, "actions", labels)
        object.__setattr__(self, "shares", tuple(shares.tolist()))
        self.problem(None)

    @classmethod
    def read(
        cls,
        source: Source,
        *,
        action: str,
        reward: str,
        context: Sequence[str] = (),
        action_features: Sequence[str] = (),
        features: Features | None = None,
        propensity: str | None = None,
        position: str | None = None,
        at: Label | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        prior_rows: float | None = None,
    ) -> Self:
        """The world of a log, read as `LoggedArms.read` does.

        The different values of the columns `context` are the contexts. `action_features` are columns
        that say something of the action: in one context it must always be the same. `features` makes
        numbers of columns, of the latter if there are any; without it they are taken as they are, if
        they are numbers.

        With `prior_rows` each action has, in each context, so many rows at its rate in all contexts
        besides its own: few rows alone would make most of the best actions a matter of chance. Unless
        given, the log itself says how many: those that tell as much of a rate as its action's does
        (Bühlmann and Straub, 1970), few where contexts differ and have many rows, all where they show
        no difference. A single context has none unless given; there they are of the average action.
        """
        if prior_rows is not None:
            checks.not_negative(prior_rows=prior_rows)
        columns = (*column_names("context", context), *column_names("action_features", action_features))
        if not columns:
            raise InvalidInput("expected columns as context or action_features; without, see LoggedArms")
        log = read_log(
            source,
            action=action,
            reward=reward,
            propensity=propensity,
            position=position,
            at=at,
            context=columns,
            features=features,
            reward_range=reward_range,
        )
        check_cells(log, context)
        pairs = sums_by(log, (ACTION, *context), checks.low_and_high("reward_range", reward_range))
        cells = LoggedCells.of(pairs, context)
        ours = cells.features_of_actions(log, action_features) if action_features else cells.contexts
        weights = cells.weights.ravel() if action_features else cells.weights.sum(axis=1)
        numbers, bound = features_of(ours, action_features or context, features, log.name, weights)
        if prior_rows is None:
            prior_rows = cells.credible_rows() if cells.contexts.height > 1 else 0.0
        return cls(
            actions=cells.actions,
            features=numbers,
            shares=cells.weights.sum(axis=1),
            rates=cells.rates(prior_rows),
            per_action=bool(action_features),
            max_norm=bound,
            title=log.name if at is None else f"{log.name}, {position} {at}",
            rows=log.rows,
            prior_rows=float(prior_rows),
            variance=cells.variance(),
        )

    @classmethod
    def from_labels(
        cls,
        source: Source,
        *,
        label: str,
        features: Sequence[str],
        feature_map: Features | None = None,
    ) -> Self:
        """Classified examples as a bandit: each round shows one, and naming its `label` pays 1.

        Where examples with the same features have different labels, each pays as often as it was theirs.
        """
        with extra("tables"):
            import polars as pl

        table = scan(source)
        columns = column_names("features", features)
        table.check_columns({"label": label}, columns)
        declared = declared_columns(feature_map)
        faults = [fault for name in columns for fault in table.no_values(name, declared.get(name))]
        rows = table.refuse([table.missing(label), *faults])
        values = (table.value(name, declared.get(name)) for name in columns)
        chosen = [table.label(label, ACTION), *values]
        log = Log(table.frame.select(*chosen, pl.lit(1.0).alias(REWARD)), table.name, rows)
        check_cells(log, columns)
        cells = LoggedCells.of(sums_by(log, (ACTION, *columns), (0.0, 1.0)), columns)
        shares = cells.weights.sum(axis=1)
        numbers, bound = features_of(cells.contexts, columns, feature_map, log.name, shares)
        return cls(
            actions=cells.actions,
            features=numbers,
            shares=shares,
            rates=cells.weights / shares[:, None],
            max_norm=bound,
            title=log.name,
            rows=log.rows,
        )

    def problem(self, rounds: int | None) -> LinearContexts:
        """One vector a person and parameters of each action; or features of every action.

        Rewards are declared to be from 0 to 1 where a feature is above 0 for everybody, as an intercept
        is: without one, parameters could not make up for the middle of that range.
        """
        arms = None if self.per_action else len(self.actions)
        features = np.array(self.features)
        ends = (0.0, 1.0) if (features.min(axis=0) > 0.0).any() else None
        return LinearContexts(
            features.shape[1], arms=arms, max_norm=self.max_norm, reward_range=ends, horizon=rounds
        )

    def uniform_regret(self) -> float:
        """The best mean minus the average mean, over the contexts."""
        rates, shares = np.array(self.rates), np.array(self.shares)
        lost = rates.max(axis=1) - rates.mean(axis=1)
        return math.fsum(lost * shares) / math.fsum(shares)

    def rows_per_cell(self) -> float | None:
        """About how many rows of the log an action has in the median context."""
        if self.rows is None:
            return None
        return self.rows * float(np.median(self.shares)) / math.fsum(self.shares) / len(self.actions)

    def spread_by_chance(self) -> float | None:
        """The share of the variance of rates within contexts that chance alone would make.

        About so: the rows of a context are taken to be of all actions alike, and rates that were drawn
        to a mean to have that much less of it. None where the number of rows is not known, or all rates
        are the same.
        """
        shares, rates = np.array(self.shares), np.array(self.rates)
        spread = float(shares @ rates.var(axis=1, ddof=1))
        if self.rows is None or spread <= 0.0:
            return None
        mean = rates.mean(axis=1)
        variance = mean * (1.0 - mean) if self.variance is None else self.variance
        cells = np.maximum(self.rows * shares / shares.sum() / len(self.actions), 1.0)
        drawn = cells / (cells + self.prior_rows)
        return min(1.0, float(shares @ (variance / cells * drawn**2)) / spread)

    def in_words(self) -> str:
        """How many contexts and actions of which log."""
        contexts = counted(len(self.shares), "context")
        return f"{counted(len(self.actions), 'action')} in {contexts} of {self.title}"

    def world(self) -> "ContextsWorld | ActionsWorld":
        """No context drawn yet."""
        rates, features = np.array(self.rates), np.array(self.features)
        ends = np.cumsum(self.shares) / math.fsum(self.shares)
        ends[-1] = 1.0  # whatever was rounded
        cells = Cells(ends, rates, rates.max(axis=1), np.zeros(1, np.int64))
        actions, dim = len(self.actions), features.shape[1]
        if self.per_action:
            return ActionsWorld(cells, features.reshape(-1, actions, dim))
        return ContextsWorld(cells, features, np.zeros((1, dim)))


class Cells(NamedTuple):
    """The contexts of a log, and which of them the round has."""

    ends: Array  # (C,) the chance of this context or one before it
    rates: Array  # (C, K)
    best: Array  # (C,)
    now: NDArray[np.int64]  # (1,)

    def limits(self) -> Limits:
        """What no round changes, and the place of a context."""
        return dict.fromkeys(("ends", "rates", "best"), FROM_RECIPE) | {"now": (0, self.ends.size - 1)}


class PaysAtRate:
    """The verbs that both worlds share: each has a field `cells`."""

    __slots__ = ()
    cells: Cells

    def pay(self, context: Any, action: int, chance: Chance) -> float:
        """1 when this round's uniform falls below the rate of context and action."""
        cells = self.cells
        return 1.0 if chance.random() < cells.rates[cells.now[0], action] else 0.0

    def settle(self, context: Any, action: int, reward: float) -> tuple[float, float, float]:
        """The best rate in this context, the action's rate, the reward."""
        cells = self.cells
        cell = cells.now[0]
        return cells.best[cell], cells.rates[cell, action], reward


@register_jitable(forceinline=True)
def draw_cell(cells: Cells, chance: Chance) -> int:
    """The first context whose end is beyond a uniform, found by halving."""
    uniform = chance.random()
    low, high = 0, cells.ends.size - 1
    while low < high:
        middle = (low + high) // 2
        if uniform < cells.ends[middle]:
            high = middle
        else:
            low = middle + 1
    cells.now[0] = low
    return low


class _Contexts(NamedTuple):
    cells: Cells
    contexts: Array  # (C, dim)
    context: Array  # (1, dim) this round's

    def limits(self) -> Limits:
        """What no round changes."""
        return {"contexts": FROM_RECIPE}


class ContextsWorld(_Contexts, PaysAtRate):
    """State of `LoggedContexts` where contexts have features."""

    def offer(self, chance: Chance) -> tuple[Array]:
        """A context, the same for all actions."""
        cell = draw_cell(self.cells, chance)
        for j in range(self.contexts.shape[1]):
            self.context[0, j] = self.contexts[cell, j]
        return (self.context,)


class _Actions(NamedTuple):
    cells: Cells
    tables: Array  # (C, K, dim)

    def limits(self) -> Limits:
        """What no round changes."""
        return {"tables": FROM_RECIPE}


class ActionsWorld(_Actions, PaysAtRate):
    """State of `LoggedContexts` where actions have features."""

    def offer(self, chance: Chance) -> tuple[Array]:
        """The features of all actions in a context."""
        return (self.tables[draw_cell(self.cells, chance)],)
