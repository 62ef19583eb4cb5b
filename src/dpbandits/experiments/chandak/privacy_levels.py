"""Figure 2: three levels of privacy."""

from collections.abc import Mapping
from typing import Any, ClassVar

from dpbandits.experiments.chandak.returns import draw_returns, last_return
from dpbandits.experiments.chandak.setting import NOTE, PANELS, PAPER, RUNS, TABLE_2, as_printed
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies import Policy
from dpbandits.policies.matroid import (
    MatroidThompson,
    MatroidUCB,
    PrivateMatroidThompson,
    PrivateMatroidUCB,
    UniformBases,
)
from dpbandits.privacy.budgets import PureDP
from dpbandits.reports.figures import new_figure
from dpbandits.simulation import Trace


class PrivacyLevels(Figure):
    """Figure 2."""

    name: ClassVar[str] = "chandak-fig2"
    title: ClassVar[str] = "Return per round for ε = 10⁵, 2, 10⁻⁴ on Table 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 2"
    notes: ClassVar[tuple[str, ...]] = (NOTE,)
    _EPSILONS: ClassVar = (1e5, 2.0, 1e-4)
    _ROUNDS: ClassVar = 10_000

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"n = {self._ROUNDS:,}, {RUNS[scale]} runs"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """A panel for each algorithm."""
        panels: dict[str, tuple[Any, Policy]] = {
            "ucb": (PrivateMatroidUCB, MatroidUCB()),
            "thompson": (PrivateMatroidThompson, MatroidThompson()),
        }
        return {
            panel: Simulation(
                policies={f"ε = {e:g}": as_printed(kind, PureDP(e)) for e in self._EPSILONS}
                | {"not private": open_policy, "random bases": UniformBases()},
                environment=TABLE_2,
                rounds=self._ROUNDS,
                runs=RUNS[scale],
            )
            for panel, (kind, open_policy) in panels.items()
        }

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Two panels."""
        figure, panels = new_figure(2, width=5.5, height=4.2, sharey=True)
        for axes, (panel, title) in zip(panels, PANELS.items(), strict=True):
            labels = [label for label in traces[panel].policies if label != "random bases"]
            draw_returns(axes, traces[panel], labels, TABLE_2)
            axes.set_title(title)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Falls with ε, near the non-private policy for large ε."""
        found = []
        for panel, title in PANELS.items():
            last = {x: last_return(traces[panel], x, TABLE_2) for x in traces[panel].policies}
            high, middle, low = (last[f"ε = {e:g}"] for e in self._EPSILONS)
            found += [
                Claim(
                    paper=f"{title}: the return falls as ε falls",
                    measured=f"{high:.3f}, {middle:.3f}, {low:.3f} of 2.150; random bases "
                    f"{last['random bases']:.3f}",
                    holds=high > middle > low,
                ),
                Claim(
                    paper=f"{title}: for large ε it approaches the non-private algorithm",
                    measured=f"{high:.3f} at ε = 10⁵, {last['not private']:.3f} not private",
                    holds=abs(high - last["not private"]) < 0.02 * 2.15,
                ),
            ]
        return found
