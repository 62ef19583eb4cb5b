"""One decision set for all rounds, brought by each person anew or declared in public."""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from dpbandits import checks
from dpbandits.engine import Chance, Streams
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.problems import LinearActions, LinearProblem
from dpbandits.worlds.linear.sphere_contexts import BEST, check_sphere
from dpbandits.worlds.linear.worlds import (
    SHORT,
    Array,
    LinearEnvironment,
    Pays,
    Shown,
    dot,
    draw_direction,
    start_shown,
)


@dataclass(frozen=True)
class FixedActions(LinearEnvironment):
    """The same decision set in every round: θ* and one set as in `SphereContexts`, drawn from `seed`.

    With `public` the set is declared (the problem is `LinearActions`); otherwise each person brings it
    as her private features (`LinearContexts`). Both are the same instance; another seed is another one.
    """

    dim: Annotated[int, "How many features an action has."] = 5
    actions: Annotated[int, "How many actions there are."] = 25
    gap: Annotated[float, "How much better the best action is than any other, at least."] = 0.1
    public: Annotated[
        bool, "Whether the set is declared beforehand: the problem is LinearActions then."
    ] = False
    seed: Annotated[int, "Which set of actions it is."] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sphere(self.dim, self.actions, self.gap)
        checks.one_of((False, True), public=self.public)
        checks.seed(self.seed)

    def problem(self, rounds: int | None) -> LinearProblem:
        """The rows in public, or a fresh decision set that happens to be always the same."""
        if self.public:
            rows = tuple(tuple(row) for row in self._instance()[1].tolist())
            return LinearActions(rows, horizon=rounds)
        return self.contexts(self.dim, rounds)

    def world(self) -> "FixedWorld | PublicWorld":
        """The instance of the seed."""
        shown, features = self._instance()
        return PublicWorld(shown) if self.public else FixedWorld(shown, features)

    def uniform_regret(self) -> float:
        """The best mean minus the average mean, exactly."""
        shown, _ = self._instance()
        return float(shown.best[0] - shown.means.mean())

    def _instance(self) -> tuple[Shown, Array]:
        """θ*, and random directions until enough are in the band; one of them becomes the best."""
        chance = Streams.of(np.random.SeedSequence(self.seed)).chance
        shown = start_shown(self.actions, self.dim)
        theta, features, found = shown.theta, np.zeros((self.actions, self.dim)), 0
        draw_direction(theta, chance)
        while found < self.actions:
            # Another number of them would be other instances.
            for drawn in chance.standard_normal((self.dim, 256)).T:
                scale = SHORT / math.sqrt(dot(drawn, drawn))
                mean = dot(theta, drawn) * scale
                if found < self.actions and -BEST <= mean <= BEST - self.gap:
                    features[found], shown.means[found] = scale * drawn, mean
                    found += 1
        place = int(chance.random() * self.actions)
        # θ*, too, is shorter than 1: so the best is as long as the others.
        along = dot(features[place], theta) / dot(theta, theta)
        across = features[place] - along * theta
        scale = SHORT * math.sqrt((1.0 - BEST * BEST) / dot(across, across))
        features[place] = BEST * theta + scale * across
        shown.means[place] = shown.best[0] = BEST
        return shown, features


class _Fixed(NamedTuple):
    shown: Shown
    features: Array  # (K, d)

    def limits(self) -> Limits:
        """What no round changes."""
        return {"features": FROM_RECIPE}


class FixedWorld(_Fixed, Pays):
    """State of `FixedActions` where each person brings the set."""

    def offer(self, chance: Chance) -> tuple[Array]:
        """The same set as ever."""
        return (self.features,)


class _Public(NamedTuple):
    shown: Shown


class PublicWorld(_Public, Pays):
    """State of `FixedActions` where it is declared."""

    def offer(self, chance: Chance) -> None:
        """Nothing: the set is declared."""
