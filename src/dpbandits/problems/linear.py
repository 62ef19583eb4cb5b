"""Linear bandits: every action has features, and its expected reward is linear in them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.features import FeatureMap, Features, is_table
from dpbandits.features.maps import are_short
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems.history import History, Row
from dpbandits.problems.problem import FarWithin, Problem, Shortened, UnusableContext
from dpbandits.problems.testing import ProblemTesting, numbered_past
from dpbandits.recipes import FloatRows, Floats
from dpbandits.wording import counted

Array = NDArray[np.float64]
# The bounds of examples: not 1, so that a policy that forgets its bounds is found out.
_NORM, _REWARD = 2.0, 0.5
_HUGE = 1e300  # squares of lengths that may overflow

P = TypeVar("P", bound="LinearProblem")


class Rewards(NamedTuple):
    """The range of rewards: how far they can be from its middle, and that middle."""

    largest: float
    middle: float


@dataclass(frozen=True)
class LinearProblem(Problem):
    """Features of length at most `max_norm`, rewards in [−max_reward, max_reward].

    What exceeds either is scaled or clipped to it before it touches a sum.
    """

    abstract: ClassVar[bool] = True
    trust: ClassVar[Trust] = Trust.JOINT

    max_norm: Annotated[float, "Features longer than this are shortened to it."] = field(
        default=1.0, kw_only=True
    )
    max_reward: Annotated[float, "Rewards are clipped to plus or minus this."] = field(
        default=1.0, kw_only=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.bound(max_norm=self.max_norm, max_reward=self.max_reward)

    @property
    def dimension(self) -> int:
        """The length d of a feature vector."""
        raise NotImplementedError

    @property
    def blocks(self) -> int:
        """How many arms have d parameters of their own; 1 where all actions share them."""
        return 1

    @property
    def rewards(self) -> Rewards:
        """Within plus or minus `max_reward`."""
        return Rewards(float(self.max_reward), 0.0)

    @property
    def actions(self) -> Array:
        """The fixed decision set, (K, d); without rows where everybody brings her own."""
        return np.zeros((0, self.dimension))

    def reward(self, value: Any) -> float:
        """One number (or a boolean), later clipped; NaN and anything but a number are refused."""
        return checks.reward(value)


@dataclass(frozen=True)
class LinearContexts(LinearProblem):
    """A fresh decision set for every person: `dim` features for each action that she may be shown.

    ``select(features)`` takes a (K, dim) array; K may change from person to person. Both her
    features and her reward are private. Rows longer than `max_norm` are shortened to it before
    anything sees them, rewards beyond ±`max_reward` are clipped. With `arms` each person brings one
    vector of `dim` numbers instead, and each arm has parameters of its own (disjoint arms, which is
    what other libraries call LinUCB): policies keep a Gram matrix of dim × dim for each. Which arm she
    was shown is as private as her features. Noise is made for rows as long as `max_norm`, so one that is
    loose costs as much as a smaller budget: `dpbandits.features` says how to choose it.

    Where rewards are not from −1 to 1, say so: `reward_range=(0, 1)` for clicks. Policies then learn
    what is above or below its middle, by all of the range that noise is made for; with the default ±1
    half of it would never be used, at the same noise. It takes an intercept among the features, and the
    parameters that ``released()`` shows are those of the reward less that middle.

    With `features` a person's columns are brought to numbers by a declared map: ``select`` then takes
    frames, dictionaries and lists of them (`dpbandits.features`). An array is still taken as it is.
    """

    dim: Annotated[int, "How many features an action (or, with arms, a person) has."]
    arms: Annotated[
        int | None, "With arms, each person brings one vector and every arm has parameters of its own."
    ] = None
    features: Annotated[Features | None, "How a person's columns become features, by declaration."] = (
        field(default=None, kw_only=True)
    )

    reward_range: Annotated[
        Floats | None, "The least and the largest reward, in place of max_reward."
    ] = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.reward_range is not None:
            self._set_range(*checks.low_and_high("reward_range", self.reward_range))
        super().__post_init__()
        checks.integer(least=1, limit=checks.MOST_FEATURES, dim=self.dim)
        if self.arms is not None:
            # With one arm there is nothing to decide.
            checks.integer(least=2, limit=checks.MOST_ACTIONS, arms=self.arms)
            checks.room("a Gram matrix for each arm", self.arms * self.dim**2)
        if self.features is not None:
            self._check_map(self.features)

    def _set_range(self, low: float, high: float) -> None:
        largest = (high - low) / 2.0
        if self.max_reward not in (1.0, largest):
            raise InvalidInput("expected max_reward or reward_range, got both")
        object.__setattr__(self, "reward_range", (low, high))
        object.__setattr__(self, "max_reward", largest)

    @property
    def rewards(self) -> Rewards:
        """Of their range, where there is one."""
        if self.reward_range is None:
            return super().rewards
        return Rewards(float(self.max_reward), (self.reward_range[0] + self.reward_range[1]) / 2.0)

    def _check_map(self, features: Features) -> None:
        if not isinstance(features, Features):
            raise InvalidInput(f"expected features to be a FeatureMap, got {checks.shown(features)}")
        if features.dimension != self.dim:
            raise InvalidInput(
                f"expected dim={features.dimension}, as many features as the map makes, got {self.dim}"
            )
        if features.max_norm > self.max_norm * (1.0 + 1e-9):
            raise InvalidInput(
                f"expected max_norm of at least {features.max_norm:g}, that of the map, "
                f"got {self.max_norm:g}"
            )

    @classmethod
    def of(cls, features: Features, *, arms: int | None = None, **others: Any) -> Self:
        """The problem of a declared map, with its number of features and its bound."""
        if not isinstance(features, Features):
            raise InvalidInput(f"expected a FeatureMap, got {checks.shown(features)}")
        others.setdefault("max_norm", features.max_norm)
        return cls(features.dimension, arms, features=features, **others)

    @property
    def dimension(self) -> int:
        """The length d of a feature vector."""
        return self.dim

    @property
    def blocks(self) -> int:
        """One for each arm, where there are arms."""
        return self.arms or 1

    def is_action(self, action: Any) -> bool:
        """A number, of an arm where there are arms."""
        return super().is_action(action) and (self.arms is None or action < self.arms)

    @property
    def kept_features(self) -> int:
        """Those of the action chosen."""
        return self.dim

    def kept(self, context: tuple[Array], action: int) -> tuple[tuple[Array], int]:
        """The row of the action chosen, which is then the only one."""
        (features,) = context
        row = action if len(features) > 1 else 0
        return (features[row : row + 1].copy(),), action

    def context(self, *offered: Any) -> tuple[Array]:
        """Features, (K, d), or (1, d) for arms; rows longer than `max_norm` are scaled down to it."""
        shape = f"a vector of {self.dim}" if self.arms else f"a (K, {self.dim}) array of"
        if len(offered) != 1:
            raise InvalidInput(f"select() takes one thing, {shape} features; got {len(offered)}")
        cut = False
        if self.features is not None and is_table(offered[0]):
            given, cut = self.read(offered[0])
        else:
            given = checks.array(f"{shape} features", offered[0])
        if self.arms is not None and given.shape == (self.dim,):
            given = given[None, :]
        if given.ndim != 2 or given.shape[1] != self.dim or (self.arms and given.shape[0] != 1):
            raise InvalidInput(f"expected {shape} features, got shape {given.shape}")
        if given.shape[0] == 0:
            raise InvalidInput("expected features of at least one action, got none")
        # A warning would tell about her features, and may have been made an error.
        with np.errstate(all="ignore"):
            # Most are within the bound; what is not finite is not.
            longest = np.vecdot(given, given).max()
            if longest <= self.max_norm * self.max_norm:
                if cut:
                    return Shortened((given,))
                return FarWithin((given,)) if are_short(longest, self.max_norm) else (given,)
            if not np.isfinite(given).all():
                # With zeros every action is as good as another, and the row learned from is zero.
                raise UnusableContext((np.zeros_like(given),))
            square = np.einsum("kd,kd->k", given, given)
            within = _within(given, square, self.max_norm)
            return Shortened((within,)) if cut or (within != given).any() else (within,)

    def read(self, table: Any) -> tuple[Array, bool]:
        """A person's table as the array that `context` takes too; and whether any of it was cut off."""
        assert self.features is not None
        given, cut = self.features.context(table)
        return (given[0] if self.arms is not None and given.shape[0] == 1 else given), cut

    def each(self, contexts: Any) -> list[Any]:
        """Also of a frame with a row for each person, where one row is all that she brings."""
        if isinstance(contexts, list | tuple) or not is_table(contexts):
            return super().each(contexts)
        if self.features is None or (self.arms is None and isinstance(self.features, FeatureMap)):
            raise InvalidInput(
                "a frame is one person a row where the problem has a FeatureMap and arms, or "
                "CrossedFeatures; otherwise give a list with one context for each person"
            )
        return self.features.each(contexts)

    def past(self, history: History) -> Iterator[Row]:
        """The features of what was chosen, which is then the first action, and the reward.

        Those that are not finite are a row of zeros, as in `context`.
        """
        rewards = history.single_rewards()
        rows = self._chosen_rows(history)
        rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
        with np.errstate(all="ignore"):  # a warning would tell about somebody's features
            square = np.einsum("nd,nd->n", rows, rows)
            # Apart: nobody's huge features may change how another's are rounded.
            for some in (square < _HUGE, square >= _HUGE):
                if some.any():
                    rows[some] = _within(rows[some], square[some], self.max_norm)
        arms = [0] * len(history) if self.arms is None else history.chosen(self.arms, "arms").tolist()
        parts = zip(rows, arms, rewards.tolist(), strict=True)
        return (((row[None, :],), arm, reward) for row, arm, reward in parts)

    def _chosen_rows(self, history: History) -> Array:
        features: Array | None = history.features
        if features is None or features.shape[-1] != self.dim:
            found = "none" if features is None else f"shape {features.shape}"
            raise InvalidInput(f"expected history's features as {self.dim} numbers a row, got {found}")
        if self.arms is not None and features.ndim == 2:
            return features
        if self.arms is None and features.ndim == 3:
            action = history.chosen(features.shape[1], "actions")
            return np.asarray(features[np.arange(len(history)), action])
        if features.ndim != 2:
            raise InvalidInput(f"expected history's features as (n, {self.dim}), not {features.shape}")
        if history.action is not None:
            raise InvalidInput(
                "history's features are those of what was chosen: leave out action, or give the "
                "features of all actions"
            )
        return features

    def _range_in_words(self) -> str:
        if self.reward_range is None:
            return f"±{self.max_reward:g}"
        low, high = self.reward_range
        return f"{low:g} to {high:g}"

    def public_facts(self) -> tuple[str, ...]:
        """The number of features and the bounds."""
        numbers = "the number of features" if self.arms is None else "the numbers of arms and features"
        return (
            numbers,
            f"the bounds {self.max_norm:g} on their norm and {self._range_in_words()} on rewards",
            *(("how columns become features",) if self.features is not None else ()),
        )


