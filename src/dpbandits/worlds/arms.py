"""Multi-armed worlds: Bernoulli rewards, and exponential ones truncated to [0, 1]."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.problems import Arms
from dpbandits.recipes import Floats
from dpbandits.worlds.environment import Environment, means_in_words


@dataclass(frozen=True)
class ArmsEnvironment(Environment):
    """Arms whose means are known."""

    abstract: ClassVar[bool] = True
    law: ClassVar[str]  # of the rewards, in a word

    def arm_means(self) -> tuple[float, ...]:
        """The expected reward of each arm."""
        raise NotImplementedError

    def problem(self, rounds: int | None) -> Arms:
        """As many arms as there are means."""
        return Arms(len(self.arm_means()), horizon=rounds)

    def uniform_regret(self) -> float:
        """The best mean minus the average mean."""
        means = self.arm_means()
        return max(means) - math.fsum(means) / len(means)

    def in_words(self) -> str:
        """How many arms, and the range of their means."""
        means = self.arm_means()
        return means_in_words(len(means), f"{self.law} arm", means)


def _tuple(name: str, values: Iterable[float]) -> tuple[float, ...]:
    """A sequence of at least two numbers, as a hashable tuple."""
    numbers = tuple(checks.number(f"{name}[…]", value) for value in checks.sequence(name, values))
    if len(numbers) < 2:
        raise InvalidInput(f"expected {name} for at least 2 arms, got {len(numbers)}")
    checks.integer(least=2, limit=checks.MOST_ACTIONS, arms=len(numbers))
    return numbers


@dataclass(frozen=True)
class BernoulliArms(ArmsEnvironment):
    """Arm i pays 1 with probability means[i], else 0."""

    law: ClassVar[str] = "Bernoulli"
    means: Annotated[Floats, "The mean reward of each arm."]

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", _tuple("means", self.means))
        for index, mean in enumerate(self.means):
            checks.unit(**{f"means[{index}]": mean})

    def arm_means(self) -> tuple[float, ...]:
        """As given."""
        return tuple(self.means)

    def world(self) -> "BernoulliWorld":
        """The means as an array, and the best of them."""
        return BernoulliWorld(np.array(self.means), max(self.means))


class BernoulliWorld(NamedTuple):
    """State of `BernoulliArms`."""

    means: NDArray[np.float64]
    best: float

    def limits(self) -> Limits:
        """What no round changes."""
        return {"means": FROM_RECIPE}

    def offer(self, chance: Chance) -> None:
        """No context."""

    def pay(self, context: None, action: int, chance: Chance) -> float:
        """1 when this round's uniform falls below the arm's mean."""
        return 1.0 if chance.random() < self.means[action] else 0.0

    def pay_many(self, action: int, count: int, chance: Chance) -> float:
        """How many of them are 1."""
        return float(chance.binomial(count, self.means[action]))

    def settle(self, context: None, action: int, reward: float) -> tuple[float, float, float]:
        """The best mean, the arm's mean, the reward."""
        return self.best, self.means[action], reward


@dataclass(frozen=True)
class TruncatedExponentialArms(ArmsEnvironment):
    """Arm i pays X in [0, 1] with density proportional to exp(−rates[i]·x)."""

    law: ClassVar[str] = "truncated exponential"
    rates: Annotated[Floats, "The rate of each arm's exponential law, which is cut off at 1."]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rates", _tuple("rates", self.rates))
        for index, rate in enumerate(self.rates):
            checks.scale(**{f"rates[{index}]": rate})

    def arm_means(self) -> tuple[float, ...]:
        """1/λ − 1/(e^λ − 1), whose last term is nothing where e^λ is no number."""
        return tuple(1.0 / rate - 1.0 / math.expm1(min(rate, 700.0)) for rate in self.rates)

    def world(self) -> "ExponentialWorld":
        """The rates, the mass each puts on [0, 1], and the means."""
        rates, means = np.array(self.rates), np.array(self.arm_means())
        return ExponentialWorld(rates, -np.expm1(-rates), means, float(means.max()))


class ExponentialWorld(NamedTuple):
    """State of `TruncatedExponentialArms`."""

    rates: NDArray[np.float64]
    mass: NDArray[np.float64]
    means: NDArray[np.float64]
    best: float

    def limits(self) -> Limits:
        """What no round changes."""
        return dict.fromkeys(("rates", "mass", "means"), FROM_RECIPE)

    def offer(self, chance: Chance) -> None:
        """No context."""

    def pay(self, context: None, action: int, chance: Chance) -> float:
        """The inverse distribution function at this round's uniform."""
        return -math.log1p(-chance.random() * self.mass[action]) / float(self.rates[action])

    def settle(self, context: None, action: int, reward: float) -> tuple[float, float, float]:
        """The best mean, the arm's mean, the reward."""
        return self.best, self.means[action], reward
