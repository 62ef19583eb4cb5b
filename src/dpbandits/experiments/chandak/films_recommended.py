"""Table 3: the films that are recommended."""

import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Streams
from dpbandits.engine.loop import Ledger, compiled_for
from dpbandits.engine.streams import run_seed
from dpbandits.experiments.chandak.films import Films
from dpbandits.experiments.chandak.setting import FOCUSED, PAPER, RUNS, TWO, UCB, as_printed
from dpbandits.experiments.evidence import mean_of, prediction_of
from dpbandits.experiments.figure import Claim, Scale, Simulation
from dpbandits.policies import Policy
from dpbandits.policies.matroid import FocusedMatroidUCB, PrivateMatroidUCB, UniformBases
from dpbandits.reports.figures import legend_below, new_figure
from dpbandits.reports.styles import policy_style
from dpbandits.simulation import Trace
from dpbandits.worlds import MovieRatings

_THEIRS = 8  # films in Table 3
_DRAWN: dict[str, type[Policy]] = {UCB: PrivateMatroidUCB, FOCUSED: FocusedMatroidUCB}


class FilmsRecommended(Films):
    """Table 3: which films of the best basis are in the last one played."""

    name: ClassVar[str] = "chandak-table3"
    title: ClassVar[str] = "Films of the best basis recommended by DPUCB-MAT after 20,000 rounds"
    paper: ClassVar[str] = f"{PAPER}, Table 3"
    published: ClassVar[bool] = False  # titles are the data's
    notes: ClassVar[tuple[str, ...]] = (
        *Films.notes,
        "That random bases must not do as well was added after the runs: without it almost any result "
        "would have agreed with the paper's 8 films.",
    )

    def policies(self) -> dict[str, Policy]:
        """The paper's, ours at the same ε, and what chance gives."""
        return {
            UCB: as_printed(PrivateMatroidUCB, TWO),
            FOCUSED: FocusedMatroidUCB(privacy=TWO),
            "random bases": UniformBases(),
        }

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """Traces hold no bases: the runs are made when they are looked at, in about a second."""
        return {}

    def _kept(self, scale: Scale) -> dict[str, NDArray[np.bool_]]:
        """Whether the last basis of each run has each film of the best basis. (runs, films)."""
        policies = tuple(self.policies().items())
        return _kept_by(policies, self.world(), self._ROUNDS, RUNS[scale])

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
        for index, (label, kind) in enumerate(_DRAWN.items()):
            shares = [row[f"kept by {label}, %"] for row in rows]
            colour = policy_style(kind.name())["color"]
            axes.barh(places + 0.4 * index - 0.2, shares, height=0.4, label=label, color=colour)
        axes.set_yticks(places, [row["film"] for row in rows], fontsize="small")
        axes.invert_yaxis()
        axes.set_xlabel("runs whose last basis has the film, %")
        axes.set_xlim(0, 100)
        axes.spines[["top", "right"]].set_visible(False)
        legend_below(figure)
        return figure

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """How many overlap."""
        rank = self.world().problem(None).rank
        counts = {label: runs.sum(axis=1) for label, runs in self._kept(scale).items()}
        mine, ours = counts[UCB], counts[FOCUSED]
        low, high = prediction_of(mine)
        least, most = prediction_of(counts["random bases"])
        # The one run of the paper is no evidence where random bases might have made it as well.
        holds = False if not low <= _THEIRS <= high else None if least <= _THEIRS <= most else True
        unclear = "random bases might have made the paper's one run" if holds is None else ""
        more = mean_of(ours - mine)
        return [
            Claim(
                paper=f"DPUCB-MAT ends with {_THEIRS} of the 17 films of the best basis",
                criterion=f"{_THEIRS}, the paper's one run, is within the 99 % prediction interval of a "
                "run, by Student's t, and not within that of random bases; if it is within both, "
                "nothing is decided",
                measured=f"{mine.mean():.1f} of {rank} on average, a run between {low:.1f} and "
                f"{high:.1f}; random bases have {counts['random bases'].mean():.1f}, a run between "
                f"{least:.1f} and {most:.1f}",
                holds=holds,
                differs="; ".join(filter(None, (self._differs(), unclear))),
            ),
            Claim(
                paper=f"(ours) {FOCUSED} at the same ε ends with more of them",
                criterion="the 99 % interval of the difference, on common seeds, is above 0",
                measured=f"{ours.mean():.1f} of {rank} on average: {more:.1f} more",
                holds=more.low > 0.0,
                ours=True,
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
            compiled_for(public, state).run(public, secret, state, streams, ledger, rounds)
            last = public.played if isinstance(policy, FocusedMatroidUCB) else public.greedy
            kept.append(np.isin(best, last.basis))
        found[label] = np.array(kept)
    return found
