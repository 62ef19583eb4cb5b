"""Where things are drawn: all in per cent, so that pictures fit any width without a script."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from dpbandits.service.views import Moment
from dpbandits.wording import short_exponent

COLOURS = 7  # that the colour-blind tell apart; what is left shares a grey
_EDGE = 2.0  # per cent left and right, so that a dot at the end is whole
_COLUMNS = 60  # of a picture over time, at most


class Strip(NamedTuple):
    """An interval and the dot in it, in per cent of the width."""

    low: str
    mean: str
    high: str
    width: str


class Tick(NamedTuple):
    """A mark of an axis; `anchor` is the part of its text that is there."""

    place: str
    text: str
    anchor: str


@dataclass(frozen=True)
class Axis:
    """From one value to another."""

    start: float
    end: float

    @classmethod
    def around(cls, values: Sequence[float]) -> "Axis":
        """One that holds all finite values and 0, and ends at a round number."""
        largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
        end = _rounded_up(largest or 1.0)
        below = any(value < 0.0 for value in values)
        return cls(-end if below else 0.0, end)

    def place(self, value: float) -> float:
        """In per cent."""
        inside = min(max(value, self.start), self.end)
        return _EDGE + (100.0 - 2.0 * _EDGE) * (inside - self.start) / (self.end - self.start)

    def strip(self, low: float, mean: float, high: float) -> Strip:
        """Where an interval is drawn."""
        first, middle, last = (self.place(value) for value in (low, mean, high))
        return Strip(_percent(first), _percent(middle), _percent(last), _percent(last - first))

    def ticks(self) -> list[Tick]:
        """Both ends and the middle."""
        values = (self.start, 0.5 * (self.start + self.end), self.end)
        texts = (short_exponent(f"{value:g}").replace("-", "−") for value in values)
        places = (_percent(self.place(value)) for value in values)
        return list(map(Tick, places, texts, ("start", "middle", "end")))


def _percent(value: float) -> str:
    return f"{value:.2f}%"


def _rounded_up(value: float) -> float:
    """1, 2 or 5 times a power of ten.

    >>> _rounded_up(0.031), _rounded_up(1.0), _rounded_up(70.0)
    (0.05, 1.0, 100.0)
    """
    power = 10.0 ** math.floor(math.log10(value))
    steps = (step * power for step in (1.0, 2.0, 5.0, 10.0))
    return float(f"{next((step for step in steps if value <= step * (1.0 + 1e-9)), 10.0 * power):.3g}")


def coloured(shares: Sequence[int]) -> list[int]:
    """A colour for each action, the most frequent ones first; `COLOURS` for all that are left."""
    if len(shares) <= COLOURS:
        return list(range(len(shares)))
    frequent = sorted(range(len(shares)), key=lambda place: -shares[place])[:COLOURS]
    return [
        sorted(frequent).index(place) if place in frequent else COLOURS for place in range(len(shares))
    ]


def stacked(history: Sequence[Moment], colours: Sequence[int]) -> list[tuple[int, str]]:
    """Shares of decisions between one moment and the next: a colour and a path for each layer.

    The picture is 1,000 wide and 100 high; left is the first decision and right the last.
    """
    columns = _columns(history, len(colours))
    heights = [_heights(chosen, colours) for _, _, chosen in columns]
    spans, base, paths = [column[:2] for column in columns], [0.0] * len(columns), []
    for colour in sorted(set(colours)):
        top = [below + height[colour] for below, height in zip(base, heights, strict=True)]
        if top != base:
            paths.append((colour, _path(spans, base, top)))
        base = top
    return paths


def _heights(chosen: Sequence[int], colours: Sequence[int]) -> list[float]:
    """How much of a column each colour takes, in per cent."""
    counts = [0] * (COLOURS + 1)
    for count, colour in zip(chosen, colours, strict=True):
        counts[colour] += count
    return [100.0 * count / sum(counts) for count in counts]


def _columns(history: Sequence[Moment], count: int) -> list[tuple[float, float, list[int]]]:
    """From where to where in the picture, and how often each action was chosen there."""
    told = [(one.decided, _padded(one.shares, count)) for one in history if one.shares is not None]
    told = [(0, [0] * count), *told]
    last, kept = told[-1][0], [told[0]]
    for place, (decided, shares) in enumerate(told):
        enough = (decided - kept[-1][0]) * _COLUMNS >= last or place == len(told) - 1
        if enough and sum(shares) > sum(kept[-1][1]):
            kept.append((decided, shares))
    return [
        (
            1000.0 * before / last,
            1000.0 * after / last,
            [b - a for a, b in zip(earlier, later, strict=True)],
        )
        for (before, earlier), (after, later) in pairwise(kept)
    ]


def _padded(shares: Sequence[int], count: int) -> list[int]:
    """Actions that were added later had no share."""
    return [*shares, *([0] * (count - len(shares)))]


def _path(spans: Sequence[tuple[float, float]], base: Sequence[float], top: Sequence[float]) -> str:
    """Steps along the top, and back along the base."""
    there = [f"V{100.0 - y:.1f}H{end:.1f}" for (_, end), y in zip(spans, top, strict=True)]
    back = [f"V{100.0 - y:.1f}H{start:.1f}" for (start, _), y in zip(spans, base, strict=True)]
    return f"M{spans[0][0]:.1f},{100.0 - base[0]:.1f}{''.join(there)}{''.join(reversed(back))}Z"
