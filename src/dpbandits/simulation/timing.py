"""How rounds follow each other in a simulation: how many are in flight, when people come and answer."""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.streams import delay_stream
from dpbandits.errors import InvalidInput
from dpbandits.worlds.timing import Delays, Traffic

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """At most `in_flight` rounds are open; with `patience` none for longer than that many seconds."""

    in_flight: int = 1
    delays: Delays | None = None
    traffic: Traffic | None = None
    patience: float | None = None

    def __post_init__(self) -> None:
        checks.integer(least=1, limit=checks.MOST_IN_FLIGHT, in_flight=self.in_flight)
        object.__setattr__(self, "in_flight", int(self.in_flight))
        if self.delays is not None and not isinstance(self.delays, Delays):
            raise InvalidInput(
                f"expected delays such as LogNormal(median=300), got {checks.shown(self.delays)}"
            )
        if self.delays is not None and self.in_flight == 1:
            raise InvalidInput("with one round in flight no reward can be late: give in_flight too")
        if self.traffic is not None and not isinstance(self.traffic, Traffic):
            raise InvalidInput(
                f"expected traffic such as DayAndNight(), got {checks.shown(self.traffic)}"
            )
        if self.patience is not None:
            checks.scale(patience=self.patience)
            object.__setattr__(self, "patience", float(self.patience))
            if self.traffic is None:
                raise InvalidInput("patience is in seconds: say when people come by traffic=…")

    @property
    def is_one_at_a_time(self) -> bool:
        """Whether every round is closed, with its reward, before the next is decided."""
        return self == Timing()

    def options(self) -> dict[str, Any]:
        """As `simulate` takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """What is not as usual, as JSON values."""
        given: dict[str, Any] = {} if self.in_flight == 1 else {"in_flight": self.in_flight}
        given |= {} if self.patience is None else {"patience": self.patience}
        for name in ("delays", "traffic"):
            recipe = getattr(self, name)
            given |= {} if recipe is None else {name: recipe.to_dict()}
        return given


class Schedule:
    """The moments of decisions and the delays of their rewards, a block at a time.

    Blocks have one size, so that where a chunk of the simulation ends changes nothing.
    """

    size = 65_536

    def __init__(self, timing: Timing, seed: np.random.SeedSequence) -> None:
        self._timing, self._chance = timing, delay_stream(seed)
        self._worked = 0.0  # the integral of the rate of traffic so far
        self.first, self.times, self.delays = 0, np.zeros(0), np.zeros(0)

    def up_to(self, done: int) -> int:
        """Make decision `done` part of the block at hand; the decision after its last."""
        while done >= self.first + self.times.size:
            self.first += self.times.size
            if self._timing.traffic is None:
                self.times = np.arange(self.first, self.first + self.size, dtype=np.float64)
            else:
                work = self._worked + np.cumsum(self._chance.standard_exponential(self.size))
                self._worked = float(work[-1])
                self.times = self._timing.traffic.moments(work)
            delays = self._timing.delays
            self.delays = np.zeros(self.size) if delays is None else delays.draw(self._chance, self.size)
        return self.first + self.times.size

    @property
    def patience(self) -> float:
        """Infinite where rounds are closed by their number alone."""
        return math.inf if self._timing.patience is None else self._timing.patience
