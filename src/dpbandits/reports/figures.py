"""Pictures, drawn without a display; matplotlib is imported only when one is drawn."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.errors import InvalidInput
from dpbandits.extras import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by people who do not see red and green alike (Okabe & Ito), then by line style.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Limits are dotted and grey: they are nobody's curve.
LIMITS = ("#1d2430", "#7a8591")
DOTTED: dict[str, Any] = {"linestyle": (0, (1.0, 1.5)), "linewidth": 2.0, "zorder": 4}
STYLES = ("-", "--", ":", "-.")
# Nothing about when or by what it was drawn, so that the same figure gives the same bytes.
PICTURES = {".svg", ".png", ".pdf"}
SVG_ABOUT: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
SVG_SETTINGS: Any = {"svg.hashsalt": "dpbandits"}


def new_figure(
    columns: int = 1, *, width: float = 6.0, height: float = 4.0, rows: int = 1
) -> "tuple[Figure, list[Axes]]":
    """A figure and its axes, always a list, left to right and top to bottom."""
    with extra("plot"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel().tolist()
    return figure, axes


def line_style(index: int) -> dict[str, Any]:
    """The colour and stroke of the index-th curve."""
    stroke = STYLES[(index // len(COLOURS)) % len(STYLES)]
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": stroke}


def light_axes(axes: "Axes") -> None:
    """A faint grid, and no frame above and at the right."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def legend_beside(axes: "Axes", **options: Any) -> None:
    """At the right of the axes, where it hides nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, **options)


def draw_curves(
    axes: "Axes",
    rounds: NDArray[np.int64],
    curves: Mapping[str, NDArray[np.float64]],
    limits: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
) -> None:
    """The mean of each (runs, points) array, shaded from its best to its worst run; limits dotted."""
    for index, (label, runs) in enumerate(curves.items()):
        style = line_style(index)
        axes.plot(rounds, runs.mean(axis=0), label=label, **style)
        axes.fill_between(
            rounds,
            runs.min(axis=0),
            runs.max(axis=0),
            color=style["color"],
            alpha=0.12,
            linewidth=0,
        )
    for index, (label, limit) in enumerate(limits.items()):
        axes.plot(rounds, limit, label=label, color=LIMITS[index % len(LIMITS)], **DOTTED)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("round")
    axes.margins(x=0)
    light_axes(axes)
    axes.legend(framealpha=0.85, edgecolor="none", fontsize="small")


def log_axes(axes: "Axes", *, percent: bool = False) -> None:
    """Both axes logarithmic, with plain numbers at 1, 2 and 5; `percent` shows shares as such."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(xscale="log", yscale="log")
    for axis, shares in ((axes.xaxis, False), (axes.yaxis, percent)):
        low, high = sorted(axis.get_view_interval())
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)))
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(_percent if shares else _plain))


def _percent(share: float, _: object) -> str:
    return f"{100 * share:.3g} %"


def _plain(value: float, _: object) -> str:
    return f"{value:,.0f}" if value >= 1.0 else f"{value:.3g}"


def regret_figure(
    rounds: NDArray[np.int64],
    curves: Mapping[str, NDArray[np.float64]],
    limits: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
) -> "Figure":
    """Regret against rounds, one curve a policy, and a dotted one for each limit."""
    lines = len(curves) + len(limits)
    many = lines > 5
    # As high as its legend, which has a line for each curve.
    figure, (axes,) = new_figure(width=9.5 if many else 7.0, height=max(4.0, 0.22 * lines + 0.6))
    draw_curves(axes, rounds, curves, limits)
    if many:
        legend_beside(axes, fontsize="small")
    axes.set_ylabel("regret (mean; shaded: best to worst run)")
    final = [max(float(runs[:, -1].mean()), 1.0) for runs in curves.values()]
    if min(float(runs.min()) for runs in curves.values()) < 0.0:
        axes.axhline(
            0.0, color="0.7", lw=0.8, zorder=0
        )  # who follows changes can do better than the best
    elif max(final) > 30.0 * min(final):
        axes.set(yscale="log", ylabel="regret, log scale (mean, best to worst)")
        axes.set_ylim(bottom=10.0 ** np.floor(np.log10(min(final))))
    else:
        axes.set_ylim(bottom=0.0)
    return figure


def add_headline(figure: "Figure", text: str) -> None:
    """A small line above all else, which goes wherever the picture goes; legends may be below."""
    figure.suptitle(text, fontsize="small", color="#5a6572")


def save_figure(figure: "Figure", path: Path) -> Path:
    """Write a figure in the format of its suffix; the same figure gives the same bytes."""
    import matplotlib

    if path.suffix not in PICTURES:
        raise InvalidInput(f"expected a picture to end in {', '.join(sorted(PICTURES))}, got {path}")
    about = {".svg": SVG_ABOUT, ".pdf": {"CreationDate": None}}.get(path.suffix)
    with matplotlib.rc_context(SVG_SETTINGS):
        figure.savefig(path, metadata=about, dpi=150)
    return path
