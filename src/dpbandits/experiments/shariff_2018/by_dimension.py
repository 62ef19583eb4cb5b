"""Figures 2 and 3: what the dimension costs without privacy."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dpbandits.experiments.evidence import Interval, all_within, ratio_across, slope_across
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.experiments.shariff_2018.setting import PAPER, READINGS, Array, few_ticks
from dpbandits.policies.linear import LinUCB
from dpbandits.reports.figures import (
    SHADED,
    draw_curves,
    legend_below,
    light_axes,
    line_style,
    new_figure,
)
from dpbandits.simulation import Trace
from dpbandits.worlds import SphereContexts
from dpbandits.worlds.linear.worlds import Rewards


class _ByDimension(Figure):
    """Non-private LinUCB on K = d² actions, for several d and both kinds of reward noise."""

    minutes: ClassVar[bool] = True
    notes: ClassVar[tuple[str, ...]] = (READINGS,)
    _NOISES: ClassVar[dict[str, Rewards]] = {"Gaussian noise": "gaussian", "±1 rewards": "signs"}
    _DIMS: ClassVar = {
        Scale.quick: (4, 6, 8, 11, 16),
        Scale.paper: (4, 6, 8, 11, 16, 23, 32, 45, 64),
    }
    _ROUNDS: ClassVar = {Scale.quick: 20_000, Scale.paper: 100_000}
    _RUNS: ClassVar = 3

    def describe_scale(self, scale: Scale) -> str:
        """Rounds, runs, dimensions."""
        dims = self._DIMS[scale]
        return (
            f"n = {self._ROUNDS[scale]:,}, {self._RUNS} runs of each dimension and noise, "
            f"d = {dims[0]} … {dims[-1]}, K = d²"
        )

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """One for each dimension and noise. The learner knows that σ = S = 1 either way; α = 1/n."""
        policy = LinUCB(failure=1.0 / self._ROUNDS[scale], noise_level=1.0, parameter_norm=1.0)
        return {
            f"{rewards}-{dim}": Simulation(
                policies={"LinUCB": policy},
                environment=SphereContexts(dim, dim * dim, rewards=rewards),
                rounds=self._ROUNDS[scale],
                runs=self._RUNS,
            )
            for dim in self._DIMS[scale]
            for rewards in self._NOISES.values()
        }

    def _final(self, traces: Mapping[str, Trace], scale: Scale, rewards: str) -> Array:
        """Final regret, (dimensions, runs)."""
        named = (f"{rewards}-{dim}" for dim in self._DIMS[scale])
        return np.array([traces[name].regret("LinUCB")[:, -1] for name in named])

    def _slopes(self, traces: Mapping[str, Trace], scale: Scale) -> dict[str, Interval]:
        """Of the best-fit lines on log-log axes, by noise."""
        dims = self._DIMS[scale]
        return {
            title: slope_across(dims, list(self._final(traces, scale, rewards)))
            for title, rewards in self._NOISES.items()
        }

    def _too_few(self, holds: bool | None) -> str:
        """How what was played differs from what would decide."""
        return f"as in the paper, but our {self._RUNS} runs are too few" if holds is None else ""


class RegretByDimension(_ByDimension):
    """Figure 2: regret over time."""

    name: ClassVar[str] = "shariff-fig2"
    title: ClassVar[str] = "Regret of LinUCB over time for dimensions from 4 to 64, without privacy"
    paper: ClassVar[str] = f"{PAPER}, Figure 2"

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """A panel for each noise."""
        figure, panels = new_figure(len(self._NOISES), width=5.6, height=4.4, sharey=True)
        for axes, (title, rewards) in zip(panels, self._NOISES.items(), strict=True):
            dims = self._DIMS[scale][::-1]  # as the curves lie
            curves = {f"d = {dim}": traces[f"{rewards}-{dim}"].regret("LinUCB") for dim in dims}
            draw_curves(axes, traces[f"{rewards}-{dims[0]}"].rounds, curves)
            axes.set_title(title)
            axes.xaxis.set_major_locator(few_ticks())
        panels[0].set_ylim(bottom=0.0)
        panels[0].set_ylabel(f"regret ({SHADED})")
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Order of the curves, and of the noises."""
        gaussian, signs = (self._final(traces, scale, x) for x in self._NOISES.values())
        slopes = self._slopes(traces, scale)
        ratio = ratio_across(list(signs), list(gaussian))
        grows, lower = all_within(slopes.values(), 0.0, math.inf), ratio.within(0.5, 1.0)
        means = zip(self._DIMS[scale], gaussian.mean(axis=1), signs.mean(axis=1), strict=True)
        return [
            Claim(
                paper="Regret grows with the dimension",
                criterion="for both noises the 99 % interval of the slope of ln(mean regret) against "
                "ln(d) is above 0",
                measured=", ".join(f"{slope:.2f} ({title})" for title, slope in slopes.items())
                + "; Gaussian and ±1: "
                + ", ".join(f"{one:,.0f} and {other:,.0f} (d = {dim})" for dim, one, other in means),
                holds=grows,
                differs=self._too_few(grows),
            ),
            Claim(
                paper="With ±1 rewards the regret is somewhat lower than with Gaussian noise",
                criterion="the 99 % interval of the ratio of regrets, a geometric mean over dimensions, "
                "is below 1 and above ½; not so if all of it is outside",
                measured=f"{ratio:.2f} times that with Gaussian noise",
                holds=lower,
                differs=self._too_few(lower),
            ),
        ]


class RegretAgainstDimension(_ByDimension):
    """Figure 3: final regret against the dimension."""

    name: ClassVar[str] = "shariff-fig3"
    title: ClassVar[str] = "Regret of LinUCB against the dimension, without privacy"
    paper: ClassVar[str] = f"{PAPER}, Figure 3"

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Log-log, with best-fit lines."""
        figure, (axes,) = new_figure(width=6.4, height=4.6)
        dims = np.array(self._DIMS[scale])
        slopes = self._slopes(traces, scale)
        for index, (title, rewards) in enumerate(self._NOISES.items()):
            style, runs = line_style(index), self._final(traces, scale, rewards)
            axes.loglog(dims, runs, "os"[index], color=style["color"], alpha=0.3, markersize=4)
            axes.loglog(dims, runs.mean(axis=1), "os"[index], label=title, color=style["color"])
            logs, slope = np.log(runs.mean(axis=1)), slopes[title]
            line = np.exp(logs.mean() + slope.value * (np.log(dims) - np.log(dims).mean()))
            axes.loglog(dims, line, label=f"best fit, slope {slope:.2f}", **style)
        axes.set_xticks(dims, [str(d) for d in dims])
        axes.minorticks_off()
        axes.set_xlabel("dimension d")
        axes.set_ylabel("regret after the last round (mean; faint: runs)")
        light_axes(axes)
        legend_below(figure)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The slope."""
        slopes = self._slopes(traces, scale)
        square = all_within(slopes.values(), 1.5, 2.5)
        return [
            Claim(
                paper="The best-fit line has a slope of roughly 2, clearly super-linear",
                criterion="for both noises its 99 % interval lies within [1.5, 2.5]",
                measured=", ".join(f"{slope:.2f} ({title})" for title, slope in slopes.items()),
                holds=square,
                differs=self._too_few(square),
            )
        ]
