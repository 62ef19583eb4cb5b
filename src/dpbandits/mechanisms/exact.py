r"""Exact noise on a grid: what a learner at work draws instead of floating-point noise.

A sum of a secret and floating-point noise gives away more than the sum of two real numbers
(`rounding.py`), and no floating-point sampler has the tails its formula says. Here a draw around a
location x at a scale b is

    (k + Z)·g,   g = 2⁻³⁰·w,   w = (1 + 2⁻¹⁰)·b,   k = x/g rounded to a whole number,

with Z a whole number from the discrete Laplace law P[Z = z] ∝ exp(−\|z\|/s) or the discrete Gaussian law
P[Z = z] ∝ exp(−z²/2s²), s = 2³⁰, drawn by Canonne, Kamath & Steinke (2020, algorithms 1 to 3) with
whole numbers only: every coin is a comparison of uniform whole numbers, so probabilities are exact. The
grid g is public, as b is; all that follows is a function of k + Z.

**What it costs.** If a person moves the location by Δ, she moves k by at most Δ/g + 32: 1 for rounding
to whole numbers, the rest for that of the division while \|x\| ≤ 2²⁶·b. Laplace: exactly (Δ/g + 32)/s,
that is (Δ/b)/(1 + 2⁻¹⁰) + 2⁻²⁵. If she is in m draws, all of them together cost at most ε = Σ Δ/b while
ε ≥ m·2⁻¹⁴: the width 1 + 2⁻¹⁰ pays for rounding. Gaussian: shifts of D draws by δ ∈ R^D, in units of b,
become at most ‖δ‖/(1 + 2⁻¹⁰) + 2⁻²⁵·√D, which is at most μ = ‖δ‖ while μ ≥ √D·2⁻¹⁴. A policy says how
many draws one round may move (`Policy.draws_of_one`); exact noise is refused for less (`least_budget`).
Beyond 2³²·b a location is cut off, so it is refused for budgets above 1024 too.

**The discrete law.** Shifted by a whole number, the discrete Gaussian is ½(shift/s)²-zCDP, as the
continuous one is (Canonne, Kamath & Steinke 2020, theorem 4). Its trade-off function is linear between
the points α = P[Z ≥ j], β = P[Z < j − shift], and these differ from Φ(−(j − ½)/s) and
Φ((j − ½ − shift)/s) by the error of the midpoint rule, about x·φ(x)/(24 s²) < 10⁻¹⁹ at x = j/s. The
width moves β by 2⁻¹⁰·μ·φ, which is more for every μ above 10⁻¹². So μ-GDP is met too; that is tested at
small s, where the difference shows.

**Sums in floating point.** Rewards and rows are stored on grids of their own, on which sums are exact
(`problems/arms.py`, `policies/linear/shared/rows.py`). Where they are not, two neighbouring sums of n
numbers within ½, added one by one, differ by at most Δ + n²·2⁻⁵³: for 10⁶ of them a tenth of what the
width pays for.

Not for Wishart noise, which is no draw around a location, and not for sums that are drawn anew in every
round without end (`sums/factorized.py`): there D has no bound.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine.cache import compiled
from dpbandits.engine.draws import compile_draws

_UNITS = 1 << 30  # s, the scale in units of the grid
_MARGIN = 1.0 + 2.0**-10
LARGEST_BUDGET = 1024.0
_WORD = 2.0**53
_FURTHEST = 2.0**62  # where a location is cut off: a 1-Lipschitz function, so it costs nothing


class ExactNoise(NamedTuple):
    """As the generator that it takes its whole numbers from, for draws that protect."""

    generator: np.random.Generator

    def normal(self, loc: Any, scale: Any, size: Any = None) -> Any:
        """A discrete Gaussian draw, or an array of them."""
        return _each(False, self.generator, loc, scale, size)

    def laplace(self, loc: Any, scale: Any, size: Any = None) -> Any:
        """A discrete Laplace draw, or an array of them."""
        return _each(True, self.generator, loc, scale, size)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """How many of n coins show heads: exact as it is, but for 2⁻⁵³ of a coin."""
        return self.generator.binomial(n, p, size)


def least_budget(draws: float, *, pure: bool) -> float:
    """The least ε, or μ, for which the width pays where one person's data move this many draws."""
    return (draws if pure else math.sqrt(draws)) * 2.0**-14


@register_jitable(forceinline=True)
def grid(scale: float) -> float:
    """The step g of the grid on which draws of a scale lie."""
    return scale * _MARGIN / _UNITS


def on_grid(loc: Any, scale: Any) -> tuple[Any, Any]:
    """Where a draw around a location really is centred, and how wide it is: for audits."""
    if np.ndim(loc) == 0 and np.ndim(scale) == 0:
        return (place(loc, scale, 0), scale * _MARGIN) if scale > 0.0 else (loc, scale)
    placed = np.vectorize(on_grid, otypes=[float, float])(loc, scale)
    return placed[0], placed[1]


