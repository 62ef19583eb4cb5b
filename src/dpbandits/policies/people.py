"""Who has been learned from: people are distinguished in bounded memory, without a list of them.

A round is learned from when it *closes*, if fewer than k rounds of its person were, and, where a policy
keeps the rounds of one person apart, if she is in none of the batches it would go into. Two structures
answer that. Both may only take her for somebody who was there: that loses a round, never privacy.

- How often: a count-min sketch of counts up to k, updated conservatively (only the smallest of her cells
  grow, so that every one of them is at least her count).
- In which open batch: a Bloom filter for each slot, emptied when the number of its batch changes. It
  grows in layers with what it holds, and when it may not grow any more it refuses more and more people;
  it never forgets one.

Cells are found by hashes under a secret key, so that nobody can choose a name that collides with
another's, and what is kept cannot be searched for names without it.
"""

import functools
import hashlib
import math
import numbers
import secrets
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput

# With half of the cells filled a stranger meets only full ones with probability 2^−rows.
_ROWS, _FILTER_ROWS = 7, 12
_FIRST_LAYER = 256
_KEY = 32  # bytes
_KINDS = {b"s": "a text", b"b": "bytes", b"i": "a whole number"}  # how a name of each begins
_LARGEST_NAME = 10**1000  # Python writes no number of many thousand digits


