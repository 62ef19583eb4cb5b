"""Figure 5b: how regret grows with 1/ε."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.chandak.setting import (
    NOTE,
    PANELS,
    PAPER,
    RUNS,
    TABLE_2,
    THOMPSON,
    UCB,
    as_printed,
)
from dpbandits.experiments.evidence import mean_of, ratio_of
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies.matroid import PrivateMatroidThompson, PrivateMatroidUCB
from dpbandits.privacy.budgets import PureDP
from dpbandits.reports.figures import legend_below, light_axes, line_style, new_figure
from dpbandits.simulation import Trace


class PriceOfPrivacy(Figure):
    """Figure 5b."""

    name: ClassVar[str] = "chandak-fig5b"
    title: ClassVar[str] = "Regret against 1/ε on Table 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 5b"
    notes: ClassVar[tuple[str, ...]] = (NOTE,)
    _ROUNDS: ClassVar = 10_000
    _VALUES: ClassVar = {Scale.quick: 10, Scale.paper: 50}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds, runs and values of ε."""
        return f"n = {self._ROUNDS:,}, {RUNS[scale]} runs, {self._VALUES[scale]} values of ε"

    def _epsilons(self, scale: Scale) -> list[float]:
        """Evenly spaced, as in the paper."""
        return [float(e) for e in np.linspace(0.5, 50.0, self._VALUES[scale])]

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """All values of ε for each algorithm."""
        kinds: dict[str, Any] = {UCB: PrivateMatroidUCB, THOMPSON: PrivateMatroidThompson}
        return {
            panel: Simulation(
                policies={f"{e:g}": as_printed(kinds[title], PureDP(e)) for e in self._epsilons(scale)},
                environment=TABLE_2,
                rounds=self._ROUNDS,
                runs=RUNS[scale],
                points=4,
            )
            for panel, title in PANELS.items()
        }

    def _regret(self, traces: Mapping[str, Trace], panel: str, scale: Scale) -> NDArray[np.float64]:
        """Regret at the end. (runs, values of ε)."""
        trace = traces[panel]
        return np.stack([trace.regret(f"{e:g}")[:, -1] for e in self._epsilons(scale)], axis=1)

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Points, and the line that fits all but the leftmost ε best."""
        figure, (axes,) = new_figure(width=7.0, height=4.2)
        x = 1.0 / np.array(self._epsilons(scale))
        for index, (panel, title) in enumerate(PANELS.items()):
            y = self._regret(traces, panel, scale).mean(axis=0)
            slope, start = np.polyfit(x[1:], y[1:], 1)
            style = line_style(index)
            axes.plot(x, y, "o", ms=4, color=style["color"], label=f"{title}; line without ε = 0.5")
            axes.plot(x, start + slope * x, "-", color=style["color"], alpha=0.5)
        axes.set_xlabel("1/ε")
        axes.set_ylabel(f"regret after {self._ROUNDS:,} rounds")
        axes.set_ylim(bottom=0.0)
        light_axes(axes)
        legend_below(figure)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Whether one slope fits all of it, and who is lower."""
        x = 1.0 / np.array(self._epsilons(scale))
        regret = {panel: self._regret(traces, panel, scale) for panel in PANELS}
        slopes = {panel: _slopes(x, runs) for panel, runs in regret.items()}
        ratios = [
            ratio_of(ours, theirs)
            for ours, theirs in zip(regret["thompson"].T, regret["ucb"].T, strict=True)
        ]
        return [
            Claim(
                paper="The regret of both is linear in 1/ε",
                criterion="the slope from ε = 0.5 to the next value is 0.8 to 1.25 times that over "
                "all other values, by 99 % intervals of contrasts within runs, for both",
                measured=", ".join(
                    f"{title}: {mean_of(end):,.0f} and {mean_of(rest):,.0f} for each 1/ε"
                    for (end, rest), title in zip(slopes.values(), PANELS.values(), strict=True)
                ),
                holds=all(
                    min(mean_of(end - 0.8 * rest).low, mean_of(1.25 * rest - end).low) > 0.0
                    for end, rest in slopes.values()
                ),
            ),
            Claim(
                paper="DPTS-MAT outperforms DPUCB-MAT at every ε (5b)",
                criterion="the 99 % interval of the ratio of regrets is below 1 at every ε",
                measured=f"{ratios[0]:.3f} at ε = 0.5, {ratios[-1]:.3f} at ε = 50; at most "
                f"{max(ratios):.3f}",
                holds=max(ratio.high for ratio in ratios) < 1.0,
            ),
        ]


def _slopes(
    x: NDArray[np.float64], runs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each run: from the first x to the second, and of the straight line over all but the first."""
    centred = x[1:] - x[1:].mean()
    return (runs[:, 0] - runs[:, 1]) / (x[0] - x[1]), runs[:, 1:] @ centred / (centred @ centred)
