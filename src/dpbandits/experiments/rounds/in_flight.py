"""The price of delay: regret by the number of rounds in flight, and by a clock."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.experiments.leaderboard import mean_and_error, with_worst
from dpbandits.experiments.rounds.setting import CASES, FIVE_ARMS, SEED, draw_runs
from dpbandits.reports.figures import GREY, SHADED, legend_below, light_axes, log_axes, new_figure
from dpbandits.simulation import Trace
from dpbandits.simulation.timing import Timing
from dpbandits.worlds import DayAndNight, LogNormal

_PLACES = (1, 10, 100, 1000, 10_000)
_CLOCK = "clock"
_TRAFFIC = {"traffic": DayAndNight(), "delays": LogNormal(30.0, 1.5)}


class InFlight(Figure):
    """Recommended policies with up to 10⁴ rounds open."""

    name: ClassVar[str] = "in-flight"
    title: ClassVar[str] = "What it costs to decide before answers are in"
    paper: ClassVar[str] = "dpbandits"
    minutes: ClassVar[bool] = True
    shown: ClassVar[Scale] = Scale.paper
    notes: ClassVar[tuple[str, ...]] = (
        "With W rounds in flight, nothing is known about the last W people. Averaged over the orders of "
        "the actions, any policy pays W times the mean gap for its first W decisions (the dotted line "
        "adds that to the regret of one round at a time).",
        "Clock: people come .2 to 10 a second, at night first; rewards arrive after 30 seconds (median, "
        "log-normal, σ = 1.5); rounds are closed after 300 seconds, or when 20,000 are open.",
    )
    _ROUNDS: ClassVar = {Scale.quick: 20_000, Scale.paper: 100_000}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        runs = "2 runs" if scale is Scale.quick else "20 runs"
        return f"T = {self._ROUNDS[scale]:,}, {runs}, W up to {self._places(scale)[-1]:,}"

    @staticmethod
    def _places(scale: Scale) -> tuple[int, ...]:
        return _PLACES if scale is Scale.paper else _PLACES[:4]

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Every case with each number of rounds in flight, and one by a clock."""
        full = scale is Scale.paper
        found = {
            f"{label}, {places}": Simulation(
                policies={label: case.policy},
                environment=case.world,
                rounds=self._ROUNDS[scale],
                runs=case.runs if full else 2,
                seed=SEED,
                points=2,
                timing=Timing(in_flight=places),
            )
            for label, case in CASES.items()
            for places in self._places(scale)
        }
        found[_CLOCK] = Simulation(
            policies={"NoiseAwareIMED": CASES["NoiseAwareIMED"].policy},
            environment=FIVE_ARMS,
            rounds=2 * self._ROUNDS[scale],
            runs=20 if full else 2,
            seed=SEED,
            points=2,
            timing=Timing(in_flight=20_000, patience=300.0, **_TRAFFIC),  # type: ignore[arg-type]
        )
        return found

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """Mean, error and worst run by policy and W."""
        return [
            {"policy": label, "mean gap": f"{case.world.uniform_regret():.2f}"}
            | {
                f"W = {places:,}": with_worst(_final(traces, label, places))
                for places in self._places(scale)
            }
            for label, case in CASES.items()
        ]

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Regret against W, a panel for each policy."""
        figure, panels = new_figure(3, width=3.6, height=3.0, rows=2)
        places = np.array(self._places(scale), float)
        for axes, (label, case) in zip(panels, CASES.items(), strict=True):
            runs = [_final(traces, label, int(one)) for one in places]
            means = np.array([one.mean() for one in runs])
            draw_runs(axes, self._places(scale), runs, case.policy)
            bound = means[0] + places * case.world.uniform_regret()
            axes.plot(places, bound, ":", color=GREY, label="regret(1) + W · mean gap")
            log_axes(axes)
            axes.set(title=label, xlabel="rounds in flight, W")
            light_axes(axes)
        figure.supylabel(f"regret ({SHADED})", fontsize="medium")
        legend_below(figure)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """At full scale the goals; otherwise that nothing breaks."""
        found = []
        for label, case in CASES.items():
            gap = case.world.uniform_regret()
            one, hundred, thousand = (_final(traces, label, places) for places in (1, 100, 1000))
            limit = 1.7 if label == "FocusedMatroidUCB" else 1.25
            if scale is Scale.paper:
                ratio = hundred.mean() / one.mean()
                found.append(
                    Claim(
                        paper=f"(ours) {label}: W = 100 costs at most {limit:g} times W = 1",
                        measured=f"{ratio:.2f} ({mean_and_error(hundred, '.0f')} and "
                        f"{mean_and_error(one, '.0f')})",
                        holds=bool(ratio <= limit),
                    )
                )
            allowed = one.mean() + 1.5 * 1000 * gap
            found.append(
                Claim(
                    paper=f"(ours) {label}: W = 1000 costs at most 1.5 W times the mean gap more",
                    measured=f"{mean_and_error(thousand, '.0f')}, allowed {allowed:.0f}",
                    holds=bool(thousand.mean() <= allowed),
                )
            )
        if scale is Scale.paper:
            for places, goal in ((1000, 300.0), (10_000, 2600.0)):
                runs = _final(traces, "NoiseAwareIMED", places)
                found.append(_at_most(f"NoiseAwareIMED, W = {places:,}", runs, goal))
            clock = traces[_CLOCK].regret("NoiseAwareIMED")[:, -1]
            found.append(_at_most("NoiseAwareIMED, clock of 300 s, 2·10⁵ decisions", clock, 120.0))
        return found


def _at_most(what: str, runs: NDArray[np.float64], goal: float) -> Claim:
    return Claim(
        paper=f"(ours) {what}: at most {goal:g}",
        measured=with_worst(runs),
        holds=bool(runs.mean() <= goal),
    )


def _final(traces: Mapping[str, Trace], label: str, places: int) -> NDArray[np.float64]:
    return traces[f"{label}, {places}"].regret(label)[:, -1]
