"""What wrong weights of contexts cost."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dpbandits.experiments.capri.setting import (
    DIALLED,
    KERNELS,
    PAPER,
    PLAYED,
    dialled,
    functions_shown,
    information_gain,
    regrets,
    shares,
    thompson,
    too_few,
    world,
)
from dpbandits.experiments.evidence import Interval, all_within, paired_ratio
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies.kernel import Capri, KernelThompson
from dpbandits.reports.figures import legend_below, light_axes, new_figure
from dpbandits.reports.styles import policy_style
from dpbandits.simulation import Trace


class CapriMisspecified(Figure):
    """The declared context weights are wrong."""

    name: ClassVar[str] = "capri-misspecified"
    title: ClassVar[str] = "Regret where the declared weights of contexts are off"
    paper: ClassVar[str] = f"{PAPER}, Section 4"
    minutes: ClassVar[bool] = True
    shown: ClassVar[Scale] = Scale.paper
    notes: ClassVar[tuple[str, ...]] = (
        "Contexts come equally often; declared is a mixture with a share u of weights that put "
        "everything on the first quarter of them, so that the total variation between the two is "
        "¾u. As the paper says it, κ′(c)/κ(c) is 1 ± √(γ_T/T), with alternating signs from one context "
        "to the next and γ_T of uniform play. Privacy does not depend on the weights: the noise covers "
        "every context.",
        "An interval that holds the limit decides nothing. At first it was read as a no; this was "
        "changed after the runs.",
        PLAYED,
    )
    _SHARES: ClassVar = (0.0, 0.1, 0.2, 0.4, 0.8)
    _ROUNDS: ClassVar = {Scale.quick: 50_000, Scale.paper: 1_000_000}
    _FUNCTIONS: ClassVar = {Scale.quick: 4, Scale.paper: 8}
    _KERNEL: ClassVar = KERNELS["squared exponential"]

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and functions."""
        return f"T = {self._ROUNDS[scale]:,}, ε = 1, {functions_shown(self._FUNCTIONS[scale])}"

    @staticmethod
    def _declared(share: float) -> tuple[float, ...]:
        wrong = np.repeat([1.0 / 5.0, 0.0], [5, 15])
        return tuple((1.0 - share) * np.full(20, 1.0 / 20.0) + share * wrong)

    def _said(self, scale: Scale) -> tuple[float, tuple[float, ...]]:
        """The u of the paper's remark, √(γ_T/T), and weights that are off by it."""
        rounds = self._ROUNDS[scale]
        u = math.sqrt(information_gain(self._KERNEL, rounds) / rounds)
        return u, tuple((1.0 + u * np.tile([1.0, -1.0], 10)) / 20.0)

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Every u and function."""
        declared = {f"u {share:g}": self._declared(share) for share in self._SHARES}
        declared["said"] = self._said(scale)[1]
        return {
            f"{name}, f{function}": Simulation(
                policies={"thompson": thompson(1.0), "capri": dialled(1.0)},
                environment=world(self._KERNEL, function, declared=weights),
                rounds=self._ROUNDS[scale],
                runs=1,
                seed=function,
                points=10,
            )
            for name, weights in declared.items()
            for function in range(self._FUNCTIONS[scale])
        }

    def _ends(self, traces: Mapping[str, Trace], policy: str) -> list[float]:
        return [float(shares(traces, f"u {share:g},", policy)[-1]) for share in self._SHARES]

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Regret against u."""
        figure, (axes,) = new_figure(width=6.0, height=4.0)
        for policy, shown, kind in (
            ("thompson", "KernelThompson", KernelThompson),
            ("capri", "CAPRI", Capri),
        ):
            ends = self._ends(traces, policy)
            axes.plot(self._SHARES, ends, label=shown, **policy_style(kind.name()))
        axes.set(xlabel="u: wrong share of the declared weights", ylabel="regret / uniform play")
        axes.set_ylim(bottom=0.0)
        axes.yaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f} %")
        light_axes(axes)
        legend_below(figure)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """What the paper says of small errors, and how much it takes to hurt."""

        def times(name: str, policy: str) -> Interval:
            wrong, right = (regrets(traces, f"{x},", policy)[:, -1] for x in (name, "u 0"))
            return paired_ratio(wrong, right)

        said, tenth = times("said", "capri"), times(f"u {self._SHARES[1]:g}", "thompson")
        far = {x: times(f"u {self._SHARES[-1]:g}", x) for x in ("capri", "thompson")}
        at_most_twice = tenth.within(0.0, 2.0)
        dearer = all_within(far.values(), 1.0, math.inf)
        functions = self._FUNCTIONS[scale]
        return [
            Claim(
                paper="Theorem 4.1 remains true where κ′/κ is within 1 ± u, u = O(√(γ_T/T))",
                criterion="CAPRI with such weights over CAPRI with the right ones: the 99 % interval "
                "of the ratio of regrets, within functions, is below 1.25",
                measured=f"{said:.3f} times the regret at u = {self._said(scale)[0]:.4f}",
                holds=said.within(0.0, 1.25),
                differs=DIALLED,
            ),
            Claim(
                paper="(ours) Weights a tenth off cost KernelThompson at most twice the regret",
                criterion="the 99 % interval of the ratio of regrets, within functions, is below 2",
                measured=f"{tenth:.2f} times the regret at u = {self._SHARES[1]:g}",
                holds=at_most_twice,
                differs=too_few(at_most_twice, functions),
                ours=True,
            ),
            Claim(
                paper="(ours) Weights that are far off cost regret, of CAPRI and of KernelThompson",
                criterion="the 99 % intervals of the ratios, within functions, are above 1",
                measured=f"CAPRI {far['capri']:.2f}, KernelThompson {far['thompson']:.2f}"
                + f" times the regret at u = {self._SHARES[-1]:g}",
                holds=dearer,
                differs=too_few(dearer, functions),
                ours=True,
            ),
        ]
