"""Contexts that fill only a part of the space: always the same, one after another, or a turning one."""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.engine import Chance, verb
from dpbandits.environments.linear.spheres import largest_mean, part_length
from dpbandits.environments.linear.worlds import (
    SHORT,
    Array,
    LinearEnvironment,
    Shown,
    check_sizes,
    dot,
    draw_direction,
    draw_frame,
    settle_means,
    start_shown,
)
from dpbandits.problems import LinearContexts


@dataclass(frozen=True)
class LowRankContexts(LinearEnvironment):
    """Fresh actions each round, uniform on the unit sphere of one subspace of `rank` dimensions.

    The subspace and a unit θ* in it are uniformly random, drawn once a run.
    """

    dim: int = 20
    actions: int = 25
    rank: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(1, self.dim, self.actions)
        checks.integer(least=1, rank=self.rank)
        checks.integer(least=self.rank, dim=self.dim)

    def problem(self, rounds: int | None) -> LinearContexts:
        """A fresh decision set each round; the subspace is not known."""
        return self.contexts(self.dim, rounds)

    def world(self) -> "LowRankWorld":
        """Nothing drawn yet."""
        return LowRankWorld(
            start_shown(self.actions, self.dim), np.zeros((self.rank, self.dim)), np.zeros(self.rank)
        )

    def uniform_regret(self) -> float:
        """What the best of as many random unit vectors pays on average."""
        return largest_mean(self.rank, self.actions)


