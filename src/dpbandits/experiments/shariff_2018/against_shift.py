"""Figure 5: what the shift of the regulariser costs."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.experiments.shariff_2018.setting import PAPER, PRIVACY, Array
from dpbandits.policies.linear import TreeLinUCB
from dpbandits.policies.linear.tree_lin_ucb import LOW
from dpbandits.reports.figures import GREY, legend_below, light_axes, line_style, new_figure
from dpbandits.simulation import Trace
from dpbandits.worlds import SphereContexts

Noise = Literal["gaussian", "wishart"]
_NOISES: tuple[Noise, ...] = ("wishart", "gaussian")


class RegretAgainstShift(Figure):
    """Figure 5: regret against ρ_min, for several gaps."""

    name: ClassVar[str] = "shariff-fig5"
    title: ClassVar[str] = (
        "Regret against the least eigenvalue of the shifted regulariser, for several gaps"
    )
    paper: ClassVar[str] = f"{PAPER}, Figure 5"
    minutes: ClassVar[bool] = True
    _GAPS: ClassVar = (0.0, 0.05, 0.1, 0.2)
    _SHIFTS: ClassVar = tuple(float(x) for x in np.geomspace(1e3, 1e7, 9).round(-2))
    _ROUNDS: ClassVar = {Scale.quick: 100_000, Scale.paper: 50_000_000}
    _RUNS: ClassVar = {Scale.quick: 2, Scale.paper: 1}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds, runs and grid."""
        runs = self._RUNS[scale]
        return (
            f"n = {self._ROUNDS[scale]:,}, {runs} run{'s' * (runs > 1)}, "
            f"{len(self._SHIFTS)} values of ρ_min, {len(self._GAPS)} gaps"
        )

    @staticmethod
    def _policy(noise: Noise, shift: float | None) -> TreeLinUCB:
        return TreeLinUCB(privacy=PRIVACY, noise=noise, calibration="paper", rho_min=shift)

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """One for each gap."""
        return {
            f"gap-{gap:g}": Simulation(
                policies={
                    f"{noise} {shift:g}": self._policy(noise, shift)
                    for noise in _NOISES
                    for shift in self._SHIFTS
                },
                environment=SphereContexts(gap=gap),
                rounds=self._ROUNDS[scale],
                runs=self._RUNS[scale],
                points=10,
            )
            for gap in self._GAPS
        }

    def _regrets(self, traces: Mapping[str, Trace], noise: str, gap: float) -> Array:
        """Mean final regret, by ρ_min."""
        trace = traces[f"gap-{gap:g}"]
        return np.array([trace.regret(f"{noise} {shift:g}")[:, -1].mean() for shift in self._SHIFTS])

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """A panel for each noise; dotted: the ρ_min of its section of the paper."""
        figure, panels = new_figure(2, width=5.4, height=4.4, sharey=True)
        problem = SphereContexts().problem(self._ROUNDS[scale])
        for axes, noise in zip(panels, _NOISES, strict=True):
            for index, gap in enumerate(self._GAPS):
                regrets = self._regrets(traces, noise, gap)
                axes.semilogx(
                    self._SHIFTS,
                    regrets,
                    marker="os^D"[index],
                    label=f"Δ = {gap:g}",
                    **line_style(index),
                )
            chosen, _ = self._policy(noise, None).begin(problem)
            axes.axvline(chosen.regularizers[-1, LOW], color=GREY, linestyle=":")
            axes.set_title(f"{noise.capitalize()} noise (dotted: the paper's shift)")
            axes.set_xlabel("ρ_min")
            axes.set_ylim(bottom=0.0)
            axes.yaxis.set_major_formatter("{x:,.0f}")
            light_axes(axes)
        legend_below(figure)
        panels[0].set_ylabel("regret after the last round (mean)")
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """How much the shift matters, with and without a gap."""
        found = []
        for noise in _NOISES:
            title, spread, excess = noise.capitalize(), {}, {}
            for gap in (self._GAPS[0], self._GAPS[-1]):
                regrets = self._regrets(traces, noise, gap)
                spread[gap] = float(regrets.max() / regrets.min())
                excess[gap] = float(regrets[-1] / regrets.min())
            none, large = self._GAPS[0], self._GAPS[-1]
            found += [
                Claim(
                    paper=f"{title}: the shift matters mostly where the gap is small or zero",
                    measured=f"most over least regret {spread[none]:.1f} at Δ = {none:g}, "
                    f"{spread[large]:.1f} at Δ = {large:g}",
                    holds=spread[none] > 1.1 * spread[large],  # by more than runs differ
                ),
                Claim(
                    paper=f"{title}: too much regularisation hardly hurts with a large gap",
                    measured=f"at ρ_min = {self._SHIFTS[-1]:g} {excess[large]:.2f} times the least "
                    f"regret at Δ = {large:g}, {excess[none]:.2f} times at Δ = {none:g}",
                    holds=excess[large] < 1.5,
                ),
            ]
        return found
