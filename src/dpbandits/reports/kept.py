"""The picture of what privacy costs: the share of the reward that is kept, against the budget."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from dpbandits.reports.figures import legend_beside, light_axes, line_style, new_figure
from dpbandits.wording import counted, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Runs = NDArray[np.float64]
_COLOURED = 6  # policies with a colour of their own; the others are grey
_GREY = "#9aa5b1"


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
        """A panel for each kind of budget, on a log axis."""
        panels = self.axes()
        if not panels:
            raise InvalidInput("reward against privacy needs a budget; all of these policies have none")
        figure, axes = new_figure(len(panels), width=6.4 if len(panels) == 1 else 4.6, height=4.6)
        figure.set_size_inches(figure.get_figwidth() + 2.6, figure.get_figheight())
        for panel, (label, budgets) in zip(axes, panels.items(), strict=True):
            self._panel(panel, budgets)
            panel.set_xlabel(label)
        low, high = self._limits()
        for panel in axes:
            panel.set_ylim(low, high)
            panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g} %")
        axes[0].set_ylabel("reward kept, as a share of the best action's")
        legend_beside(axes[-1], fontsize="small")
        return figure

    def _limits(self) -> tuple[float, float]:
        """From uniform play, or what is below it, to what is possible."""
        shares = [float(runs.mean()) for one in self.private.values() for runs in one.values()]
        shares += [float(runs.mean()) for runs in self.open.values()]
        low, high = min(*shares, self.uniform), 1.0
        room = 0.05 * max(high - low, 1e-6)
        return low - room, high + room

    def _panel(self, axes: "Axes", budgets: Sequence[Budget]) -> None:
        places = [axis_of(budget)[1] for budget in budgets]
        names = self._by_mean()
        for index, name in enumerate(names):
            coloured = index < _COLOURED or len(names) == _COLOURED + 1
            shown = [held for held in budgets if held in self.private[name]]
            self._curve(axes, name, shown, index if coloured else None, len(names) - _COLOURED)
        if (best := self.best_open()) is not None:
            mean, half = mean_and_interval(self.open[best])
            axes.axhline(mean, color="#1d2430", linewidth=1.4, label=f"without privacy: {best}")
            if not math.isnan(half):
                axes.axhspan(mean - half, mean + half, color="#1d2430", alpha=0.12, linewidth=0)
        axes.axhline(self.uniform, color="#1d2430", linewidth=1.4, linestyle=":", label="uniform play")
        axes.set_xscale("log")
        axes.set_xticks(places, [number(place) for place in places])
        axes.minorticks_off()
        axes.margins(x=0.08)
        light_axes(axes)

    def _by_mean(self) -> list[str]:
        """The policies, those that keep most first."""
        means = {
            name: np.mean([runs.mean() for runs in held.values()]) for name, held in self.private.items()
        }
        return sorted(self.private, key=lambda name: -float(means[name]))

    def _curve(
        self, axes: "Axes", name: str, budgets: Sequence[Budget], index: int | None, others: int
    ) -> None:
        """The means with their intervals; in grey without an index, the first of them with a label."""
        if not budgets:
            return
        found = [mean_and_interval(self.private[name][held]) for held in budgets]
        style: dict[str, Any] = {"color": _GREY, "linewidth": 0.8, "zorder": 1}
        label = f"{counted(others, 'other')}, in the table"
        if index is not None:
            style, label = line_style(index) | {"zorder": 3}, name
        elif any(line.get_label() == label for line in axes.get_lines()):
            label = "_"
        places, means = [axis_of(held)[1] for held in budgets], [mean for mean, _ in found]
        axes.plot(places, means, marker="o", ms=4 if index is not None else 2, label=label, **style)
        if index is not None and not math.isnan(found[0][1]):
            halves = [half for _, half in found]
            axes.errorbar(places, means, halves, fmt="none", capsize=3, elinewidth=1, **_of_bar(style))


def _of_bar(style: Mapping[str, Any]) -> dict[str, Any]:
    return {"ecolor": style["color"], "zorder": style["zorder"]}


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
