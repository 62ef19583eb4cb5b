"""Pictures, drawn without a display; matplotlib is imported only when one is drawn."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpbandits.errors import InvalidInput
from dpbandits.extras import extra
from dpbandits.policies import Policy
from dpbandits.reports.styles import COLOURS as COLOURS
from dpbandits.reports.styles import STYLES as STYLES
from dpbandits.reports.styles import line_style as line_style
from dpbandits.reports.styles import styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Runs = NDArray[np.float64]
# Limits are dotted and grey: they are nobody's curve.
INK, GREY = "#1d2430", "#7a8591"
LIMITS = (INK, GREY)
DOTTED: dict[str, Any] = {"linestyle": (0, (1.0, 1.5)), "linewidth": 2.0, "zorder": 4}
# A band that tells of the runs, and is as wide for many of them as for some.
BAND = 0.1, 0.9
SHADED = "mean; shaded: 10–90 % of runs"
_MARKS = 8  # on a curve
# Nothing about when or by what it was drawn, so that the same figure gives the same bytes.
PICTURES = {".svg", ".png", ".pdf"}
_ABOUT: dict[str, dict[str, Any]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": {"CreationDate": None},
}
_SETTINGS: Any = {"svg.hashsalt": "dpbandits"}
# What is black or white in an SVG picture changes places where people read light letters on dark.
DARK_PAGE, DARK_INK = "#12161d", "#e6e9ee"
_DARK = "".join(
    [
        f"@media (prefers-color-scheme: dark) {{ svg {{ fill: {DARK_INK} }} ",
        *(
            f'[style*="{part}: {colour}"] {{ {part}: {DARK_INK} !important }} '
            for part in ("fill", "stroke")
            for colour in ("#000000", INK)
        ),
        *(
            f'[style*="{part}: #ffffff"] {{ {part}: {DARK_PAGE} !important }} '
            for part in ("fill", "stroke")
        ),
        "}",
    ]
)
# Of a legend in small letters, in inches.
_LINE, _LETTER, _HANDLE = 0.19, 0.066, 0.55


def new_figure(
    columns: int = 1,
    *,
    width: float = 6.0,
    height: float = 4.0,
    rows: int = 1,
    sharex: bool = False,
    sharey: bool | Literal["row"] = False,
) -> "tuple[Figure, list[Axes]]":
    """A figure and its axes, always a list, left to right and top to bottom.

    Panels of the same quantity are to be compared: they share its axis.
    """
    with extra("plot"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
    return figure, np.atleast_1d(axes).ravel().tolist()


def light_axes(axes: "Axes") -> None:
    """A faint grid, and no frame above and at the right."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def legend_beside(axes: "Axes", labels: Sequence[str] | None = None, **options: Any) -> None:
    """At the right of the axes, where it hides nothing; in the order of `labels` if given."""
    handles = _handles([axes])
    order = list(handles) if labels is None else list(labels)
    look: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
    look |= {"fontsize": "small"} | options
    axes.legend([handles[label] for label in order], order, **look)


def legend_below(figure: "Figure", labels: Sequence[str] | None = None) -> None:
    """One legend of all panels, under them; drawn again where more has been drawn since."""
    handles = _handles(figure.axes)
    order = list(handles) if labels is None else list(labels)
    lines = -_legend_shape(figure, [text.get_text() for one in figure.legends for text in one.texts])[0]
    for one in [*figure.legends]:
        one.remove()
    if order:
        rows, columns = _legend_shape(figure, order)
        lines += rows
        figure.legend(
            [handles[label] for label in order],
            order,
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            fontsize="small",
        )
    figure.set_size_inches(figure.get_figwidth(), figure.get_figheight() + _LINE * lines)


