"""Figure 5a: how regret grows with the rounds."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.chandak.setting import (
    FOCUSED,
    NOTE,
    PAPER,
    RUNS,
    TABLE_2,
    THOMPSON,
    TOO_FEW,
    TWO,
    UCB,
    as_printed,
)
from dpbandits.experiments.evidence import Interval, ratio_of, slope_over
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies.matroid import FocusedMatroidUCB, PrivateMatroidThompson, PrivateMatroidUCB
from dpbandits.reports.figures import SHADED, draw_curves, new_figure
from dpbandits.simulation import Trace

_FLAT = 0.05


class GrowthRate(Figure):
    """Figure 5a."""

    name: ClassVar[str] = "chandak-fig5a"
    title: ClassVar[str] = "Regret over ln n on Table 2, ε = 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 5a"
    notes: ClassVar[tuple[str, ...]] = (
        NOTE,
        "Convergence is judged by one criterion for both algorithms, which each of them must meet by "
        "itself. That an interval which has an end of ±0.05 within it decides nothing was added after "
        "the runs.",
    )
    _ROUNDS: ClassVar = {Scale.quick: 200_000, Scale.paper: 1_000_000}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"n = {self._ROUNDS[scale]:,}, {RUNS[scale]} runs"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Both algorithms, and ours."""
        return {
            "regret": Simulation(
                policies={
                    UCB: as_printed(PrivateMatroidUCB, TWO),
                    THOMPSON: as_printed(PrivateMatroidThompson, TWO),
                    FOCUSED: FocusedMatroidUCB(privacy=TWO),
                },
                environment=TABLE_2,
                rounds=self._ROUNDS[scale],
                runs=RUNS[scale],
                points=200,
            )
        }

    @staticmethod
    def _rates(trace: Trace, label: str) -> NDArray[np.float64]:
        """R_n / ln n from n = 10 on. (runs, points)."""
        late = trace.rounds >= 10
        return trace.regret(label)[:, late] / np.log(trace.rounds[late])

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Against n."""
        figure, (axes,) = new_figure(width=7.0, height=4.2)
        trace = traces["regret"]
        late = trace.rounds >= 10
        curves = {x: self._rates(trace, x) for x in trace.policies}
        draw_curves(axes, trace.rounds[late], curves, policies=trace.recipes())
        axes.set_ylabel(f"R_n / ln n ({SHADED})")
        axes.set_ylim(bottom=0.0)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Whether it flattens, and who is lower."""
        trace = traces["regret"]
        last = {x: self._rates(trace, x)[:, -1] for x in trace.policies}
        rounds = trace.rounds[trace.rounds >= 10]
        late = rounds >= rounds[-1] // 10
        slopes = {x: slope_over(rounds[late], self._rates(trace, x)[:, late]) for x in (UCB, THOMPSON)}
        ratio = ratio_of(last[THOMPSON], last[UCB])
        return [
            *(_converges(x, last[x], slope, TOO_FEW[scale]) for x, slope in slopes.items()),
            Claim(
                paper="DPTS-MAT outperforms DPUCB-MAT (5a)",
                criterion="the 99 % interval of the ratio of regrets at the end is below 1",
                measured=f"{last[THOMPSON].mean():.1f} against {last[UCB].mean():.1f}: {ratio:.3f}; "
                f"{FOCUSED} {last[FOCUSED].mean():.1f}",
                holds=ratio.high < 1.0,
            ),
        ]


def _converges(label: str, last: NDArray[np.float64], slope: Interval, too_few: str) -> Claim:
    """Whether R_n/ln n of one algorithm has become flat."""
    within = slope.low > -_FLAT and slope.high < _FLAT
    outside = slope.low > _FLAT or slope.high < -_FLAT
    holds = True if within else False if outside else None
    return Claim(
        paper=f'R_n/ln n: "both DPUCB-MAT and DPTS-MAT converge but with different rates"; {label}',
        criterion=f"over the last tenfold of rounds its slope on log axes is within ±{_FLAT} (an eighth "
        "in ten times the rounds), by its 99 % interval; where that has an end of this range within it, "
        "nothing is decided",
        measured=f"{last.mean():.1f} at the end, slope {slope:.3f}",
        holds=holds,
        differs=f"{too_few}, the paper gives no number" if holds is None else "",
    )
