"""Shariff & Sheffet's synthetic setting: fresh unit vectors around one with a known lead."""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.errors import InvalidInput
from dpbandits.problems import LinearContexts
from dpbandits.worlds.linear.spheres import band_mass, band_mean
from dpbandits.worlds.linear.worlds import (
    SHORT,
    Array,
    LinearEnvironment,
    Pays,
    Rewards,
    Shown,
    check_sizes,
    dot,
    draw_direction,
    start_shown,
)

BEST = 0.75  # the expected reward of the optimal action; no other pays less than its negative
_POOL = 256  # about this many actions are drawn at a time
_HALF = float(2**26)  # a random number is split into two of half its digits


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

    dim: Annotated[int, "How many features an action has."] = 5
    actions: Annotated[int, "How many actions each person may choose from."] = 25
    gap: Annotated[float, "How much better the best action is than any other, at least."] = 0.1
    rewards: Annotated[Rewards, 'The law of rewards: "signs", ±1, or "gaussian".'] = "signs"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sphere(self.dim, self.actions, self.gap)
        checks.one_of(("signs", "gaussian"), rewards=self.rewards)

    def problem(self, rounds: int | None) -> LinearContexts:
        """Unit features; rewards in ±1, or ±8 for Gaussian ones."""
        return self.contexts(self.dim, rounds, self.rewards)

    def world(self) -> "SphereWorld":
        """Nothing drawn yet."""
        return self._world(max(_POOL // self.actions, 1) * self.actions)

    def small_world(self) -> "SphereWorld":
        """The actions of one round are drawn at a time."""
        return self._world(self.actions)

    def _world(self, pool: int) -> "SphereWorld":
        shown = start_shown(self.actions, self.dim, self.rewards)
        shown.best[0] = BEST
        return SphereWorld(
            shown=shown,
            low=-BEST,
            high=BEST - self.gap,
            mirror=np.zeros(self.dim),
            means=np.zeros(pool),
            drawn=np.zeros((self.dim - 1, pool)),
            scales=np.zeros(pool),
            along=np.zeros(pool),
            pool=np.zeros((pool, self.dim)),
            next=np.full(1, pool),
        )

    def uniform_regret(self) -> float:
        """(K − 1)/K times the lead of the best over the average of the others."""
        others = band_mean(self.dim, -BEST, BEST - self.gap)
        return (self.actions - 1) / self.actions * (BEST - others)


class _Sphere(NamedTuple):
    shown: Shown
    low: float  # others pay at least this
    high: float  # and at most this
    mirror: Array  # (d,) v of length √2: reflected, x − v⟨v, x⟩, the first axis is ±θ*
    means: Array  # (P,) what the actions pay
    drawn: Array  # (d − 1, P) scratch: random directions u, one a column, of any length
    scales: Array  # (P,) scratch: their squared lengths, then √(1 − s²) over the length
    along: Array  # (P,) scratch: ⟨v, x⟩
    pool: Array  # (P, d) the actions
    next: NDArray[np.int64]  # (1,) the first that is still to be shown


class SphereWorld(_Sphere, Pays):
    """State of `SphereContexts`. The actions of several rounds are drawn at once, for speed."""

    def offer(self, chance: Chance) -> tuple[Array]:
        """θ* in the first round; then the next actions of the pool."""
        shown, actions = self.shown, self.shown.means.size
        if shown.rounds[0] == 0:
            draw_direction(shown.theta, chance)
            _aim_mirror(self.mirror, shown.theta)
        shown.rounds[0] += 1
        if self.next[0] == self.means.size:
            _draw_means(self, chance)
            _fill_pool(self, chance)
            self.next[0] = 0
        first = int(self.next[0])
        self.next[0] = first + actions
        for k in range(actions):
            shown.means[k] = self.means[first + k]
        return (self.pool[first : first + actions],)


@register_jitable(forceinline=True)
def _aim_mirror(mirror: Array, theta: Array) -> None:
    """Between θ* and ±e₁, of the sign that keeps it long before it is scaled."""
    for j in range(theta.size):
        mirror[j] = theta[j]
    mirror[0] += 1.0 if theta[0] >= 0.0 else -1.0
    scale = math.sqrt(2.0 / dot(mirror, mirror))
    for j in range(theta.size):
        mirror[j] *= scale


@register_jitable(forceinline=True)
def _draw_means(world: SphereWorld, chance: Chance) -> None:
    """What the actions pay: s of density ∝ (1 − s²)^{(d−3)/2} in the band, and ¾ once a round.

    By rejection: a uniform s is kept where v times the density's maximum, v uniform, is below it; both
    squared if d is even.
    """
    low, high, means, dim = world.low, world.high, world.means, world.mirror.size
    widest = 1.0 if low <= 0.0 <= high else 1.0 - min(low * low, high * high)
    narrowest = 1.0 - max(low * low, high * high)
    power = dim - 3 if dim % 2 == 0 else (dim - 3) // 2
    most, kept = _power(widest, power), 0
    while kept < means.size:
        digits = chance.random() * _HALF
        whole = int(digits)
        mean, level = low + (high - low) / _HALF * whole, digits - whole
        room = 1.0 - mean * mean
        if dim % 2 == 0:
            level *= level
        # Without a branch, which would be mispredicted.
        means[kept] = mean
        kept += level * room <= narrowest if dim == 2 else level * most <= _power(room, power)
    actions = world.shown.means.size
    for first in range(0, means.size, actions):
        means[first + int(chance.random() * actions)] = BEST


@register_jitable(forceinline=True)
def _power(base: float, exponent: int) -> float:
    """By squaring, so that compiled and plain code agree."""
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@register_jitable(forceinline=True)
def _fill_pool(world: SphereWorld, chance: Chance) -> None:
    """Reflections of (±s, √(1 − s²) u), u a random direction. Long loops over P, not over d."""
    means, drawn, scales, along = world.means, world.drawn, world.scales, world.along
    size, pool = means.size, world.pool
    for i in range(size):
        scales[i] = 0.0
        along[i] = 0.0
    for j in range(drawn.shape[0]):
        part = world.mirror[j + 1]
        for i in range(size):
            drawn[j, i] = chance.standard_normal()
        for i in range(size):
            scales[i] += drawn[j, i] * drawn[j, i]
        for i in range(size):
            along[i] += part * drawn[j, i]
    part = world.mirror[0]
    # All equally short: the length must not give the best action away.
    sign = -SHORT if world.shown.theta[0] >= 0.0 else SHORT
    for i in range(size):
        scales[i] = SHORT * math.sqrt((1.0 - means[i] * means[i]) / scales[i])
    for i in range(size):
        along[i] = scales[i] * along[i] + part * sign * means[i]
    for i in range(size):
        pool[i, 0] = sign * means[i] - part * along[i]
    for j in range(drawn.shape[0]):
        part = world.mirror[j + 1]
        for i in range(size):
            pool[i, j + 1] = scales[i] * drawn[j, i] - part * along[i]
