r"""Arms that change: means that shift in given rounds, and rewards by a script.

**Regret in hindsight.** Where arms change, regret after t rounds is

    R(t) = max_i Σ_{s≤t} μ_i(s) − Σ_{s≤t} μ_{a(s)}(s),

against the one arm that was best *up to t*, which is what adversarial bandits are judged by; a script's
μ_i(s) are its rewards. So `settle` gives as the best mean of round t what the maximum grows by in it:
the sums of a run are R(t) for every t, not for the last alone, and no horizon has to be known. An arm
may pay more than that in a round, and who follows the changes can have negative regret. `ShiftingArms`
may be held against the best arm of every round instead (`against="moving"`), which is what following
them is judged by.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.engine.state import COUNT, FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.problems import Arms
from dpbandits.recipes import FloatRows, Ints
from dpbandits.wording import counted
from dpbandits.worlds.environment import Environment

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ShiftingArms(Environment):
    """Bernoulli arms whose means all change at once, after given rounds.

    Arm i pays 1 with probability means[j][i], j the number of changes so far; after the last change
    they stay as they are. Regret is in hindsight unless it is `against` the moving best arm.

    >>> world = ShiftingArms(means=((0.9, 0.5), (0.1, 0.5)), changes=(1000,))
    >>> world.uniform_total(2000)  # each arm is worth 1000: random play loses nothing
    0.0
    """

    means: Annotated[FloatRows, "The mean reward of each arm: a row at first, and one for each change."]
    changes: Annotated[Ints, "The rounds after which the means of the next row hold."]
    against: Annotated[
        Literal["fixed", "moving"],
        'What regret is measured against: the best "fixed" arm so far, or the best arm of every round.',
    ] = "fixed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", _rows("means", self.means))
        changes = tuple(checks.sequence("changes", self.changes))
        checks.integer(least=1, **{f"changes[{at}]": change for at, change in enumerate(changes)})
        object.__setattr__(self, "changes", tuple(map(int, changes)))
        if any(late <= early for early, late in zip(self.changes, self.changes[1:], strict=False)):
            raise InvalidInput(f"expected changes one after the other, got {checks.shown(self.changes)}")
        if len(self.means) != len(self.changes) + 1:
            raise InvalidInput(
                f"expected a row of means at first and one for each of {counted(len(changes), 'change')}"
                f", got {counted(len(self.means), 'row')}"
            )
        checks.one_of(("fixed", "moving"), against=self.against)

    def problem(self, rounds: int | None) -> Arms:
        """The arms; that they change is not known."""
        return Arms(len(self.means[0]), horizon=rounds)

    def in_hindsight(self) -> bool:
        """Unless it is against the moving best arm."""
        return self.against == "fixed"

    def world(self) -> "ShiftingWorld":
        """Before the first round."""
        means, starts = np.array(self.means), np.array((0, *self.changes))
        before = np.cumsum(means[:-1] * np.diff(starts)[:, np.newaxis], axis=0)
        return ShiftingWorld(
            round=np.zeros(1, np.int64),
            stretch=np.zeros(1, np.int64),
            means=means,
            starts=starts,
            before=np.concatenate([np.zeros((1, means.shape[1])), before]),
            hindsight=self.in_hindsight(),
        )

    def uniform_regret(self) -> float:
        """In the long run: of the last means."""
        last = self.means[-1]
        return max(last) - math.fsum(last) / len(last)

    def uniform_total(self, rounds: int) -> float:
        """Stretch by stretch."""
        starts = np.minimum((0, *self.changes, rounds), rounds)
        means, lengths = np.array(self.means), np.diff(starts)
        best = lengths @ means.max(axis=1)
        if self.in_hindsight():
            best = (lengths @ means).max()
        return float(best - lengths @ means.mean(axis=1))

    def in_words(self) -> str:
        """How many arms, and how often they change."""
        arms = counted(len(self.means[0]), "Bernoulli arm")
        return f"{arms} whose means change {counted(len(self.changes), 'time')}"


class ShiftingWorld(NamedTuple):
    """State of `ShiftingArms`."""

    round: Integers  # (1,) rounds offered
    stretch: Integers  # (1,) changes so far
    means: Array  # (stretches, arms)
    starts: Integers  # (stretches,) the rounds before each
    before: Array  # (stretches, arms) what each arm was worth before each
    hindsight: bool

    def limits(self) -> Limits:
        """What no round changes, and a stretch that there is."""
        recipe = dict.fromkeys(("means", "starts", "before"), FROM_RECIPE)
        return {"round": COUNT, "stretch": (0, self.starts.size - 1), **recipe}

    def offer(self, chance: Chance) -> None:
        """No context; the means may change."""
        following = self.stretch[0] + 1
        if following < self.starts.size and self.round[0] == self.starts[following]:
            self.stretch[0] = following
        self.round[0] += 1

    def pay(self, context: None, action: int, chance: Chance) -> float:
        """1 when this round's uniform falls below the arm's mean of now."""
        return 1.0 if chance.random() < self.means[self.stretch[0], action] else 0.0

    def settle(self, context: None, action: int, reward: float) -> tuple[float, float, float]:
        """What the best arm gains by this round, the arm's mean, the reward."""
        stretch = self.stretch[0]
        played = self.round[0] - self.starts[stretch]  # of this stretch, with this one
        best = _worth(self, stretch, played) - _worth(self, stretch, played - 1)
        return best, self.means[stretch, action], reward