@dataclass(frozen=True)
class LinearActions(LinearProblem):
    """One fixed, public decision set, given as rows of numbers; only the rewards are private.

    Noise is made for rows as long as `max_norm`; they are public, so declare the length of the longest.

    ``select()`` takes nothing and returns the number of a row. Neighbours differ in a reward only, so
    how often each action was played is public.
    """

    trust: ClassVar[Trust] = Trust.CENTRAL

    features: Annotated[FloatRows, "One row of numbers for each action; public."]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "features", _rows(self.features))
        longest = max(math.hypot(*row) for row in self.features)
        if longest > self.max_norm * (1.0 + 1e-9):
            raise InvalidInput(
                f"expected features of norm at most max_norm = {self.max_norm:g}, got one of {longest:g}"
            )

    @property
    def dimension(self) -> int:
        """The length d of a row."""
        return len(self.features[0])

    @property
    def actions(self) -> Array:
        """The rows as an array."""
        return np.array(self.features)

    def context(self, *offered: Any) -> None:
        """The decision set is declared, so a person brings nothing."""
        if offered:
            raise InvalidInput(
                "LinearActions has no context to decide by; a person is given as person=…"
            )

    def is_action(self, action: Any) -> bool:
        """The number of a row."""
        return super().is_action(action) and action < len(self.features)

    def past(self, history: History) -> Iterator[Row]:
        """Rows of the decision set, with their rewards."""
        return history.numbered(len(self.features), "actions")

    def public_facts(self) -> tuple[str, ...]:
        """The decision set and the range of rewards."""
        return "the decision set", f"the reward range ±{self.max_reward:g}"


