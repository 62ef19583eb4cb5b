"""A private bound on lengths: its probabilities on all neighbours, its accuracy, and what is refused."""

import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.errors import DPBanditsError
from dpbandits.features.norms import _UNIT, _losses, _permute_and_flip, grid, private_norm
from dpbandits.privacy import compose

BOUNDS = (1.0, 1.4)
VALUES = grid(BOUNDS)
# One length in each cell of the grid: below its least value, between any two, and beyond all.
CELLS = np.concatenate(([0.5], (VALUES[1:] + VALUES[:-1]) / 2.0, [9.0]))


def probabilities(losses: list[int], rate: float) -> Any:
    """Of each answer: arriving at a time uniform in [0, 1], when nobody before was taken."""
    coins = np.exp(-rate * np.array(losses))
    found = []
    for index, coin in enumerate(coins):
        others = np.polynomial.Polynomial([1.0])
        for other in np.delete(coins, index):
            others *= np.polynomial.Polynomial([1.0, -other])
        found.append(coin * others.integ()(1.0))
    return np.array(found)


def worst_ratio(people: int, quantile: float, rate: float) -> float:
    """How much more likely an answer becomes at most, over all samples and all their neighbours."""
    rank = math.ceil(quantile * people)
    samples = list(itertools.combinations_with_replacement(range(CELLS.size), people))
    known = {
        sample: probabilities(_losses(CELLS[list(sample)], VALUES, rank), rate) for sample in samples
    }
    ratios = [
        (known[tuple(sorted((*sample[:who], cell, *sample[who + 1 :])))] / known[sample]).max()
        for sample in samples
        for who in range(people)
        for cell in range(CELLS.size)
    ]
    return float(max(ratios))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("quantile", [0.5, 0.95])
def test_no_answer_becomes_more_than_e_to_the_epsilon_times_as_likely(
    quantile: float, epsilon: float
) -> None:
    assert VALUES.size == 6
    assert worst_ratio(4, quantile, epsilon / 2.0) <= math.exp(epsilon) * (1.0 + 1e-9)
    # The control: coins as for twice the budget.
    assert worst_ratio(4, quantile, epsilon) > math.exp(epsilon) * 1.05


def test_losses_by_hand() -> None:
    # Of ten people four are within the first value, nine within the second, one is beyond all.
    lengths = np.array([0.5] * 4 + [1.05] * 5 + [9.0])
    assert _losses(lengths, np.array([1.0, 1.1, 1.2]), 8) == [4, 0, 2]
    assert _losses(lengths, np.array([1.0, 1.1, 1.2]), 10) == [6, 1, 0]
    assert _losses(lengths, np.array([1.0, 1.1, 1.2]), 3) == [0, 2, 7]


def test_answers_are_as_often_as_they_should_be() -> None:
    losses, draws = [3, 1, 0, 2, 5], 20_000
    generator = np.random.default_rng(0)
    drawn = [_permute_and_flip(losses, math.floor(0.4 * _UNIT), generator) for _ in range(draws)]
    expected = draws * probabilities(losses, 0.4)
    square = np.sum((np.bincount(drawn, minlength=5) - expected) ** 2 / expected)
    assert expected.sum() == pytest.approx(draws) and square < 33.4  # 10⁻⁶ at four degrees of freedom


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_the_rank_is_off_by_no_more_than_is_said(quantile: float) -> None:
    """Radii uniform in [0, 0.3]: the share within a bound v is v/0.3."""
    chance = np.random.default_rng(1)
    angle, radius = chance.uniform(0, 2 * np.pi, 5000), chance.uniform(0, 0.3, 5000)
    rows = np.stack((np.cos(angle) * radius, np.sin(angle) * radius), axis=1)
    for seed in range(50):
        found = private_norm(
            rows, quantile=quantile, privacy=dpb.PureDP(0.2), bounds=(1e-3, 10.0), seed=seed
        )
        off = found.rank_error / 5000 + 4.0 * math.sqrt(0.25 / 5000)
        assert 0.3 * (quantile - off) <= found.max_norm <= 0.3 * (quantile + off) * 2.0**0.1


def test_where_all_are_equally_long_the_bound_is_just_above_them() -> None:
    rows = np.tile([0.3, 0.0], (4000, 1))
    options: dict[str, Any] = {"privacy": dpb.PureDP(0.2), "bounds": (1e-3, 1.0)}
    for seed in range(20):
        assert 0.3 <= private_norm(rows, seed=seed, **options).max_norm < 0.3 * 2.0**0.1
    assert private_norm(rows * 1e9, seed=0, **options).max_norm == pytest.approx(1.0)
    assert private_norm(rows * 0.0, seed=0, **options).max_norm == pytest.approx(1e-3)


def test_of_several_rows_the_longest_counts_and_what_is_not_finite_is_zero() -> None:
    rows = np.zeros((4000, 3, 2))
    rows[:, 1, 0] = 0.3
    options: dict[str, Any] = {"privacy": dpb.PureDP(1.0), "bounds": (1e-3, 1.0), "seed": 3}
    found = private_norm(rows, **options)
    assert 0.3 <= found.max_norm < 0.33
    rows[:100, 2, 0] = math.nan, *[math.inf] * 98, 1e200
    assert private_norm(rows, **options) == found


def test_it_says_what_it_costs_and_composes() -> None:
    found = private_norm(np.ones((500, 2)), privacy=dpb.PureDP(0.5), bounds=(0.1, 10.0))
    said = str(found)
    assert "0.5-DP under replacement of one person's features" in said and "\n" not in said
    assert "500 people" in said and "budgets add up" in said
    assert compose([found.budget, dpb.PureDP(1.0)]) == dpb.PureDP(1.5)


ROWS = np.ones((9, 2))


def asked(rows: Any = ROWS, **others: Any) -> Callable[[], Any]:
    given: dict[str, Any] = {"privacy": dpb.PureDP(1.0), "bounds": (0.1, 1.0)} | others
    return lambda: private_norm(rows, **given)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "another budget": (asked(privacy=dpb.GaussianDP(1.0)), "expected a budget such as PureDP(0.1)"),
    "no budget": (asked(privacy=0.1), "expected a budget such as PureDP(0.1), got 0.1"),
    "a tiny budget": (asked(privacy=dpb.PureDP(1e-13)), "expected a budget whose ε is within"),
    "no share": (asked(quantile=1.0), "expected quantile strictly between 0 and 1, got 1.0"),
    "no quantile": (asked(quantile="all"), "expected quantile to be a number"),
    "one end": (asked(bounds=1.0), "expected bounds as a sequence"),
    "ends the wrong way": (asked(bounds=(1.0, 0.1)), "expected bounds as (low, high), low below high"),
    "an end of zero": (asked(bounds=(0.0, 1.0)), "expected bounds within 1e-100 and 1e+100"),
    "texts": (asked(["a", "b"]), "expected features as (n, d), a row for each person"),
    "a flat array": (asked([1.0, 2.0]), "expected features as (n, d) or (n, K, d), got shape (2,)"),
    "nobody": (asked(np.zeros((0, 2))), "got shape (0, 2)"),
    "an odd seed": (asked(seed=-1), "expected seed to be a whole number >= 0"),
}


@pytest.mark.parametrize(("act", "said"), WRONG.values(), ids=WRONG)
def test_every_mistake_is_one_sentence(act: Callable[[], Any], said: str) -> None:
    with pytest.raises(DPBanditsError, match=re.escape(said)) as caught:
        act()
    assert "\n" not in str(caught.value)
