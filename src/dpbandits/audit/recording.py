"""Generators that remember: every draw of noise with its location, every draw of exploration."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Draw:
    """One release: the secret is `location`; kind, scale and result are public."""

    kind: str
    location: Any
    scale: Any
    result: Any

    def __post_init__(self) -> None:
        # A drawn-from buffer is usually emptied right after the draw: keep what it held.
        for name in ("location", "scale", "result"):
            object.__setattr__(self, name, np.array(getattr(self, name)))


@dataclass(frozen=True)
class Steer:
    """Which results to push where. A guarantee holds for *every* result, so the audit may choose.

    The draw of this index in each round is pushed down, so that (say) one arm is never played again;
    with `first_up` it is pushed up once before, so that it is played at least once.
    """

    index: int | None = None
    first_up: bool = False

    def __str__(self) -> str:
        if self.index is None:
            return "results as drawn"
        return f"draw {self.index + 1} pushed {'up once, then down' if self.first_up else 'down'}"

    def push(self, index: int, earlier: int) -> float:
        """How many scales to move the result, given how many draws of this index were pushed."""
        if index != self.index:
            return 0.0
        return 1e3 if self.first_up and earlier == 0 else -1e3


@dataclass
class RecordingNoise:
    """Draws as usual, moved by `steer`, and remembers."""

    generator: np.random.Generator
    steer: Steer
    draws: list[Draw] = field(default_factory=list)
    _pushed: int = 0

    def _keep(self, kind: str, location: Any, scale: Any, result: Any) -> Any:
        move = self.steer.push(len(self.draws), self._pushed)
        if move:
            self._pushed += 1
            result = result + move * scale
        self.draws.append(Draw(kind, location, scale, result))
        return result

    def normal(self, loc: Any, scale: Any, size: Any = None) -> Any:
        """A remembered Gaussian draw."""
        return self._keep("normal", loc, scale, self.generator.normal(loc, scale, size))

    def laplace(self, loc: Any, scale: Any, size: Any = None) -> Any:
        """A remembered Laplace draw."""
        return self._keep("laplace", loc, scale, self.generator.laplace(loc, scale, size))

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """A remembered coin; its probability is the location."""
        result = self.generator.binomial(n, p, size)
        self.draws.append(Draw("binomial", p, n, result))
        return result


@dataclass
class ForcedNoise:
    """Returns the results recorded on the neighbour, and remembers the locations on this stream."""

    recorded: list[Draw]
    draws: list[Draw] = field(default_factory=list)

    def _force(self, kind: str, location: Any, scale: Any) -> Any:
        position = len(self.draws)
        if position >= len(self.recorded):
            raise Mismatch(f"draw {position + 1} of a round that drew {len(self.recorded)} before")
        before = self.recorded[position]
        if kind != before.kind or not np.array_equal(scale, before.scale):
            raise Mismatch(f"{kind} of scale {scale} where it was {before.kind} of {before.scale}")
        self.draws.append(Draw(kind, location, scale, before.result))
        return before.result[()]

    def normal(self, loc: Any, scale: Any, size: Any = None) -> Any:
        """The recorded result."""
        return self._force("normal", loc, scale)

    def laplace(self, loc: Any, scale: Any, size: Any = None) -> Any:
        """The recorded result."""
        return self._force("laplace", loc, scale)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """The recorded result."""
        return self._force("binomial", p, n)


class Mismatch(Exception):
    """Something that must not depend on the replaced person does."""


class RecordingExplore:
    """Exploration of one round, seeded by that round, that remembers the arguments of every draw."""

    def __init__(self, *seed: int) -> None:
        self._seed = seed
        self._generator: np.random.Generator | None = None  # made when first used: it is slow to make
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if self._generator is None:
            self._generator = np.random.default_rng(self._seed)
        method = getattr(self._generator, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(f"{name}{args}{kwargs}")
            return method(*args, **kwargs)

        return call
