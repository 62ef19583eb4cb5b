"""Leaderboards: a panel for each instance, a row for each policy, the mean as a dot in its interval."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandits.policies import Policy
from dpbandits.reports.figures import DOTTED, INK, Runs, light_axes, new_figure, plain
from dpbandits.reports.kept import mean_and_interval
from dpbandits.reports.styles import Style, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INTERVALS = "mean and its 95 % interval over runs"
_ROW, _AROUND, _NAMES = 0.2, 0.75, 1.3  # inches: a row, title and axis, names at the left
_SMALLEST = 1e-9  # of what is shown on a log axis


@dataclass(frozen=True)
class Panel:
    """What each policy got in its runs on one instance; `smaller` is drawn in the same rows, smaller."""

    title: str
    runs: Mapping[str, Runs]
    limit: float | None = None
    smaller: Mapping[str, Runs] = field(default_factory=dict)


def dot_chart(
    groups: Sequence[Sequence[Panel]],
    measure: str,
    *,
    columns: int,
    width: float = 2.6,
    policies: Mapping[str, Policy] = MappingProxyType({}),
    bold: Collection[str] = (),
) -> "Figure":
    """Panels on log axes, `columns` beside each other; each group begins a line of its own.

    The panels of a group have the same rows, sorted by the mean, geometric over its panels and relative
    to the best of each: the best are on top. Dotted: the limit, where one is known.
    """
    lines = [
        (list(group[first : first + columns]), order)
        for group in groups
        for order in [_order(group)]
        for first in range(0, len(group), columns)
    ]
    rows = max(len(order) for _, order in lines)
    height = _AROUND + _ROW * rows
    figure, axes = new_figure(columns, width=width, height=height, rows=len(lines), sharey="row")
    figure.set_size_inches(figure.get_figwidth() + _NAMES, figure.get_figheight())
    looks = styles(dict.fromkeys(label for _, order in lines for label in order), policies)
    for place, (panels, order) in enumerate(lines):
        line = axes[place * columns : (place + 1) * columns]
        for one, panel in zip(line, panels, strict=False):
            _draw(one, panel, order, looks)
        for one in line[len(panels) :]:
            one.set_visible(False)
        line[0].set_yticks(range(len(order)), order, fontsize="small")
        line[0].set_ylim(len(order) - 0.4, -0.6)
        for text, label in zip(line[0].get_yticklabels(), order, strict=True):
            text.set_fontweight("bold" if label in bold else "normal")
    dotted = any(panel.limit for panels, _ in lines for panel in panels)
    figure.supxlabel(
        f"{measure} ({INTERVALS}{'; dotted: limit for large T' if dotted else ''})", fontsize="medium"
    )
    return figure


def _order(panels: Sequence[Panel]) -> list[str]:
    """Labels of all panels, the best first."""
    times: dict[str, list[float]] = {}
    for panel in panels:
        means = {label: max(float(runs.mean()), _SMALLEST) for label, runs in panel.runs.items()}
        least = min(means.values())
        for label, mean in means.items():
            times.setdefault(label, []).append(math.log(mean / least))
    return sorted(times, key=lambda label: float(np.mean(times[label])))


def _draw(axes: "Axes", panel: Panel, order: Sequence[str], looks: Mapping[str, Style]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for size, all_runs in ((6.0, panel.runs), (3.5, panel.smaller)):
        for label, runs in all_runs.items():
            _dot(axes, order.index(label), runs, looks[label], size)
    if panel.limit:
        axes.axvline(panel.limit, color=INK, **DOTTED | {"linewidth": 1.2, "zorder": 1})
    axes.set_xscale("log")
    axes.set_title(panel.title, fontsize="medium")
    axes.tick_params(axis="x", labelsize="small")
    axes.xaxis.set_major_locator(LogLocator(numticks=5))
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_xlim()
    if math.log10(high / low) < 1.5:  # decades alone would leave an axis without numbers
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    light_axes(axes)


def _dot(axes: "Axes", place: int, runs: Runs, look: Style, size: float) -> None:
    """A mean within its interval; hollow where there is no privacy, lighter where it is small."""
    mean, half = mean_and_interval(runs)
    style: dict[str, Any] = {"color": look["color"], "alpha": 1.0 if size > 4.0 else 0.6}
    if not math.isnan(half):
        low = max(mean - half, 1e-3 * abs(mean), _SMALLEST)
        axes.plot([low, mean + half], [place, place], "-", linewidth=0.3 * size, **style)
    full = look.get("fillstyle", "full") if look["linestyle"] != "--" else "none"
    axes.plot(
        max(mean, _SMALLEST),
        place,
        marker=look.get("marker", "o"),
        fillstyle=full,
        markersize=size,
        linestyle="none",
        zorder=3,
        **style,
    )
