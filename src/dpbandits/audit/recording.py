"""Generators that remember: every draw of noise with its location, every draw of exploration."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpbandits.errors import AuditError
from dpbandits.mechanisms.exact import ExactNoise, on_grid
from dpbandits.mechanisms.norm_gamma import draw_norm_gamma
from dpbandits.mechanisms.wishart import draw_wishart, matrix_size


@dataclass(frozen=True)
class Draw:
    """One release: the secret is `location`; kind, scale and result are public.

    All three have the shape of the result: a vector draw around one secret spends on it every time.
    """

    kind: str
    location: Any
    scale: Any
    result: Any
    dof: int = 0  # degrees of freedom, of Wishart noise

    def __post_init__(self) -> None:
        if isinstance(self.result, float | int) and isinstance(self.location, float):
            return
        # A drawn-from buffer is usually emptied right after the draw: keep what it held.
        shape = np.shape(self.result)
        for name in ("location", "scale", "result"):
            kept = np.array(np.broadcast_to(np.asarray(getattr(self, name)), shape))
            object.__setattr__(self, name, kept)


@dataclass(frozen=True)
class Steer:
    """Which results to push where. A guarantee holds for *every* result, so the audit may choose.

    `index` counts the numbers drawn in a round (elements of vectors included): that one is pushed down
    in every round, so that (say) one arm is never played again; with `first_up` it is pushed up once
    before, so that it is played at least once. −1 stands for all of them. With `favour` all draws are
    pushed up if the round before repeated the first round's action and down otherwise, so that (say) one
    arm is played again and again, until its tree has all its levels.
    """

    index: int | None = None
    first_up: bool = False
    favour: bool = False

    def __str__(self) -> str:
        if self.favour:
            return "draws after the first action pushed up, all others down"
        if self.index is None:
            return "noise as drawn"
        which = "all draws" if self.index < 0 else f"draw {self.index + 1}"
        return f"{which} pushed {'up once, then down' if self.first_up else 'down'}"


@dataclass
class RecordingNoise:
    """Draws as usual, moved by `steer`, and remembers."""

    generator: np.random.Generator
    steer: Steer
    exact: bool = False  # on a grid
    draws: list[Draw] = field(default_factory=list)
    numbers: int = 0  # drawn in this round
    repeated: bool = False  # whether the round before had the first round's action
    _pushed: int = 0

    def start_round(self) -> None:
        """Forget the draws of the last round."""
        self.draws, self.numbers = [], 0

    def _push(self, result: Any, scale: Any) -> Any:
        """Move the steered elements by 1000 scales."""
        size = 1 if isinstance(result, float) else np.size(result)
        first, wanted = self.numbers, self.steer.index
        self.numbers += size
        if self.steer.favour:
            return result + (1e3 if self.repeated else -1e3) * scale
        if wanted is None or not (wanted < 0 or first <= wanted < first + size):
            return result
        moves = np.zeros(size)
        moves[slice(None) if wanted < 0 else wanted - first] = -1e3
        if self.steer.first_up and self._pushed == 0:
            moves = -moves
        self._pushed += 1
        return result + (moves.reshape(np.shape(result)) * scale)[()]

    def _keep(self, kind: str, location: Any, scale: Any, drawn: Any) -> Any:
        result = self._push(drawn, scale)
        self.draws.append(Draw(kind, location, scale, result))
        return result

    def normal(self, loc: Any, scale: Any, size: Any = None) -> Any:
        """A remembered Gaussian draw."""
        if self.exact:
            drawn = ExactNoise(self.generator).normal(loc, scale, size)
            return self._keep("normal", *on_grid(loc, scale), drawn)
        return self._keep("normal", loc, scale, self.generator.normal(loc, scale, size))

    def laplace(self, loc: Any, scale: Any, size: Any = None) -> Any:
        """A remembered Laplace draw."""
        if self.exact:
            drawn = ExactNoise(self.generator).laplace(loc, scale, size)
            return self._keep("laplace", *on_grid(loc, scale), drawn)
        return self._keep("laplace", loc, scale, self.generator.laplace(loc, scale, size))

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Remembered coins; their probability is the location, their number the scale."""
        result = self.generator.binomial(n, p, size)
        self.numbers += np.size(result)
        self.draws.append(Draw("binomial", p, n, result))
        return result

    def wishart(self, location: Any, dof: int, scale: float) -> Any:
        """A remembered Wishart draw, never pushed: a policy may rely on noise with no negative part."""
        size, result = matrix_size(location.size), np.empty(location.size)
        draw_wishart(
            self.generator, location, result, dof, scale, np.empty((size, size)), np.empty(size)
        )
        self.numbers += result.size
        self.draws.append(Draw("wishart", location, scale, result, dof))
        return result

    def norm_gamma(self, location: Any, scale: Any) -> Any:
        """A remembered draw of the Gamma mechanism: one for the whole vector."""
        drawn = np.empty(location.size)
        draw_norm_gamma(self.generator, location, drawn, 1.0, scale)
        return self._keep("norm_gamma", location, scale, drawn)


