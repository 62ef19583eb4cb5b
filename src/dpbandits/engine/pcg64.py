"""NumPy's PCG64 for many runs at once: the states that their seeds give, and where they are kept.

A generator takes NumPy ten microseconds to make, and numba as long to be handed; a thousand rounds are
played in less. So a block of runs has one set of generators, and compiled code writes into their memory
the state that the seed of the next run gives. Those states are worked out here for all runs together, in
the arithmetic of `numpy.random.SeedSequence` and of PCG64's seeding, which NumPy promises not to change.
"""

import ctypes
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
WORDS = 4  # of a state: state and increment, each of 128 bits, the lower half first
_MULTIPLIER = np.uint64(2549297995355413924), np.uint64(4865540595714422341)
_HALF = np.uint64(32)
_AT_ONCE = 1024  # runs: what is worked out on the way then stays in the processor's cache


class Place(NamedTuple):
    """The memory of a generator."""

    state: Words  # as `WORDS`
    spare: Words  # one word: half of a draw that was asked for by halves


def first_states(seed: int, runs: NDArray[np.integer[Any]], streams: int) -> Words:
    """The states (runs, streams, 4) that generators of the seeds (seed; run, stream) begin with."""
    root, numbers = np.random.SeedSequence(seed), runs.astype(np.uint32)
    children, found = (
        np.arange(streams, dtype=np.uint32),
        np.empty((numbers.size, streams, WORDS), np.uint64),
    )
    for at in range(0, numbers.size, _AT_ONCE):
        keys = numbers[at : at + _AT_ONCE, np.newaxis], children
        found[at : at + _AT_ONCE] = _seeded(_generated(_mixed(root, keys)))
    return found


def state_words(generator: np.random.Generator) -> Words:
    """The state that a generator is in."""
    found: Any = generator.bit_generator.state["state"]
    halves = (number >> shift & (2**64 - 1) for number in found.values() for shift in (0, 64))
    return np.fromiter(halves, np.uint64, WORDS)


def set_state(generator: np.random.Generator, words: Words) -> None:
    """Put a generator into a state."""
    low, high, low_step, high_step = (int(word) for word in words)
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": high_step << 64 | low_step},
        "has_uint32": 0,
        "uinteger": 0,
    }


def place_of(generator: np.random.Generator) -> Place:
    """Where it keeps its state, to be used while it lives; unless `is_placed`, some memory beside it."""
    if not is_placed():
        return Place(np.zeros(WORDS, np.uint64), np.zeros(1, np.uint64))
    return _place(generator)


def _place(generator: np.random.Generator) -> Place:
    spare = _words_at(generator.bit_generator.ctypes.state_address, 2)
    return Place(_words_at(int(spare[0]), WORDS), spare[1:])


@functools.cache
def is_placed() -> bool:
    """Whether this NumPy keeps the state where `place_of` looks for it.

    It has done so since it has PCG64, with compilers that know numbers of 128 bits.
    """
    generator = np.random.Generator(np.random.PCG64(1))
    generator.integers(2, dtype=np.uint32)  # leaves a spare half
    bits: Any = generator.bit_generator
    within = range(id(bits), id(bits) + type(bits).__basicsize__)  # nothing else is read
    address = int(bits.ctypes.state_address)
    if address not in within or int(_words_at(address, 1)[0]) not in within:
        return False
    place = _place(generator)
    spare = bits.state["uinteger"] << 32 | bits.state["has_uint32"]
    return np.array_equal(place.state, state_words(generator)) and int(place.spare[0]) == spare


def _words_at(address: int, size: int) -> Words:
    found: Words = np.ctypeslib.as_array((ctypes.c_uint64 * size).from_address(address))
    return found


class _Hash:
    """The constants of a SeedSequence, which change with every word that is hashed."""

    def __init__(self, first: int, factor: int, used: int = 0) -> None:
        self._factor, self._next = factor, first * pow(factor, used, 2**32) % 2**32

    def __call__(self, words: Any) -> Any:
        words = words ^ np.uint32(self._next)
        self._next = self._next * self._factor % 2**32
        words = words * np.uint32(self._next)
        return words ^ words >> np.uint32(16)


def _mixed(root: np.random.SeedSequence, keys: Sequence[NDArray[np.uint32]]) -> list[Any]:
    """The pool of `root` with the words of a spawn key mixed in."""
    pool: list[Any] = np.split(root.pool, root.pool.size)  # arrays, which may overflow in silence
    entropy: Any = root.entropy
    size, beyond = len(pool), max(0, -(-entropy.bit_length() // 32) - len(pool))
    hashed = _Hash(0x43B0_D7E5, 0x931E_8875, used=size * (size + beyond))
    for words in keys:
        for index in range(size):
            mixed = np.uint32(0xCA01_F9DD) * pool[index] - np.uint32(0x4973_F715) * hashed(words)
            pool[index] = mixed ^ mixed >> np.uint32(16)
    return pool


def _generated(pool: list[Any]) -> list[Any]:
    """Four words of 64 bits, made of a pool."""
    hashed = _Hash(0x8B51_F9DD, 0x58F3_8DED)
    halves = [hashed(pool[index % len(pool)]).astype(np.uint64) for index in range(8)]
    return [low | high << _HALF for low, high in zip(halves[::2], halves[1::2], strict=True)]


def _seeded(words: list[Any]) -> Words:
    """What PCG64 makes of them: two steps, with the first two added in between."""
    high, low, high_step, low_step = words
    one = np.uint64(1)
    step = high_step << one | low_step >> np.uint64(63), low_step << one | one
    moved = _sum(_product(_sum(step, (high, low)), _MULTIPLIER), step)
    return np.stack([moved[1], moved[0], step[1], step[0]], axis=-1)


def _sum(one: Any, other: Any) -> tuple[Any, Any]:
    """Of numbers of 128 bits, each as its upper and lower half."""
    low = one[1] + other[1]
    return one[0] + other[0] + (low < one[1]), low


def _product(one: Any, other: Any) -> tuple[Any, Any]:
    return one[0] * other[1] + one[1] * other[0] + _upper(one[1], other[1]), one[1] * other[1]


def _upper(one: Any, other: Any) -> Any:
    """The upper half of the product of two words, by their own halves."""
    mask = np.uint64(0xFFFF_FFFF)
    a, b, c, d = one >> _HALF, one & mask, other >> _HALF, other & mask
    middle = (b * d >> _HALF) + (a * d & mask) + (b * c & mask)
    return a * c + (a * d >> _HALF) + (b * c >> _HALF) + (middle >> _HALF)
