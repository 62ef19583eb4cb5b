"""One context vector a person, and parameters of its own for each arm."""

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
    draw_direction,
    find_means,
    start_shown,
)


@dataclass(frozen=True)
class DisjointContexts(LinearEnvironment):
    """A context c uniform on the unit sphere of `dim` dimensions each round; arm a pays ⟨c, θ_a⟩.

    Each θ_a is uniform on the unit sphere, drawn once a run. What is offered is the (arms, arms·dim)
    matrix with c in block a of row a, so that θ* = (θ_1, …, θ_arms), of length √arms.
    """

    dim: Annotated[int, "How many features a person has."] = 4
    arms: Annotated[int, "How many arms there are."] = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer(least=1, limit=checks.MOST_FEATURES, dim=self.dim)
        checks.integer(least=2, limit=checks.MOST_FEATURES // self.dim, arms=self.arms)

    def problem(self, rounds: int | None) -> LinearContexts:
        """Disjoint parameters."""
        return LinearContexts(self.dim, arms=self.arms, horizon=rounds)

    def world(self) -> "DisjointWorld":
        """Nothing drawn yet."""
        return DisjointWorld(
            shown=start_shown(self.arms, self.arms * self.dim),
            features=np.zeros((self.arms, self.arms * self.dim)),
            context=np.zeros(self.dim),
        )

    def uniform_regret(self) -> float:
        """The arms' means are independent, each like one coordinate of a random unit vector."""
        return largest_mean(self.dim, self.arms)


class _Disjoint(NamedTuple):
    shown: Shown
    features: Array  # (K, d)
    context: Array  # (dim,)


class DisjointWorld(_Disjoint, Pays):
    """State of `DisjointContexts`."""

    def offer(self, chance: Chance) -> tuple[Array]:
        """The parameters in the first round; then one context, once in each arm's block."""
        shown, context = self.shown, self.context
        arms, dim = shown.means.size, context.size
        if shown.rounds[0] == 0:
            for a in range(arms):
                draw_direction(shown.theta[a * dim : (a + 1) * dim], chance)
        shown.rounds[0] += 1
        draw_direction(context, chance)
        for a in range(arms):
            for j in range(dim):
                self.features[a, a * dim + j] = context[j]
        find_means(shown, self.features)
        return (self.features,)