@dataclass
class ForcedNoise:
    """Returns the results recorded on the neighbour, and remembers the locations on this stream."""

    recorded: list[Draw] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    exact: bool = False  # on a grid

    def start_round(self, recorded: list[Draw]) -> None:
        """The results to force in the next round."""
        self.recorded, self.draws = recorded, []

    def _force(self, kind: str, location: Any, scale: Any, size: Any, dof: int = 0) -> Any:
        if self.exact and kind != "binomial":
            location, scale = on_grid(location, scale)
        position = len(self.draws)
        if position >= len(self.recorded):
            raise Mismatch(f"draw {position + 1} of a round that drew {len(self.recorded)} before")
        before = self.recorded[position]
        if size is None and isinstance(location, float) and isinstance(before.location, float):
            if kind != before.kind or scale != before.scale:
                now, then = _told_apart(scale, before.scale)
                raise Mismatch(f"{kind} of scale {now} where it was {before.kind} of scale {then}")
            self.draws.append(Draw(kind, location, scale, before.result))
            return before.result
        shape = np.broadcast_shapes(np.shape(location), np.shape(scale), np.shape(np.empty(size or ())))
        if kind != before.kind or shape != np.shape(before.result):
            raise Mismatch(f"{kind} of shape {shape} where it was another {before.kind}")
        if dof != before.dof or not np.array_equal(np.broadcast_to(scale, shape), before.scale):
            now, then = _told_apart(scale, before.scale)
            raise Mismatch(f"{kind} of scale {now} where it was of scale {then}")
        self.draws.append(Draw(kind, location, scale, before.result, dof))
        return before.result[()] if shape == () else before.result.copy()

    def normal(self, loc: Any, scale: Any, size: Any = None) -> Any:
        """The recorded result."""
        return self._force("normal", loc, scale, size)

    def laplace(self, loc: Any, scale: Any, size: Any = None) -> Any:
        """The recorded result."""
        return self._force("laplace", loc, scale, size)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """The recorded result."""
        return self._force("binomial", p, n, size)

    def wishart(self, location: Any, dof: int, scale: float) -> Any:
        """The recorded result."""
        return self._force("wishart", location, scale, None, dof)

    def norm_gamma(self, location: Any, scale: Any) -> Any:
        """The recorded result."""
        return self._force("norm_gamma", location, scale, None)


def _told_apart(one: Any, other: Any) -> list[str]:
    """Numbers with four digits; with all of them where four look alike."""
    texts: list[str] = []
    for digits in (4, 17):
        with np.printoptions(precision=digits, threshold=8):
            texts = [" ".join(str(np.atleast_1d(x)).split()) for x in (one, other)]
        if texts[0] != texts[1]:
            break
    return [text.strip("[] ") for text in texts] if np.size(one) == np.size(other) == 1 else texts


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
        if name == "spawn" or not callable(method):
            # Here every round has a generator of its own: what is left in this one would go unnoticed.
            raise AuditError(f"a decision may draw from `explore` only; it used explore.{name}")

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(f"{name}{args}{kwargs}")
            return method(*args, **kwargs)

        return call
