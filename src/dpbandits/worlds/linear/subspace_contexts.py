"""Contexts that fill only a part of the space: always the same, one after another, or a turning one."""

import functools
import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numba.extending import register_jitable

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.problems import LinearContexts
from dpbandits.worlds.linear.spheres import largest_mean
from dpbandits.worlds.linear.worlds import (
    SHORT,
    Array,
    LinearEnvironment,
    Pays,
    Shown,
    check_sizes,
    draw_direction,
    draw_frame,
    find_means,
    start_shown,
)


@dataclass(frozen=True)
class LowRankContexts(LinearEnvironment):
    """Fresh actions each round, uniform on the unit sphere of one subspace of `rank` dimensions.

    The subspace and a unit θ* in it are uniformly random, drawn once a run.
    """

    dim: Annotated[int, "How many features an action has."] = 20
    actions: Annotated[int, "How many actions each person may choose from."] = 25
    rank: Annotated[int, "The dimension of the subspace that all features lie in."] = 3

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
            shown=start_shown(self.actions, self.dim),
            features=np.zeros((self.actions, self.dim)),
            frame=np.zeros((self.rank, self.dim)),
            within=np.zeros(self.rank),
        )

    def uniform_regret(self) -> float:
        """What the best of as many random unit vectors pays on average."""
        return largest_mean(self.rank, self.actions)


@dataclass(frozen=True)
class SwitchingContexts(LinearEnvironment):
    """Fresh actions each round: up to round `switch` near one subspace, afterwards near its complement.

    The subspace is spanned by the first ⌊d/2⌋ of d random orthogonal directions, its complement by the
    others. An action is √(1 − tilt²)·u + tilt·z, u a uniform unit vector in the one, z in the other. θ*
    is uniform on the unit sphere. With `tilt` 0 nothing learned before the switch is of use after it.
    """

    dim: Annotated[int, "How many features an action has."] = 5
    actions: Annotated[int, "How many actions each person may choose from."] = 25
    switch: Annotated[int, "The round after which features lie in the other subspace."] = 50_000
    tilt: Annotated[float, "How far features may stick out of their subspace."] = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(2, self.dim, self.actions)
        checks.integer(least=1, switch=self.switch)
        checks.unit(tilt=self.tilt)

    def problem(self, rounds: int | None) -> LinearContexts:
        """A fresh decision set each round; the switch is not known."""
        return self.contexts(self.dim, rounds)

    def world(self) -> "SwitchingWorld":
        """Nothing drawn yet."""
        return SwitchingWorld(
            shown=start_shown(self.actions, self.dim),
            features=np.zeros((self.actions, self.dim)),
            frame=np.zeros((self.dim, self.dim)),
            within=np.zeros(self.dim),
            switch=self.switch,
            tilt=self.tilt,
        )

    def uniform_regret(self) -> float:
        """The average over both subspaces, as where the switch is half way; simulated as below."""
        half = self.dim // 2
        both = (_regret_near(self.dim, r, self.actions, self.tilt) for r in (half, self.dim - half))
        return sum(both) / 2.0


@dataclass(frozen=True)
class RotatingContexts(LinearEnvironment):
    """Fresh actions each round, near a plane that turns through the whole space within `turn` rounds.

    With b_1 … b_d a random orthonormal basis, the plane moves evenly from span(b_1, b_2) through
    span(b_2, b_3) … to span(b_{d−1}, b_d), b_i turning into b_{i+2}, and stays there. An action is
    √(1 − tilt²)·u + tilt·z, u uniform on the plane's unit circle and z a uniform unit vector orthogonal
    to the plane. θ* is uniform on the unit sphere. Old data say little about today's contexts.
    """

    dim: Annotated[int, "How many features an action has."] = 5
    actions: Annotated[int, "How many actions each person may choose from."] = 25
    turn: Annotated[int, "The rounds in which the plane of features turns through all of space."] = (
        100_000
    )
    tilt: Annotated[float, "How far features may stick out of their plane."] = 0.3

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
        return RotatingWorld(
            shown=start_shown(self.actions, self.dim),
            features=np.zeros((self.actions, self.dim)),
            frame=np.zeros((self.dim, self.dim)),
            turned=np.zeros((self.dim, self.dim)),
            within=np.zeros(self.dim),
            turn=self.turn,
            tilt=self.tilt,
        )

    def uniform_regret(self) -> float:
        """By simulation from a fixed seed, to about one part in a thousand."""
        return _regret_near(self.dim, 2, self.actions, self.tilt)


