"""The generator for GPUs: its published vectors, and the law of each of its draws."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpbandits.engine.draws import SIGNATURES
from dpbandits.engine.philox import Philox, philox, philox_key, start_philox

# Random123's known answers (kat_vectors, philox4x32 with 10 rounds): counter, key, result.
_ALL = 0xFFFFFFFF
_KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((_ALL,) * 4, (_ALL,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
_DRAWS = 200_000
_ERROR = 1e-6  # of each test of a law, if the law is right
_KEY = philox_key(2026)


@pytest.mark.parametrize(("counter", "key", "words"), _KNOWN)
def test_published_vectors(counter: Any, key: Any, words: Any) -> None:
    assert philox(key, counter) == words
    assert numba.njit(lambda key, counter: philox(key, counter))(key, counter) == words


def _random(generator: Any) -> float:
    return float(generator.random())


def _standard_normal(generator: Any) -> float:
    return float(generator.standard_normal())


def _normal(generator: Any) -> float:
    return float(generator.normal(1.5, 2.0))


def _laplace(generator: Any) -> float:
    return float(generator.laplace(-1.0, 0.5))


def _one_coin(generator: Any) -> float:
    return float(generator.binomial(1, 0.3))


def _coins(generator: Any) -> float:
    return float(generator.binomial(7, 0.3))


def _chisquare_of_1(generator: Any) -> float:
    return float(generator.chisquare(1.0))


def _chisquare_of_5(generator: Any) -> float:
    return float(generator.chisquare(5.0))


def _mixed(generator: Any) -> float:
    """One after the other: what is left of a draw must not become part of the next one's law."""
    generator.standard_normal()
    generator.random()
    generator.laplace(0.0, 1.0)
    return float(generator.normal(0.0, 1.0))


_LAWS: list[tuple[Callable[[Any], float], Any]] = [
    (_random, stats.uniform()),
    (_standard_normal, stats.norm()),
    (_normal, stats.norm(1.5, 2.0)),
    (_laplace, stats.laplace(-1.0, 0.5)),
    (_one_coin, stats.binom(1, 0.3)),
    (_coins, stats.binom(7, 0.3)),
    (_chisquare_of_1, stats.chi2(1)),
    (_chisquare_of_5, stats.chi2(5)),
    (_mixed, stats.norm()),
]
_NAMES = [draw.__name__.strip("_") for draw, _ in _LAWS]


@functools.cache
def _filler(draw: Callable[[Any], float]) -> Any:
    one = numba.njit(draw)

    @numba.njit
    def fill(generator: Any, found: Any) -> None:
        for i in range(found.size):
            found[i] = one(generator)

    return fill


def _drawn(draw: Callable[[Any], float], generator: Any, count: int) -> NDArray[np.float64]:
    found = np.empty(count)
    _filler(draw)(generator, found)
    return found


def _many_first_draws(draw: Callable[[Any], float]) -> NDArray[np.float64]:
    """The first draw of each of many runs: where a generator that is badly seeded shows."""
    found = np.empty(_DRAWS // 8)
    for run in range(found.size):
        _filler(draw)(start_philox(_KEY, run, run % 3), found[run : run + 1])
    return found


def _fits(values: NDArray[np.float64], law: Any) -> bool:
    """Whether no test rejects: Kolmogorov and Smirnov's, or Pearson's for whole numbers."""
    if hasattr(law.dist, "pmf"):
        low, high = law.support()
        places = np.arange(low, high + 1)
        counts = np.array([(values == place).sum() for place in places])
        expected = law.pmf(places) * values.size
        return bool(stats.chisquare(counts, expected).pvalue > _ERROR)
    return bool(stats.kstest(values, law.cdf).pvalue > _ERROR)


@pytest.mark.parametrize(("draw", "law"), _LAWS, ids=_NAMES)
def test_draws_of_one_run_have_their_law(draw: Callable[[Any], float], law: Any) -> None:
    assert _fits(_drawn(draw, start_philox(_KEY, 5, 1), _DRAWS), law)


@pytest.mark.parametrize(("draw", "law"), _LAWS, ids=_NAMES)
def test_first_draws_of_many_runs_have_their_law(draw: Callable[[Any], float], law: Any) -> None:
    assert _fits(_many_first_draws(draw), law)


@pytest.mark.parametrize(("draw", "law"), _LAWS, ids=_NAMES)
def test_control_a_law_that_is_slightly_off_is_rejected(draw: Callable[[Any], float], law: Any) -> None:
    values = _drawn(draw, start_philox(_KEY, 5, 1), _DRAWS)
    if hasattr(law.dist, "pmf"):
        n, p = law.args
        assert not _fits(values, stats.binom(n, p + 0.02))
    else:
        assert not _fits(1.05 * values, law)


def test_control_first_draws_of_63_bits_are_rejected() -> None:
    """A sum of two uniforms is what a prototype's first draws were."""
    halves = [start_philox(_KEY, run, 0) for run in range(_DRAWS // 8)]
    triangular = np.array([(one.random() + one.random()) / 2.0 for one in halves])
    assert not _fits(triangular, stats.uniform())


def test_neighbouring_values_and_streams_are_independent() -> None:
    """Pairs fall evenly into a grid of 16 × 16: within a stream, across runs, across streams."""
    within = _drawn(_random, start_philox(_KEY, 0, 0), 2 * _DRAWS)
    runs = [_drawn(_random, start_philox(_KEY, run, 2), _DRAWS // 2) for run in (7, 8)]
    streams = [_drawn(_random, start_philox(_KEY, 7, stream), _DRAWS // 2) for stream in (0, 1)]
    for first, second in ((within[::2], within[1::2]), runs, streams):
        assert _even(first, second)
    assert not _even(within[::2], within[::2] + 1e-3)  # the control


def _even(first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    counts, _, _ = np.histogram2d(first, second, bins=16, range=[[0, 1], [0, 1]])
    return bool(stats.chisquare(counts.ravel()).pvalue > _ERROR)


def test_plain_and_compiled_draws_are_bit_identical() -> None:
    for draw, _ in _LAWS:
        plain = start_philox(_KEY, 3, 2)
        assert [draw(plain) for _ in range(200)] == _drawn(draw, start_philox(_KEY, 3, 2), 200).tolist()


def test_what_was_drawn_is_a_function_of_seed_run_and_stream() -> None:
    first = {
        (seed, run, stream): start_philox(philox_key(seed), run, stream).random()
        for seed in (0, 1, 10**30)
        for run in (0, 1, 2**31)
        for stream in range(3)
    }
    assert len(set(first.values())) == len(first)
    assert first[1, 1, 1] == start_philox(philox_key(1), 1, 1).random()


def test_counters_beyond_32_bits_go_on() -> None:
    """The next block after 2³² is none that came before."""
    late, early = start_philox(_KEY, 0, 0), start_philox(_KEY, 0, 0)
    late.words[4] = 2**32
    assert late.random() != early.random()


def test_uniforms_are_below_1_and_laplace_draws_finite() -> None:
    words = start_philox(_KEY, 0, 0).words
    for bits in (0, 1, 2**53 - 1):
        words[5] = bits
        assert 0.0 <= Philox(words).random() < 1.0
        words[5] = bits
        assert math.isfinite(Philox(words).laplace(0.0, 1.0))


def test_every_draw_that_verbs_may_make_is_tested() -> None:
    tested = {name for draw, _ in _LAWS for name in draw.__code__.co_names}
    assert set(SIGNATURES) <= tested
