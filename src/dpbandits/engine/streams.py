"""The random streams of one run: from one seed, or from the operating system.

`noise` protects (secret), `explore` decides (independent of anyone's data, but how much of it was used
may not be), `chance` is the world's own.

**With a seed**, for simulation and tests, they are children of it, so that two policies on the same run
meet the same world, and no policy's draws depend on which others are compared with it. Whoever knows the
state of one of them can work out the others: a seed protects nobody.

**Without one**, for learners at work, each is ChaCha20 under a key of its own from the operating system.
Nothing about one follows from another, and nothing about a key from what was drawn. Who reads a key in
memory can work out what was drawn under it; fresh streams (`Learner.renew`) end that.
"""

import secrets
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpbandits import checks

Seed = int | np.integer[Any] | np.random.SeedSequence | None
Chance = np.random.Generator
_OURS = 0x6470_6261  # in the spawn key of a learner's seed


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
        """The streams of a seed; without one, secret ones."""
        if seed is None:
            return cls(*(_secret_generator() for _ in range(3)))
        root = _root(seed)
        # Children by explicit key: `spawn` would remember how often it was called.
        keys = ((*root.spawn_key, child) for child in range(3))
        return cls(*(_generator(root.entropy, key) for key in keys))


def learner_seed(seed: Seed) -> Seed:
    """The seed of a learner that a user gave hers to, apart from every child that she spawns from it."""
    if seed is None:
        return None
    root = _root(seed)
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, _OURS))


def delay_stream(seed: np.random.SeedSequence) -> np.random.Generator:
    """The fourth stream of a run: when rewards arrive. No other stream depends on how it is used."""
    return _generator(seed.entropy, (*seed.spawn_key, 3))


def run_seed(seed: int, run: int) -> np.random.SeedSequence:
    """The seed of one of several independent runs."""
    return np.random.SeedSequence(seed, spawn_key=(run,))


def _root(seed: int | np.integer[Any] | np.random.SeedSequence) -> np.random.SeedSequence:
    if isinstance(seed, np.random.SeedSequence):
        return seed
    checks.seed(seed)
    return np.random.SeedSequence(seed)


def _generator(entropy: object, key: tuple[int, ...]) -> np.random.Generator:
    sequence = np.random.SeedSequence(entropy, spawn_key=key)  # type: ignore[arg-type]
    return np.random.Generator(np.random.PCG64(sequence))


def _secret_generator() -> np.random.Generator:
    from randomgen import ChaCha  # slow to import, and simulations do without

    return np.random.Generator(ChaCha(key=secrets.randbits(256), rounds=20))
