"""Tables of what is known: a line for each action or parameter, with its interval on one axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpbandits.policies import Released
from dpbandits.service.pictures import Axis, Strip, Tick, coloured
from dpbandits.service.views import View
from dpbandits.wording import number

_SHOWN_ROWS = 12  # of a table; the others are folded away


@dataclass(frozen=True)
class Row:
    """A line of a table: an action or a parameter."""

    name: str
    notes: list[str]
    colour: int | None
    strip: Strip | None  # None while nothing is known
    mean: str
    interval: str
    rounds: str
    count: str
    share: str
    quiet: bool  # out of play
    leads: bool


@dataclass(frozen=True)
class Table:
    """Rows with one axis; the first are shown."""

    title: str
    heading: str
    rows: list[Row]
    ticks: list[Tick]
    has_strips: bool
    has_rounds: bool
    has_shares: bool

    @property
    def shown(self) -> list[Row]:
        """Those that are always seen."""
        return self.rows if len(self.rows) <= _SHOWN_ROWS + 3 else self.rows[:_SHOWN_ROWS]

    @property
    def folded(self) -> list[Row]:
        """The others."""
        return self.rows[len(self.shown) :]


def tables_of(view: View) -> list[Table]:
    """Actions with what is known of them; parameters apart."""
    read = view.released
    about_actions = read is not None and read.what in ("arm", "item", "action")
    tables = []
    if about_actions or view.shares is not None:
        tables.append(_action_table(view, read if about_actions else None))
    if read is not None and not about_actions:
        tables.append(_value_table(view, read))
    return tables


def _action_table(view: View, read: Released | None) -> Table:
    count = len(view.shares or ()) if read is None else max(len(view.shares or ()), read.mean.size)
    colours = [] if view.shares is None else coloured(view.shares)
    axis = Axis(0.0, 1.0) if read is None or read.what in ("arm", "item") else _axis(read)
    rows = [_action(view, read, axis, place, colours) for place in range(count)]
    if count > _SHOWN_ROWS + 3:
        rows = [
            rows[place] for place in sorted(range(count), key=lambda place: _rank(view, read, place))
        ]
    noun = "item" if read is not None and read.what == "item" else "action"
    return Table(
        title=f"What is known of each {noun}" if read is not None else "What was decided",
        heading=noun.capitalize(),
        rows=rows,
        ticks=[] if read is None else axis.ticks(),
        has_strips=read is not None,
        has_rounds=read is not None and read.plays is not None,
        has_shares=view.shares is not None,
    )


def _rank(view: View, read: Released | None, place: int) -> tuple[float, float]:
    """The most frequent first, then the best."""
    share = view.shares[place] if view.shares is not None else 0
    mean = float(read.mean[place]) if read is not None and place < read.mean.size else math.nan
    return -share, math.inf if math.isnan(mean) else -mean


def _action(view: View, read: Released | None, axis: Axis, place: int, colours: Sequence[int]) -> Row:
    name = label_of(view, place)
    leads = read is not None and place in read.leading
    away = name in view.retired
    out = read is not None and read.active is not None and not read.active[place]
    notes = [note for note, holds in (("retired", away), ("out of play", out and not away)) if holds]
    count = 0 if view.shares is None or place >= len(view.shares) else view.shares[place]
    known = {} if read is None else _reading(read, axis, (place,))
    return Row(
        name=name,
        notes=notes,
        colour=colours[place] if place < len(colours) else None,
        count=f"{count:,}",
        share=_part(count, view.decided),
        quiet=away or out,
        leads=leads,
        **({"strip": None, "mean": "–", "interval": "", "rounds": ""} | known),
    )


def _part(count: int, whole: int) -> str:
    """In per cent; what is little is not nothing, and what is nearly all is not all."""
    if whole == 0:
        return "–"
    percent = 100.0 * count / whole
    if 0.0 < percent < 1.0:
        return "< 1 %"
    return "> 99 %" if 99.0 < percent < 100.0 else f"{percent:.0f} %"


def _reading(read: Released, axis: Axis, place: tuple[int, ...]) -> dict[str, Any]:
    """What is known of one entry."""
    mean, low, high = (float(values[place]) for values in (read.mean, read.low, read.high))
    plays = "" if read.plays is None else f"{int(read.plays[place]):,}"
    if not math.isfinite(mean):
        return {"strip": None, "mean": "–", "interval": "nothing yet", "rounds": plays}
    return {
        "strip": axis.strip(low, mean, high),
        "mean": _short(mean),
        "interval": f"{_short(low)} to {_short(high)}",
        "rounds": plays,
    }


def _short(value: float) -> str:
    text = f"{value:.3f}" if abs(value) < 1000.0 else number(value)
    return text.replace("-", "−")


def _value_table(view: View, read: Released) -> Table:
    """Parameters, or pairs of a context and an action."""
    axis, rows = _axis(read), []
    for place in np.ndindex(read.mean.shape):
        name = f"{read.what} {', '.join(str(one) for one in place)}"
        if read.what == "pair":
            name = f"context {place[0]}, {label_of(view, place[1])}"
        leads = (
            read.what == "pair" and len(read.leading) > place[0] and read.leading[place[0]] == place[1]
        )
        rows.append(
            Row(
                name=name,
                notes=["leading"] if leads else [],
                colour=None,
                count="",
                share="",
                quiet=False,
                leads=leads,
                **_reading(read, axis, place),
            )
        )
    return Table(
        title="What was learned" if read.what == "pair" else "The released parameters",
        heading="Pair" if read.what == "pair" else "Parameter",
        rows=rows,
        ticks=axis.ticks(),
        has_strips=True,
        has_rounds=False,
        has_shares=False,
    )


def _axis(read: Released) -> Axis:
    return Axis.around([*read.low.ravel().tolist(), *read.high.ravel().tolist()])


def label_of(view: View, action: int) -> str:
    """An action as the operator calls it, or its number."""
    return view.labels[action] if action < len(view.labels) else str(action)
