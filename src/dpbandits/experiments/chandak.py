"""Chandak, Hu & Hegde, "Differentially private algorithms for efficient online matroid optimization"."""

import functools
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Streams
from dpbandits.engine.loop import Ledger, compiled_for
from dpbandits.engine.streams import run_seed
from dpbandits.environments import MatroidArms, MovieRatings
from dpbandits.environments.matroids import MatroidEnvironment
from dpbandits.environments.movielens import LICENCE
from dpbandits.errors import InvalidInput
from dpbandits.experiments.figure import Claim, Figure, Scale, Simulation
from dpbandits.policies import Policy
from dpbandits.policies.matroid import (
    FocusedMatroidUCB,
    MatroidThompson,
    MatroidUCB,
    PrivateMatroidThompson,
    PrivateMatroidUCB,
    UniformBases,
)
from dpbandits.privacy.budgets import Budget, PureDP
from dpbandits.problems import LinearMatroid
from dpbandits.reports.figures import draw_curves, line_style, new_figure
from dpbandits.simulation import Trace

PAPER = "Chandak, Hu & Hegde"
TABLE_2 = MatroidArms(
    LinearMatroid(((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1), (2, 0, 0), (0, 0, 0))),
    (0.80, 0.75, 0.60, 0.20, 0.30, 0.40, 0.70),
)
DATA = "DPBANDITS_MOVIELENS"
_TWO = PureDP(2.0)
_UCB, _THOMPSON, _FOCUSED = "DPUCB-MAT", "DPTS-MAT", "FocusedMatroidUCB"
_RUNS = {Scale.quick: 4, Scale.paper: 20}
_NOTE = (
    "DPUCB-MAT and DPTS-MAT as printed: a first round in which all L items of one person are looked at, "
    "which is no basis and is counted as earning nothing. Numbers of runs are ours: the paper does not "
    "state its own."
)


def as_printed(kind: type[PrivateMatroidUCB] | type[PrivateMatroidThompson], budget: Budget) -> Policy:
    """With the printed initialisation."""
    return kind(privacy=budget, calibration="paper")


def movies() -> MovieRatings:
    """MovieLens in the folder that DPBANDITS_MOVIELENS names, or in its ml-1m or ml-100k."""
    given = os.environ.get(DATA)
    if given is None:
        raise InvalidInput(f"this figure needs MovieLens data: set {DATA} to the folder they are in")
    inside = [Path(given) / name for name in ("ml-1m", "ml-100k")]
    return MovieRatings(str(next((path for path in inside if path.is_dir()), Path(given))))


def returns(trace: Trace, label: str, world: MatroidEnvironment) -> NDArray[np.float64]:
    """The expected return per round so far, (1/s) Σ_t Σ_e w̄(e): the papers' measure. (runs, points)."""
    return world.best_return() - trace.regret(label) / trace.rounds


def _last(trace: Trace, label: str, world: MatroidEnvironment) -> float:
    return float(returns(trace, label, world)[:, -1].mean())


