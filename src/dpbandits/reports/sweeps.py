"""Pictures of a sweep, from its tidy table."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbandits import checks
from dpbandits.errors import InvalidInput
from dpbandits.extras import extra
from dpbandits.reports.figures import legend_below, light_axes, log_axes, new_figure, save_figure
from dpbandits.reports.styles import COLOURS, STYLES, Style, styles
from dpbandits.wording import number

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What tells cells of a sweep apart, beside the options of policies and worlds.
_TELLING = ("policy", "epsilon", "delta", "mu", "rho", "order", "divergence", "world", "rounds")
_SYMBOLS = {"epsilon": "ε", "delta": "δ", "mu": "μ", "rho": "ρ", "order": "α", "rounds": "T"}
_REGRET = "mean regret"
_PER_ROW, _MOST_LINES, _MOST_TICKS = 3, len(COLOURS) * len(STYLES), 7


def plot_sweep(
    table: "pl.DataFrame",
    path: str | Path | None = None,
    *,
    against: str = "epsilon",
    panels: str = "world",
) -> "Figure":
    """Mean regret against a number of the budget, the length `rounds`, an option, or the `round`.

    Small multiples: a panel for each value of `panels`, any column of the table, and a line for each
    policy and whatever else differs. Bars are ± two standard errors over runs. What is not private is a
    level line; other budgets without that number are left out. Saved to `path` (svg, png, pdf) if given.

    Drawn by matplotlib, which comes with the extra `plot`.
    """
    with extra("tables"):
        import polars as pl

    for name, value in {"against": against, "panels": panels}.items():
        if value not in table.columns:
            raise InvalidInput(f"expected {name} to be a column of the table, got {checks.shown(value)}")
    shown = table if against == "round" else table.filter(pl.col("round") == pl.col("rounds"))
    shown = shown.filter(pl.col(against).is_not_null() | (pl.col("budget") == "NonPrivate"))
    values = shown[against].drop_nulls().unique().sort().to_list()
    check_axis(against, values)
    telling = [x for x in _TELLING if x not in (against, panels) and shown[x].n_unique() > 1]
    lines = list(dict.fromkeys(["policy", *telling]) if panels != "policy" else telling)
    means = _means(shown, [panels, *lines, against])
    titles = means[panels].unique(maintain_order=True).to_list()
    names = means.select(lines).unique(maintain_order=True).rows(named=True)
    if len(names) > _MOST_LINES:
        raise InvalidInput(
            f'{len(names)} lines cannot be told apart: draw a part, table.filter(pl.col("epsilon") == 1)'
        )
    columns = 2 if len(titles) == 4 else min(_PER_ROW, len(titles))
    rows = -(-len(titles) // columns)
    figure, axes = new_figure(columns, width=4.2, height=3.4, rows=rows, sharey=True)
    looks = styles(map(_named, names))
    for place, (one, title) in enumerate(zip(axes, titles, strict=False)):
        for line in names:
            same = [pl.col(key).eq_missing(value) for key, value in (line | {panels: title}).items()]
            _draw(one, means.filter(*same), against, looks[_named(line)] | {"label": _named(line)})
        _finish(one, against, values)
        one.set_title(title if isinstance(title, str) else _named({panels: title}), fontsize="medium")
        if place % columns == 0:
            one.set_ylabel(_REGRET if against == "round" else f"{_REGRET} (bars: ± 2 standard errors)")
    for one in axes[len(titles) :]:
        one.set_visible(False)
    legend_below(figure)
    if path is not None:
        save_figure(figure, Path(path))
    return figure


def check_axis(against: str, values: Collection[Any]) -> None:
    """Refuse what nothing can be drawn against: an axis has at least two numbers."""
    different = set(values)
    if not all(isinstance(value, int | float) for value in different):
        why = f"{against} is not a number"
    elif not different:
        why = f"no cell has a number for {against}"
    elif len(different) == 1:
        why = f"{against} is {number(float(different.pop()))} in all cells that have one"
    else:
        return
    raise InvalidInput(f"{why}, so there is nothing to draw against it; try against round")


def _means(table: "pl.DataFrame", keys: list[str]) -> "pl.DataFrame":
    """Mean regret of each cell, and its standard error."""
    import polars as pl

    regret = pl.col("regret")
    error = (regret.std() / regret.len().sqrt()).fill_null(0.0)
    found = table.group_by(list(dict.fromkeys(keys)), maintain_order=True).agg(
        regret.mean().alias("mean"), error.alias("error")
    )
    return found.with_columns(pl.col(pl.Categorical).cast(pl.String))


def _draw(axes: "Axes", line: "pl.DataFrame", against: str, style: Style) -> None:
    if line.is_empty():
        axes.plot([], [], **style)  # for the legend: it is in another panel
    elif line[against].null_count():
        axes.axhline(line["mean"][0], linewidth=1, **style)
    elif against == "round":
        line = line.sort(against)
        axes.plot(line[against], line["mean"], markevery=max(1, line.height // 8), ms=4, **style)
    else:
        line = line.sort(against)
        bars: Style = {"marker": "o", "markersize": 4, "capsize": 2} | style
        axes.errorbar(line[against], line["mean"], 2.0 * line["error"], **bars)


def _finish(axes: "Axes", against: str, values: list[float]) -> None:
    axes.set_xlabel(_SYMBOLS.get(against, against.replace("_", " ")))
    if against == "round":
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
    else:
        log_axes(axes)
        if len(values) <= _MOST_TICKS:
            axes.set_xticks(values, [number(value) for value in values])
            axes.set_xticks([], minor=True)
    light_axes(axes)


def _named(line: dict[str, Any]) -> str:
    """A line's values: those that are words as they are, numbers with their letters."""
    return ", ".join(
        value if isinstance(value, str) else f"{_SYMBOLS.get(key, key)} = {number(float(value))}"
        for key, value in line.items()
        if value is not None
    )
