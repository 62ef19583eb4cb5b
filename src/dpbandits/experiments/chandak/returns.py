"""Return per round, the paper's measure."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.chandak.setting import FOCUSED, NOTE, RUNS, TABLE_2
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies import Policy
from dpbandits.reports.figures import GREY, SHADED, draw_curves, legend_below, new_figure
from dpbandits.simulation import Trace
from dpbandits.worlds.matroids import MatroidEnvironment


def returns(trace: Trace, label: str, world: MatroidEnvironment) -> NDArray[np.float64]:
    """The expected return per round so far, (1/s) Σ_t Σ_e w̄(e): the papers' measure. (runs, points)."""
    return world.best_return() - trace.regret(label) / trace.rounds


def last_return(trace: Trace, label: str, world: MatroidEnvironment) -> float:
    """The mean over rounds and runs."""
    return float(returns(trace, label, world)[:, -1].mean())


def draw_returns(axes: Any, trace: Trace, labels: list[str], world: MatroidEnvironment) -> None:
    """Return against rounds, without the first 1/200 of them, and the optimum as a line."""
    late = trace.rounds >= trace.rounds[-1] // 200
    curves = {label: returns(trace, label, world)[:, late] for label in labels}
    draw_curves(axes, trace.rounds[late], curves, policies=trace.recipes())
    axes.axhline(world.best_return(), color=GREY, linestyle=":", label="optimal policy")
    axes.yaxis.set_major_formatter("{x:.2f}")
    axes.set_ylabel(f"expected return per round ({SHADED})")
    legend_below(axes.figure)


class Returns(Figure):
    """Return per round against rounds, on one world."""

    _ROUNDS: ClassVar[int]
    notes: ClassVar[tuple[str, ...]] = (NOTE,)

    def world(self) -> MatroidEnvironment:
        """Where it is played."""
        return TABLE_2

    def policies(self) -> dict[str, Policy]:
        """By label; the first private, the second not."""
        raise NotImplementedError

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"n = {self._ROUNDS:,}, {RUNS[scale]} runs"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """All on one world."""
        return {
            "returns": Simulation(
                policies=self.policies(),
                environment=self.world(),
                rounds=self._ROUNDS,
                runs=RUNS[scale],
            )
        }

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """The optimum as a line above the curves."""
        figure, (axes,) = new_figure(width=7.0, height=4.2)
        trace = traces["returns"]
        draw_returns(axes, trace, trace.policies, self.world())
        return figure

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """The last return per round, with the worst run."""
        trace, world = traces["returns"], self.world()
        return [_row(trace, label, world) for label in trace.policies]

    def _comparable(self, traces: Mapping[str, Trace], paper: str) -> Claim:
        trace, world = traces["returns"], self.world()
        private, rival = trace.policies[:2]
        mine, theirs = (last_return(trace, label, world) for label in (private, rival))
        best = world.best_return()
        return Claim(
            paper=paper,
            measured=f"{private} {mine:.3f}, {rival} {theirs:.3f} of {best:.3f} a round: "
            f"{100 * mine / theirs:.1f} % of it, {100 * mine / best:.1f} % of the optimum",
            holds=mine > 0.94 * theirs and mine > 0.94 * best,
        )

    def _beats_open(self, traces: Mapping[str, Trace]) -> Claim:
        trace, world = traces["returns"], self.world()
        rival = trace.policies[1]
        mine, theirs = (last_return(trace, label, world) for label in (FOCUSED, rival))
        worst = float(returns(trace, FOCUSED, world)[:, -1].min())
        return Claim(
            paper=f"Ours: {FOCUSED} at the same ε earns more than {rival}",
            measured=f"{mine:.4f} (worst run {worst:.4f}) against {theirs:.4f}",
            holds=mine > theirs,
        )


def _row(trace: Trace, label: str, world: MatroidEnvironment) -> dict[str, Any]:
    last = returns(trace, label, world)[:, -1]
    return {
        "policy": label,
        "guarantee": trace.guarantee(label).short(),
        "return per round": f"{last.mean():.4f} ± {last.std(ddof=1) / math.sqrt(last.size):.4f}",
        "worst run": f"{last.min():.4f}",
        "of": f"{world.best_return():.4f}",
    }
