"""Policies that leak in ways of their own: each must be caught by the replay test."""

import math
from typing import Any

import numpy as np

import epoch_greedy
from dpbandits import Arms, GaussianDP
from dpbandits.engine import Chance, Noise, verb
from epoch_greedy import Public, Secret
from faulty_policies import Faulty


class ManyDrawsOfOneSecret(Faulty):
    """Ten draws around one secret in one call, averaged."""

    class state(Public): ...


@verb
def pause_many(public: ManyDrawsOfOneSecret.state, secret: Secret, noise: Any) -> None:
    mean = noise.normal(secret.buffer[0], public.scale, 10).mean()
    epoch_greedy.pause(public, secret, noise)
    public.released[0] = mean


class SecretAsNaN(Faulty):
    """The location is NaN exactly if the data say so."""

    class state(Public): ...


@verb
def release_nan(public: SecretAsNaN.state, secret: Secret, noise: Noise) -> None:
    noise.normal(math.nan if secret.buffer[0] > 0 else 0.0, 1e9)


class ManyCoins(Faulty):
    """A thousand coins priced like one."""

    class state(Public): ...


@verb
def release_coins(public: ManyCoins.state, secret: Secret, noise: Noise) -> None:
    noise.binomial(1000, 0.5 + 0.1 * math.tanh(secret.buffer[0]))


class InteriorRewards(Faulty):
    """Rewards strictly inside the range count forty times."""

    class state(Public): ...


@verb
def observe_interior(
    public: InteriorRewards.state, secret: Secret, context: None, action: int, reward: float
) -> None:
    epoch_greedy.observe(public, secret, context, action, reward)
    if 0.0 < reward < 0.5:
        secret.buffer[action] += 40.0 * reward


class InfiniteRewards(Faulty):
    """Clipped by a division that turns infinity into NaN for ever."""

    class state(Public): ...


@verb
def observe_infinite(
    public: InfiniteRewards.state, secret: Secret, context: None, action: int, reward: float
) -> None:
    with np.errstate(all="ignore"):
        value = np.float64(reward) / max(1.0, abs(reward))
    epoch_greedy.observe(public, secret, context, action, 0.5)
    if reward == reward:
        secret.buffer[action] += value / 2


class PeeksForAMoment(Faulty):
    """Raw data is public while it decides, and wiped before anybody looks."""

    class state(Public): ...


@verb
def release_peek(public: PeeksForAMoment.state, secret: Secret, noise: Noise) -> None:
    public.open[0] += round(1000 * secret.buffer[0])


@verb
def observe_wiped(
    public: PeeksForAMoment.state, secret: Secret, context: None, action: int, reward: float
) -> None:
    public.open[0] -= round(1000 * secret.buffer[0])
    epoch_greedy.observe(public, secret, context, action, reward)


class ExploresBySecret(Faulty):
    """How often it explores depends on the data, through a public field."""

    class state(Public): ...


@verb
def select_leaky(public: ExploresBySecret.state, context: None, explore: Chance) -> int:
    explore.normal(0.0, 1.0 + public.released[0] ** 2)
    return epoch_greedy.select(public, context, explore)


@verb
def release_leaky(public: ExploresBySecret.state, secret: Secret, noise: Noise) -> None:
    public.released[0] = secret.buffer[0]


class PausesBySecret(Faulty):
    """The length of an epoch follows the data."""

    class state(Public): ...


@verb
def pause_secret(public: PausesBySecret.state, secret: Secret, noise: Noise) -> None:
    extra = int(secret.buffer.sum() > 0)
    epoch_greedy.pause(public, secret, noise)
    public.next_pause[0] += extra


class LaterArms(Faulty):
    """Too little noise, but only from the fifth arm on."""

    class state(Public): ...


@verb
def pause_later(public: LaterArms.state, secret: Secret, noise: Any) -> None:
    scale = np.where(np.arange(public.open.size) >= 4, 0.5, 1.0) * public.scale
    drawn = noise.normal(secret.buffer, scale)
    epoch_greedy.pause(public._replace(scale=1e12), Secret(np.zeros_like(secret.buffer)), _Silent())
    public.released[:] += drawn
    secret.buffer[:] = 0.0


class _Silent:
    """Draws nothing."""

    def normal(self, loc: Any, scale: Any) -> Any:
        return loc


class KeepsTheBuffer(Faulty):
    """Forgets to empty the buffer, so every datum is released again and again."""

    class state(Public): ...


@verb
def pause_keeping(public: KeepsTheBuffer.state, secret: Secret, noise: Noise) -> None:
    kept = secret.buffer.copy()
    epoch_greedy.pause(public, secret, noise)
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
