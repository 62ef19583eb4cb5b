r"""Linearly independent vectors, exactly: ranks modulo primes, certified by Hadamard's bound.

Each vector is scaled to whole numbers, which changes no independence. A set is independent over the
rationals if and only if some minor of its size is not 0; no minor is larger than the product of the
vectors' lengths, and a number below p₁·p₂·… that is not 0 is not 0 modulo some p_i. So with primes
whose product passes that bound, a set is independent exactly if it is so modulo one of them: no
tolerance, no rounding. One prime of 31 bits is enough for a hundred films with their genres.
"""

import functools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.problems.matroids.matroid import Matroid
from dpbandits.recipes import FloatRows, IntRows

Integers = NDArray[np.int64]
# The largest prime below 2³¹, so that products fit 64 bits. As a constant it is divided by quickly.
_PRIME = 2147483647


class Vectors(NamedTuple):
    """Vectors modulo each prime, and those of the set so far brought into echelon form."""

    primes: Integers  # (primes,)
    residues: Integers  # (primes, items, dim)
    rows: Integers  # (primes, rank, dim), each 1 at its pivot
    pivots: Integers  # (primes, rank)
    height: Integers  # (primes,) rows; fewer than the set has items where it is dependent
    chosen: Integers  # (1,) items in the set
    scratch: Integers  # (dim,)

    def limits(self) -> Limits:
        """Rows within the matrix; numbers below the largest prime."""
        rank, dim = self.rows.shape[1:]
        return {
            "primes": FROM_RECIPE,
            "residues": FROM_RECIPE,
            "rows": (0, _PRIME - 1),
            "pivots": (0, dim - 1),
            "height": (0, rank),
            "chosen": (0, rank),
            "scratch": (0, _PRIME - 1),
        }

    def clear(self) -> None:
        """The empty set."""
        self.chosen[0] = 0
        self.height[:] = 0

    def join(self, item: int) -> bool:
        """Eliminate modulo each prime for which the set so far is independent."""
        joined = False
        for which in range(self.primes.size):
            if self.height[which] == self.chosen[0]:
                if which == 0:
                    grown = _eliminate(self, which, item, _PRIME)
                else:
                    grown = _eliminate(self, which, item, self.primes[which])
                joined = joined or grown
        if joined:
            self.chosen[0] += 1
        return joined


@register_jitable(forceinline=True)
def _eliminate(matroid: Vectors, which: int, item: int, prime: int) -> bool:
    """Add the vector as a row, if something of it is left after the rows that stand."""
    row, dim, height = matroid.scratch, matroid.scratch.size, matroid.height[which]
    for axis in range(dim):
        row[axis] = matroid.residues[which, item, axis]
    for index in range(height):
        factor = row[matroid.pivots[which, index]]
        if factor != 0:
            factor = prime - factor
            for axis in range(dim):
                row[axis] = (row[axis] + factor * matroid.rows[which, index, axis]) % prime
    for pivot in range(dim):
        if row[pivot] != 0:
            inverse = _inverse(row[pivot], prime)
            for axis in range(dim):
                matroid.rows[which, height, axis] = (row[axis] * inverse) % prime
            matroid.pivots[which, height] = pivot
            matroid.height[which] = height + 1
            return True
    return False


@register_jitable
def _inverse(value: int, prime: int) -> int:
    """Euclid's algorithm."""
    small, large, first, second = value, prime, 1, 0
    while small != 1:
        times = large // small
        large, small = small, large - times * small
        second, first = first, second - times * first
    return int(first % prime)


def start_vectors(rows: list[list[int]], bound: int) -> Vectors:
    """Whole vectors of one length; no minor is larger than the square root of `bound`."""
    primes: list[int] = []
    for prime in _primes():
        primes.append(prime)
        if math.prod(primes) ** 2 > bound:
            break
    dim = len(rows[0])
    rank = min(len(rows), dim)
    return Vectors(
        primes=np.array(primes, np.int64),
        residues=np.array([[[x % p for x in row] for row in rows] for p in primes], np.int64),
        rows=np.zeros((len(primes), rank, dim), np.int64),
        pivots=np.zeros((len(primes), rank), np.int64),
        height=np.zeros(len(primes), np.int64),
        chosen=np.zeros(1, np.int64),
        scratch=np.zeros(dim, np.int64),
    )


