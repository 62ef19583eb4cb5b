"""The picture of what privacy costs: the share of the reward that is kept, against the budget."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # whose parts, slow to import, are loaded at their first use
from numpy.typing import NDArray

from dpbandits.errors import InvalidInput
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpbandits.reports.figures import DOTTED, INK, legend_below, light_axes, new_figure
from dpbandits.reports.styles import Style, styles
from dpbandits.wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Runs = NDArray[np.float64]
_COLOURED = 6  # policies with a colour of their own; the others are grey
_GREY = "#9aa5b1"
_UNIFORM, _OTHERS, _LIMIT = "uniform play", " others", "limit for large t"
# As parts of an axis: between curves, from the last budget to none, between the numbers of ticks.
_ASIDE, _TO_NONE, _BETWEEN = 0.006, 0.15, 0.07


def mean_and_interval(runs: Runs, coverage: float = 0.95) -> tuple[float, float]:
    """The mean over runs and half its confidence interval (Student's t); nan for a single run."""
    if runs.size < 2:
        return float(runs.mean()), math.nan
    quantile = float(scipy.special.stdtrit(runs.size - 1, 0.5 + 0.5 * coverage))
    return float(runs.mean()), quantile * float(runs.std(ddof=1)) / math.sqrt(runs.size)


@dataclass(frozen=True)
class Kept:
    """Shares of the best action's reward, of each run: by policy and budget, and to compare with."""

    private: Mapping[str, Mapping[Budget, Runs]]
    open: Mapping[str, Runs]  # policies without privacy
    uniform: float
    limits: Mapping[Budget, float] = field(
        default_factory=dict
    )  # what no policy exceeds in the long run

    def best_open(self) -> str | None:
        """The policy without privacy that keeps most."""
        return max(self.open, key=lambda name: float(self.open[name].mean()), default=None)

    def axes(self) -> dict[str, list[Budget]]:
        """The budgets of each axis in order: different definitions of privacy share none."""
        found: dict[str, list[Budget]] = {}
        for budgets in self.private.values():
            for budget in budgets:
                listed = found.setdefault(axis_of(budget)[0], [])
                if budget not in listed:
                    listed.append(budget)
        return {name: sorted(listed, key=lambda one: axis_of(one)[1]) for name, listed in found.items()}

    def draw(self) -> "Figure":
        """A panel for each kind of budget, on a log axis; one legend below them."""
        panels = self.axes()
        if not panels:
            raise InvalidInput("reward against privacy needs a budget; all of these policies have none")
        width = 6.4 if len(panels) == 1 else 4.6
        figure, axes = new_figure(len(panels), width=width, height=4.4, sharey=True)
        for panel, (label, budgets) in zip(axes, panels.items(), strict=True):
            self._panel(panel, budgets)
            panel.set_xlabel(label)
        axes[0].set_ylim(*self._limits())  # which all panels share
        axes[0].yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g} %")
        axes[0].set_ylabel("reward kept, of the best action's (bars: 95 % intervals)")
        self._legend(figure, axes)
        return figure

    def _legend(self, figure: "Figure", axes: "Sequence[Axes]") -> None:
        """From top to bottom as lines end at the right of the first panel that has them."""
        ends: dict[str, float] = {}
        for panel in axes:
            for line in panel.get_lines():
                label, height = str(line.get_label()), float(np.asarray(line.get_ydata())[-1])
                if not label.startswith("_"):
                    ends.setdefault(label, height)
        order = sorted(
            ends, key=lambda label: (label == _UNIFORM, label.endswith(_OTHERS), -ends[label])
        )
        legend_below(figure, order)

    def _limits(self) -> tuple[float, float]:
        """From uniform play, or what is below it, to what is possible."""
        shares = [float(runs.mean()) for one in self.private.values() for runs in one.values()]
        shares += [float(runs.mean()) for runs in self.open.values()]
        low, high = min(*shares, self.uniform), 1.0
        room = 0.05 * max(high - low, 1e-6)
        return low - room, high + room

    def _panel(self, axes: "Axes", budgets: Sequence[Budget]) -> None:
        places = [axis_of(budget)[1] for budget in budgets]
        span = math.log10(places[-1] / places[0]) or 1.0
        names = self._by_mean()
        coloured = names if len(names) == _COLOURED + 1 else names[:_COLOURED]
        twins = [name for name in coloured if self.twin_of(name) is not None]
        without = places[-1] * 10.0 ** (_TO_NONE * span)
        looks = styles(coloured)
        for index, name in enumerate(names):
            shown = [held for held in budgets if held in self.private[name]]
            # Side by side, so that no interval hides another.
            aside = 10.0 ** (_ASIDE * span * (index - (len(coloured) - 1) / 2))
            if name in coloured:
                self._curve(axes, name, shown, aside, looks[name])
            else:
                self._grey(axes, name, shown, f"{len(names) - len(coloured)}{_OTHERS}")
            if name in twins and shown:
                mean = float(self.open[self.twin_of(name) or ""].mean())
                look: Style = {"marker": looks[name].get("marker", "o"), "mec": looks[name]["color"]}
                axes.plot(without * aside, mean, ms=5, mfc="white", label="_", **look)
        self._lines(axes)
        known = [held for held in budgets if held in self.limits]
        if known:
            shares = [self.limits[held] for held in known]
            axes.plot([axis_of(held)[1] for held in known], shares, label=_LIMIT, color=_GREY, **DOTTED)
        axes.set_xscale("log")
        ticks = _ticks(places, span)
        if twins:
            ticks[without] = "none"
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.minorticks_off()
        axes.margins(x=0.08)
        light_axes(axes)

    def twin_of(self, name: str) -> str | None:
        """The label of the same policy without privacy, if it was played."""
        return next((label for label in (f"{name} (twin)", name) if label in self.open), None)

    def _lines(self, axes: "Axes") -> None:
        """To compare with: the best without privacy, and uniform play."""
        if (best := self.best_open()) is not None:
            mean, half = mean_and_interval(self.open[best])
            named = best.removesuffix(" (twin)")
            axes.axhline(mean, color=INK, linewidth=1.4, label=f"without privacy: {named}")
            if not math.isnan(half):
                axes.axhspan(mean - half, mean + half, color=INK, alpha=0.12, linewidth=0)
        axes.axhline(self.uniform, color=INK, linewidth=1.4, linestyle=":", label=_UNIFORM)

    def _by_mean(self) -> list[str]:
        """The policies, those that keep most first."""
        means = {
            name: np.mean([runs.mean() for runs in held.values()]) for name, held in self.private.items()
        }
        return sorted(self.private, key=lambda name: -float(means[name]))

    def _curve(
        self, axes: "Axes", name: str, budgets: Sequence[Budget], aside: float, style: Style
    ) -> None:
        """The means with their intervals, a little beside their budgets."""
        if not budgets:
            return
        found = [mean_and_interval(self.private[name][held]) for held in budgets]
        places, means = [axis_of(held)[1] * aside for held in budgets], [mean for mean, _ in found]
        look: Style = {"marker": "o"} | style
        axes.plot(places, means, ms=4, label=name, zorder=3, **look)
        if not math.isnan(found[0][1]):
            bars: dict[str, Any] = {"fmt": "none", "capsize": 3, "elinewidth": 1, "zorder": 3}
            axes.errorbar(places, means, [half for _, half in found], ecolor=style["color"], **bars)

    def _grey(self, axes: "Axes", name: str, budgets: Sequence[Budget], label: str) -> None:
        """The means alone; the first such line has the label of all."""
        if any(line.get_label() == label for line in axes.get_lines()):
            label = "_"
        places = [axis_of(held)[1] for held in budgets]
        means = [float(self.private[name][held].mean()) for held in budgets]
        style: dict[str, Any] = {"color": _GREY, "linewidth": 0.8, "zorder": 1}
        if budgets:
            axes.plot(places, means, marker="o", ms=2, label=label, **style)


def _ticks(places: Sequence[float], span: float) -> dict[float, str]:
    """A tick for each place; without its number where that would run into the one before."""
    found: dict[float, str] = {}
    last = -math.inf
    for place in places:
        apart = math.log10(place) - last >= _BETWEEN * span
        found[place] = number(place) if apart else ""
        last = math.log10(place) if apart else last
    return found


def axis_of(budget: Budget) -> tuple[str, float]:
    """What an axis of such budgets is called, and where on it this one is."""
    match budget:
        case PureDP(epsilon=epsilon):
            return "ε of ε-DP (log scale): less private to the right", epsilon
        case ApproxDP(epsilon=epsilon, delta=delta):
            return f"ε of (ε, {number(delta)})-DP (log scale)", epsilon
        case GaussianDP(mu=mu):
            return "μ of μ-GDP (log scale)", mu
        case ZeroConcentratedDP(rho=rho):
            return "ρ of ρ-zCDP (log scale)", rho
        case RenyiDP(order=order, divergence=divergence):
            return f"γ of ({number(order)}, γ)-RDP (log scale)", divergence
    raise InvalidInput(f"{budget} has no place on an axis of privacy")
