"""Matroid bandits: each round chooses a basis and sees a reward in [0, 1] for each of its items."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.problems.history import History, Row
from dpbandits.problems.matroids.greedy import start_greedy
from dpbandits.problems.matroids.linear import LinearMatroid
from dpbandits.problems.matroids.matroid import Matroid
from dpbandits.problems.problem import Problem
from dpbandits.problems.testing import ProblemTesting
from dpbandits.wording import counted

# An action and its rewards as verbs have them: in tuples, since compiled verbs return no bare arrays.
Items = tuple[NDArray[np.int64]]
Rewards = tuple[NDArray[np.float64]]
_EXAMPLES = ((1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 0), (0, 0, 1), (2, 0, 0), (1, 0, 1))


def _refuse_hidden_parameters(kind: type[Matroid]) -> None:
    """Two matroids with equal fields are taken for the same, so every parameter must be a field."""
    for base in kind.__mro__:
        if "__init__" in vars(base) and "__dataclass_fields__" not in vars(base) and base is not object:
            raise InvalidInput(
                f"expected {base.__name__} to be a frozen dataclass with its parameters as fields, not "
                "to have an __init__ of its own: @dataclass(frozen=True)"
            )


@dataclass(frozen=True)
class MatroidBases(Problem):
    """The bases of a matroid; an action is an array of items, a reward a number for each of them.

    The reward of an item that a person did not rate is 0. Rewards are clipped to [0, 1] before they are
    stored. The bases are the output, so how often each item was chosen is public.
    """

    matroid: Annotated[Matroid, "Which sets of items may be chosen together."]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.matroid, Matroid):
            raise InvalidInput(
                f"expected a matroid such as UniformMatroid(5, 2), got {checks.shown(self.matroid)}"
            )
        _refuse_hidden_parameters(type(self.matroid))
        checks.integer(least=1, limit=checks.MOST_ITEMS, items=self.matroid.size)
        if self.matroid.rank == 0:
            raise InvalidInput("expected a matroid with a basis of at least one item")
        # Noise is divided among this many items: an outsider's class may mean something else by `rank`.
        found = start_greedy(self.matroid.state(), self.matroid.size).basis.size
        if self.matroid.rank != found:
            raise InvalidInput(
                f"expected rank to be {found}, the items of a basis, got "
                f"{checks.shown(self.matroid.rank)}; if {type(self.matroid).__name__} has a rank of its "
                "own, give that another name"
            )

    @property
    def items(self) -> int:
        """L, loops included."""
        return self.matroid.size

    @property
    def rank(self) -> int:
        """K, the items of every basis."""
        return self.matroid.rank

    @property
    def kept_items(self) -> int:
        """All of them: a policy may look at everything once."""
        return self.items

    def context(self, *offered: Any) -> None:
        """There is no context."""
        if offered:
            raise InvalidInput("MatroidBases has no context to decide by; a person is given as person=…")

    def is_action(self, action: Any) -> bool:
        """Different items, as many as a basis has; or all of them, in one look."""
        chosen = set(np.atleast_1d(action).tolist())
        return len(chosen) == np.size(action) >= self.rank and chosen <= set(range(self.items))

    def reward(self, value: Any) -> NDArray[np.float64]:
        """A number for each item chosen, later clipped to [0, 1]; NaN is refused."""
        if isinstance(value, list | tuple):  # a whole number may be beyond double precision
            value = [checks.number("reward", one) if type(one) is int else one for one in value]
        rewards = checks.array("a list of rewards", value)
        if rewards.ndim != 1:
            raise InvalidInput(
                f"expected a list of rewards, one for each item chosen, got {checks.kind_of(value)}"
            )
        if np.isnan(rewards).any():
            raise InvalidInput(
                "expected rewards to be numbers, got nan; an item without a rating is 0, a round "
                "without rewards is closed by skip()"
            )
        return rewards

    @property
    def missing(self) -> NDArray[np.float64]:
        """Nothing for every item; long enough for any action."""
        return np.full(self.items, math.nan)

    def past(self, history: History) -> Iterator[Row]:
        """As many different items as a basis has, with a reward for each.

        Some policies learn from the first few items of a basis only: in each row another is the first,
        so that all are learned from in turn.
        """
        if history.features is not None:
            raise InvalidInput("items come without contexts: leave out history's features")
        chosen = history.chosen(self.items, "items", (self.rank,))
        if history.reward.shape != chosen.shape:
            raise InvalidInput(
                f"expected a reward for each of the {self.rank} items of a row, "
                f"not {history.reward.shape}"
            )
        ordered = np.sort(chosen, axis=1)
        if (ordered[:, 1:] == ordered[:, :-1]).any():
            raise InvalidInput("expected different items in each row of history's action")
        return (
            (None, np.roll(items, turn), np.roll(rewards, turn))
            for turn, (items, rewards) in enumerate(zip(chosen, history.reward, strict=True))
        )

    def public_facts(self) -> tuple[str, ...]:
        """The matroid and the range rewards are clipped to."""
        return "the matroid", "the reward range [0, 1]"


class _Testing(ProblemTesting[MatroidBases]):
    """For audits of policies on `MatroidBases`."""

    replay_rounds: ClassVar[int] = 24

    def example(self, horizon: int | None, *, size: int = 3) -> MatroidBases:
        """Some vectors; from the fourth on with a loop, from the sixth with a parallel pair."""
        if size <= 3:
            return MatroidBases(
                LinearMatroid(tuple(x[:2] for x in _EXAMPLES[: size + 1])), horizon=horizon
            )
        return MatroidBases(LinearMatroid(_EXAMPLES[: size + 1]), horizon=horizon)

    def size_in_words(self, problem: MatroidBases) -> str:
        """Its items."""
        return counted(problem.items, "item")

    def extreme_people(self, problem: MatroidBases) -> tuple[tuple[None, Rewards], ...]:
        """Both ends for all items first; then inside, far beyond both ends, mixed, and no rewards.

        For any two items, some pair of people differs in opposite directions: what is released of a
        comparison moves furthest between these.
        """
        beyond = (-1e9, 1e300, math.inf, -math.inf)
        rewards = [np.full(problem.items, value) for value in (0.0, 1.0, 0.25, *beyond)]
        for digit in range(max(1, (problem.items - 1).bit_length())):
            mixed = (np.arange(problem.items) >> digit & 1).astype(float)
            rewards += [mixed, 1.0 - mixed]
        return tuple((None, (reward,)) for reward in (*rewards, problem.missing))

    def past(self, problem: MatroidBases, people: Sequence[tuple[Any, Any]]) -> History:
        items = np.arange(problem.rank) + np.arange(len(people))[:, None]
        rewards = [reward[0][: problem.rank] for _, reward in people]
        return History(action=items % problem.items, reward=rewards)

    def reward_inside(self, problem: MatroidBases, share: float, chance: np.random.Generator) -> Rewards:
        return ((share + chance.random(problem.items)) % 1.0,)


MatroidBases.testing = _Testing()
