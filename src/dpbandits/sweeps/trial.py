"""How long a sweep would take, by playing a little of each kind."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from dpbandits.simulation.progress import RoundsBar
from dpbandits.sweeps.unit import Unit
from dpbandits.wording import counted, short_exponent

_SECONDS = 0.05  # of work for each kind: enough to time it
_FIRST = 1000  # rounds
_RUNS = 1000  # in leaps, where one alone takes no time


@dataclass(frozen=True)
class Forecast:
    """What is to be played, and about how long that takes."""

    cells: int
    units: int
    finished: int
    rounds: int  # of what is not finished
    seconds: float  # of processor time, or of the GPU's
    width: int

    def to_dict(self) -> dict[str, float]:
        """For machines."""
        return asdict(self) | {"expected_seconds": self.seconds / self.width}

    def __str__(self) -> str:
        said = f"{counted(self.cells, 'cell')} in {counted(self.units, 'unit')} of work"
        if self.finished:
            said += f", of which {self.finished:,} are finished"
        if self.finished == self.units:
            return said
        rounds = short_exponent(f"{self.rounds:.2g}")
        return f"{said}; {rounds} rounds to play, about {_time(self.seconds / self.width)}"


def forecast(
    cells: int, units: list[Unit], missing: Iterable[Unit], width: int, bar: RoundsBar
) -> Forecast:
    """By short trials, one for each policy and world; what is compiled for them is kept."""
    paces: dict[tuple[object, ...], float] = {}
    rounds, seconds, left = 0, 0.0, list(missing)
    for unit in left:
        key = type(unit.policy), unit.environment, unit.rounds
        if key not in paces:
            paces[key] = _pace(unit, bar)
        rounds += unit.total_rounds
        seconds += paces[key] * unit.total_rounds
    return Forecast(cells, len(units), len(units) - len(left), rounds, seconds, width)


def _pace(unit: Unit, bar: RoundsBar) -> float:
    """Seconds a round, compilation apart."""
    runs = unit.runs if unit.device == "cuda" else range(_RUNS if unit.leaps else 1)
    length = min(unit.rounds, _FIRST)
    while True:
        trace = replace(unit, rounds=length, runs=runs).play(progress=bar)
        (seconds,) = trace.seconds.values()
        if seconds >= _SECONDS or length == unit.rounds:
            return seconds / (length * len(runs))
        length = min(unit.rounds, 8 * length)


def _time(seconds: float) -> str:
    for size, unit in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= 2 * size:
            return counted(round(seconds / size), unit)
    return counted(max(1, round(seconds)), "second")
