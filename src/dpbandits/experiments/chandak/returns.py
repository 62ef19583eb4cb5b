"""Return per round, the paper's measure."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.chandak.setting import COMPARABLE, FOCUSED, NOTE, RUNS, TABLE_2, TOO_FEW
from dpbandits.experiments.evidence import Interval, mean_of, ratio_of, slope_over, slopes_over
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies import Policy
from dpbandits.reports.figures import GREY, SHADED, draw_curves, legend_below, new_figure
from dpbandits.simulation import Trace
from dpbandits.worlds.matroids import MatroidEnvironment


def returns(trace: Trace, label: str, world: MatroidEnvironment) -> NDArray[np.float64]:
    """The expected return per round so far, (1/s) Σ_t Σ_e w̄(e): the papers' measure. (runs, points)."""
    return world.best_return() - trace.regret(label) / trace.rounds


def last_return(trace: Trace, label: str, world: MatroidEnvironment) -> float:
    """The mean over rounds and runs."""
    return float(returns(trace, label, world)[:, -1].mean())


def gain_ratio(trace: Trace, label: str, rival: str, world: MatroidEnvironment) -> Interval:
    """What it earns above random bases over what the rival does, at the last round."""
    random = world.best_return() - world.uniform_regret()
    above, below = (returns(trace, x, world)[:, -1] - random for x in (label, rival))
    return ratio_of(above, below)


def shortfall_slope(trace: Trace, label: str) -> Interval:
    """The slope of ln(regret a round) against ln(round) over the last tenfold of rounds."""
    return slope_over(*_late_shortfall(trace, label))


def slope_ratio(trace: Trace, label: str, rival: str) -> Interval:
    """Its slope over the rival's, each the mean of the runs' own."""
    mine, theirs = (-slopes_over(*_late_shortfall(trace, one)) for one in (label, rival))
    return ratio_of(mine, theirs)


def _late_shortfall(trace: Trace, label: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The last tenfold of rounds, and the regret a round until each of them. (runs, points)."""
    late = trace.rounds >= trace.rounds[-1] // 10
    return trace.rounds[late], trace.regret(label)[:, late] / trace.rounds[late]


def draw_returns(
    axes: Any,
    trace: Trace,
    labels: list[str],
    world: MatroidEnvironment,
    policies: Mapping[str, Policy],
) -> None:
    """Return against rounds, without the first 1/200 of them, and the optimum as a line."""
    late = trace.rounds >= trace.rounds[-1] // 200
    curves = {label: returns(trace, label, world)[:, late] for label in labels}
    draw_curves(axes, trace.rounds[late], curves, policies=policies)
    axes.axhline(world.best_return(), color=GREY, linestyle=":", label="optimal policy")
    axes.yaxis.set_major_formatter("{x:.2f}")
    axes.set_ylabel(f"expected return per round\n({SHADED})")
    legend_below(axes.figure)


class Returns(Figure):
    """Return per round against rounds, on one world."""

    _ROUNDS: ClassVar[int]
    notes: ClassVar[tuple[str, ...]] = (NOTE,)

    def world(self) -> MatroidEnvironment:
        """Where it is played."""
        return TABLE_2

    def policies(self) -> dict[str, Policy]:
        """By label; the first private, the second not."""
        raise NotImplementedError

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"n = {self._ROUNDS:,}, {RUNS[scale]} runs"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """All on one world."""
        return {
            "returns": Simulation(
                policies=self.policies(),
                environment=self.world(),
                rounds=self._ROUNDS,
                runs=RUNS[scale],
            )
        }

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """The optimum as a line above the curves."""
        figure, (axes,) = new_figure(width=7.0, height=4.2)
        trace = traces["returns"]
        draw_returns(axes, trace, trace.policies, self.world(), trace.recipes())
        return figure

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """The last return per round, with the worst run."""
        trace, world = traces["returns"], self.world()
        return [_row(trace, label, world) for label in trace.policies]

    def _differs(self) -> str:
        """How what is played differs from the paper's; empty where it does not."""
        return ""

    def _comparable(self, traces: Mapping[str, Trace], paper: str, ours: bool = False) -> Claim:
        trace, world = traces["returns"], self.world()
        private, rival = trace.policies[:2]
        mine, theirs = (last_return(trace, label, world) for label in (private, rival))
        ratio = gain_ratio(trace, private, rival, world)
        return Claim(
            paper=paper,
            criterion=f"its gain over random bases is at least {COMPARABLE:g} of the rival's, by the "
            "99 % interval of the ratio, at the last round",
            measured=f"{private} {mine:.3f}, {rival} {theirs:.3f} of {world.best_return():.3f} a round: "
            f"{mine / theirs:.2f} of its return, {ratio:.3f} of its gain over random bases",
            holds=ratio.low >= COMPARABLE,
            differs="" if ours else self._differs(),
            ours=ours,
        )

    def _grows_alike(self, traces: Mapping[str, Trace], paper: str, scale: Scale) -> Claim:
        """Slopes, where `_comparable` has levels."""
        trace = traces["returns"]
        private, rival = trace.policies[:2]
        slopes = {label: shortfall_slope(trace, label) for label in (private, rival)}
        ratio = slope_ratio(trace, private, rival)
        low, high = COMPARABLE, 1.0 / COMPARABLE
        holds = ratio.within(low, high)
        return Claim(
            paper=paper,
            criterion="over the last tenfold of rounds the slope on log axes of its shortfall per round "
            f"(against the optimum) is {low:g} to {high:g} times the rival's, by the 99 % interval of "
            "the ratio; if the interval contains either end of the range, nothing is decided",
            measured=", ".join(f"{label} {slope:.2f}" for label, slope in slopes.items())
            + f": {ratio:.3f} times",
            holds=holds,
            differs=self._differs() or (TOO_FEW[scale] if holds is None else ""),
        )

    def _approaches(self, traces: Mapping[str, Trace], paper: str) -> Claim:
        trace = traces["returns"]
        found = {label: shortfall_slope(trace, label) for label in trace.policies[:2]}
        mine = found[trace.policies[0]]
        return Claim(
            paper=paper,
            criterion="over the last tenfold of rounds its shortfall per round (against the optimum) "
            "at least halves: slope on log axes below −0.3, by its 99 % interval",
            measured="slopes: " + ", ".join(f"{label} {slope:.2f}" for label, slope in found.items()),
            holds=mine.high <= -0.3,
            differs=self._differs(),
        )

    def _beats_open(self, traces: Mapping[str, Trace]) -> Claim:
        trace, world = traces["returns"], self.world()
        rival = trace.policies[1]
        mine, theirs = (returns(trace, label, world)[:, -1] for label in (FOCUSED, rival))
        more = mean_of(mine - theirs)
        return Claim(
            paper=f"(ours) {FOCUSED} at the same ε earns more than {rival}",
            criterion="the 99 % interval of the difference a round, on common seeds, is above 0",
            measured=f"{mine.mean():.4f} (worst run {mine.min():.4f}) against {theirs.mean():.4f}: "
            f"{more:.4f} more",
            holds=more.low > 0.0,
            ours=True,
        )


def _row(trace: Trace, label: str, world: MatroidEnvironment) -> dict[str, Any]:
    last = returns(trace, label, world)[:, -1]
    return {
        "policy": label,
        "guarantee": trace.guarantee(label).short(),
        "return per round": f"{last.mean():.4f} ± {last.std(ddof=1) / math.sqrt(last.size):.4f}",
        "worst run": f"{last.min():.4f}",
        "of": f"{world.best_return():.4f}",
    }