def _within(features: Array, square: Array, bound: float) -> Array:
    """Rows that are longer than the bound, scaled down to it; `square` of their lengths."""
    # Rounding alone is left to what is exact about it: the row that a policy stores.
    if square.max() < _HUGE:
        longer = square > bound * bound * (1.0 + 2e-9)
        return features * np.where(longer, bound / np.sqrt(square), 1.0)[:, None]
    # Divided by the largest entry first: the square of a huge one overflows.
    largest = np.abs(features).max(axis=1, keepdims=True)
    largest[largest == 0.0] = 1.0
    shape = features / largest
    length = np.linalg.norm(shape, axis=1, keepdims=True)
    length[length == 0.0] = 1.0
    longer = largest > bound / length * (1.0 + 1e-9)
    return np.where(longer, shape * (bound / length), features)


def _rows(given: Any) -> tuple[tuple[float, ...], ...]:
    """Rows of equally many finite numbers, at least two, as tuples."""
    rows = checks.array("features as at least two rows of equally many numbers", given)
    if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] < 1:
        raise InvalidInput("expected features as at least two rows of equally many numbers")
    checks.integer(least=2, limit=checks.MOST_ACTIONS, rows=rows.shape[0])
    checks.integer(least=1, limit=checks.MOST_FEATURES, features=rows.shape[1])
    if not np.isfinite(rows).all():
        raise InvalidInput("expected features as rows of finite numbers, got nan or infinity")
    return tuple(tuple(row) for row in rows.tolist())


