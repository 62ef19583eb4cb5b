"""Shariff & Sheffet's synthetic setting: fresh unit vectors around one with a known lead."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpbandits import checks
from dpbandits.engine import Chance, verb
from dpbandits.environments.linear.spheres import band_mass, band_mean
from dpbandits.environments.linear.worlds import (
    SHORT,
    Array,
    LinearEnvironment,
    Rewards,
    Shown,
    check_sizes,
    draw_direction,
    start_shown,
)
from dpbandits.errors import InvalidInput
from dpbandits.problems import LinearContexts

BEST = 0.75  # the expected reward of the optimal action; no other pays less than its negative


def check_sphere(dim: int, actions: int, gap: float) -> None:
    """The arguments of a decision set on the sphere."""
    check_sizes(2, dim, actions)
    checks.not_negative(gap=gap)
    # Others are drawn until they fall into the band.
    if gap >= 2.0 * BEST or band_mass(dim, -BEST, BEST - gap) < 0.01:
        raise InvalidInput(f"expected a smaller gap: hardly any unit vector leaves {gap:g} to the best")


@dataclass(frozen=True)
class SphereContexts(LinearEnvironment):
    """A fresh decision set of unit vectors each round (Shariff & Sheffet 2018, appendix D).

    θ* is uniform on the unit sphere, drawn once a run. Each round one action, at a random place, is
    uniform on {‖x‖ = 1, ⟨x, θ*⟩ = ¾}; the others are uniform on {‖x‖ = 1, −¾ ≤ ⟨x, θ*⟩ ≤ ¾ − gap}.
    """

    dim: int = 5
    actions: int = 25
    gap: float = 0.1
    rewards: Rewards = "signs"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sphere(self.dim, self.actions, self.gap)
        checks.one_of(("signs", "gaussian"), rewards=self.rewards)

    def problem(self, rounds: int | None) -> LinearContexts:
        """Unit features; rewards in ±1, or ±8 for Gaussian ones."""
        return self.contexts(self.dim, rounds, self.rewards)

    def world(self) -> "SphereWorld":
        """Nothing drawn yet."""
        shown = start_shown(self.actions, self.dim, self.rewards)
        shown.best[0] = BEST
        return SphereWorld(shown, np.zeros(self.dim), -BEST, BEST - self.gap)

    def uniform_regret(self) -> float:
        """(K − 1)/K times the lead of the best over the average of the others."""
        others = band_mean(self.dim, -BEST, BEST - self.gap)
        return (self.actions - 1) / self.actions * (BEST - others)


class SphereWorld(NamedTuple):
    """State of `SphereContexts`."""

    shown: Shown
    aside: Array  # (d,) scratch: the optimal action's part orthogonal to θ*
    low: float  # others pay at least this
    high: float  # and at most this


@verb
def offer_sphere(world: SphereWorld, chance: Chance) -> tuple[Array]:
    """θ* in the first round; then the optimal action's place, the optimal action, the others."""
    shown, aside = world.shown, world.aside
    features, means, theta = shown.features, shown.means, shown.theta
    actions, dim = features.shape
    if shown.rounds[0] == 0:
        draw_direction(theta, chance)
    shown.rounds[0] += 1
    place = int(chance.random() * actions)
    along = 0.0
    for j in range(dim):
        normal = chance.standard_normal()
        aside[j] = normal
        along += normal * theta[j]
    square = 0.0
    for j in range(dim):
        aside[j] -= along * theta[j]
        square += aside[j] * aside[j]
    scale = SHORT * math.sqrt((1.0 - BEST * BEST) / square)
    for j in range(dim):
        features[place, j] = BEST * theta[j] + scale * aside[j]
    means[place] = BEST
    for k in range(actions):
        if k != place:
            mean, norm = math.inf, 1.0
            while not world.low <= mean <= world.high:
                square, along = 0.0, 0.0
                for j in range(dim):
                    normal = chance.standard_normal()
                    features[k, j] = normal
                    square += normal * normal
                    along += normal * theta[j]
                norm = math.sqrt(square)
                mean = along / norm
            means[k] = mean
            scale = SHORT / norm
            for j in range(dim):
                features[k, j] *= scale
    return (features,)