@functools.cache
def _regret_near(dim: int, rank: int, actions: int, tilt: float) -> float:
    """The subspace may be taken as that of the first axes, θ* and actions as uniformly random."""
    draws, rng = max(100, 4_000_000 // (actions * dim)), np.random.default_rng(0)
    theta = rng.standard_normal((draws, 1, dim))
    x = rng.standard_normal((draws, actions, dim))
    theta /= np.linalg.norm(theta, axis=2, keepdims=True)
    inside, outside = x[:, :, :rank], x[:, :, rank:]
    inside *= math.sqrt(1.0 - tilt * tilt) / np.linalg.norm(inside, axis=2, keepdims=True)
    outside *= tilt / np.linalg.norm(outside, axis=2, keepdims=True)
    means = (x * theta).sum(axis=2)
    return float((means.max(axis=1) - means.mean(axis=1)).mean())


class _LowRank(NamedTuple):
    shown: Shown
    features: Array  # (K, d)
    frame: Array  # (rank, d) orthonormal rows
    within: Array  # (rank,) scratch: coordinates in the subspace


class LowRankWorld(_LowRank, Pays):
    """State of `LowRankContexts`."""

    def offer(self, chance: Chance) -> tuple[Array]:
        """Subspace and θ* in the first round; then the actions."""
        shown, within = self.shown, self.within
        if shown.rounds[0] == 0:
            draw_frame(self.frame, chance)
            _draw_within(shown.theta, self.frame, within, chance)
        shown.rounds[0] += 1
        for k in range(shown.means.size):
            _draw_within(self.features[k], self.frame, within, chance)
        find_means(shown, self.features)
        return (self.features,)


class _Switching(NamedTuple):
    shown: Shown
    features: Array  # (K, d)
    frame: Array  # (d, d) orthonormal rows
    within: Array  # (d,) scratch: coordinates in the frame
    switch: int
    tilt: float


class SwitchingWorld(_Switching, Pays):
    """State of `SwitchingContexts`."""

    def offer(self, chance: Chance) -> tuple[Array]:
        """Directions and θ* in the first round; then the actions."""
        shown, dim = self.shown, self.within.size
        if shown.rounds[0] == 0:
            draw_frame(self.frame, chance)
            draw_direction(shown.theta, chance)
        half, late = dim // 2, shown.rounds[0] >= self.switch
        first, end = (half, dim) if late else (0, half)
        shown.rounds[0] += 1
        for k in range(shown.means.size):
            _draw_near(self.features[k], self.frame, first, end, self.tilt, self.within, chance)
        find_means(shown, self.features)
        return (self.features,)


class _Rotating(NamedTuple):
    shown: Shown
    features: Array  # (K, d)
    frame: Array  # (d, d) orthonormal rows
    turned: Array  # (d, d) the same after this round's turn, the plane's rows first
    within: Array  # (d,) scratch: coordinates in it
    turn: int
    tilt: float


class RotatingWorld(_Rotating, Pays):
    """State of `RotatingContexts`."""

    def offer(self, chance: Chance) -> tuple[Array]:
        """Directions and θ* in the first round; then the plane and the actions."""
        shown, frame, turned = self.shown, self.frame, self.turned
        dim = frame.shape[0]
        if shown.rounds[0] == 0:
            draw_frame(frame, chance)
            draw_direction(shown.theta, chance)
        way = (dim - 2) * min(1.0, shown.rounds[0] / self.turn)
        leg = min(int(way), dim - 3)
        angle = 0.5 * math.pi * (way - leg)
        cosine, sine = math.cos(angle), math.sin(angle)
        for j in range(dim):
            for i in range(leg):
                turned[i + 3, j] = frame[i, j]
            for i in range(leg + 3, dim):
                turned[i, j] = frame[i, j]
            turned[0, j] = frame[leg + 1, j]
            turned[1, j] = cosine * frame[leg, j] + sine * frame[leg + 2, j]
            turned[2, j] = cosine * frame[leg + 2, j] - sine * frame[leg, j]
        shown.rounds[0] += 1
        for k in range(shown.means.size):
            _draw_near(self.features[k], turned, 0, 2, self.tilt, self.within, chance)
        find_means(shown, self.features)
        return (self.features,)


@register_jitable(forceinline=True)
def _draw_within(vector: Array, frame: Array, within: Array, chance: Chance) -> None:
    """A uniformly random unit vector in the span of orthonormal rows."""
    draw_direction(within, chance)
    for j in range(vector.size):
        total = 0.0
        for i in range(within.size):
            total += within[i] * frame[i, j]
        vector[j] = total


@register_jitable(forceinline=True)
def _draw_near(
    vector: Array, frame: Array, first: int, end: int, tilt: float, within: Array, chance: Chance
) -> None:
    """A random unit vector in the span of rows `first` to `end`, but for a part of length `tilt`."""
    inside, outside = 0.0, 0.0
    for i in range(within.size):
        normal = chance.standard_normal()
        within[i] = normal
        if first <= i < end:
            inside += normal * normal
        else:
            outside += normal * normal
    flat = SHORT * math.sqrt((1.0 - tilt * tilt) / inside)
    up = SHORT * tilt / math.sqrt(outside)
    for i in range(within.size):
        within[i] *= flat if first <= i < end else up
    for j in range(vector.size):
        total = 0.0
        for i in range(within.size):
            total += within[i] * frame[i, j]
        vector[j] = total
