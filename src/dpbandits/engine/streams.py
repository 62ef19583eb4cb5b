"""The random streams of one run, spawned from one seed.

`noise` protects (secret), `explore` decides (independent of anyone's data, but how much of it was used
may not be), `chance` is the world's own. They are
independent children of the run's seed, so that two policies on the same run meet the same world, and
no policy's draws depend on which others are compared with it.
"""

from typing import NamedTuple, Protocol

import numpy as np

from dpbandits import checks

Seed = int | np.random.SeedSequence | None
Chance = np.random.Generator


class Noise(Protocol):
    """The only ways a secret may become public: it is the *location* of a draw, never more."""

    def normal(self, loc: float, scale: float) -> float:
        """A Gaussian draw around the secret `loc`."""

    def laplace(self, loc: float, scale: float) -> float:
        """A Laplace draw around the secret `loc`."""

    def binomial(self, n: int, p: float) -> int:
        """A coin whose probability carries the secret (randomized response)."""


class Streams(NamedTuple):
    """The three generators of one run."""

    noise: np.random.Generator
    explore: np.random.Generator
    chance: np.random.Generator

    @classmethod
    def of(cls, seed: Seed) -> "Streams":
        """The streams of a seed; without one, from the operating system's randomness."""
        if seed is not None and not isinstance(seed, np.random.SeedSequence):
            checks.seed(seed)
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        # Children by explicit key: `spawn` would remember how often it was called.
        keys = ((*root.spawn_key, child) for child in range(3))
        return cls(*(_generator(root.entropy, key) for key in keys))


def delay_stream(seed: np.random.SeedSequence) -> np.random.Generator:
    """The fourth stream of a run: when rewards arrive. No other stream depends on how it is used."""
    return _generator(seed.entropy, (*seed.spawn_key, 3))


def run_seed(seed: int, run: int) -> np.random.SeedSequence:
    """The seed of one of several independent runs."""
    return np.random.SeedSequence(seed, spawn_key=(run,))


def _generator(entropy: object, key: tuple[int, ...]) -> np.random.Generator:
    sequence = np.random.SeedSequence(entropy, spawn_key=key)  # type: ignore[arg-type]
    return np.random.Generator(np.random.PCG64(sequence))