def _handles(panels: "Sequence[Axes]") -> dict[str, Any]:
    """Each label once, as the first panel draws it."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(str(label), handle)
    return found


def _legend_shape(figure: "Figure", labels: Sequence[str]) -> tuple[int, int]:
    """Rows and columns of a legend as wide as the figure."""
    if not labels:
        return 0, 1
    widest = _HANDLE + _LETTER * max(map(len, labels))
    rows = -(-len(labels) // max(1, int(figure.get_figwidth() / widest)))
    return rows, -(-len(labels) // rows)


def band(runs: Runs) -> tuple[Runs, Runs]:
    """Between which values the middle four fifths of the runs are, by point (median-unbiased)."""
    low, high = np.quantile(runs, BAND, axis=0, method="median_unbiased")
    return low, high


def draw_curves(
    axes: "Axes",
    rounds: NDArray[np.int64],
    curves: Mapping[str, Runs],
    limits: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
    *,
    policies: Mapping[str, Policy] = MappingProxyType({}),
) -> None:
    """The mean of each (runs, points) array, shaded where most runs are (`SHADED`); limits dotted.

    `policies` says of which policy a label is, where it does not begin with a policy's name: the same
    policy looks the same in all panels and pictures. The legend is below all panels.
    """
    looks = styles(curves, policies)
    step = max(1, rounds.size // _MARKS)
    faint = min(0.12, 0.8 / max(1, len(curves)))  # many bands do not hide the curves
    for index, (label, runs) in enumerate(curves.items()):
        # Marks of curves that lie on each other do not.
        marks: dict[str, Any] = {"markevery": (index * step // len(curves), step), "markersize": 4.5}
        axes.plot(rounds, runs.mean(axis=0), label=label, **marks, **looks[label])
        if len(runs) > 1:
            colour = looks[label]["color"]
            axes.fill_between(rounds, *band(runs), color=colour, alpha=faint, linewidth=0)
    for index, (label, limit) in enumerate(limits.items()):
        axes.plot(rounds, limit, label=label, color=LIMITS[index % len(LIMITS)], **DOTTED)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("round")
    axes.margins(x=0)
    light_axes(axes)
    legend_below(_figure_of(axes))


def _figure_of(axes: "Axes") -> "Figure":
    from matplotlib.figure import Figure

    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure


def log_axes(axes: "Axes", *, percent: bool = False) -> None:
    """Both axes logarithmic, with plain numbers at 1, 2 and 5; `percent` shows shares as such."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(xscale="log", yscale="log")
    for axis, shares in ((axes.xaxis, False), (axes.yaxis, percent)):
        low, high = sorted(axis.get_view_interval())
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)))
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(_percent if shares else plain))


def _percent(share: float, _: object) -> str:
    return f"{100 * share:.3g} %"


def plain(value: float, _: object = None) -> str:
    """A number at a tick."""
    return f"{value:,.0f}" if value >= 1.0 else f"{value:.3g}"


def power_of_ten(value: float, _: object = None) -> str:
    """The same at a tick of a long log axis, where plain numbers would touch."""
    return f"$10^{{{np.log10(value):.0f}}}$"


def regret_figure(
    rounds: NDArray[np.int64],
    curves: Mapping[str, Runs],
    limits: Mapping[str, NDArray[np.float64]] = MappingProxyType({}),
    policies: Mapping[str, Policy] = MappingProxyType({}),
) -> "Figure":
    """Regret against rounds, one curve a policy, and a dotted one for each limit."""
    lines = len(curves) + len(limits)
    many = lines > 8
    # As high as its legend, which has a line for each curve.
    figure, (axes,) = new_figure(width=9.5 if many else 7.0, height=max(4.0, 0.22 * lines + 0.6))
    draw_curves(axes, rounds, curves, limits, policies=policies)
    final = {label: max(float(runs[:, -1].mean()), 1.0) for label, runs in curves.items()}
    ends = final | {label: float(limit[-1]) for label, limit in limits.items()}
    order = sorted(ends, key=lambda label: -ends[label])  # as the curves lie
    if many:
        legend_below(figure, ())
        legend_beside(axes, order)
    else:
        legend_below(figure, order)
    axes.set_ylabel(f"regret ({SHADED})")
    if min(float(runs.min()) for runs in curves.values()) < 0.0:
        # Who follows changes can do better than the best action.
        axes.axhline(0.0, color="0.7", lw=0.8, zorder=0)
    elif max(final.values()) > 30.0 * min(final.values()):
        axes.set(yscale="log", ylabel=f"regret, log scale ({SHADED})")
        axes.set_ylim(bottom=10.0 ** np.floor(np.log10(min(final.values()))))
    else:
        axes.set_ylim(bottom=0.0)
    return figure


def add_headline(figure: "Figure", text: str) -> None:
    """A small line above all else, which goes wherever the picture goes; legends may be below."""
    figure.suptitle(text, fontsize="small", color=GREY)


def svg_text(figure: "Figure") -> str:
    """A figure as SVG, readable on light pages and on dark ones."""
    buffer = io.StringIO()
    _write(figure, buffer, "svg")
    before, start, after = buffer.getvalue().partition("<svg")
    opening, end, content = after.partition(">")
    return f"{before}{start}{opening}{end}\n <style>{_DARK}</style>{content}"


def save_figure(figure: "Figure", path: Path) -> Path:
    """Write a figure in the format of its suffix; the same figure gives the same bytes."""
    if path.suffix not in PICTURES:
        raise InvalidInput(f"expected a picture to end in {', '.join(sorted(PICTURES))}, got {path}")
    if path.suffix == ".svg":
        path.write_text(svg_text(figure), encoding="utf-8")
    else:
        _write(figure, path, path.suffix[1:])
    return path


def _write(figure: "Figure", to: Any, kind: str) -> None:
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        figure.savefig(to, format=kind, metadata=_ABOUT.get(kind), dpi=150)
