"""When people come, and how late their rewards are: what rounds in flight are simulated with."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.recipes import Recipe

Array = NDArray[np.float64]
_DAY = 86_400.0


@dataclass(frozen=True)
class Delays(Recipe):
    """How long after its decision a reward arrives: in decisions, or in seconds where people come by a
    clock. Drawn independently of everything else.
    """

    abstract: ClassVar[bool] = True

    @abstractmethod
    def draw(self, chance: np.random.Generator, count: int) -> Array:
        """This many delays."""


@dataclass(frozen=True)
class LogNormal(Delays):
    """Half of all rewards arrive within `median`; `sigma` is the deviation of the delay's logarithm.

    A share of `never` does not arrive at all.

    >>> LogNormal(median=300.0, sigma=1.5).draw(np.random.default_rng(1), 2).round()
    array([ 504., 1029.])
    """

    median: Annotated[float, "The delay by which half of all rewards have arrived."]
    sigma: Annotated[float, "The deviation of the delay's logarithm."] = 1.0
    never: Annotated[float, "The share of rewards that never arrive."] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(median=self.median)
        checks.width(sigma=self.sigma)
        checks.unit(never=self.never)

    def draw(self, chance: np.random.Generator, count: int) -> Array:
        """Two draws each, whatever the options."""
        spread = self.median * np.exp(self.sigma * chance.standard_normal(count))
        return np.where(chance.random(count) < self.never, math.inf, spread)


@dataclass(frozen=True)
class Traffic(Recipe):
    """When people come, in seconds: a Poisson process of a changing rate."""

    abstract: ClassVar[bool] = True

    @abstractmethod
    def moments(self, work: Array) -> Array:
        """When the integral of the rate reaches these values, which increase."""


@dataclass(frozen=True)
class DayAndNight(Traffic):
    """From `night` people a second at midnight, when it begins, to `day` at noon, as a cosine."""

    night: Annotated[float, "People a second in the quietest hour."] = 0.2
    day: Annotated[float, "People a second in the busiest hour."] = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.scale(night=self.night, day=self.day)
        if self.day < self.night:
            raise InvalidInput(f"expected day to be at least night = {self.night:g}, got {self.day:g}")

    def moments(self, work: Array) -> Array:
        """By interpolation in a table of one day, to a millisecond or so."""
        clock = np.linspace(0.0, _DAY, 100_001)
        swing, turn = 0.5 * (self.day - self.night), 2.0 * math.pi / _DAY
        done = (self.night + swing) * clock - swing * np.sin(turn * clock) / turn
        days, rest = np.divmod(work, done[-1])
        return np.asarray(days * _DAY + np.interp(rest, done, clock))