class People:
    """How often each person was learned from, and who is in the open batches.

    Made for `expected` people, of whom less than 1 % are then refused for being taken for another; with
    more people it refuses more. Per person expected it takes 10, 20, 40 or 81 bits for k up to 1, 3, 15
    or 255 (1.3 MB for a million people at k = 1), and for each person in an open batch 35 to 70 bits.

    >>> people = People(2, key=bytes(32))
    >>> [people.take("ada", [(0, number)]) for number in (5, 5, 6, 7)]
    [True, False, True, False]
    """

    def __init__(
        self, rounds_per_person: int, *, expected: int = 1_000_000, key: bytes | None = None
    ) -> None:
        checks.integer(least=1, limit=checks.MOST_ROUNDS_PER_PERSON, rounds_per_person=rounds_per_person)
        checks.integer(least=1, limit=10**9, expected=expected)
        if key is not None and len(key) != _KEY:
            raise InvalidInput(f"expected a key of {_KEY} bytes, got {len(key)}")
        self.rounds_per_person, self.expected = rounds_per_person, expected
        self._key = secrets.token_bytes(_KEY) if key is None else bytes(key)
        self._counts = _Counts(rounds_per_person, _width(expected))
        self._open: dict[int, _Filter] = {}
        self._kind = b""  # of the names that are taken; any, if none

    def __repr__(self) -> str:
        return f"<People, {self.rounds_per_person} rounds of each, {self.nbytes:,} bytes>"

    def __deepcopy__(self, memo: object) -> "People":
        return People.from_arrays(self.rounds_per_person, self.arrays())

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return self._counts.cells.nbytes + sum(one.nbytes for one in self._open.values())

    @property
    def false_refusals(self) -> float:
        """The share of newcomers who are refused for being taken for somebody else."""
        return self._counts.full_share()

    def take_only_kind_of(self, person: Any) -> None:
        """Refuse names of another kind from now on: 5 in a log and "5" later may be the same person."""
        self._kind = _name(person)[:1]

    def token(self, person: Any) -> bytes:
        """What stands for a person while her round is open, so that her name need not be kept."""
        name = _name(person)
        if self._kind not in (b"", name[:1]):
            raise InvalidInput(
                f"expected person to be {_KINDS[self._kind]}, as in the history, got "
                f"{checks.kind_of(person)}"
            )
        return hashlib.blake2b(name, key=self._key, person=b"token", digest_size=16).digest()

    def counts(self, person: Any, batches: Iterable[tuple[int, int]] | None = None) -> bool:
        """Whether a round of hers would be learned from now.

        `batches` are the (slot, number) pairs of `Policy.open_batches`, None where they may be alike.
        """
        return self._look_up(person, tuple(batches or ()), note=False)

    def take(self, person: Any, batches: Iterable[tuple[int, int]] | None = None) -> bool:
        """The same; and if so, note that one more round of hers is learned from, in these batches."""
        return self._look_up(person, tuple(batches or ()), note=True)

    def _look_up(self, person: Any, batches: tuple[tuple[int, int], ...], *, note: bool) -> bool:
        name = _name(person)
        cells = self._counts.places(self._hashes(name, b"count"))
        count = self._counts.of(cells)
        if count >= self.rounds_per_person:
            return False
        # Where one round is all there is to count, no batch needs to be remembered.
        if self.rounds_per_person > 1 and batches:
            mark = self._hashes(name, b"batch")
            for slot, number in batches:
                one = self._open.get(slot)
                if one is not None and one.number == number and one.holds(mark):
                    return False
            for slot, number in batches if note else ():
                if slot not in self._open or self._open[slot].number != number:
                    self._open[slot] = _Filter(number, self.expected)
                self._open[slot].add(mark)
        if note:
            self._counts.raise_to(count + 1, cells)
        return True

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it for a save file: secret, for it holds the key."""
        filters = [self._open[slot] for slot in sorted(self._open)]
        return {
            "key": np.frombuffer(self._key, np.uint8),
            "kind": np.frombuffer(self._kind, np.uint8),
            "expected": np.array(self.expected, np.int64),
            "cells": self._counts.cells,
            "slots": np.array(sorted(self._open), np.int64),
            "numbers": np.array([one.number for one in filters], np.int64),
            "held": np.array([one.held for one in filters], np.int64),
            "bits": np.frombuffer(b"".join(layer for one in filters for layer in one.layers), np.uint8),
        }

    @classmethod
    def from_arrays(cls, rounds_per_person: int, arrays: Mapping[str, NDArray[Any]]) -> "People":
        """What `arrays` gave; anything that does not fit together is a `ValueError`."""
        cells, expected, start = arrays["cells"], arrays["expected"], 0
        kinds = {"key": "u", "kind": "u", "expected": "i", "slots": "i", "numbers": "i", "held": "i"}
        kinds["bits"] = "u"
        if any(arrays[name].dtype.kind != kind for name, kind in kinds.items()) or expected.ndim:
            raise ValueError("the register of people is not made of whole numbers")
        if not 1 <= expected <= cells.nbytes:  # which would take more room than there is
            raise ValueError("the counts of people are not of the declared size")
        people = cls(rounds_per_person, expected=int(expected), key=arrays["key"].tobytes())
        people._kind = arrays["kind"].tobytes()
        if people._kind not in (b"", *_KINDS):
            raise ValueError("people have names of no kind that is known")
        bits = arrays["bits"].tobytes()
        if cells.shape != people._counts.cells.shape or cells.dtype != people._counts.cells.dtype:
            raise ValueError("the counts of people are not of the declared size")
        people._counts.cells[...] = cells
        for slot, number, held in zip(arrays["slots"], arrays["numbers"], arrays["held"], strict=True):
            one = people._open[int(slot)] = _Filter(int(number), people.expected)
            if held < 0 or number < 0:
                raise ValueError("the open batches of people are not of the size that they say")
            one.reserve(int(held))
            for index, layer in enumerate(one.layers):
                one.layers[index] = bytearray(bits[start : start + len(layer)])
                start += len(layer)
        if start != len(bits):
            raise ValueError("the open batches of people are not of the size that they say")
        return people

    def _hashes(self, name: bytes, purpose: bytes) -> tuple[int, ...]:
        digest = hashlib.blake2b(name, key=self._key, person=purpose, digest_size=64).digest()
        return struct.unpack("<8Q", digest)


class _Counts:
    """A count-min sketch of counts up to `most`, each in 1, 2, 4, … bits."""

    def __init__(self, most: int, width: int) -> None:
        self._bits = 1
        while 2**self._bits <= most:
            self._bits *= 2
        self._most, self._width, self._mask = most, width, 2**self._bits - 1
        self._in_word = max(8 // self._bits, 1)
        word = np.dtype(f"u{max(self._bits // 8, 1)}")
        self.cells = np.zeros((_ROWS, math.ceil(width / self._in_word)), word)
        self._words = self.cells.reshape(-1).data  # quicker than the array for single words

    def places(self, hashes: tuple[int, ...]) -> list[tuple[int, int]]:
        """Her cells: in which words, and how far from their lowest bit."""
        found, row = [], self.cells.shape[1]
        for index in range(_ROWS):
            word, cell = divmod(hashes[index] % self._width, self._in_word)
            found.append((index * row + word, cell * self._bits))
        return found

    def of(self, places: list[tuple[int, int]]) -> int:
        """At least how often she was counted."""
        return int(min(self._words[word] >> shift & self._mask for word, shift in places))

    def raise_to(self, count: int, places: list[tuple[int, int]]) -> None:
        """No cell of hers holds less from now on; those that hold more stay."""
        for word, shift in places:
            held = self._words[word]
            if held >> shift & self._mask < count:
                self._words[word] = held & ~(self._mask << shift) | count << shift

    def full_share(self) -> float:
        """The probability that all cells of somebody new are full."""
        shifts = range(0, self._in_word * self._bits, self._bits)
        full = [
            sum(int(np.count_nonzero((row >> shift & self._mask) >= self._most)) for shift in shifts)
            for row in self.cells
        ]
        return math.prod(number / self._width for number in full)


class _Filter:
    """A Bloom filter in layers, each of twice the size of the one before, until they hold `most`."""

    def __init__(self, number: int, most: int) -> None:
        self.number, self.held = number, 0
        self.layers: list[bytearray] = []
        self._most, self._room = most, 0

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return sum(len(layer) for layer in self.layers)

    def reserve(self, held: int) -> None:
        """Room for this many people, within the limits."""
        self.held = held
        while self._room < min(held, self._most):
            size = _FIRST_LAYER << len(self.layers)
            self.layers.append(bytearray(math.ceil(_FILTER_ROWS * _width(size) / 8)))
            self._room += size

    def holds(self, hashes: tuple[int, ...]) -> bool:
        """Whether she was added, or is taken for somebody who was."""
        for index, layer in enumerate(self.layers):
            for place in _bits_of(hashes, index):
                if not layer[place >> 3] >> (place & 7) & 1:
                    break
            else:
                return True
        return False

    def add(self, hashes: tuple[int, ...]) -> None:
        """Into the last layer."""
        self.reserve(self.held + 1)
        for place in _bits_of(hashes, len(self.layers) - 1):
            self.layers[-1][place >> 3] |= 1 << (place & 7)


def _bits_of(hashes: tuple[int, ...], layer: int) -> Iterator[int]:
    """A bit in each row of a layer; two hashes do for all rows (Kirsch & Mitzenmacher 2006)."""
    width = _width(_FIRST_LAYER << layer)
    place, step = hashes[0] % width, hashes[1] % width
    for row in range(_FILTER_ROWS):
        yield row * width + place
        place = (place + step) % width


@functools.cache
def _width(size: int) -> int:
    """The cells of a row that this many people fill by half."""
    return math.ceil(size / math.log(2.0))


def refuse_mixed(persons: Sequence[Any]) -> None:
    """Names of a history that are none, or of several kinds; None is for nobody. Says no name."""
    first: tuple[int, bytes] | None = None
    for row, person in enumerate(persons):
        if person is None:
            continue
        try:
            kind = _name(person)[:1]
        except InvalidInput:
            raise InvalidInput(
                f"expected history's person to be a text, bytes or a whole number: row {row} is not"
            ) from None
        first = first or (row, kind)
        if kind != first[1]:
            raise InvalidInput(
                f"expected names of one kind in history's person: row {first[0]} is {_KINDS[first[1]]}, "
                f"row {row} is {_KINDS[kind]}"
            )


def _name(person: Any) -> bytes:
    """A person's key as bytes; a number is not the text that it is written as."""
    match person:
        case bool() | np.timedelta64():
            pass
        case str():
            return b"s" + person.encode(errors="surrogatepass")
        case bytes():
            return b"b" + person
        case numbers.Integral() if abs(int(person)) < _LARGEST_NAME:
            return b"i" + str(int(person)).encode()
    raise InvalidInput(
        f"expected person to be a text, bytes or a whole number, got {checks.kind_of(person)}"
    )