class _Testing(ProblemTesting[P]):
    """For audits of linear policies."""

    replay_rounds: ClassVar[int] = 20

    def reward_inside(self, problem: P, share: float, chance: np.random.Generator) -> float:
        largest, middle = problem.rewards
        return largest * (2.0 * share - 1.0) + middle


class _ContextsTesting(_Testing[LinearContexts]):
    """Fresh decision sets; also for policies that take either kind."""

    def example(self, horizon: int | None, *, size: int = 3) -> LinearContexts:
        """Decision sets in size − 1 dimensions."""
        return LinearContexts(size - 1, horizon=horizon, max_norm=_NORM, max_reward=_REWARD)

    def example_like(
        self, problem: LinearContexts, horizon: int | None, *, size: int = 3
    ) -> LinearContexts:
        """Arms have parameters of their own, where its arms do; and rewards a range."""
        example = self.example(horizon, size=size)
        if problem.arms is None:
            return example
        return replace(example, arms=size, reward_range=(-0.5 * _REWARD, 1.5 * _REWARD))

    def others(self, horizon: int | None) -> dict[str, LinearContexts]:
        """Arms with parameters of their own."""
        return {"disjoint arms": self.example_like(LinearContexts(1, arms=2), horizon)}

    def size_in_words(self, problem: LinearContexts) -> str:
        """Its features."""
        return counted(problem.dimension, "feature")

    def extreme_people(self, problem: LinearContexts) -> tuple[tuple[tuple[Array], float], ...]:
        """The pair that costs most (an angle of 60°, opposite rewards), then others, in and beyond."""
        size, largest, reward = problem.dimension, problem.max_norm, problem.max_reward

        def facing(*entries: float) -> Array:
            vector = np.zeros(size)
            vector[: len(entries)] = entries[:size]
            return vector * largest

        first, tilted = facing(1.0), facing(0.5, math.sqrt(0.75))
        if size == 1:
            tilted = first
        second = facing(0.0, 1.0)
        one, other = first[None, :], tilted[None, :]
        people: tuple[tuple[Array, float], ...] = (
            (one, reward),
            (other, -reward),
            (one, -reward),
            (np.stack((first, second)), 0.5 * reward),
            (np.stack((second, tilted, -first)), -reward),
            (np.stack((0.3 * first, -0.7 * tilted, 0.1 * second)), 0.0),
            (1e9 * one, -1e9),
            (-1e200 * other, math.inf),
            (np.full((2, size), math.nan), reward),
            (np.full((1, size), math.inf), -math.inf),
            (np.zeros((3, size)), reward),
            (other, problem.missing),
            (np.outer(np.linspace(-1.0, 1.0, 8), first - 0.5 * second) / 1.2, 0.8 * reward),
        )
        if problem.arms is not None:  # one row for all arms
            people = tuple((features[:1], value) for features, value in people)
            # And from the diagonal, where rows of two arms move most in L1.
            even = facing(*np.full(size, 1.0 / math.sqrt(size)))
            across = facing(math.sqrt(0.5), -math.sqrt(0.5)) if size > 1 else even
            people += (even[None, :], reward), (across[None, :], -reward)
        middle = problem.rewards.middle
        return tuple(((features,), value + middle) for features, value in people)

    def past(self, problem: LinearContexts, people: Sequence[tuple[Any, Any]]) -> History:
        rows = [context[0][index % len(context[0])] for index, (context, _) in enumerate(people)]
        action = None if problem.arms is None else np.arange(len(people)) % problem.arms
        return History(action=action, features=rows, reward=[reward for _, reward in people])

    def context_inside(self, problem: LinearContexts, chance: np.random.Generator) -> tuple[Array]:
        actions = int(chance.integers(1, 5)) if problem.arms is None else 1
        rows = chance.normal(size=(actions, problem.dimension))
        rows *= chance.random((rows.shape[0], 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
        return (problem.max_norm * rows,)


class _ActionsTesting(_Testing[LinearActions]):
    """A fixed decision set."""

    def example(self, horizon: int | None, *, size: int = 3) -> LinearActions:
        """`size` vectors of one length in one dimension less: along the axes, and one between them."""
        axes = np.eye(size - 1)
        between = np.full((1, size - 1), 1.0 / math.sqrt(size - 1))
        rows = _rows(_NORM * np.concatenate([axes, between]))
        return LinearActions(rows, horizon=horizon, max_norm=_NORM, max_reward=_REWARD)

    def size_in_words(self, problem: LinearActions) -> str:
        """Its features."""
        return counted(problem.dimension, "feature")

    def past(self, problem: LinearActions, people: Sequence[tuple[Any, Any]]) -> History:
        return numbered_past(len(problem.features), people)

    def extreme_people(self, problem: LinearActions) -> tuple[tuple[None, float], ...]:
        """Both ends first, then the inside, far beyond both ends, and no reward at all."""
        beyond = (-1e9, 1e300, math.inf, -math.inf, problem.missing)
        inside = (-0.5 * problem.max_reward, 0.0, 0.5 * problem.max_reward)
        ends = (-problem.max_reward, problem.max_reward)
        return tuple((None, reward) for reward in (*ends, *inside, *beyond))


LinearProblem.testing = LinearContexts.testing = _ContextsTesting()
LinearActions.testing = _ActionsTesting()
