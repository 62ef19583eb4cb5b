"""The price of returning people: regret by the rounds of one person that are learned from."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.experiments.leaderboard import with_worst
from dpbandits.experiments.rounds.setting import CASES, SEED, draw_runs
from dpbandits.reports.figures import SHADED, light_axes, log_axes, new_figure
from dpbandits.simulation import Trace

_SHOWN = ("NoiseAwareIMED", "RandomizedLinUCB")
_ROUNDS_EACH = (1, 2, 4, 8, 16)
_RUNS = {"NoiseAwareIMED": 60, "RandomizedLinUCB": 20}
_GOALS = {("NoiseAwareIMED", 4): 105.0, ("NoiseAwareIMED", 16): 150.0} | {
    ("RandomizedLinUCB", 4): 1000.0,
    ("RandomizedLinUCB", 16): 2100.0,
}


class Returning(Figure):
    """Noise for all rounds of one person, where every round is learned from."""

    name: ClassVar[str] = "returning-people"
    title: ClassVar[str] = "What it costs to protect all rounds of one person"
    paper: ClassVar[str] = "dpbandits"
    minutes: ClassVar[bool] = True
    shown: ClassVar[Scale] = Scale.paper
    notes: ClassVar[tuple[str, ...]] = (
        "Every round is learned from, up to k of one person, no two in one batch; the budget (1-GDP for "
        "arms, (1, 10⁻⁶) for contexts) covers all of them together. Where there are many people it is "
        "better to declare k = 1 and learn from the first round of each.",
    )
    _ROUNDS: ClassVar = {Scale.quick: 20_000, Scale.paper: 100_000}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        runs = "2 runs" if scale is Scale.quick else "60 runs of arms, 20 of contexts"
        return f"T = {self._ROUNDS[scale]:,}, {runs}"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Both policies at each k."""
        return {
            f"{label}, {k}": Simulation(
                policies={label: CASES[label].policy},
                environment=CASES[label].world,
                rounds=self._ROUNDS[scale],
                runs=_RUNS[label] if scale is Scale.paper else 2,
                seed=SEED + 1,
                points=2,
                rounds_per_person=k,
            )
            for label in _SHOWN
            for k in _ROUNDS_EACH
        }

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """Mean, error and worst run by policy and k."""
        return [
            {"policy": label} | {f"k = {k}": with_worst(_final(traces, label, k)) for k in _ROUNDS_EACH}
            for label in _SHOWN
        ]

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Regret against k."""
        figure, panels = new_figure(2, width=4.4, height=3.8)
        for axes, label in zip(panels, _SHOWN, strict=True):
            runs = [_final(traces, label, k) for k in _ROUNDS_EACH]
            draw_runs(axes, _ROUNDS_EACH, runs, CASES[label].policy)
            log_axes(axes)
            axes.set(title=label, xlabel="rounds of one person, k", ylabel=f"regret ({SHADED})")
            axes.set_xticks(_ROUNDS_EACH, [str(k) for k in _ROUNDS_EACH])
            light_axes(axes)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """At full scale the goals; otherwise that more rounds of one person cost more."""
        if scale is Scale.paper:
            return [
                Claim(
                    paper=f"(ours) {label}, k = {k}: at most {goal:g}",
                    measured=with_worst(_final(traces, label, k)),
                    holds=bool(_final(traces, label, k).mean() <= goal),
                )
                for (label, k), goal in _GOALS.items()
            ]
        return [
            Claim(
                paper=f"(ours) {label}: 16 rounds of one person cost more than one",
                measured=" < ".join(f"{_final(traces, label, k).mean():.0f}" for k in (1, 16)),
                holds=bool(_final(traces, label, 16).mean() > _final(traces, label, 1).mean()),
            )
            for label in _SHOWN
        ]


def _final(traces: Mapping[str, Trace], label: str, k: int) -> NDArray[np.float64]:
    return traces[f"{label}, {k}"].regret(label)[:, -1]
