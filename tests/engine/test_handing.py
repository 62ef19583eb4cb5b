"""Generators that are handed to compiled code by their addresses draw as they would themselves."""

import sys
from typing import Any

import numba
import numpy as np
import pytest
from randomgen import ChaCha

import dpbandits as dpb
from dpbandits.engine.cache import OPTIONS
from dpbandits.engine.handing import Hands, handed
from dpbandits.mechanisms.exact import ExactNoise

pytestmark = pytest.mark.slow


jit: Any = numba.njit(**OPTIONS)


@jit  # type: ignore[untyped-decorator]
def _draws(generator: Any, found: Any) -> None:
    for index in range(0, found.size, 6):
        found[index] = generator.random()
        found[index + 1] = generator.standard_normal()
        found[index + 2] = generator.normal(0.3, 2.0)
        found[index + 3] = generator.laplace(0.3, 2.0)
        found[index + 4] = generator.binomial(5, 0.3)
        found[index + 5] = generator.chisquare(3.0)


@jit  # type: ignore[untyped-decorator]
def _protected(noise: Any, found: Any) -> None:
    for index in range(0, found.size, 2):
        found[index] = noise.normal(0.3, 2.0)
        found[index + 1] = noise.laplace(0.3, 2.0)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, ChaCha])
def test_every_draw_is_the_same(bits: Any) -> None:
    one, other = np.random.Generator(bits(7)), np.random.Generator(bits(7))
    mine, theirs = np.zeros(600), np.zeros(600)
    _draws(one, theirs)
    _draws(handed(other), mine)
    assert mine.tolist() == theirs.tolist()
    assert len(set(mine.tolist())) > 400
    assert one.random() == other.random()  # and it has moved on as far


def test_so_is_exact_noise() -> None:
    one, other = (ExactNoise(np.random.Generator(ChaCha(7))) for _ in range(2))
    mine, theirs = np.zeros(100), np.zeros(100)
    _protected(one, theirs)
    _protected(handed(other), mine)
    assert mine.tolist() == theirs.tolist() != np.zeros(100).tolist()


def test_what_is_no_generator_is_left_alone() -> None:
    class Own(np.random.Generator):
        pass

    own = Own(np.random.PCG64(1))
    assert handed(own) is own
    assert handed(None) is None


def test_other_generators_are_looked_up_again() -> None:
    hands, problem = Hands(), dpb.LinearContexts(2)
    one, other = np.random.default_rng(1), np.random.default_rng(2)
    calls = [
        hands.decide(lambda *given: given[3:], None, None, problem, *pair)
        for pair in ((one, other), (one, other), (other, one))
    ]
    assert calls[0] == calls[1] == calls[2][::-1] == (handed(one), handed(other))


def test_a_generator_that_was_replaced_is_not_kept() -> None:
    """What it drew follows from its state, so that `renew` must leave none of it in memory."""
    learner = dpb.linear.LinUCB().start(dpb.LinearContexts(2))
    learner.update(learner.select([[1.0, 0.0], [0.0, 1.0]]), 1.0)
    before = learner._explore
    held = sys.getrefcount(before)
    learner.renew()
    assert sys.getrefcount(before) == 2 < held  # by this test alone
