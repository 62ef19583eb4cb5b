"""How regret grows with 1/ε and with the effective dimension."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.capri.setting import PAPER, dialled, functions_shown, shares, thompson, world
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies import Policy
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import SquaredExponential
from dpbandits.reports.figures import COLOURS, legend_beside, light_axes, log_axes, new_figure
from dpbandits.simulation import Trace


class CapriScaling(Figure):
    """Regret against 1/ε and against the effective dimension."""

    name: ClassVar[str] = "capri-scaling"
    title: ClassVar[str] = "Regret against 1/ε and against γ_T"
    paper: ClassVar[str] = f"{PAPER}, Theorem 4.1"
    minutes: ClassVar[bool] = True
    shown: ClassVar[Scale] = Scale.paper
    notes: ClassVar[tuple[str, ...]] = (
        "γ_T = ½ ln det(I + K T/|W|), the information gain of playing every pair equally often; it "
        "is varied by the length scale of the squared exponential kernel, at ε = 1. Slopes are of "
        "straight lines through logarithms, and leave out what is above half of uniform play, where "
        "regret cannot grow on. The theorem bounds the joint regret by √(γ_T T) + γ_T/ε and the "
        "local one by √(γ_T T) + γ_T √T/ε, up to logarithms: slopes of at most 1. It "
        "is about CAPRI; for KernelThompson nothing is proved.",
    )
    _LINES: ClassVar[dict[str, Callable[[float], Policy]]] = {
        "CAPRI, joint": dialled,
        "Thompson, joint": thompson,
        "Thompson, local": partial(thompson, trust=Trust.LOCAL),
    }
    _EPSILONS: ClassVar = (0.1, 0.3, 1.0, 3.0, 10.0)
    _LENGTHS: ClassVar = (1.0, 0.6, 0.4, 0.25, 0.15)
    _ROUNDS: ClassVar = {Scale.quick: 30_000, Scale.paper: 300_000}
    _FUNCTIONS: ClassVar = {Scale.quick: 4, Scale.paper: 8}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and functions."""
        return f"T = {self._ROUNDS[scale]:,}, {functions_shown(self._FUNCTIONS[scale])}"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Budgets on one kernel, length scales at one budget."""

        def both(epsilon: float) -> dict[str, Policy]:
            return {f"{label} {epsilon:g}": make(epsilon) for label, make in self._LINES.items()}

        def one(policies: dict[str, Policy], length: float, function: int) -> Simulation:
            return Simulation(
                policies=policies,
                environment=world(SquaredExponential(length), function),
                rounds=self._ROUNDS[scale],
                runs=1,
                seed=function,
                points=10,
            )

        found = {}
        for function in range(self._FUNCTIONS[scale]):
            budgets = {x: y for epsilon in self._EPSILONS for x, y in both(epsilon).items()}
            found[f"budgets, f{function}"] = one(budgets, 0.2, function)
            for length in self._LENGTHS:
                found[f"length {length:g}, f{function}"] = one(both(1.0), length, function)
        return found

    def _gain(self, length: float, rounds: int) -> float:
        rows = world(SquaredExponential(length), 0).problem(None).features().rows
        gram = np.eye(rows.shape[1]) + rows.T @ rows * (rounds / len(rows))
        return float(np.linalg.slogdet(gram)[1] / 2.0)

    def _lines(
        self, traces: Mapping[str, Trace], scale: Scale, line: str
    ) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]]:
        """(x, regret, whether below half of uniform play) against 1/ε and against γ_T."""
        rounds = self._ROUNDS[scale]

        def mean(prefix: str, policy: str) -> tuple[float, float]:
            kept = [trace for name, trace in traces.items() if name.startswith(prefix)]
            regret = float(np.mean([trace.regret(policy)[0, -1] for trace in kept]))
            return regret, float(shares(traces, prefix, policy)[-1])

        budgets = [mean("budgets", f"{line} {e:g}") for e in self._EPSILONS]
        lengths = [mean(f"length {x:g},", f"{line} 1") for x in self._LENGTHS]
        gains = [self._gain(x, rounds) for x in self._LENGTHS]
        return {
            "1/ε": (
                1.0 / np.array(self._EPSILONS),
                np.array([regret for regret, _ in budgets]),
                np.array([share for _, share in budgets]) < 0.5,
            ),
            "γ_T": (
                np.array(gains),
                np.array([regret for regret, _ in lengths]),
                np.array([share for _, share in lengths]) < 0.5,
            ),
        }

    @staticmethod
    def _slope(x: NDArray[np.float64], y: NDArray[np.float64], kept: NDArray[np.bool_]) -> float:
        if kept.sum() < 2:
            return math.nan
        return float(np.polyfit(np.log(x[kept]), np.log(y[kept]), 1)[0])

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Two panels; hollow where it is near uniform play."""
        figure, panels = new_figure(2, width=6.4, height=4.0, sharey=True)
        for colour, line in zip(COLOURS, self._LINES, strict=False):
            for axes, (name, (x, y, kept)) in zip(
                panels, self._lines(traces, scale, line).items(), strict=True
            ):
                slope = self._slope(x, y, kept)
                label = line if math.isnan(slope) else f"{line}: slope {slope:.2f}"
                axes.plot(x, y, "-", color=colour, label=label)
                axes.plot(x[kept], y[kept], "o", color=colour)
                axes.plot(x[~kept], y[~kept], "o", color=colour, markerfacecolor="white")
                axes.set_xlabel(name)
        panels[0].set_ylabel("regret (hollow: above half of uniform play)")
        for axes in panels:
            log_axes(axes)
            light_axes(axes)
            legend_beside(axes)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Slopes of the joint model, and the order of the two."""
        capri, joint, local = (self._lines(traces, scale, line) for line in self._LINES)
        slopes = {name: (self._slope(*capri[name]), self._slope(*joint[name])) for name in capri}
        middle = self._EPSILONS.index(1.0)
        ratio = local["1/ε"][1][middle] / joint["1/ε"][1][middle]
        found = [
            Claim(
                paper=f"Joint: regret grows at most like {name}",
                measured=f"slope {both[0]:.2f} (CAPRI), {both[1]:.2f} (KernelThompson)",
                holds=0.0 < both[0] <= 1.0,
            )
            for name, both in slopes.items()
        ]
        return [
            *found,
            Claim(
                paper="Local: the privacy term is up to √T times as large",
                measured=f"at ε = 1, {ratio:.1f} times the joint regret; √T = "
                f"{math.sqrt(self._ROUNDS[scale]):.0f}",
                holds=bool(1.0 < ratio <= math.sqrt(self._ROUNDS[scale])),
            ),
        ]
