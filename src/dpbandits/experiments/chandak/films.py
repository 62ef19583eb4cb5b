"""Figures 3 and 4b: both algorithms on films."""

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from dpbandits.errors import InvalidInput
from dpbandits.experiments.chandak.returns import Returns
from dpbandits.experiments.chandak.setting import NOTE, PAPER, TWO, thompson_policies, ucb_policies
from dpbandits.experiments.figure import Claim, Scale
from dpbandits.policies import Policy
from dpbandits.policies.matroid import UniformBases
from dpbandits.simulation import Trace
from dpbandits.worlds import MovieRatings
from dpbandits.worlds.movielens import LICENCE

DATA = "DPBANDITS_MOVIELENS"
THEIRS = "MovieLens 1M"  # the paper's edition


def movies() -> MovieRatings:
    """MovieLens in the folder that DPBANDITS_MOVIELENS names, or in its ml-1m or ml-100k."""
    given = os.environ.get(DATA)
    if given is None:
        raise InvalidInput(f"this figure needs MovieLens data: set {DATA} to the folder they are in")
    inside = [Path(given) / name for name in ("ml-1m", "ml-100k")]
    return MovieRatings(str(next((path for path in inside if path.is_dir()), Path(given))))


class Films(Returns):
    """The same on MovieLens, if there is any."""

    _ROUNDS: ClassVar = 20_000
    notes: ClassVar[tuple[str, ...]] = (
        NOTE,
        f"The paper plays on {THEIRS}; the folder that {DATA} names may have that edition or 100K. "
        f"{LICENCE} The same person can be drawn in several rounds: the guarantees are for one round's "
        "ratings, not for all that a person ever rated, nor for which hundred films most people rated.",
    )

    def world(self) -> MovieRatings:
        """The hundred films that most people rated."""
        return movies()

    def missing(self) -> str | None:
        """The data."""
        return None if os.environ.get(DATA) else f"set {DATA} to a folder of MovieLens data"

    def _differs(self) -> str:
        """The edition, where it is not the paper's."""
        edition = self.world().films().edition
        return "" if edition == THEIRS else f"{edition}, not {THEIRS.removeprefix('MovieLens ')}"

    def describe_scale(self, scale: Scale) -> str:
        """Which data, too."""
        return f"{self.world().films().edition}, {super().describe_scale(scale)}"


class FilmsUCB(Films):
    """Figure 3."""

    name: ClassVar[str] = "chandak-fig3"
    title: ClassVar[str] = "DPUCB-MAT on film recommendation, ε = 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 3"

    def policies(self) -> dict[str, Policy]:
        """The paper's, ours at the same ε, and random bases."""
        return ucb_policies() | {"random bases": UniformBases()}

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The return, and how large the room for noise is."""
        problem = self.world().problem(None)
        rank, plays = problem.rank, self._ROUNDS * problem.rank // problem.items
        room = 3.0 * math.log(rank * self._ROUNDS) * rank / TWO.epsilon
        claim = self._comparable(traces, "DPUCB-MAT is comparable to OMM on films")
        measured = (
            f"{claim.measured}. Its room for noise, 3 ln(Kn)/(ε₀ T) = {room:.0f}/T, is above 0.1 until "
            f"an item has {10 * room:,.0f} plays; the average item has {plays:,}"
        )
        return [
            replace(claim, measured=measured),
            self._approaches(traces, "DPUCB-MAT approaches the optimal policy on films"),
            self._beats_open(traces),
        ]


class FilmsThompson(Films):
    """Figure 4b."""

    name: ClassVar[str] = "chandak-fig4b"
    title: ClassVar[str] = "DPTS-MAT on film recommendation, ε = 2"
    paper: ClassVar[str] = f"{PAPER}, Figure 4b"

    def policies(self) -> dict[str, Policy]:
        """The paper's, and ours at the same ε."""
        return thompson_policies()

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The return."""
        return [
            self._comparable(traces, "DPTS-MAT is comparable to the non-private CTS on films (4b)"),
            self._approaches(traces, "DPTS-MAT approaches the optimal policy on films (4b)"),
            self._beats_open(traces),
        ]
