"""Searches for the best arm that end on raw data; see `broken.py`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpbandits.engine import Noise
from dpbandits.policies.arms import best_arm_race, sequential_halving
from dpbandits.policies.arms.best_arm_race import BestArmRace
from dpbandits.policies.arms.sequential_halving import SequentialHalving
from dpbandits.policies.arms.shared.search import is_over, recommend
from dpbandits.policies.policy import Policy
from dpbandits.problems import Arms
from dpbandits.problems.arms import centred
from dpbandits.sums.batches import Buffers


@dataclass(frozen=True, kw_only=True)
class StopsOnRawMeans(BestArmRace):
    """Everything is chosen by released means, but the race ends when the raw ones are far apart."""

    abstract: ClassVar[bool] = True
    first_batch: int | None = 2

    class state(best_arm_race.Public):
        def observe(self, secret: Buffers, context: None, action: int, reward: float) -> None:
            """Keep the exact sums too."""
            secret.exact[action, 0] += centred(reward)
            super().observe(secret, context, action, reward)

        def release(self, secret: Buffers, noise: Noise) -> None:
            """The leader by released means is recommended, at a moment that shows the data."""
            super().release(secret, noise)
            if self.turns.unknown[0] == 0 and not is_over(self):
                means = np.sort(secret.exact[:, 0] / self.turns.plays)
                if means[-1] - means[-2] > 0.5:
                    recommend(self, int(self.leader[0]))

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """The usual state, in the class whose verbs are wrong."""
        public, secret = super().begin(problem)
        return self.state(*public), secret


@dataclass(frozen=True, kw_only=True)
class RecommendsByRawMeans(SequentialHalving):
    """Halves by released means; of the arms that are left, the one with the best raw mean wins."""

    abstract: ClassVar[bool] = True
    rounds: int = 25

    class state(sequential_halving.Public):
        def observe(self, secret: Buffers, context: None, action: int, reward: float) -> None:
            """Keep the exact sums too."""
            secret.exact[action, 0] += centred(reward)
            super().observe(secret, context, action, reward)

        def release(self, secret: Buffers, noise: Noise) -> None:
            """The last noise is drawn, and not used."""
            ends = self.short[0] == 0 and self.phases[0] == 1
            super().release(secret, noise)
            if ends:
                self.estimates.mean[:] = secret.exact[:, 0] / self.turns.plays

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """The usual state, in the class whose verbs are wrong."""
        public, secret = super().begin(problem)
        return self.state(*public), secret


BROKEN_IDENTIFICATION: tuple[type[Policy], ...] = (StopsOnRawMeans, RecommendsByRawMeans)
