"""Shariff & Sheffet's synthetic setting: fresh unit vectors around one with a known lead."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

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
    dot,
    draw_direction,
    start_shown,
)
from dpbandits.errors import InvalidInput
from dpbandits.problems import LinearContexts

BEST = 0.75  # the expected reward of the optimal action; no other pays less than its negative
_POOL = 256  # actions drawn at a time


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
        return SphereWorld(
            shown=shown,
            low=-BEST,
            high=BEST - self.gap,
            drawn=np.zeros((self.dim, _POOL)),
            means=np.zeros(_POOL),
            scales=np.zeros(_POOL),
            inside=np.zeros(_POOL, np.uint64),
            pool=np.zeros((_POOL + self.actions, self.dim)),
            pool_means=np.zeros(_POOL + self.actions),
            span=np.zeros(2, np.int64),
        )

    def uniform_regret(self) -> float:
        """(K − 1)/K times the lead of the best over the average of the others."""
        others = band_mean(self.dim, -BEST, BEST - self.gap)
        return (self.actions - 1) / self.actions * (BEST - others)


class SphereWorld(NamedTuple):
    """State of `SphereContexts`. Actions are drawn many at a time, for speed, and shown once each."""

    shown: Shown
    low: float  # others pay at least this
    high: float  # and at most this
    drawn: Array  # (d, P) random directions, one a column, of any length
    means: Array  # (P,) what they pay at unit length
    scales: Array  # (P,) one over their lengths
    inside: NDArray[np.uint64]  # (P,) which of them are in the band
    pool: Array  # (P + K, d) those in the band, at unit length
    pool_means: Array  # (P + K,) what they pay
    span: NDArray[np.int64]  # (2,) the first of the pool still to be shown, and their end


@verb
def offer_sphere(world: SphereWorld, chance: Chance) -> tuple[Array]:
    """θ* in the first round; then the next actions of the pool, one of them made the optimal one."""
    shown, span = world.shown, world.span
    actions = shown.means.size
    if shown.rounds[0] == 0:
        draw_direction(shown.theta, chance)
    shown.rounds[0] += 1
    if span[1] - span[0] < actions:
        _fill_pool(world, chance)
    first = int(span[0])
    span[0] = first + actions
    for k in range(actions):
        shown.means[k] = world.pool_means[first + k]
    place = int(chance.random() * actions)
    shown.means[place] = BEST
    _make_best(world.pool[first + place], shown.theta)
    return (world.pool[first : first + actions],)


@register_jitable(forceinline=True)
def _make_best(action: Array, theta: Array) -> None:
    """¾ θ* plus the action's part orthogonal to θ*, whose direction does not depend on what it paid."""
    along, square = dot(action, theta), 0.0
    for j in range(theta.size):
        action[j] -= along * theta[j]
        square += action[j] * action[j]
    scale = SHORT * math.sqrt((1.0 - BEST * BEST) / square)
    for j in range(theta.size):
        action[j] = BEST * theta[j] + scale * action[j]


@register_jitable(forceinline=True)
def _fill_pool(world: SphereWorld, chance: Chance) -> None:
    """Keep what is left and add a round's worth at least. Long loops over P, not short ones over d."""
    drawn, means, scales, inside = world.drawn, world.means, world.scales, world.inside
    pool, first, left = world.pool, int(world.span[0]), int(world.span[1] - world.span[0])
    dim, size = drawn.shape
    for i in range(left):
        world.pool_means[i] = world.pool_means[first + i]
        for j in range(dim):
            pool[i, j] = pool[first + i, j]
    while left < world.shown.means.size:
        for j in range(dim):
            for i in range(size):
                drawn[j, i] = chance.standard_normal()
        for i in range(size):
            means[i] = 0.0
            scales[i] = 0.0
        for j in range(dim):
            coordinate = world.shown.theta[j]
            for i in range(size):
                means[i] += coordinate * drawn[j, i]
                scales[i] += drawn[j, i] * drawn[j, i]
        for i in range(size):
            scales[i] = SHORT / math.sqrt(scales[i])
            means[i] *= scales[i]
        found = 0
        for i in range(size):
            # Without a branch, which could not be foretold.
            mean = means[i]
            inside[found], means[found], scales[found] = i, mean, scales[i]
            found += (world.low <= mean) & (mean <= world.high)
        for j in range(dim):
            for k in range(found):
                pool[left + k, j] = scales[k] * drawn[j, inside[k]]
        for k in range(found):
            world.pool_means[left + k] = means[k]
        left += found
    world.span[0], world.span[1] = 0, left
