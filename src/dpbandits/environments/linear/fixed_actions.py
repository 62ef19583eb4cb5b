"""One decision set for all rounds, brought by each person anew or declared in public."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpbandits import checks
from dpbandits.engine import Chance, Streams, implementation, verb
from dpbandits.environments.linear.sphere_contexts import SphereContexts, check_sphere
from dpbandits.environments.linear.worlds import Array, LinearEnvironment, Shown
from dpbandits.problems import LinearActions, LinearProblem


@dataclass(frozen=True)
class FixedActions(LinearEnvironment):
    """The same decision set in every round: θ* and one set as in `SphereContexts`, drawn from `seed`.

    With `public` the set is declared (the problem is `LinearActions`); otherwise each person brings it
    as her private features (`LinearContexts`). Both are the same instance; another seed is another one.
    """

    dim: int = 5
    actions: int = 25
    gap: float = 0.1
    public: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sphere(self.dim, self.actions, self.gap)
        checks.one_of((False, True), public=self.public)
        checks.integer(least=0, seed=self.seed)

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
        """What the first round of that world shows."""
        sphere = SphereContexts(self.dim, self.actions, self.gap).world()
        chance = Streams.of(np.random.SeedSequence(self.seed)).chance
        (features,) = implementation("offer", type(sphere))(sphere, chance)
        return sphere.shown, features.copy()


class FixedWorld(NamedTuple):
    """State of `FixedActions` where each person brings the set."""

    shown: Shown
    features: Array  # (K, d)


class PublicWorld(NamedTuple):
    """State of `FixedActions` where it is declared."""

    shown: Shown


@verb
def offer_fixed(world: FixedWorld, chance: Chance) -> tuple[Array]:
    """The same set as ever."""
    return (world.features,)


@verb
def offer_public(world: PublicWorld, chance: Chance) -> None:
    """Nothing: the set is declared."""