def _each(laplace: bool, generator: Any, loc: Any, scale: Any, size: Any) -> Any:
    """One draw, or as many as NumPy would make of these arguments."""
    if size is None and isinstance(loc, float) and isinstance(scale, float):
        return (_laplace if laplace else _normal)(generator, loc, scale)
    asked = () if size is None else size if isinstance(size, tuple) else (size,)
    shape = np.broadcast_shapes(np.shape(loc), np.shape(scale), asked)
    found: NDArray[np.float64] = np.array(np.broadcast_to(loc, shape), float)
    scales = np.array(np.broadcast_to(scale, shape), float)
    _filler()(generator, found.reshape(-1), scales.reshape(-1), laplace)
    return found


def _fill(generator: Any, values: Any, scales: Any, laplace: bool) -> None:
    """Replace each value by a draw around it."""
    for i in range(values.size):
        if laplace:
            values[i] = _laplace(generator, values[i], scales[i])
        else:
            values[i] = _normal(generator, values[i], scales[i])


@functools.cache
def _filler() -> Any:
    return compiled(_fill)[0]


@register_jitable
def _normal(generator: Any, loc: float, scale: float) -> float:
    if scale == 0.0:
        return loc
    return place(loc, scale, discrete_gaussian(generator, _UNITS))


@register_jitable
def _laplace(generator: Any, loc: float, scale: float) -> float:
    if scale == 0.0:
        return loc
    return place(loc, scale, discrete_laplace(generator, _UNITS))


@register_jitable
def place(loc: float, scale: float, drawn: int) -> float:
    """(k + Z)·g."""
    step = grid(scale)
    units = min(max(loc / step, -_FURTHEST), _FURTHEST)
    return float(int(np.rint(units)) + drawn) * step


@register_jitable
def discrete_laplace(generator: Any, scale: int) -> int:
    """A whole number z with probability ∝ exp(−|z|/scale)."""
    while True:
        remainder = below(generator, scale)
        if not _falls(generator, remainder, scale):
            continue
        whole = 0
        while _falls(generator, 1, 1):
            whole += 1
        size = remainder + scale * whole
        negative = below(generator, 2) == 1
        if not (negative and size == 0):
            return -size if negative else size


@register_jitable
def discrete_gaussian(generator: Any, scale: int) -> int:
    """A whole number z with probability ∝ exp(−z²/(2 scale²)).

    A Laplace draw y is kept with probability exp(−a²/2s²), a = ||y| − s| = q·s + r: that is
    exp(−½)^(q²)·exp(−r/s)^q·exp(−r²/2s²), so that no product is beyond 2⁶² for s up to 2³⁰.
    """
    while True:
        drawn = discrete_laplace(generator, scale)
        distance = abs(abs(drawn) - scale)
        quotient, rest = distance // scale, distance % scale
        if (
            _all_fall(generator, quotient * quotient, 1, 2)
            and _all_fall(generator, quotient, rest, scale)
            and _falls(generator, rest * rest, 2 * scale * scale)
        ):
            return drawn


@register_jitable
def _all_fall(generator: Any, times: int, part: int, whole: int) -> bool:
    left = times
    while left > 0 and _falls(generator, part, whole):
        left -= 1
    return left == 0


@register_jitable
def _falls(generator: Any, part: int, whole: int) -> bool:
    """A coin of probability exp(−part/whole), for 0 ≤ part ≤ whole (algorithm 1).

    The first K at which a coin of probability (part/whole)/K shows tails is odd with that probability.
    """
    turn = 1
    while below(generator, turn) == 0 and below(generator, whole) < part:
        turn += 1
    return turn % 2 == 1


def falls(generator: Any, part: int, whole: int) -> bool:
    """A coin of probability exp(−part/whole), for any whole number part ≥ 0 (not for compiled code)."""
    return _all_fall(generator, part // whole, 1, 1) and _falls(generator, part % whole, whole)


@register_jitable
def below(generator: Any, size: int) -> int:
    """A whole number from 0 to size − 1, each as likely, for sizes up to 2⁶².

    `random` gives multiples of 2⁻⁵³, each as likely. (`integers` allocates in compiled code.)
    """
    if size == 1:
        return 0
    if size <= 1 << 53:
        end = (1 << 53) // size * size
        word = int(generator.random() * _WORD)
        while word >= end:
            word = int(generator.random() * _WORD)
        return word % size
    while True:
        word = (int(generator.random() * _WORD) << 9) | (int(generator.random() * _WORD) >> 44)
        if word < (1 << 62) // size * size:
            return word % size


compile_draws(
    ExactNoise,
    normal=lambda self, loc, scale: _normal(self.generator, loc, scale),
    laplace=lambda self, loc, scale: _laplace(self.generator, loc, scale),
    binomial=lambda self, n, p: self.generator.binomial(n, p),
)
