"""From which T on the printed constants say anything."""

import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dpbandits.experiments.figure import Claim, Figure, Scale
from dpbandits.experiments.mishra_2015.bounds import speaks_from, thompson_share, ucb_share
from dpbandits.experiments.mishra_2015.setting import EPSILONS, LONG, PAPER, ROUNDS, SECOND_HAND
from dpbandits.reports.figures import GREY, legend_below, light_axes, line_style, new_figure
from dpbandits.simulation import Trace


class TheoryConstants(Figure):
    """Bounds of both algorithms by the printed constants, as multiples of uniform play's regret."""

    name: ClassVar[str] = "mishra-constants"
    title: ClassVar[str] = "From which T on the printed constants say something"
    paper: ClassVar[str] = f"{PAPER}, Algorithms 1 and 2"
    notes: ClassVar[tuple[str, ...]] = (
        "Algorithm 1: while its noise is within Γ, arm a is not played any more once "
        "2√(2 log T/n_a) + 2Γ/n_a < Δ_a. Algorithm 2: what both first phases play uniformly if the gap "
        "phase ends at Δ̂ = Δ = ⅛; Lemma 9 allows Δ/3 to 2Δ. Equation (9) adds up 1/2^i, but batches "
        "grow as 4^i, and it counts the plays of one arm only.",
        SECOND_HAND,
    )
    _HORIZONS: ClassVar = 10.0 ** np.arange(3.0, 13.01, 0.1)

    def describe_scale(self, scale: Scale) -> str:
        """Formulas have one scale."""
        return "formula, k = 5, gaps of ⅛ to ½"

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """A panel for each algorithm, with the line below which it says something."""
        figure, panels = new_figure(2, width=5.6)
        curves = (
            ("Algorithm 1, natural logarithms", "-", functools.partial(ucb_share, log=math.log)),
            ("Algorithm 1, binary logarithms", "--", functools.partial(ucb_share, log=math.log2)),
        )
        for index, epsilon in enumerate(EPSILONS):
            for label, stroke, share in curves:
                style = line_style(index) | {"linestyle": stroke}
                values = [share(horizon, epsilon) for horizon in self._HORIZONS]
                panels[0].plot(self._HORIZONS, values, label=f"{label}, ε = {epsilon:g}", **style)
            if epsilon <= 1.0:  # which Lemma 9 asks for
                values = [thompson_share(horizon, epsilon) for horizon in self._HORIZONS]
                label = f"Algorithm 2, ε = {epsilon:g}"
                panels[1].plot(self._HORIZONS, values, label=label, **line_style(index))
        panels[0].set_ylabel("bound over uniform play's regret")
        panels[1].set_ylabel("forced plays over T")
        for axes in panels:
            axes.axhline(1.0, linestyle=":", color=GREY)
            axes.axvline(ROUNDS, linestyle=":", color=GREY)
            if axes is panels[0]:  # Algorithm 1 is played for longer, too
                axes.axvline(LONG[Scale.paper][0], linestyle=":", color=GREY)
            axes.set(xscale="log", yscale="log", xlabel="T (dotted: as played)")
            light_axes(axes)
        legend_below(figure)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Neither speaks at the T that is played."""
        natural, binary = (ucb_share(ROUNDS, 1.0, log) for log in (math.log, math.log2))
        from_natural, from_binary = (
            speaks_from(functools.partial(ucb_share, epsilon=1.0, log=log))
            for log in (math.log, math.log2)
        )
        forced = thompson_share(ROUNDS, 1.0)
        start = speaks_from(lambda t: thompson_share(t, 1.0))
        return [
            Claim(
                paper="Theorem 4 bounds the regret of Algorithm 1 (here k = 5, ε = 1, T = 10⁵)",
                criterion="The bound that we derive from the printed Γ is below uniform play's regret",
                measured=f"{natural:.2g} times uniform play's with natural logarithms, "
                f"{binary:.2g} times with binary ones (from {from_binary} on below it)",
                holds=natural < 1.0,
                speaks_from="" if natural < 1.0 else from_natural,
            ),
            Claim(
                paper="(ours) Algorithm 2 samples after its first two phases (k = 5, ε = 1, T = 10⁵)",
                criterion="If the gap phase ends at Δ̂ = Δ = ⅛, both phases take less than T rounds",
                measured=f"they take {forced:,.0f} times T rounds, and less than T from {start} on",
                holds=forced < 1.0,
                ours=True,
            ),
        ]
