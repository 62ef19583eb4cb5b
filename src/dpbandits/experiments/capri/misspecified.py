"""What wrong weights of contexts cost."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dpbandits.experiments.capri.setting import (
    KERNELS,
    PAPER,
    dialled,
    functions_shown,
    shares,
    thompson,
    world,
)
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies.kernel import Capri, KernelThompson
from dpbandits.reports.figures import legend_below, light_axes, new_figure
from dpbandits.reports.styles import policy_style
from dpbandits.simulation import Trace


class CapriMisspecified(Figure):
    """The declared context weights are wrong."""

    name: ClassVar[str] = "capri-misspecified"
    title: ClassVar[str] = "Regret where the declared weights of contexts are off"
    paper: ClassVar[str] = f"{PAPER}, Assumption 2.5"
    minutes: ClassVar[bool] = True
    shown: ClassVar[Scale] = Scale.paper
    notes: ClassVar[tuple[str, ...]] = (
        "Contexts come equally often; declared is a mixture with a share u of weights that put "
        "everything on the first quarter of them, so that the total variation between the two is "
        "¾u. Privacy does not depend on the weights: the noise covers every context.",
    )
    _SHARES: ClassVar = (0.0, 0.1, 0.2, 0.4, 0.8)
    _ROUNDS: ClassVar = {Scale.quick: 50_000, Scale.paper: 1_000_000}
    _FUNCTIONS: ClassVar = {Scale.quick: 2, Scale.paper: 8}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and functions."""
        return f"T = {self._ROUNDS[scale]:,}, ε = 1, {functions_shown(self._FUNCTIONS[scale])}"

    @staticmethod
    def _declared(share: float) -> tuple[float, ...]:
        wrong = np.repeat([1.0 / 5.0, 0.0], [5, 15])
        return tuple((1.0 - share) * np.full(20, 1.0 / 20.0) + share * wrong)

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Every u and function."""
        return {
            f"u {share:g}, f{function}": Simulation(
                policies={"thompson": thompson(1.0), "capri": dialled(1.0)},
                environment=world(
                    KERNELS["squared exponential"], function, declared=self._declared(share)
                ),
                rounds=self._ROUNDS[scale],
                runs=1,
                seed=function,
                points=10,
            )
            for share in self._SHARES
            for function in range(self._FUNCTIONS[scale])
        }

    def _ends(self, traces: Mapping[str, Trace], policy: str) -> list[float]:
        return [float(shares(traces, f"u {share:g},", policy)[-1]) for share in self._SHARES]

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Regret against u."""
        figure, (axes,) = new_figure(width=6.0, height=4.0)
        for policy, kind in (("thompson", KernelThompson), ("capri", Capri)):
            ends = self._ends(traces, policy)
            axes.plot(self._SHARES, ends, label=policy, **policy_style(kind.name()))
        axes.set(xlabel="u: wrong share of the declared weights", ylabel="regret / uniform play")
        axes.set_ylim(bottom=0.0)
        axes.yaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f} %")
        light_axes(axes)
        legend_below(figure)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """How much it takes to hurt."""
        ends = self._ends(traces, "thompson")
        shown = ", ".join(
            f"{100 * x:.1f} % at u = {u:g}" for x, u in zip(ends, self._SHARES, strict=True)
        )
        return [
            Claim(
                paper="(ours) Weights a tenth off cost little: at most twice the regret",
                measured=f"KernelThompson {shown} (of uniform play)",
                holds=ends[1] <= 2.0 * ends[0],
            ),
            Claim(
                paper="The context generator must be right (Assumption 2.5): far off costs regret",
                measured=f"{ends[-1] / ends[0]:.1f} times the regret at u = {self._SHARES[-1]:g}",
                holds=ends[-1] > 1.2 * ends[0],
            ),
        ]