@dataclass(frozen=True)
class SwitchingContexts(LinearEnvironment):
    """Fresh actions each round: up to round `switch` in one subspace, afterwards in its complement.

    The actions are uniform on the unit sphere of the first ⌊d/2⌋ of d random orthogonal directions, then
    of the others. θ* is uniform on the unit sphere. What was learned before the switch is no use after.
    """

    dim: int = 5
    actions: int = 25
    switch: int = 50_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(2, self.dim, self.actions)
        checks.integer(least=1, switch=self.switch)

    def problem(self, rounds: int | None) -> LinearContexts:
        """A fresh decision set each round; the switch is not known."""
        return self.contexts(self.dim, rounds)

    def world(self) -> "SwitchingWorld":
        """Nothing drawn yet."""
        return SwitchingWorld(
            start_shown(self.actions, self.dim),
            np.zeros((self.dim, self.dim)),
            np.zeros(self.dim),
            self.switch,
        )

    def uniform_regret(self) -> float:
        """The average over both subspaces, as where the switch is half way."""
        ranks = (self.dim // 2, self.dim - self.dim // 2)
        return sum(part_length(self.dim, r) * largest_mean(r, self.actions) for r in ranks) / 2.0


@dataclass(frozen=True)
class RotatingContexts(LinearEnvironment):
    """Fresh actions each round, near a plane that turns through the whole space within `turn` rounds.

    With b_1 … b_d a random orthonormal basis, the plane moves evenly from span(b_1, b_2) through
    span(b_2, b_3) … to span(b_{d−1}, b_d), b_i turning into b_{i+2}, and stays there. An action is
    √(1 − tilt²)·u + tilt·z, u uniform on the plane's unit circle and z a uniform unit vector orthogonal
    to the plane. θ* is uniform on the unit sphere. Old data say little about today's contexts.
    """

    dim: int = 5
    actions: int = 25
    turn: int = 100_000
    tilt: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(3, self.dim, self.actions)
        checks.integer(least=1, turn=self.turn)
        checks.unit(tilt=self.tilt)

    def problem(self, rounds: int | None) -> LinearContexts:
        """A fresh decision set each round; the plane is not known."""
        return self.contexts(self.dim, rounds)

    def world(self) -> "RotatingWorld":
        """Nothing drawn yet."""
        dim = self.dim
        return RotatingWorld(
            start_shown(self.actions, dim),
            np.zeros((dim, dim)),
            np.zeros((2, dim)),
            self.turn,
            self.tilt,
        )

    def uniform_regret(self) -> float:
        """By simulation from a fixed seed, to about one part in a thousand."""
        return _rotating_regret(self.dim, self.actions, self.tilt)


@functools.cache
def _rotating_regret(dim: int, actions: int, tilt: float) -> float:
    """The plane may be taken as that of the first two axes, θ* and actions as uniformly random."""
    draws, rng = max(100, 4_000_000 // (actions * dim)), np.random.default_rng(0)
    theta = rng.standard_normal((draws, 1, dim))
    x = rng.standard_normal((draws, actions, dim))
    theta /= np.linalg.norm(theta, axis=2, keepdims=True)
    plane, rest = x[:, :, :2], x[:, :, 2:]
    plane *= math.sqrt(1.0 - tilt * tilt) / np.linalg.norm(plane, axis=2, keepdims=True)
    rest *= tilt / np.linalg.norm(rest, axis=2, keepdims=True)
    means = (x * theta).sum(axis=2)
    return float((means.max(axis=1) - means.mean(axis=1)).mean())


class LowRankWorld(NamedTuple):
    """State of `LowRankContexts`."""

    shown: Shown
    frame: Array  # (rank, d) orthonormal rows
    within: Array  # (rank,) scratch: coordinates in the subspace


class SwitchingWorld(NamedTuple):
    """State of `SwitchingContexts`."""

    shown: Shown
    frame: Array  # (d, d) orthonormal rows
    within: Array  # (d,) scratch: coordinates in the subspace
    switch: int


class RotatingWorld(NamedTuple):
    """State of `RotatingContexts`."""

    shown: Shown
    frame: Array  # (d, d) orthonormal rows
    plane: Array  # (2, d) this round's
    turn: int
    tilt: float


@register_jitable(forceinline=True)  # type: ignore[untyped-decorator]
def _draw_within(vector: Array, frame: Array, within: Array, chance: Chance) -> None:
    """A uniformly random unit vector in the span of orthonormal rows."""
    draw_direction(within, chance)
    for j in range(vector.size):
        total = 0.0
        for i in range(within.size):
            total += within[i] * frame[i, j]
        vector[j] = total


@verb
def offer_low_rank(world: LowRankWorld, chance: Chance) -> tuple[Array]:
    """Subspace and θ* in the first round; then the actions."""
    shown, within = world.shown, world.within
    if shown.rounds[0] == 0:
        draw_frame(world.frame, chance)
        _draw_within(shown.theta, world.frame, within, chance)
    shown.rounds[0] += 1
    for k in range(shown.means.size):
        _draw_within(shown.features[k], world.frame, within, chance)
    settle_means(shown)
    return (shown.features,)


@verb
def offer_switching(world: SwitchingWorld, chance: Chance) -> tuple[Array]:
    """Directions and θ* in the first round; then the actions."""
    shown, dim = world.shown, world.within.size
    if shown.rounds[0] == 0:
        draw_frame(world.frame, chance)
        draw_direction(shown.theta, chance)
    half, late = dim // 2, shown.rounds[0] >= world.switch
    first, end = (half, dim) if late else (0, half)
    shown.rounds[0] += 1
    for k in range(shown.means.size):
        _draw_within(shown.features[k], world.frame[first:end], world.within[first:end], chance)
    settle_means(shown)
    return (shown.features,)


@verb
def offer_rotating(world: RotatingWorld, chance: Chance) -> tuple[Array]:
    """Directions and θ* in the first round; then the plane and the actions."""
    shown, frame, plane = world.shown, world.frame, world.plane
    dim = frame.shape[0]
    if shown.rounds[0] == 0:
        draw_frame(frame, chance)
        draw_direction(shown.theta, chance)
    way = (dim - 2) * min(1.0, shown.rounds[0] / world.turn)
    leg = min(int(way), dim - 3)
    angle = 0.5 * math.pi * (way - leg)
    cosine, sine = math.cos(angle), math.sin(angle)
    for j in range(dim):
        plane[0, j] = frame[leg + 1, j]
        plane[1, j] = cosine * frame[leg, j] + sine * frame[leg + 2, j]
    shown.rounds[0] += 1
    flat = SHORT * math.sqrt(1.0 - world.tilt * world.tilt)
    for k in range(shown.means.size):
        action = shown.features[k]
        draw_direction(action, chance)
        first, second = dot(action, plane[0]), dot(action, plane[1])
        # Both parts of a uniformly random vector are themselves uniformly random directions.
        inside = math.sqrt(first * first + second * second)
        outside = 0.0
        for j in range(dim):
            action[j] -= first * plane[0, j] + second * plane[1, j]
            outside += action[j] * action[j]
        up = world.tilt * SHORT / math.sqrt(outside)
        along, across = flat * first / inside, flat * second / inside
        for j in range(dim):
            action[j] = up * action[j] + along * plane[0, j] + across * plane[1, j]
    settle_means(shown)
    return (shown.features,)
