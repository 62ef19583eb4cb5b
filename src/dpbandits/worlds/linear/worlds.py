"""What every linear world knows of the decision set it shows, and how random directions are drawn."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.problems import LinearContexts
from dpbandits.worlds.environment import Environment

Array = NDArray[np.float64]
Rewards = Literal["signs", "gaussian"]

# A unit vector is made shorter by this much, so that rounding never makes it longer than declared.
SHORT = 1.0 - 1e-12
# Gaussian rewards have no bound; they leave ±8 less than once in 10¹¹ rounds.
_GAUSSIAN_BOUND = 8.0


class Shown(NamedTuple):
    """What the actions of the round's decision set pay."""

    means: Array  # (K,) expected rewards
    best: Array  # (1,) the largest of them
    theta: Array  # (d,) the unknown parameters θ*, drawn in the first round
    rounds: NDArray[np.int64]  # (1,) rounds offered so far
    gaussian: bool  # rewards are means plus N(0, 1), not ±1


class Pays:
    """The verbs that every linear world shares: each has a field `shown`."""

    __slots__ = ()
    shown: Shown

    def pay(self, context: Any, action: int, chance: Chance) -> float:
        """A sign with the action's mean, or the mean plus a Gaussian; one draw either way."""
        mean: float = self.shown.means[action]
        if self.shown.gaussian:
            return mean + chance.standard_normal()
        return 1.0 if 2.0 * chance.random() < 1.0 + mean else -1.0

    def settle(self, context: Any, action: int, reward: float) -> tuple[float, float, float]:
        """The best mean, the action's mean, the reward."""
        return self.shown.best[0], self.shown.means[action], reward


def start_shown(actions: int, dim: int, rewards: Rewards = "signs") -> Shown:
    """Empty, to be filled by `offer`."""
    return Shown(
        means=np.zeros(actions),
        best=np.zeros(1),
        theta=np.zeros(dim),
        rounds=np.zeros(1, np.int64),
        gaussian=rewards == "gaussian",
    )


@dataclass(frozen=True)
class LinearEnvironment(Environment):
    """A world whose expected rewards are ⟨x, θ*⟩ with ‖x‖ ≤ 1, all of them in [−1, 1].

    Rewards are ±1 with that mean ("signs"), or that mean plus N(0, 1) ("gaussian").
    """

    abstract: ClassVar[bool] = True

    def contexts(self, dim: int, rounds: int | None, rewards: Rewards = "signs") -> LinearContexts:
        """The problem of a fresh decision set each round, with the range the rewards have."""
        bound = _GAUSSIAN_BOUND if rewards == "gaussian" else 1.0
        return LinearContexts(dim, max_reward=bound, horizon=rounds)


def check_sizes(least: int, dim: int, actions: int) -> None:
    """Enough dimensions for the definition to make sense, and a choice."""
    checks.integer(least=least, limit=checks.MOST_FEATURES, dim=dim)
    checks.integer(least=2, limit=checks.MOST_ACTIONS, actions=actions)
    checks.room("a decision set", dim * actions)


@register_jitable(forceinline=True)
def draw_direction(vector: Array, chance: Chance) -> None:
    """A uniformly random unit vector."""
    square = 0.0
    for j in range(vector.size):
        normal = chance.standard_normal()
        vector[j] = normal
        square += normal * normal
    scale = SHORT / math.sqrt(square)
    for j in range(vector.size):
        vector[j] *= scale


@register_jitable(forceinline=True)
def draw_frame(frame: Array, chance: Chance) -> None:
    """Uniformly random orthonormal rows: Gram–Schmidt on Gaussian ones."""
    for i in range(frame.shape[0]):
        draw_direction(frame[i], chance)
        for _ in range(2):  # the second time removes what rounding left
            for k in range(i):
                along = dot(frame[i], frame[k])
                for j in range(frame.shape[1]):
                    frame[i, j] -= along * frame[k, j]
        scale = 1.0 / math.sqrt(dot(frame[i], frame[i]))
        for j in range(frame.shape[1]):
            frame[i, j] *= scale


@register_jitable(forceinline=True)
def dot(one: Array, other: Array) -> float:
    """The inner product, added up from the left."""
    total = 0.0
    for j in range(one.size):
        total += float(one[j]) * float(other[j])
    return total


@register_jitable(forceinline=True)
def find_means(shown: Shown, features: Array) -> None:
    """The expected reward of each action, and the best."""
    best = -math.inf
    for k in range(shown.means.size):
        mean = dot(features[k], shown.theta)
        shown.means[k] = mean
        best = max(best, mean)
    shown.best[0] = best
