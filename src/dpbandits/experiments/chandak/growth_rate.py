"""Figure 5a: how regret grows with the rounds."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.chandak.setting import (
    FOCUSED,
    NOTE,
    PAPER,
    RUNS,
    TABLE_2,
    THOMPSON,
    TWO,
    UCB,
    as_printed,
)
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies.matroid import FocusedMatroidUCB, PrivateMatroidThompson, PrivateMatroidUCB
from dpbandits.reports.figures import SHADED, draw_curves, new_figure
from dpbandits.simulation import Trace


class GrowthRate(Figure):
    """Figure 5a."""

    name: ClassVar[str] = "chandak-fig5a"
    title: ClassVar[str] = "Regret over ln n on Table 2, ε = 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 5a"
    notes: ClassVar[tuple[str, ...]] = (NOTE,)
    _ROUNDS: ClassVar = {Scale.quick: 200_000, Scale.paper: 1_000_000}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"n = {self._ROUNDS[scale]:,}, {RUNS[scale]} runs"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Both algorithms, and ours."""
        return {
            "regret": Simulation(
                policies={
                    UCB: as_printed(PrivateMatroidUCB, TWO),
                    THOMPSON: as_printed(PrivateMatroidThompson, TWO),
                    FOCUSED: FocusedMatroidUCB(privacy=TWO),
                },
                environment=TABLE_2,
                rounds=self._ROUNDS[scale],
                runs=RUNS[scale],
                points=200,
            )
        }

    @staticmethod
    def _rates(trace: Trace, label: str) -> NDArray[np.float64]:
        """R_n / ln n from n = 10 on. (runs, points)."""
        late = trace.rounds >= 10
        return trace.regret(label)[:, late] / np.log(trace.rounds[late])

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Against n."""
        figure, (axes,) = new_figure(width=7.0, height=4.2)
        trace = traces["regret"]
        late = trace.rounds >= 10
        curves = {x: self._rates(trace, x) for x in trace.policies}
        draw_curves(axes, trace.rounds[late], curves, policies=trace.recipes())
        axes.set_ylabel(f"R_n / ln n ({SHADED})")
        axes.set_ylim(bottom=0.0)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Whether it flattens, and who is lower."""
        trace = traces["regret"]
        rates = {x: self._rates(trace, x).mean(axis=0) for x in trace.policies}
        rounds = trace.rounds[trace.rounds >= 10]
        half = int(np.searchsorted(rounds, rounds[-1] // 2))
        grown = {x: float(rates[x][-1] / rates[x][half] - 1.0) for x in (UCB, THOMPSON)}
        return [
            Claim(
                paper="R_n/ln n converges for both, at different rates",
                measured=", ".join(
                    f"{x} {rates[x][-1]:.1f} ({100 * g:+.1f} % over the last half of the rounds)"
                    for x, g in grown.items()
                ),
                holds=max(abs(g) for g in grown.values()) < 0.05,
            ),
            Claim(
                paper="DPTS-MAT outperforms DPUCB-MAT (5a)",
                measured=f"{rates[THOMPSON][-1]:.1f} against {rates[UCB][-1]:.1f}; {FOCUSED} "
                f"{rates[FOCUSED][-1]:.1f}",
                holds=bool(rates[THOMPSON][-1] < rates[UCB][-1]),
            ),
        ]