def _primes() -> Iterator[int]:
    """Primes below 2³¹, the largest first."""
    yield _PRIME
    for number in range(_PRIME - 2, 0, -2):
        if all(number % prime for prime in _small_primes()):
            yield number


@functools.cache
def _small_primes() -> list[int]:
    """Those up to the root of 2³¹, by the sieve of Eratosthenes."""
    sieve = np.ones(46341, bool)
    for number in range(2, 216):
        sieve[number * number :: number] = False
    return [int(prime) for prime in np.flatnonzero(sieve)[2:]]


@dataclass(frozen=True)
class LinearMatroid(Matroid):
    """Items are vectors; sets of linearly independent ones are independent. Computed exactly.

    Numbers are taken as they are: 0.1 is the binary fraction nearest to a tenth.

    >>> vectors = LinearMatroid(((1, 0), (0, 1), (1, 1), (2, 0), (0, 0)))
    >>> vectors.rank, vectors.loops, vectors.independent([0, 3])
    (2, (4,), False)
    """

    vectors: Annotated[
        FloatRows,
        "One vector for each item; independent ones may be chosen together.",
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "vectors", _table_of_numbers(self.vectors))

    @property
    def size(self) -> int:
        """One item per vector."""
        return len(self.vectors)

    def state(self) -> Vectors:
        """The vectors modulo enough primes."""
        return _copied(_start_linear(tuple(self.vectors)))


def _table_of_numbers(vectors: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    try:
        table = tuple(tuple(_plain(x) for x in vector) for vector in vectors)
    except Exception:  # whatever they are made of raises
        raise InvalidInput("expected vectors to be rows of finite numbers") from None
    if not table or not table[0]:
        raise InvalidInput("expected at least one vector of at least one number")
    if len({len(vector) for vector in table}) > 1:
        raise InvalidInput("expected vectors of one length")
    return table


def _plain(value: Any) -> float:
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, int):
        number = float(number)
        Fraction(number)  # refuses what is not finite
    return int(number) if number == int(number) else number


@functools.lru_cache(maxsize=16)
def _start_linear(vectors: tuple[tuple[float, ...], ...]) -> Vectors:
    rows = [_whole(vector) for vector in vectors]
    lengths = sorted((sum(x * x for x in row) for row in rows), reverse=True)
    rank = min(len(rows), len(rows[0]))
    return start_vectors(rows, math.prod(max(1, length) for length in lengths[:rank]))


def _copied(state: Vectors) -> Vectors:
    return Vectors(*(array.copy() for array in state))


def _whole(vector: tuple[float, ...]) -> list[int]:
    """The smallest whole vector in the same direction."""
    exact = [Fraction(x) for x in vector]
    scale = math.lcm(*(x.denominator for x in exact))
    whole = [int(x * scale) for x in exact]
    return [x // max(1, math.gcd(*whole)) for x in whole]


@dataclass(frozen=True)
class GraphicMatroid(Matroid):
    """Items are the edges of a graph; sets without a cycle are independent, bases are spanning forests.

    Its vectors have 1 and −1 at the two ends of an edge, whose minors are 0, 1 and −1 in any field. An
    edge from a vertex to itself is a loop.

    >>> GraphicMatroid(((0, 1), (1, 2), (2, 0))).independent([0, 1, 2])
    False
    """

    edges: Annotated[
        IntRows,
        "The two ends of each edge; edges without a cycle may be chosen together.",
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            edges = tuple((_vertex(one), _vertex(other)) for one, other in self.edges)
        except Exception:  # whatever it is made of raises
            raise InvalidInput("expected edges to be pairs of vertices, each a whole number") from None
        if not edges:
            raise InvalidInput("expected at least one edge")
        object.__setattr__(self, "edges", edges)

    @property
    def size(self) -> int:
        """One item per edge."""
        return len(self.edges)

    def state(self) -> Vectors:
        """The edges as vectors; one prime is enough."""
        places = {v: i for i, v in enumerate(sorted({v for edge in self.edges for v in edge}))}
        rows = [[0] * len(places) for _ in self.edges]
        for row, (one, other) in zip(rows, self.edges, strict=True):
            row[places[one]] += 1
            row[places[other]] -= 1
        return start_vectors(rows, 1)


def _vertex(value: Any) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise ValueError
    return int(value)