class _Returns(Figure):
    """Return per round against rounds, on one world."""

    _ROUNDS: ClassVar[int]
    notes: ClassVar[tuple[str, ...]] = (_NOTE,)

    def world(self) -> MatroidEnvironment:
        """Where it is played."""
        return TABLE_2

    def policies(self) -> dict[str, Policy]:
        """By label; the first private, the second not."""
        raise NotImplementedError

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"n = {self._ROUNDS:,}, {_RUNS[scale]} runs"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """All on one world."""
        return {
            "returns": Simulation(
                policies=self.policies(),
                environment=self.world(),
                rounds=self._ROUNDS,
                runs=_RUNS[scale],
            )
        }

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """The optimum as a line above the curves."""
        figure, (axes,) = new_figure(width=7.0, height=4.2)
        trace = traces["returns"]
        _draw_returns(axes, trace, trace.policies, self.world())
        return figure

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """The last return per round, with the worst run."""
        trace, world = traces["returns"], self.world()
        return [_row(trace, label, world) for label in trace.policies]

    def _comparable(self, traces: Mapping[str, Trace], paper: str) -> Claim:
        trace, world = traces["returns"], self.world()
        private, rival = trace.policies[:2]
        mine, theirs = (_last(trace, label, world) for label in (private, rival))
        best = world.best_return()
        return Claim(
            paper=paper,
            measured=f"{private} {mine:.3f}, {rival} {theirs:.3f} of {best:.3f} a round: "
            f"{100 * mine / theirs:.1f} % of it, {100 * mine / best:.1f} % of the optimum",
            holds=mine > 0.94 * theirs and mine > 0.94 * best,
        )

    def _beats_open(self, traces: Mapping[str, Trace]) -> Claim:
        trace, world = traces["returns"], self.world()
        rival = trace.policies[1]
        mine, theirs = (_last(trace, label, world) for label in (_FOCUSED, rival))
        worst = float(returns(trace, _FOCUSED, world)[:, -1].min())
        return Claim(
            paper=f"Ours: {_FOCUSED} at the same ε earns more than {rival}",
            measured=f"{mine:.4f} (worst run {worst:.4f}) against {theirs:.4f}",
            holds=mine > theirs,
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


def _draw_returns(axes: Any, trace: Trace, labels: list[str], world: MatroidEnvironment) -> None:
    late = trace.rounds >= trace.rounds[-1] // 200
    curves = {label: returns(trace, label, world)[:, late] for label in labels}
    draw_curves(axes, trace.rounds[late], curves)
    axes.axhline(world.best_return(), color="gray", linestyle=":", label="optimal policy")
    axes.yaxis.set_major_formatter("{x:.2f}")
    axes.set_ylabel("expected return per round")
    axes.legend(loc="best", framealpha=0.85, edgecolor="none", fontsize="small")


class SyntheticUCB(_Returns):
    """Figure 1."""

    name: ClassVar[str] = "chandak-fig1"
    title: ClassVar[str] = "DPUCB-MAT on the synthetic data of Table 2, ε = 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 1"
    _ROUNDS: ClassVar = 10_000

    def policies(self) -> dict[str, Policy]:
        """The paper's, and ours at the same ε."""
        return {
            _UCB: as_printed(PrivateMatroidUCB, _TWO),
            "OMM (not private)": MatroidUCB(),
            _FOCUSED: FocusedMatroidUCB(privacy=_TWO),
        }

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The return, and Theorem 1."""
        held = self.policies()[_UCB].guarantee(TABLE_2.problem(self._ROUNDS)).budget
        return [
            self._comparable(
                traces, "DPUCB-MAT and OMM have a similar growth rate and approach the optimal return"
            ),
            Claim(
                paper="Theorem 1: Algorithm 2 is ε-differentially private (here ε = 2)",
                measured=f"{held}: all {TABLE_2.matroid.size} rewards of the first person are released "
                f"at ε/{TABLE_2.matroid.rank} each. With calibration='exact' it is 2-DP",
                holds=held == _TWO,
            ),
            self._beats_open(traces),
        ]


class SyntheticThompson(_Returns):
    """Figure 4a."""

    name: ClassVar[str] = "chandak-fig4a"
    title: ClassVar[str] = "DPTS-MAT on the synthetic data of Table 2, ε = 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 4a"
    _ROUNDS: ClassVar = 10_000

    def policies(self) -> dict[str, Policy]:
        """The paper's, and ours at the same ε."""
        return {
            _THOMPSON: as_printed(PrivateMatroidThompson, _TWO),
            "CTS, Gaussian (not private)": MatroidThompson(),
            _FOCUSED: FocusedMatroidUCB(privacy=_TWO),
        }

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The return."""
        return [
            self._comparable(
                traces, "DPTS-MAT is comparable to the non-private CTS and approaches the optimum (4a)"
            ),
            self._beats_open(traces),
        ]


class _Films(_Returns):
    """The same on MovieLens, if there is any."""

    _ROUNDS: ClassVar = 20_000
    notes: ClassVar[tuple[str, ...]] = (
        _NOTE,
        f"{LICENCE} The same person can be drawn in several rounds: the guarantees are for one round's "
        "ratings, not for all that a person ever rated, nor for which hundred films most people rated.",
    )

    def world(self) -> MovieRatings:
        """The hundred films that most people rated."""
        return movies()

    def missing(self) -> str | None:
        """The data."""
        return None if os.environ.get(DATA) else f"set {DATA} to a folder of MovieLens data"

    def describe_scale(self, scale: Scale) -> str:
        """Which data, too."""
        return f"{self.world().films().edition}, {super().describe_scale(scale)}"


class FilmsUCB(_Films):
    """Figure 3."""

    name: ClassVar[str] = "chandak-fig3"
    title: ClassVar[str] = "DPUCB-MAT on film recommendation, ε = 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 3"

    def policies(self) -> dict[str, Policy]:
        """The paper's, ours at the same ε, and random bases."""
        return {
            _UCB: as_printed(PrivateMatroidUCB, _TWO),
            "OMM (not private)": MatroidUCB(),
            _FOCUSED: FocusedMatroidUCB(privacy=_TWO),
            "random bases": UniformBases(),
        }

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The return, and how large the room for noise is."""
        rank, plays = self.world().problem(None).rank, self._ROUNDS * 17 // 100
        room = 3.0 * math.log(rank * self._ROUNDS) * rank / _TWO.epsilon
        claim = self._comparable(
            traces, "DPUCB-MAT is comparable to OMM and approaches the optimal policy on films"
        )
        measured = (
            f"{claim.measured}. Its room for noise, 3 ln(Kn)/(ε₀ T) = {room:.0f}/T, is above 0.1 until "
            f"an item has {10 * room:,.0f} plays; the average item has {plays:,}"
        )
        return [Claim(paper=claim.paper, measured=measured, holds=claim.holds), self._beats_open(traces)]


class FilmsThompson(_Films):
    """Figure 4b."""

    name: ClassVar[str] = "chandak-fig4b"
    title: ClassVar[str] = "DPTS-MAT on film recommendation, ε = 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 4b"

    def policies(self) -> dict[str, Policy]:
        """The paper's, and ours at the same ε."""
        return {
            _THOMPSON: as_printed(PrivateMatroidThompson, _TWO),
            "CTS, Gaussian (not private)": MatroidThompson(),
            _FOCUSED: FocusedMatroidUCB(privacy=_TWO),
        }

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The return."""
        return [
            self._comparable(
                traces, "DPTS-MAT is comparable to the non-private CTS and approaches the optimum (4b)"
            ),
            self._beats_open(traces),
        ]


class FilmsRecommended(_Films):
    """Table 3: which films of the best basis are in the last one played."""

    name: ClassVar[str] = "chandak-table3"
    title: ClassVar[str] = "Films of the best basis recommended by DPUCB-MAT after 20,000 rounds"
    paper: ClassVar[str] = f"{PAPER}, Table 3"
    published: ClassVar[bool] = False  # titles are the data's

    def policies(self) -> dict[str, Policy]:
        """The paper's, ours at the same ε, and what chance gives."""
        return {
            _UCB: as_printed(PrivateMatroidUCB, _TWO),
            _FOCUSED: FocusedMatroidUCB(privacy=_TWO),
            "random bases": UniformBases(),
        }

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Traces hold no bases: the runs are made when they are looked at, in about a second."""
        return {}

    def _kept(self, scale: Scale) -> dict[str, NDArray[np.bool_]]:
        """Whether the last basis of each run has each film of the best basis. (runs, films)."""
        policies = tuple(self.policies().items())
        return _kept_by(policies, self.world(), self._ROUNDS, _RUNS[scale])

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """The best basis, film by film."""
        world, kept = self.world(), self._kept(scale)
        films, means = world.films(), world.item_means()
        return [
            {
                "film": films.titles[film],
                "share who rated it": round(means[film], 3),
                "genres": ", ".join(films.genres[film]),
                **{f"kept by {label}, %": 100.0 * runs[:, i].mean() for label, runs in kept.items()},
            }
            for i, film in sorted(enumerate(world.best_items()), key=lambda one: -means[one[1]])
        ]

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """The table as bars."""
        rows = self.rows(traces, scale)
        figure, (axes,) = new_figure(width=9.0, height=6.0)
        places = np.arange(len(rows))
        for index, label in enumerate((_UCB, _FOCUSED)):
            shares = [row[f"kept by {label}, %"] for row in rows]
            colour = line_style(index)["color"]
            axes.barh(places + 0.4 * index - 0.2, shares, height=0.4, label=label, color=colour)
        axes.set_yticks(places, [row["film"] for row in rows], fontsize="small")
        axes.invert_yaxis()
        axes.set_xlabel("runs whose last basis has the film, %")
        axes.set_xlim(0, 100)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """How many overlap."""
        rank = self.world().problem(None).rank
        counts = {label: runs.sum(axis=1) for label, runs in self._kept(scale).items()}
        mine, ours = counts[_UCB], counts[_FOCUSED]
        return [
            Claim(
                paper="DPUCB-MAT ends with 8 of the 17 films of the best basis",
                measured=f"{mine.min()} to {mine.max()} of {rank}, {mine.mean():.1f} on average; random "
                f"bases have {counts['random bases'].mean():.1f}",
                holds=bool(mine.min() <= 8 <= mine.max()),
            ),
            Claim(
                paper=f"Ours: {_FOCUSED} at the same ε ends with more of them",
                measured=f"{ours.min()} to {ours.max()} of {rank}, {ours.mean():.1f} on average",
                holds=bool(ours.mean() > mine.mean()),
            ),
        ]


@functools.lru_cache(maxsize=1)
def _kept_by(
    policies: tuple[tuple[str, Policy], ...], films: MovieRatings, rounds: int, runs: int
) -> dict[str, NDArray[np.bool_]]:
    best, state, found = films.best_items(), films.world(), {}
    for label, policy in policies:
        kept = []
        for run in range(runs):
            public, secret = policy.begin(films.problem(rounds))
            streams, ledger = Streams.of(run_seed(0, run)), Ledger.on(np.array([rounds]))
            compiled_for(public, state).run(public, secret, state, *streams, ledger, rounds)
            last = public.played if isinstance(policy, FocusedMatroidUCB) else public.greedy
            kept.append(np.isin(best, last.basis))
        found[label] = np.array(kept)
    return found


class PrivacyLevels(Figure):
    """Figure 2."""

    name: ClassVar[str] = "chandak-fig2"
    title: ClassVar[str] = "Return per round for ε = 10⁵, 2, 10⁻⁴ on Table 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 2"
    notes: ClassVar[tuple[str, ...]] = (_NOTE,)
    _EPSILONS: ClassVar = (1e5, 2.0, 1e-4)
    _ROUNDS: ClassVar = 10_000

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"n = {self._ROUNDS:,}, {_RUNS[scale]} runs"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """A panel for each algorithm."""
        panels: dict[str, tuple[Any, Policy]] = {
            "ucb": (PrivateMatroidUCB, MatroidUCB()),
            "thompson": (PrivateMatroidThompson, MatroidThompson()),
        }
        return {
            panel: Simulation(
                policies={f"ε = {e:g}": as_printed(kind, PureDP(e)) for e in self._EPSILONS}
                | {"not private": open_policy, "random bases": UniformBases()},
                environment=TABLE_2,
                rounds=self._ROUNDS,
                runs=_RUNS[scale],
            )
            for panel, (kind, open_policy) in panels.items()
        }

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Two panels."""
        figure, panels = new_figure(2, width=5.5, height=4.2)
        for axes, (panel, title) in zip(panels, _PANELS.items(), strict=True):
            labels = [label for label in traces[panel].policies if label != "random bases"]
            _draw_returns(axes, traces[panel], labels, TABLE_2)
            axes.set_title(title)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Falls with ε, near the non-private policy for large ε."""
        found = []
        for panel, title in _PANELS.items():
            last = {x: _last(traces[panel], x, TABLE_2) for x in traces[panel].policies}
            high, middle, low = (last[f"ε = {e:g}"] for e in self._EPSILONS)
            found += [
                Claim(
                    paper=f"{title}: the return falls as ε falls",
                    measured=f"{high:.3f}, {middle:.3f}, {low:.3f} of 2.150; random bases "
                    f"{last['random bases']:.3f}",
                    holds=high > middle > low,
                ),
                Claim(
                    paper=f"{title}: for large ε it approaches the non-private algorithm",
                    measured=f"{high:.3f} at ε = 10⁵, {last['not private']:.3f} not private",
                    holds=abs(high - last["not private"]) < 0.02 * 2.15,
                ),
            ]
        return found


_PANELS = {"ucb": _UCB, "thompson": _THOMPSON}


class GrowthRate(Figure):
    """Figure 5a."""

    name: ClassVar[str] = "chandak-fig5a"
    title: ClassVar[str] = "Regret over ln n on Table 2, ε = 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 5a"
    notes: ClassVar[tuple[str, ...]] = (_NOTE,)
    _ROUNDS: ClassVar = {Scale.quick: 200_000, Scale.paper: 1_000_000}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds and runs."""
        return f"n = {self._ROUNDS[scale]:,}, {_RUNS[scale]} runs"

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Both algorithms, and ours."""
        return {
            "regret": Simulation(
                policies={
                    _UCB: as_printed(PrivateMatroidUCB, _TWO),
                    _THOMPSON: as_printed(PrivateMatroidThompson, _TWO),
                    _FOCUSED: FocusedMatroidUCB(privacy=_TWO),
                },
                environment=TABLE_2,
                rounds=self._ROUNDS[scale],
                runs=_RUNS[scale],
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
        draw_curves(axes, trace.rounds[late], {x: self._rates(trace, x) for x in trace.policies})
        axes.set_ylabel("R_n / ln n")
        axes.set_ylim(bottom=0.0)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """Whether it flattens, and who is lower."""
        trace = traces["regret"]
        rates = {x: self._rates(trace, x).mean(axis=0) for x in trace.policies}
        rounds = trace.rounds[trace.rounds >= 10]
        half = int(np.searchsorted(rounds, rounds[-1] // 2))
        grown = {x: float(rates[x][-1] / rates[x][half] - 1.0) for x in (_UCB, _THOMPSON)}
        return [
            Claim(
                paper="R_n/ln n converges for both, at different rates",
                measured=", ".join(
                    f"{x} {rates[x][-1]:.1f} ({100 * g:+.1f} % over the last half of the rounds)"
                    for x, g in grown.items()
                ),
                holds=max(abs(g) for g in grown.values()) < 0.05,
            ),
            Claim(
                paper="DPTS-MAT outperforms DPUCB-MAT (5a)",
                measured=f"{rates[_THOMPSON][-1]:.1f} against {rates[_UCB][-1]:.1f}; {_FOCUSED} "
                f"{rates[_FOCUSED][-1]:.1f}",
                holds=bool(rates[_THOMPSON][-1] < rates[_UCB][-1]),
            ),
        ]


class PriceOfPrivacy(Figure):
    """Figure 5b."""

    name: ClassVar[str] = "chandak-fig5b"
    title: ClassVar[str] = "Regret against 1/ε on Table 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 5b"
    notes: ClassVar[tuple[str, ...]] = (_NOTE,)
    _ROUNDS: ClassVar = 10_000
    _VALUES: ClassVar = {Scale.quick: 10, Scale.paper: 50}

    def describe_scale(self, scale: Scale) -> str:
        """Rounds, runs and values of ε."""
        return f"n = {self._ROUNDS:,}, {_RUNS[scale]} runs, {self._VALUES[scale]} values of ε"

    def _epsilons(self, scale: Scale) -> list[float]:
        """Evenly spaced, as in the paper."""
        return [float(e) for e in np.linspace(0.5, 50.0, self._VALUES[scale])]

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """All values of ε for each algorithm."""
        kinds: dict[str, Any] = {_UCB: PrivateMatroidUCB, _THOMPSON: PrivateMatroidThompson}
        return {
            panel: Simulation(
                policies={f"{e:g}": as_printed(kinds[title], PureDP(e)) for e in self._epsilons(scale)},
                environment=TABLE_2,
                rounds=self._ROUNDS,
                runs=_RUNS[scale],
                points=4,
            )
            for panel, title in _PANELS.items()
        }

    def _regret(self, traces: Mapping[str, Trace], panel: str, scale: Scale) -> NDArray[np.float64]:
        """Mean regret for each ε."""
        trace = traces[panel]
        return np.array([trace.regret(f"{e:g}")[:, -1].mean() for e in self._epsilons(scale)])

    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """Points, and the line that fits them best."""
        figure, (axes,) = new_figure(width=7.0, height=4.2)
        x = 1.0 / np.array(self._epsilons(scale))
        for index, (panel, title) in enumerate(_PANELS.items()):
            y = self._regret(traces, panel, scale)
            slope, start = np.polyfit(x, y, 1)
            style = line_style(index)
            axes.plot(x, y, "o", ms=4, color=style["color"], label=title)
            axes.plot(x, start + slope * x, "-", color=style["color"], alpha=0.5)
        axes.set_xlabel("1/ε")
        axes.set_ylabel(f"regret after {self._ROUNDS:,} rounds")
        axes.set_ylim(bottom=0.0)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(framealpha=0.85, edgecolor="none", fontsize="small")
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """How near to a line, and who is lower."""
        x = 1.0 / np.array(self._epsilons(scale))
        regret = {panel: self._regret(traces, panel, scale) for panel in _PANELS}
        fit = {panel: float(np.corrcoef(x, y)[0, 1] ** 2) for panel, y in regret.items()}
        return [
            Claim(
                paper="The regret of both is linear in 1/ε",
                measured=", ".join(
                    f"{title}: a line explains {100 * fit[panel]:.1f} % of the variance"
                    for panel, title in _PANELS.items()
                ),
                holds=min(fit.values()) > 0.97,
            ),
            Claim(
                paper="DPTS-MAT outperforms DPUCB-MAT at every ε (5b)",
                measured=f"at ε = 0.5: {regret['thompson'][0]:,.0f} against {regret['ucb'][0]:,.0f}; "
                f"at ε = 50: {regret['thompson'][-1]:,.0f} against {regret['ucb'][-1]:,.0f}",
                holds=bool(np.all(regret["thompson"] < regret["ucb"])),
            ),
        ]


FIGURES: tuple[Figure, ...] = (
    SyntheticUCB(),
    PrivacyLevels(),
    FilmsUCB(),
    SyntheticThompson(),
    FilmsThompson(),
    GrowthRate(),
    PriceOfPrivacy(),
    FilmsRecommended(),
)
