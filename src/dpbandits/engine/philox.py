"""A generator for one of very many runs: counter-based, in plain arithmetic.

Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011) turns a key of two words and a counter of four, each of
32 bits, into four random words, by ten rounds of multiplication. Here the key is made of the seed, and
the counter is (how many blocks were made so far, 64 bits; the run; the stream): no two streams share a
counter, and a run's draws depend on nothing but its number. It is what `simulate` draws from on a GPU,
where NumPy's generators are not to be had. A seed protects nobody: never for learners at work.

The same source runs in plain Python, compiled, and on a GPU. Whole numbers are of 64 bits with a sign
there and of any size in Python; every word is cut to 32 bits, which makes them agree.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine.draws import SIGNATURES, compile_draws

NAME = "Philox4x32-10"
_WORD = 0xFFFF_FFFF
_MULTIPLIERS = 0xD251_1F53, 0xCD9E_8D57
_STEPS = 0x9E37_79B9, 0xBB67_AE85  # by which the key moves on from round to round
_ROUNDS = 10
_UNIT = 2.0**-53
# Places in the words of a generator.
_KEY, _RUN, _STREAM, _MADE, _SPARE, _NORMAL, SIZE = 0, 2, 3, 4, 5, 6, 7
FIXED, CHANGING = 4, 3  # how many of them never change, and how many draws do
_NONE = -1  # no spare


class Philox(NamedTuple):
    """The methods of a NumPy generator that verbs call.

    `words` is the key (two), the run, the stream, how many blocks of four words were made, the half of a
    block that is left, if it is, and a normal that is left, as the bits of a float; NaN where none is.
    """

    words: NDArray[np.int64]

    def random(self) -> float:
        """Uniform on the multiples of 2⁻⁵³ in [0, 1)."""
        return _uniform(self.words)

    def standard_normal(self) -> float:
        """By Box and Muller's transform, which makes two at a time."""
        return _standard_normal(self.words)

    def normal(self, loc: float, scale: float) -> float:
        """Gaussian around `loc`."""
        return loc + scale * _standard_normal(self.words)

    def laplace(self, loc: float, scale: float) -> float:
        """Laplace around `loc`."""
        return loc + scale * _standard_laplace(self.words)

    def binomial(self, n: int, p: float) -> int:
        """How many of n coins show heads, one by one: verbs toss one."""
        return _binomial(self.words, n, p)

    def chisquare(self, df: float) -> float:
        """Twice a gamma draw of half the shape."""
        return 2.0 * _standard_gamma(self.words, 0.5 * df)


def philox_key(seed: int) -> tuple[int, int]:
    """The two words of a key."""
    first, second = np.random.SeedSequence(seed).generate_state(2, np.uint32)
    return int(first), int(second)


def start_philox(key: tuple[int, int], run: int, stream: int) -> Philox:
    """The generator of one stream of one run, before its first draw."""
    words = np.zeros(SIZE, np.int64)
    set_philox(words, key, run, stream)
    return Philox(words)


@register_jitable(forceinline=True)
def set_philox(words: Any, key: tuple[int, int], run: int, stream: int) -> None:
    """Before the first draw."""
    words[_KEY], words[_KEY + 1] = key
    words[_RUN], words[_STREAM], words[_MADE], words[_SPARE] = run, stream, 0, _NONE
    words.view(np.float64)[_NORMAL] = math.nan


@register_jitable(forceinline=True)
def philox(key: tuple[int, int], counter: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Four words of 32 bits."""
    a, b, c, d = counter
    k, m = key
    for _ in range(_ROUNDS):
        first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b = (second >> 32) & _WORD ^ b ^ k, second & _WORD
        c, d = (first >> 32) & _WORD ^ d ^ m, first & _WORD
        k, m = (k + _STEPS[0]) & _WORD, (m + _STEPS[1]) & _WORD
    return a, b, c, d


@register_jitable(forceinline=True)
def _block(words: Any) -> tuple[int, int]:
    """The next four words, as two whole numbers of 53 bits."""
    made = int(words[_MADE])
    words[_MADE] = made + 1
    key = int(words[_KEY]), int(words[_KEY + 1])
    a, b, c, d = philox(key, (made & _WORD, made >> 32, int(words[_RUN]), int(words[_STREAM])))
    return (a >> 5) << 26 | b >> 6, (c >> 5) << 26 | d >> 6


@register_jitable(forceinline=True)
def _bits(words: Any) -> int:
    """A whole number of 53 bits: the other half of the last block, or the first of the next."""
    found = int(words[_SPARE])
    if found != _NONE:
        words[_SPARE] = _NONE
    else:
        found, words[_SPARE] = _block(words)
    return found


@register_jitable(forceinline=True)
def _uniform(words: Any) -> float:
    return _bits(words) * _UNIT


@register_jitable(forceinline=True)
def _standard_normal(words: Any) -> float:
    normals = words.view(np.float64)
    found = float(normals[_NORMAL])
    if not math.isnan(found):
        normals[_NORMAL] = math.nan
        return found
    first, second = _block(words)
    radius = math.sqrt(-2.0 * math.log((first + 1) * _UNIT))  # of a number above 0
    angle = 2.0 * math.pi * (second * _UNIT)
    normals[_NORMAL] = radius * math.sin(angle)
    return radius * math.cos(angle)


@register_jitable(forceinline=True)
def _standard_laplace(words: Any) -> float:
    """One bit is the sign, the others an exponential."""
    bits = _bits(words)
    size = -math.log(((bits >> 1) + 0.5) * 2.0 * _UNIT)
    return -size if bits & 1 else size


@register_jitable
def _binomial(words: Any, n: int, p: float) -> int:
    heads = 0
    for _ in range(n):
        heads += _uniform(words) < p
    return heads


@register_jitable
def _standard_gamma(words: Any, shape: float) -> float:
    """Marsaglia and Tsang (2000); a shape below 1 is that of one more, times a power of a uniform."""
    raised = shape if shape >= 1.0 else shape + 1.0
    less = raised - 1.0 / 3.0
    found = 0.0
    while found == 0.0:
        normal = _standard_normal(words)
        root = 1.0 + normal / math.sqrt(9.0 * less)
        cube = root * root * root
        level = math.log((_bits(words) + 1) * _UNIT)
        if root > 0.0 and level < 0.5 * normal * normal + less * (1.0 - cube + math.log(cube)):
            found = less * cube
    return found if shape >= 1.0 else found * math.exp(math.log((_bits(words) + 1) * _UNIT) / shape)


compile_draws(Philox, **{name: getattr(Philox, name) for name in SIGNATURES})
