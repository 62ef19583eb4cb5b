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
        """Mean regret for each ε."""
        trace = traces[panel]
        return np.array([trace.regret(f"{e:g}")[:, -1].mean() for e in self._epsilons(scale)])

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Points, and the line that fits them best."""
        figure, (axes,) = new_figure(width=7.0, height=4.2)
        x = 1.0 / np.array(self._epsilons(scale))
        for index, (panel, title) in enumerate(PANELS.items()):
            y = self._regret(traces, panel, scale)
            slope, start = np.polyfit(x, y, 1)
            style = line_style(index)
            axes.plot(x, y, "o", ms=4, color=style["color"], label=title)
            axes.plot(x, start + slope * x, "-", color=style["color"], alpha=0.5)
        axes.set_xlabel("1/ε")
        axes.set_ylabel(f"regret after {self._ROUNDS:,} rounds")
        axes.set_ylim(bottom=0.0)
        light_axes(axes)
        legend_below(figure)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """How near to a line, and who is lower."""
        x = 1.0 / np.array(self._epsilons(scale))
        regret = {panel: self._regret(traces, panel, scale) for panel in PANELS}
        fit = {panel: float(np.corrcoef(x, y)[0, 1] ** 2) for panel, y in regret.items()}
        return [
            Claim(
                paper="The regret of both is linear in 1/ε",
                measured=", ".join(
                    f"{title}: a line explains {100 * fit[panel]:.1f} % of the variance"
                    for panel, title in PANELS.items()
                ),
                holds=min(fit.values()) > 0.97,
            ),
            Claim(
                paper="DPTS-MAT outperforms DPUCB-MAT at every ε (5b)",
                measured=f"at ε = 0.5: {regret['thompson'][0]:,.0f} against {regret['ucb'][0]:,.0f}; "
                f"at ε = 50: {regret['thompson'][-1]:,.0f} against {regret['ucb'][-1]:,.0f}",
                holds=bool(np.all(regret["thompson"] < regret["ucb"])),
            ),
        ]
