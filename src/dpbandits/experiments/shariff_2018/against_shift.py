"""Figure 5: what the shift of the regulariser costs."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from dpbandits.experiments.evidence import paired_ratio
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.experiments.shariff_2018.setting import PAPER, PRIVACY, READINGS, Array
from dpbandits.policies.linear import TreeLinUCB
from dpbandits.policies.linear.tree_lin_ucb import LOW
from dpbandits.reports.figures import (
    GREY,
    add_headline,
    band,
    legend_below,
    light_axes,
    line_style,
    new_figure,
)
from dpbandits.simulation import Trace
from dpbandits.worlds import SphereContexts

Noise = Literal["gaussian", "wishart"]
_NOISES: tuple[Noise, ...] = ("wishart", "gaussian")
_VARIANTS: dict[Noise, tuple[bool, ...]] = {"wishart": (True, False), "gaussian": (True,)}  # shifted
_MATTERS, _APPRECIABLE = 2.0, 1.25  # ratios of regrets
_OURS = "our values of ρ_min and gaps, 3 runs: the text gives neither"


class RegretAgainstShift(Figure):
    """Figure 5: regret against ρ_min, for several gaps."""

    name: ClassVar[str] = "shariff-fig5"
    title: ClassVar[str] = (
        "Regret against the least eigenvalue of the shifted regulariser, for several gaps"
    )
    paper: ClassVar[str] = f"{PAPER}, Figure 5"
    minutes: ClassVar[bool] = True
    notes: ClassVar[tuple[str, ...]] = (
        'Wishart noise is that of all m nodes in every round (`nodes="all"`), as in Figure 4.',
        "Both claims were first judged on the most over the least regret at any of our values. The most "
        "is at the lowest, where there is far less regularisation than in any variant of the paper: "
        "after that was seen, the criterion was changed to what the paper speaks of, more of it.",
        READINGS,
    )
    _GAPS: ClassVar = (0.0, 0.1, 0.2)
    _SHIFTS: ClassVar = (1e3, 1e4, 1e5, 1e6, 1e7)
    _ROUNDS: ClassVar = {Scale.quick: 100_000, Scale.paper: 50_000_000}
    _RUNS: ClassVar = 3

    def describe_scale(self, scale: Scale) -> str:
        """Rounds, runs and grid."""
        return (
            f"n = {self._ROUNDS[scale]:,}, {self._RUNS} runs, {len(self._SHIFTS)} values of ρ_min, "
            f"{len(self._GAPS)} gaps"
        )

    @staticmethod
    def _policy(noise: Noise, shift: float | None, shifted: bool = True) -> TreeLinUCB:
        return TreeLinUCB(
            privacy=PRIVACY,
            noise=noise,
            calibration="paper",
            nodes="all" if noise == "wishart" else "live",
            shifted=shifted,
            rho_min=shift,
        )

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
                runs=self._RUNS,
                points=10,
            )
            for gap in self._GAPS
        }

    def _regrets(self, traces: Mapping[str, Trace], noise: str, gap: float) -> Array:
        """Final regret, (values of ρ_min, runs)."""
        trace = traces[f"gap-{gap:g}"]
        return np.array([trace.regret(f"{noise} {shift:g}")[:, -1] for shift in self._SHIFTS])

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """A panel for each noise; dotted: the ρ_min of its variants in the paper."""
        figure, panels = new_figure(2, width=5.4, height=4.6, sharey=True)
        problem = SphereContexts().problem(self._ROUNDS[scale])
        add_headline(figure, f"{self.describe_scale(scale)}; dotted: ρ_min of the paper's variants")
        for axes, noise in zip(panels, _NOISES, strict=True):
            for index, gap in enumerate(self._GAPS):
                runs, style = self._regrets(traces, noise, gap), line_style(index)
                means, ends = runs.mean(axis=1), band(runs.T)
                axes.semilogx(self._SHIFTS, means, marker="os^"[index], label=f"Δ = {gap:g}", **style)
                axes.fill_between(self._SHIFTS, *ends, color=style["color"], alpha=0.12, linewidth=0)
            axes.set_ylim(bottom=0.0)
            for shifted in _VARIANTS[noise]:
                chosen, _ = self._policy(noise, None, shifted).begin(problem)
                place = float(chosen.regularizers[-1, LOW])
                axes.axvline(place, color=GREY, linestyle=":")
                axes.annotate(
                    "shifted" if shifted else "unshifted",
                    (place, 0.98),
                    xycoords=("data", "axes fraction"),
                    rotation=90,
                    ha="right",
                    va="top",
                    fontsize="small",
                    color=GREY,
                )
            axes.set_title(f"{noise.capitalize()} noise")
            axes.set_xlabel("ρ_min")
            axes.yaxis.set_major_formatter("{x:,.0f}")
            light_axes(axes)
        legend_below(figure)
        panels[0].set_ylabel("regret after the last round (mean; shaded: 10–90 % of runs)")
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """How much the shift matters, with and without a gap."""
        found, (none, large) = [], (self._GAPS[0], self._GAPS[-1])
        for noise in _NOISES:
            title, least = noise.capitalize(), self._least_of_the_paper(noise, scale)
            more, less = {}, []
            for gap in self._GAPS:
                runs = self._regrets(traces, noise, gap)
                more[gap] = paired_ratio(runs[-1], runs[least])
                less.append(paired_ratio(runs[0], runs[least]))
            matters = more[none].within(_MATTERS, math.inf), more[large].within(0.0, _MATTERS)
            low, usual, high = (self._SHIFTS[index] for index in (0, least, -1))
            range_of = (
                f"the 99 % interval of the regret at ρ_min = {high:.0e}, beyond all variants of the "
                f"paper, over that at {usual:.0e}, about the least of them, run by run, is"
            )
            found += [
                Claim(
                    paper=f"{title}: tuning the shift affects regret significantly only where the gap "
                    "is small or zero (D.3)",
                    criterion=f"{range_of} above {_MATTERS:g} at Δ = {none:g}, below {_MATTERS:g} at "
                    f"Δ = {large:g}; not so if one of them is wholly on the other side",
                    measured=f"{more[none]:.2f} at Δ = {none:g}, {more[large]:.2f} at Δ = {large:g}. "
                    f"Below, at {low:.0e}, of which the paper does not speak, it is "
                    + ", ".join(f"{ratio:.1f}" for ratio in less)
                    + " times that at the least at Δ = "
                    + ", ".join(f"{gap:g}" for gap in self._GAPS),
                    holds=False if False in matters else None if None in matters else True,
                    differs=_OURS,
                ),
                Claim(
                    paper=f"{title}: too much regularisation does not increase regret appreciably where "
                    "the gap is large (D.3)",
                    criterion=f"{range_of} below {_APPRECIABLE:g} at Δ = {large:g}; not so if above",
                    measured=f"{more[large]:.2f} times at Δ = {large:g} ({more[none]:.2f} times at "
                    f"Δ = {none:g})",
                    holds=more[large].within(0.0, _APPRECIABLE),
                    differs=_OURS,
                ),
            ]
        return found

    def _least_of_the_paper(self, noise: Noise, scale: Scale) -> int:
        """Which of our values is nearest to the least ρ_min of the paper's variants."""
        problem = SphereContexts().problem(self._ROUNDS[scale])
        variants = [self._policy(noise, None, shifted).begin(problem)[0] for shifted in _VARIANTS[noise]]
        least = min(float(chosen.regularizers[-1, LOW]) for chosen in variants)
        return int(np.abs(np.log(np.array(self._SHIFTS) / least)).argmin())
