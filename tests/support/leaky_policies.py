"""Policies that leak in ways of their own: each must be caught by the replay test."""

import math
from typing import Any

import numpy as np
from epoch_greedy import Public, Secret
from faulty_policies import Faulty

from dpbandits import Arms, GaussianDP
from dpbandits.engine import Chance, Noise


class ManyDrawsOfOneSecret(Faulty):
    """Ten draws around one secret in one call, averaged."""

    class state(Public):
        def pause(self, secret: Secret, noise: Any) -> None:
            mean = noise.normal(secret.buffer[0], self.scale, 10).mean()
            super().pause(secret, noise)
            self.released[0] = mean


class SecretAsNaN(Faulty):
    """The location is NaN exactly if the data say so."""

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            noise.normal(math.nan if secret.buffer[0] > 0 else 0.0, 1e9)


class ManyCoins(Faulty):
    """A thousand coins priced like one."""

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            noise.binomial(1000, 0.5 + 0.1 * math.tanh(secret.buffer[0]))


class InteriorRewards(Faulty):
    """Rewards strictly inside the range count forty times."""

    class state(Public):
        def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
            super().observe(secret, context, action, reward)
            if 0.0 < reward < 0.5:
                secret.buffer[action] += 40.0 * reward


class InfiniteRewards(Faulty):
    """Clipped by a division that turns infinity into NaN for ever."""

    class state(Public):
        def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
            with np.errstate(all="ignore"):
                value = np.float64(reward) / max(1.0, abs(reward))
            super().observe(secret, context, action, 0.5)
            if reward == reward:
                secret.buffer[action] += value / 2


class PeeksForAMoment(Faulty):
    """Raw data is public while it decides, and wiped before anybody looks."""

    class state(Public):
        def release(self, secret: Secret, noise: Noise) -> None:
            self.open[0] += round(1000 * secret.buffer[0])

        def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
            self.open[0] -= round(1000 * secret.buffer[0])
            super().observe(secret, context, action, reward)


class ExploresBySecret(Faulty):
    """How often it explores depends on the data, through a public field."""

    class state(Public):
        def select(self, context: None, explore: Chance) -> int:
            explore.normal(0.0, 1.0 + self.released[0] ** 2)
            return super().select(context, explore)

        def release(self, secret: Secret, noise: Noise) -> None:
            self.released[0] = secret.buffer[0]


class PausesBySecret(Faulty):
    """The length of an epoch follows the data."""

    class state(Public):
        def pause(self, secret: Secret, noise: Noise) -> None:
            extra = int(secret.buffer.sum() > 0)
            super().pause(secret, noise)
            self.next_pause[0] += extra


class LaterArms(Faulty):
    """Too little noise, but only from the fifth arm on."""

    class state(Public):
        def pause(self, secret: Secret, noise: Any) -> None:
            scale = np.where(np.arange(self.open.size) >= 4, 0.5, 1.0) * self.scale
            drawn = noise.normal(secret.buffer, scale)
            empty = Secret(np.zeros_like(secret.buffer))
            silent: Any = _Silent()
            Public.pause(self._replace(scale=1e12), empty, silent)
            self.released[:] += drawn
            secret.buffer[:] = 0.0


class _Silent:
    """Draws nothing."""

    def normal(self, loc: Any, scale: Any) -> Any:
        return loc


class KeepsTheBuffer(Faulty):
    """Forgets to empty the buffer, so every datum is released again and again."""

    class state(Public):
        def pause(self, secret: Secret, noise: Noise) -> None:
            kept = secret.buffer.copy()
            super().pause(secret, noise)
            secret.buffer[:] = kept


LEAKY = [
    kind(privacy=GaussianDP(1.0))
    for kind in (
        ManyDrawsOfOneSecret,
        SecretAsNaN,
        ManyCoins,
        InteriorRewards,
        InfiniteRewards,
        PeeksForAMoment,
        ExploresBySecret,
        PausesBySecret,
        KeepsTheBuffer,
    )
]
LEAKY_FOR_SIX_ARMS = LaterArms(privacy=GaussianDP(1.0)), Arms(6)
