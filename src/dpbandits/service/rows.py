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
_MOST_ROWS = 100  # so that a page stays a page


@dataclass(frozen=True)
class Row:
    """A line of a table: an action or a parameter."""

    name: str
    notes: list[str]
    colour: int | None
    strip: Strip | None  # None while nothing is known
    mean: str
    interval: str
    count: str
    share: str
    quiet: bool  # out of play
    leads: bool


@dataclass(frozen=True)
class Table:
    """Rows with one axis: some are shown, some folded away, and of very many the rest is left out."""

    title: str
    heading: str
    rows: list[Row]
    ticks: list[Tick]
    has_strips: bool
    has_shares: bool

    @property
    def shown(self) -> list[Row]:
        """Those that are always seen."""
        return self.rows if len(self.rows) <= _SHOWN_ROWS + 3 else self.rows[:_SHOWN_ROWS]

    @property
    def folded(self) -> list[Row]:
        """Those that can be unfolded."""
        return self.rows[len(self.shown) : _MOST_ROWS]

    @property
    def left_out(self) -> int:
        """How many there are beyond."""
        return max(0, len(self.rows) - _MOST_ROWS)


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
    colours = [] if view.shares is None else coloured(view.shares)
    count = max(len(colours), 0 if read is None else read.mean.size)
    axis = Axis(0.0, 1.0) if read is None or read.what in ("arm", "item") else _axis(read)
    places = list(range(count))
    if count > _SHOWN_ROWS + 3:
        places.sort(key=lambda place: _rank(view, read, place))
    noun = "item" if read is not None and read.what == "item" else "action"
    return Table(
        title=f"What is known of each {noun}" if read is not None else "What was decided",
        heading=noun.capitalize(),
        rows=[_action(view, read, axis, place, colours) for place in places],
        ticks=[] if read is None else axis.ticks(),
        has_strips=read is not None,
        has_shares=view.shares is not None,
    )


def _rank(view: View, read: Released | None, place: int) -> tuple[float, float]:
    """The most frequent first, then the best."""
    mean = float(read.mean[place]) if read is not None and place < read.mean.size else math.nan
    return -_share(view, place), math.inf if math.isnan(mean) else -mean


def _share(view: View, place: int) -> int:
    return view.shares[place] if view.shares is not None and place < len(view.shares) else 0


def _action(view: View, read: Released | None, axis: Axis, place: int, colours: Sequence[int]) -> Row:
    name, count = label_of(view, place), _share(view, place)
    away, out = name in view.retired, _is_out(read, (place,))
    return Row(
        name=name,
        notes=["retired"] if away else ["out of play"] if out else [],
        colour=colours[place] if place < len(colours) else None,
        count=f"{count:,}",
        share=_part(count, _decided_then(view)),
        quiet=away or out,
        leads=read is not None and place in read.leading,
        **_reading(read, axis, (place,)),
    )


def _is_out(read: Released | None, place: tuple[int, ...]) -> bool:
    """Whether the policy has done with it."""
    return (
        read is not None and read.active is not None and _is_in(read, place) and not read.active[place]
    )


def _is_in(read: Released, place: tuple[int, ...]) -> bool:
    """Not so for an action that was added after the reading."""
    return all(one < size for one, size in zip(place, read.mean.shape, strict=True))


def _decided_then(view: View) -> int:
    """Decisions when shares were counted: those of a ledger page, or of now."""
    return next((one.decided for one in view.history[-1:] if one.shares == view.shares), view.decided)


def _part(count: int, whole: int) -> str:
    """In per cent; what is little is not nothing, and what is nearly all is not all."""
    if whole == 0:
        return "–"
    percent = 100.0 * count / whole
    if 0.0 < percent < 1.0:
        return "< 1 %"
    return "> 99 %" if 99.0 < percent < 100.0 else f"{percent:.0f} %"


def _reading(read: Released | None, axis: Axis, place: tuple[int, ...]) -> dict[str, Any]:
    """What is known of one entry."""
    if read is None or not _is_in(read, place) or not math.isfinite(read.mean[place]):
        return {"strip": None, "mean": "–", "interval": "nothing yet"}
    mean, low, high = (float(values[place]) for values in (read.mean, read.low, read.high))
    ends = (_short(value, axis) for value in (low, high))
    strip = axis.strip(low, mean, high)
    return {"strip": strip, "mean": _short(mean, axis), "interval": " to ".join(ends)}


def _short(value: float, axis: Axis) -> str:
    """Equally many decimals, where there is something to see in three of them."""
    text = f"{value:.3f}" if 0.1 <= axis.end < 1000.0 else number(value)
    return text.replace("-", "−")


def _value_table(view: View, read: Released) -> Table:
    """Parameters, or pairs of a context and an action."""
    axis, are_pairs = _axis(read), read.what == "pair"
    return Table(
        title="What was learned" if are_pairs else "The released parameters",
        heading="Context and action" if are_pairs else "Parameter",
        rows=[_value(view, read, axis, place) for place in np.ndindex(read.mean.shape)],
        ticks=axis.ticks(),
        has_strips=True,
        has_shares=False,
    )


def _value(view: View, read: Released, axis: Axis, place: tuple[int, ...]) -> Row:
    name, leads, out = f"parameter {place[-1]}", False, _is_out(read, place)
    if read.what == "pair":
        name = f"context {place[0]}, {label_of(view, place[1])}"
        leads = read.leading[place[0] : place[0] + 1] == (place[1],)
    elif len(place) > 1:  # of each action its own
        name = f"{label_of(view, place[0])}, parameter {place[1]}"
    notes = ["leading"] if leads else ["out of play"] if out else []
    shown: dict[str, Any] = {
        "name": name,
        "notes": notes,
        "quiet": out,
        "leads": leads,
        "count": "",
        "share": "",
    }
    return Row(colour=None, **shown, **_reading(read, axis, place))


def _axis(read: Released) -> Axis:
    return Axis.around([*read.low.ravel().tolist(), *read.high.ravel().tolist()])


def label_of(view: View, action: int) -> str:
    """An action as the operator calls it, or its number."""
    return view.labels[action] if action < len(view.labels) else str(action)
