"""NumPy's generators for many runs: the same states, and the same memory."""

import numpy as np
import pytest

from dpbandits.engine import Streams, pcg64
from dpbandits.engine.pcg64 import first_states, is_placed, place_of, set_state, state_words
from dpbandits.engine.streams import run_seed


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**64, 2**128 - 1, 2**128, 2**200 + 5])
def test_states_are_those_of_numpy(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pcg64, "_AT_ONCE", 3)
    runs = np.array([0, 1, 17, 65_537, 2**31, 2**32 - 1, 2])
    found = first_states(seed, runs, 3)
    for run, states in zip(runs.tolist(), found, strict=True):
        for state, stream in zip(states, Streams.of(run_seed(seed, run)), strict=True):
            np.testing.assert_array_equal(state, state_words(stream))


def test_a_state_that_is_set_gives_the_same_draws_again() -> None:
    generator = np.random.Generator(np.random.PCG64(5))
    before = state_words(generator)
    first = generator.integers(10**6, size=3, dtype=np.uint32)  # leaves half a draw
    set_state(generator, before)
    np.testing.assert_array_equal(generator.integers(10**6, size=3, dtype=np.uint32), first)


def test_a_generator_is_set_by_writing_to_its_place() -> None:
    assert is_placed()  # otherwise runs are played one by one, which is slow
    one, other = (np.random.Generator(np.random.PCG64(seed)) for seed in (5, 6))
    other.integers(10**6, dtype=np.uint32)
    place = place_of(other)
    assert place.spare[0] != 0
    place.state[:], place.spare[0] = state_words(one), 0
    assert one.bit_generator.state["state"] == other.bit_generator.state["state"]
    assert [one.integers(9, dtype=np.uint32) for _ in range(9)] == [
        other.integers(9, dtype=np.uint32) for _ in range(9)
    ]


def test_where_the_place_is_not_known_nothing_is_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.Generator(np.random.PCG64(5))
    before = generator.bit_generator.state
    monkeypatch.setattr(pcg64, "is_placed", lambda: False)
    place_of(generator).state[:] = 1
    assert generator.bit_generator.state == before