@register_jitable(forceinline=True)
def _worth(world: ShiftingWorld, stretch: int, played: int) -> float:
    """What the best arm is worth after so many rounds of a stretch: of all rounds, or of it alone."""
    most = -math.inf
    for arm in range(world.means.shape[1]):
        earlier = world.before[stretch, arm] if world.hindsight else 0.0
        most = max(most, earlier + world.means[stretch, arm] * played)
    return most


@dataclass(frozen=True)
class ScriptedArms(Environment):
    """Arms that pay as a table says, whatever is chosen: a row for each round, a column for each arm.

    `rewards` is the table, or the path of one: an .npy file of NumPy, or a .csv file of numbers without
    a heading. A recipe with a path holds the path alone, so that its traces can be made again where the
    file is. Regret is in hindsight, and no more rounds can be played than the table has.

    >>> ScriptedArms(rewards=((1, 0), (1, 0), (0, 1))).uniform_total(3)
    0.5
    """

    rewards: Annotated[
        str | Path | FloatRows, "The rewards of each round, or the path of a file of them."
    ]

    def __post_init__(self) -> None:
        if isinstance(self.rewards, str | Path):
            object.__setattr__(self, "rewards", str(self.rewards))
        else:
            object.__setattr__(self, "rewards", _rows("rewards", self.rewards))

    def table(self) -> Array:
        """The rewards, (rounds, arms); a file is read once."""
        if not isinstance(self.rewards, str):
            return np.array(self.rewards)
        path = Path(self.rewards)
        if not path.is_file():
            raise InvalidInput(f"there is no file {path}: expected a script, .npy or .csv")
        return _read(path, path.stat().st_mtime_ns)

    def problem(self, rounds: int | None) -> Arms:
        """The arms; the script is not known, and ends."""
        length, arms = self.table().shape
        if rounds is not None and rounds > length:
            raise InvalidInput(
                f"the script ends after {counted(length, 'round')}, {rounds:,} were asked"
            )
        return Arms(arms, horizon=rounds)

    def in_hindsight(self) -> bool:
        """Always: the best of each round is chance."""
        return True

    def world(self) -> "ScriptedWorld":
        """Before the first round."""
        table = self.table()
        worth = np.cumsum(table, axis=0).max(axis=1)
        return ScriptedWorld(np.zeros(1, np.int64), table, np.diff(worth, prepend=0.0))

    def uniform_regret(self) -> float:
        """On average over the whole script."""
        rounds = len(self.table())
        return self.uniform_total(rounds) / rounds

    def uniform_total(self, rounds: int) -> float:
        """The best arm's sum minus the average of all arms' sums."""
        worth = self.table()[:rounds].sum(axis=0)
        return float(worth.max() - worth.mean())

    def in_words(self) -> str:
        """How many arms and rounds."""
        rounds, arms = self.table().shape
        return f"{counted(arms, 'arm')} by a script of {counted(rounds, 'round')}"


class ScriptedWorld(NamedTuple):
    """State of `ScriptedArms`."""

    round: Integers  # (1,) rounds offered
    rewards: Array  # (rounds, arms)
    best: Array  # (rounds,) what the best arm so far is worth more than a round before

    def limits(self) -> Limits:
        """What no round changes."""
        return {"round": COUNT, "rewards": FROM_RECIPE, "best": FROM_RECIPE}

    def offer(self, chance: Chance) -> None:
        """No context. After the end the last row stays, since somebody may look at a next round."""
        self.round[0] = min(self.round[0] + 1, self.best.size)

    def pay(self, context: None, action: int, chance: Chance) -> float:
        """As written."""
        return float(self.rewards[self.round[0] - 1, action])

    def settle(self, context: None, action: int, reward: float) -> tuple[float, float, float]:
        """What the best arm gains by this round, and what the arm paid."""
        row = self.round[0] - 1
        return self.best[row], self.rewards[row, action], reward


@functools.lru_cache(maxsize=4)
def _read(path: Path, stamp: int) -> Array:
    try:
        if path.suffix == ".npy":
            found = np.load(path, allow_pickle=False)
        elif path.suffix == ".csv":
            found = np.loadtxt(path, delimiter=",", ndmin=2)
        else:
            raise InvalidInput(f"expected the script as an .npy or a .csv file, got {path.name}")
    except (ValueError, EOFError) as error:
        raise InvalidInput(f"{path} cannot be read as a table of numbers: {error}") from None
    table = _table(f"the rewards in {path.name}", found)
    table.flags.writeable = False  # it is shared
    return table


def _rows(name: str, values: FloatRows | Sequence[object]) -> tuple[tuple[float, ...], ...]:
    """A table as tuples of numbers in [0, 1]."""
    return tuple(map(tuple, _table(name, values).tolist()))


def _table(name: str, values: object) -> Array:
    """A table with rows, at least two columns, and numbers in [0, 1]."""
    table = checks.array(f"{name} as rows of numbers, one for each arm", values)
    if table.ndim != 2 or len(table) == 0 or table.shape[1] < 2:
        raise InvalidInput(
            f"expected {name} as rows of numbers for at least 2 arms, got the shape {table.shape}"
        )
    checks.integer(least=2, limit=checks.MOST_ACTIONS, arms=table.shape[1])
    checks.room(name, table.size)
    wrong = np.argwhere(~((table >= 0.0) & (table <= 1.0)))  # NaN is within nothing
    if len(wrong):
        row, arm = wrong[0].tolist()
        raise InvalidInput(
            f"expected {name} in [0, 1], got {table[row, arm]:g} for arm {arm} in row {row}"
        )
    return table
