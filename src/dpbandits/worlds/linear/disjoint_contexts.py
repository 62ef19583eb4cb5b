"""One context vector a person, and parameters of its own for each arm."""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.problems import LinearContexts
from dpbandits.worlds.linear.spheres import largest_mean
from dpbandits.worlds.linear.worlds import (
    Array,
    LinearEnvironment,
    Pays,
    Shown,
    dot,
    draw_direction,
    start_shown,
)


@dataclass(frozen=True)
class DisjointContexts(LinearEnvironment):
    """A context c uniform on the unit sphere of `dim` dimensions each round; arm a pays ⟨c, θ_a⟩.

    Each θ_a is uniform on the unit sphere, drawn once a run.
    """

    dim: Annotated[int, "How many features a person has."] = 4
    arms: Annotated[int, "How many arms there are."] = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(least=1, limit=checks.MOST_FEATURES, dim=self.dim)
        checks.integer(least=2, limit=checks.MOST_ACTIONS, arms=self.arms)
        checks.room("parameters for each arm", self.arms * self.dim)

    def problem(self, rounds: int | None) -> LinearContexts:
        """Disjoint parameters."""
        return LinearContexts(self.dim, arms=self.arms, horizon=rounds)

    def world(self) -> "DisjointWorld":
        """Nothing drawn yet."""
        return DisjointWorld(
            shown=start_shown(self.arms, self.arms * self.dim),
            context=np.zeros((1, self.dim)),
        )

    def uniform_regret(self) -> float:
        """The arms' means are independent, each like one coordinate of a random unit vector."""
        return largest_mean(self.dim, self.arms)


class _Disjoint(NamedTuple):
    shown: Shown
    context: Array  # (1, d)


class DisjointWorld(_Disjoint, Pays):
    """State of `DisjointContexts`."""

    def offer(self, chance: Chance) -> tuple[Array]:
        """The parameters in the first round; then one context for all arms."""
        shown, context = self.shown, self.context[0]
        arms, dim = shown.means.size, context.size
        if shown.rounds[0] == 0:
            for a in range(arms):
                draw_direction(shown.theta[a * dim : (a + 1) * dim], chance)
        shown.rounds[0] += 1
        draw_direction(context, chance)
        best = -math.inf
        for a in range(arms):
            shown.means[a] = dot(context, shown.theta[a * dim : (a + 1) * dim])
            best = max(best, shown.means[a])
        shown.best[0] = best
        return (self.context,)
