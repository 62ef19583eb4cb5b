"""How regret grows with 1/ε and with the effective dimension."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.capri.setting import (
    DIALLED,
    PAPER,
    PLAYED,
    at_most,
    dialled,
    functions_shown,
    information_gain,
    regrets,
    shares,
    thompson,
    world,
)
from dpbandits.experiments.evidence import Interval, paired_ratio, slope_over
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies import Policy
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import SquaredExponential
from dpbandits.reports.figures import COLOURS, legend_beside, light_axes, log_axes, new_figure
from dpbandits.simulation import Trace
from dpbandits.worlds import KernelWorld

Array = NDArray[np.float64]


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
        "regret has no room left to grow. The theorem bounds the joint regret by √(γ_T T) + γ_T/ε and "
        "the local one by √(γ_T T) + γ_T √T/ε, up to logarithms: slopes of at most 1. It is about "
        "CAPRI; for KernelThompson nothing is proved.",
        "A change of the length scale changes the functions too, not γ_T alone, and γ_T is that of "
        "uniform play, not the largest, of which the theorem speaks. Where an interval reaches on "
        "both sides of the slope, or where fewer than two points are left, nothing is decided; at "
        "first both were read as a slope above 1. That the local privacy term is up to √T times as "
        "large could not fail, as uniform play is not that much worse at this T; it is now undecided.",
        PLAYED,
    )
    _LINES: ClassVar[dict[str, Callable[[float], Policy]]] = {
        "CAPRI, joint": dialled,
        "CAPRI, local": partial(dialled, trust=Trust.LOCAL),
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

    def _lines(
        self, traces: Mapping[str, Trace], scale: Scale, line: str
    ) -> dict[str, tuple[Array, Array, NDArray[np.bool_]]]:
        """(x, regret by function and x, whether below half of uniform play) by 1/ε and by γ_T."""
        rounds = self._ROUNDS[scale]

        def at(places: list[tuple[str, str]]) -> tuple[Array, NDArray[np.bool_]]:
            found = np.stack([regrets(traces, *place)[:, -1] for place in places], axis=1)
            return found, np.array([shares(traces, *place)[-1] < 0.5 for place in places])

        gains = [information_gain(SquaredExponential(x), rounds) for x in self._LENGTHS]
        return {
            "1/ε": (
                1.0 / np.array(self._EPSILONS),
                *at([("budgets", f"{line} {e:g}") for e in self._EPSILONS]),
            ),
            "γ_T": (np.array(gains), *at([(f"length {x:g},", f"{line} 1") for x in self._LENGTHS])),
        }

    @staticmethod
    def _uniform(traces: Mapping[str, Trace]) -> Array:
        """Regret of uniform play on each function of the budgets."""
        kept = [trace for name, trace in traces.items() if name.startswith("budgets")]
        return np.array(
            [
                KernelWorld.from_dict(trace.header["environment"]).uniform_regret() * trace.rounds[-1]
                for trace in kept
            ]
        )

    @staticmethod
    def _slope(x: Array, y: Array, kept: NDArray[np.bool_]) -> Interval | None:
        """Of the functions' own lines; None where fewer than two points are kept."""
        return slope_over(x[kept], y[:, kept]) if kept.sum() > 1 else None

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Two panels; hollow where it is near uniform play."""
        figure, panels = new_figure(2, width=6.4, height=4.0, sharey=True)
        for colour, line in zip(COLOURS, self._LINES, strict=False):
            for axes, (name, (x, y, kept)) in zip(
                panels, self._lines(traces, scale, line).items(), strict=True
            ):
                slope, mean = self._slope(x, y, kept), y.mean(axis=0)
                label = line if slope is None else f"{line}: slope {slope.value:.2f}"
                axes.plot(x, mean, "-", color=colour, label=label)
                axes.plot(x[kept], mean[kept], "o", color=colour)
                axes.plot(x[~kept], mean[~kept], "o", color=colour, markerfacecolor="white")
                axes.set_xlabel(name)
        panels[0].set_ylabel("regret (hollow: above half of uniform play)")
        for axes in panels:
            log_axes(axes)
            light_axes(axes)
            legend_beside(axes)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Slopes of CAPRI in both models, and the order of the two."""
        lines = {line: self._lines(traces, scale, line) for line in self._LINES}
        root, middle = math.sqrt(self._ROUNDS[scale]), self._EPSILONS.index(1.0)
        joint, local = (lines[f"CAPRI, {trust}"]["1/ε"][1][:, middle] for trust in ("joint", "local"))
        ratio = paired_ratio(local, joint)
        cap = paired_ratio(self._uniform(traces), joint)
        found = []
        for trust, name in product(("joint", "local"), ("1/ε", "γ_T")):
            slope, other = (
                self._slope(*lines[f"{policy}, {trust}"][name]) for policy in ("CAPRI", "Thompson")
            )
            found.append(
                Claim(
                    paper=f"{trust.capitalize()}: regret grows at most like {name}",
                    criterion=f"CAPRI: the slope on log axes against {name}, where mean regret is "
                    "below half of uniform play's, is at most 1 by its 99 % interval over functions",
                    measured=f"{_shown(slope)} (KernelThompson: {_shown(other)})",
                    holds=None if slope is None else at_most(1.0, slope),
                    differs=DIALLED if slope is not None else f"{DIALLED}; near uniform play at this T",
                )
            )
        return [
            *found,
            Claim(
                paper="Local: the privacy term is up to √T times as large",
                criterion="LocalCapri's regret over Capri's at ε = 1: the 99 % interval within "
                "functions is at most √T; decided only if uniform play, put in LocalCapri's place, "
                "would exceed √T",
                measured=f"{ratio:.2f} times; √T = {root:.0f}; uniform play {cap.value:.1f} times",
                holds=None if cap.value <= root else at_most(root, ratio),
                differs=f"{DIALLED}; uniform play caps the ratio near {cap.value:.0f}"
                if cap.value <= root
                else DIALLED,
            ),
        ]


def _shown(slope: Interval | None) -> str:
    return "fewer than two points below half of uniform play" if slope is None else f"slope {slope:.2f}"
