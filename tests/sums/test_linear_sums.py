"""Sums of Gram pairs: streamed equals dense, and the worst replaced row costs what is declared."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import mpmath as mp
import numba
import numpy as np
import pytest
from scipy.optimize import minimize

from dpbandits import ApproxDP, GaussianDP, NonPrivate, PureDP
from dpbandits.errors import InvalidInput, NotImplied
from dpbandits.mechanisms.gram import (
    add_row,
    add_square,
    augmented_widths,
    operator_norm,
    pair_size,
    pair_widths,
    triangle_size,
    unpack,
)
from dpbandits.sums.batches import release_batch, start_batches, toeplitz_root
from dpbandits.sums.binary_tree import release_leaf, start_tree
from dpbandits.sums.factorized import (
    Design,
    design_factorized,
    release_factorized,
    residues,
    start_factorized,
)


class FixedNoise:
    """Standard draws given beforehand; remembers the locations."""

    def __init__(self, standard: np.ndarray) -> None:
        self.standard = iter(standard.ravel())
        self.locations: list[float] = []

    def normal(self, loc: float, scale: float) -> float:
        self.locations.append(loc / scale)
        return loc + scale * float(next(self.standard))


class ForcedNoise(FixedNoise):
    """Returns the same results whatever the location."""

    def normal(self, loc: float, scale: float) -> float:
        self.locations.append(loc / scale)
        return float(next(self.standard))


# ----------------------------------------------------------------------------- streamed equals dense


def series(design: Design, length: int) -> np.ndarray:
    """The first coefficients of r(x), one factor after the other."""
    found = np.zeros(length)
    found[0] = 1.0
    for gap, gap_hat in zip(design.gaps, design.gaps_hat, strict=True):
        found[1:] -= (1.0 - gap_hat) * found[:-1]
        for k in range(1, length):
            found[k] += (1.0 - gap) * found[k - 1]
    return found


def lower_toeplitz(column: np.ndarray) -> np.ndarray:
    k = np.arange(column.size)
    return np.where(k[:, None] >= k, column[k[:, None] - k], 0.0)


@pytest.mark.parametrize(("buffers", "length"), [(1, 50), (4, 50), (8, 300), (8, None), (12, 10**6)])
def test_factorized_streamed_equals_dense(buffers: int, length: int | None) -> None:
    rounds, dim = 300, 3
    rng = np.random.default_rng(1)
    rows, standard = rng.normal(size=(rounds, dim)), rng.normal(size=(rounds, dim))
    widths = np.array([0.5, 1.0, 3.0])
    public, secret = start_factorized(
        dim, 1.5, GaussianDP(0.7), widths=widths, buffers=buffers, length=length
    )
    noise: Any = FixedNoise(standard)
    found, variance = [], []
    for row in rows:
        secret.open[:] = row
        release_factorized(public, secret, noise)
        found.append(public.total.copy())
        variance.append(public.variance[0])
    design = design_factorized(buffers, length)
    summing = np.tril(np.ones((rounds, rounds)))
    matrix = summing @ np.linalg.inv(lower_toeplitz(series(design, rounds)))
    scale = 1.5 / 0.7 * design.sensitivity()
    np.testing.assert_allclose(found, summing @ rows + scale * matrix @ standard * widths, atol=1e-10)
    np.testing.assert_allclose(variance, scale**2 * (matrix**2).sum(1), rtol=1e-10)
    assert public.released[0] == rounds and not secret.open.any()
    assert variance[-1] == pytest.approx(scale**2 * design.variance(rounds), rel=1e-10)


@pytest.mark.parametrize("block", [4, 64])
def test_block_factorized_batches_streamed_equal_dense(block: int) -> None:
    rounds, dim = 150, pair_size(2)
    rng = np.random.default_rng(2)
    rows, standard = rng.normal(size=(rounds, dim)), rng.normal(size=(rounds, dim))
    public, secret = start_batches(1, dim, 1.5, GaussianDP(0.7), block=block)
    noise: Any = FixedNoise(standard)
    found = []
    for row in rows:
        secret.open[0] = row
        release_batch(public, secret, 0, noise)
        found.append(public.total[0].copy())
    root = toeplitz_root(block)
    # A finished block's noise is carried on: column j stops changing where its block ends.
    ends = [min(k, (j // block + 1) * block - 1) - j for k in range(rounds) for j in range(rounds)]
    matrix = np.tril(root[np.maximum(ends, 0)].reshape(rounds, rounds))
    scale = 1.5 / 0.7 * math.sqrt(root @ root)
    np.testing.assert_allclose(found, rows.cumsum(0) + scale * matrix @ standard, atol=1e-10)


def test_tree_streamed_equals_dense() -> None:
    rounds, dim = 200, pair_size(2)
    rng = np.random.default_rng(3)
    rows, standard = rng.normal(size=(rounds, dim)), rng.normal(size=(rounds, dim))
    public, secret = start_tree(1, dim, 1.5, GaussianDP(0.7), leaves=rounds)
    noise: Any = FixedNoise(standard)
    found = []
    for row in rows:
        secret.open[0] = row
        release_leaf(public, secret, 0, noise)
        found.append(public.total[0].copy())
    matrix = np.zeros((rounds, rounds))
    for k in range(1, rounds + 1):
        end = k
        while end:
            matrix[k - 1, end - 1] = 1.0
            end -= end & -end
    scale = 1.5 / 0.7 * math.sqrt(8)
    np.testing.assert_allclose(found, rows.cumsum(0) + scale * matrix @ standard, atol=1e-10)


def test_factorized_runs_compiled_to_the_same_bit() -> None:
    @numba.njit
    def run(public: Any, secret: Any, noise: Any, rows: Any) -> None:
        for t in range(rows.shape[0]):
            add_row(secret.open, rows[t], 0.25, rows[t])
            release_factorized(public, secret, noise)

    rows = np.random.default_rng(3).normal(size=(100, 2))
    plain, compiled = (
        start_factorized(pair_size(2), 1.0, GaussianDP(1.0), widths=pair_widths(2)) for _ in range(2)
    )
    run.py_func(*plain, np.random.default_rng(9), rows)
    run(*compiled, np.random.default_rng(9), rows)
    states: Any = ((*plain[0], *plain[1]), (*compiled[0], *compiled[1]))
    for one, other in zip(*states, strict=True):
        assert np.array_equal(one, other)


def test_without_privacy_a_factorized_sum_is_the_sum() -> None:
    public, secret = start_factorized(2, 1.0, NonPrivate(), length=10)
    generator: Any = np.random.default_rng(0)
    for _ in range(20):
        secret.open[:] = (1.0, -0.5)
        release_factorized(public, secret, generator)
    assert public.total.tolist() == [20.0, -10.0] and public.variance[0] == 0.0


def test_a_factorized_sum_is_asked_for_in_full_sentences() -> None:
    with pytest.raises(NotImplied):  # no Gaussian noise meets ε-DP
        start_factorized(2, 1.0, PureDP(1.0))
    with pytest.raises(InvalidInput, match="expected widths to be 2 positive numbers"):
        start_factorized(2, 1.0, GaussianDP(1.0), widths=np.ones(3))
    with pytest.raises(InvalidInput, match="expected widths to be 2 positive numbers"):
        start_factorized(2, 1.0, GaussianDP(1.0), widths=np.zeros(2))
    with pytest.raises(InvalidInput, match="expected buffers to be a whole number >= 1"):
        start_factorized(2, 1.0, GaussianDP(1.0), buffers=0)
    with pytest.raises(InvalidInput, match="more than 12 buffers gain nothing"):
        start_factorized(2, 1.0, GaussianDP(1.0), buffers=13)
    with pytest.raises(InvalidInput, match="expected length to be a whole number >= 1"):
        start_factorized(2, 1.0, GaussianDP(1.0), length=0)


# ------------------------------------------------------------------------- how much noise a BLT makes


def rms(design: Design, length: float) -> float:
    """Root mean square over all prefix sums: their variance is smooth in the length."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    # In logarithms of the length, from 1 on: what comes before is one of `length` prefixes.
    times = np.exp(math.log(length) * (nodes + 1.0) / 2.0)
    mean = weights @ [time * design.variance(time) for time in times] * math.log(length) / 2.0 / length
    return design.sensitivity() * math.sqrt(mean)


TABLE = {
    (4, 10**4): (4.003, 3.840),
    (4, 10**6): (5.548, 5.366),
    (4, 5 * 10**7): (7.028, 6.813),
    (8, 10**4): (3.998, 3.836),
    (8, 10**6): (5.464, 5.303),
    (8, 5 * 10**7): (6.714, 6.552),
}


@pytest.mark.parametrize(("buffers", "length"), TABLE)
def test_factorized_noise_is_within_one_percent_of_the_best_known(buffers: int, length: int) -> None:
    """The table is for a guarantee that ends at the length; this one goes on for ever."""
    design = design_factorized(buffers, length)
    most, mean = TABLE[buffers, length]
    assert design.spread(length) == pytest.approx(most, rel=0.01)
    assert rms(design, length) == pytest.approx(mean, rel=0.01)


def test_a_long_design_has_a_hair_more_noise() -> None:
    """Gaps near the grain of double precision lose digits in use: by 5·10⁻⁹ of the cost at 10¹² rows."""
    for buffers, length, more in ((12, 10**12, 5e-9), (8, 10**12, 5e-9), (8, None, 0.99e-10)):
        design = design_factorized(buffers, length)
        with mp.workdps(50):
            gaps, others = ([mp.mpf(float(gap)) for gap in part] for part in design)
            column = mp.mpf(1)
            omega = [
                mp.fprod(other - gap for other in others)
                / mp.fprod(one - gap for one in gaps if one != gap)
                for gap in gaps
            ]
            for one, gap in zip(omega, gaps, strict=True):
                column += sum(one * w / (gap + g - gap * g) for w, g in zip(omega, gaps, strict=True))
            assert more < design.sensitivity() / mp.sqrt(column) - 1 < 4 * more


def test_factorized_noise_for_an_unknown_length() -> None:
    design = design_factorized(8)
    for length, spread in ((10**4, 5.55), (10**6, 6.50), (5 * 10**7, 7.18)):
        assert design.spread(length) == pytest.approx(spread, rel=0.002)


def test_the_root_mean_square_of_the_test_is_right() -> None:
    design = design_factorized(4, 1000)
    exact = design.sensitivity() * math.sqrt(np.mean([design.variance(t) for t in range(1, 1001)]))
    assert rms(design, 1000) == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize(("buffers", "length"), [(4, 100), (8, 10**6), (8, None)])
def test_the_calibration_is_of_the_rounded_numbers_in_use(buffers: int, length: int | None) -> None:
    """Invert the C⁻¹ that streams, with its θ̂ and ω̂ as stored, in 60 digits, over infinite time."""
    public, _ = start_factorized(1, 1.0, GaussianDP(1.0), buffers=buffers, length=length)
    with mpmath.workdps(60):
        decay = sorted((mpmath.mpf(float(x)) for x in public.decay), reverse=True)
        weights = [
            mpmath.mpf(float(w)) for _, w in sorted(zip(-public.decay, public.weights, strict=True))
        ]

        def inverse(y: Any) -> Any:
            return 1 + mpmath.fsum(w / (y - d) for w, d in zip(weights, decay, strict=True))

        # The θ of C lie between the θ̂, where 1/r changes sign.
        theta = []
        for above, below in itertools.pairwise([mpmath.mpf(1), *decay]):
            low, high = below, above
            for _ in range(190):
                middle = (low + high) / 2
                low, high = (middle, high) if inverse(middle) < 0 else (low, middle)
            theta.append(low)
        omega = [
            mpmath.fprod(a - d for d in decay) / mpmath.fprod(a - b for b in theta if b is not a)
            for a in theta
        ]
        norm = mpmath.sqrt(
            1
            + mpmath.fsum(
                u * v / (1 - a * b)
                for (a, u), (b, v) in itertools.product(zip(theta, omega, strict=True), repeat=2)
            )
        )
        ratio = float(norm / public.scale)
    assert 1.0 - 1e-9 <= ratio <= 1.0


def test_designs_are_in_order_and_grow_no_worse_with_buffers() -> None:
    spreads = []
    for buffers in (1, 2, 4, 8, 12):
        design = design_factorized(buffers, 10**6)
        order = np.ravel(np.column_stack([design.gaps, design.gaps_hat]))
        assert (np.diff(order) > 0).all() and order[0] > 0.0 and order[-1] < 1.0
        assert (residues(design.gaps, design.gaps_hat) > 0).all()
        assert (residues(design.gaps_hat, design.gaps) < 0).all()
        spreads.append(design.spread(10**6))
    assert sorted(spreads, reverse=True) == spreads


# ------------------------------------------------------------------------- the worst replaced row


def packed(row: np.ndarray, reward: float) -> np.ndarray:
    found = np.zeros(pair_size(row.size))
    add_row(found, row, reward, row)
    return found


def pair_cost(widths: np.ndarray, one: Any, other: Any) -> float:
    return float(np.linalg.norm((packed(*one) - packed(*other)) / widths))


def unit_pair(free: np.ndarray) -> tuple[Any, Any]:
    """Two people with ‖x‖ ≤ 1 and |y| ≤ 1 from free numbers."""
    people = []
    for x in free.reshape(2, -1):
        feature = x[:-1] / max(1.0, float(np.linalg.norm(x[:-1])))
        people.append((feature, float(np.clip(x[-1], -1.0, 1.0))))
    return people[0], people[1]


def augmented_pair(free: np.ndarray) -> tuple[Any, Any]:
    """Two people with ‖(x, y)‖ ≤ 1 from free numbers."""
    people = []
    for x in free.reshape(2, -1):
        row = x / max(1.0, float(np.linalg.norm(x)))
        people.append((row[:-1], float(row[-1])))
    return people[0], people[1]


def worst_pair(widths: np.ndarray, dim: int, pair: Callable[[np.ndarray], Any]) -> tuple[float, Any]:
    """By search from many starts, and random pairs on top."""
    rng = np.random.default_rng(4)

    def cost(free: np.ndarray) -> float:
        return pair_cost(widths, *pair(free))

    starts = sorted(rng.normal(size=(300, 2 * dim + 2)), key=cost)[-6:]
    best = max(
        (
            minimize(
                lambda x: -cost(x),
                x0,
                method="Nelder-Mead",
                options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 6000, "adaptive": True},
            ).x
            for x0 in starts
        ),
        key=cost,
    )
    return cost(best), pair(best)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_pair_widths_cost_exactly_one(dim: int) -> None:
    widths = pair_widths(dim)
    # With one dimension there is no pair at an angle; the signs of two rewards are the worst.
    exact = 1.0 if dim > 1 else math.sqrt(8 / 9)
    assert worst_pair(widths, dim, unit_pair)[0] == pytest.approx(exact, abs=1e-6)
    if dim > 1:
        first, second = np.eye(dim)[:2]
        half = 0.5 * first + math.sqrt(0.75) * second
        assert pair_cost(widths, (first, 1.0), (half, -1.0)) == pytest.approx(1.0, abs=1e-12)
        assert pair_cost(widths, (first, 1.0), (second, -1.0)) == pytest.approx(math.sqrt(8 / 9))


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_augmented_widths_cost_exactly_one(dim: int) -> None:
    widths = augmented_widths(dim)
    assert worst_pair(widths, dim, augmented_pair)[0] == pytest.approx(1.0, abs=1e-6)
    if dim > 1:
        first, second = np.eye(dim)[:2]
        assert pair_cost(widths, (first, 0.0), (second, 0.0)) == pytest.approx(1.0, abs=1e-12)


def test_an_even_diagonal_would_cost_more() -> None:
    """The control: with the same noise on and off the diagonal, as many codes draw it."""
    even = np.minimum(pair_widths(2), [1.5, 1.5, 1.5, 9.0, 9.0])
    assert worst_pair(even, 2, unit_pair)[0] == pytest.approx(math.sqrt(25 / 18), abs=1e-6)  # 1.18
    even = np.ones(pair_size(2))
    assert worst_pair(even, 2, augmented_pair)[0] == pytest.approx(math.sqrt(2.0), abs=1e-6)


def random_pairs_stay_within(widths: np.ndarray, dim: int, pair: Callable[[np.ndarray], Any]) -> bool:
    free = 3.0 * np.random.default_rng(5).normal(size=(3000, 2 * dim + 2))
    return all(pair_cost(widths, *pair(x)) <= 1.0 + 1e-12 for x in free)


def test_no_pair_costs_more_in_five_dimensions() -> None:
    assert random_pairs_stay_within(pair_widths(5), 5, unit_pair)
    assert random_pairs_stay_within(augmented_widths(5), 5, augmented_pair)
    assert not random_pairs_stay_within(0.9 * pair_widths(5), 5, unit_pair)


WORST = {
    "pair": (pair_widths(2), (np.array([1.0, 0.0]), 1.0), (np.array([0.5, math.sqrt(0.75)]), -1.0)),
    "augmented": (augmented_widths(2), (np.array([1.0, 0.0]), 0.0), (np.array([0.0, 1.0]), 0.0)),
}


def stream_cost(
    start: Callable[[], Any], widths: np.ndarray, rows: tuple[Any, Any], place: int
) -> float:
    """What replacing one row moves all locations of a run by, in units of their noise."""
    locations = []
    for row in rows:
        open_row, release = start()
        noise = ForcedNoise(np.random.default_rng(6).normal(size=(400, widths.size)))
        for t in range(200):
            if t == place:
                open_row[:] = packed(*row)
            release(noise)
        locations.append(noise.locations)
    one, other = (np.array(found) for found in locations)
    return float(np.linalg.norm(one - other))


@pytest.mark.parametrize("kind", WORST)
def test_the_declared_mu_is_the_worst_case_of_a_whole_run(kind: str) -> None:
    widths, one, other = WORST[kind]
    mu = 0.7

    def factorized() -> tuple[Any, Any]:
        # Its column has died out after 200 rounds.
        public, secret = start_factorized(
            widths.size, 1.0, GaussianDP(mu), widths=widths, buffers=3, length=12
        )
        return secret.open, lambda noise: release_factorized(public, secret, noise)

    for place in (0, 1, 17):
        assert stream_cost(factorized, widths, (one, other), place) == pytest.approx(mu, abs=1e-6)

    # Sums without widths of their own are given rows in units of them.
    def scaled(start: Callable[..., Any], release: Callable[..., None], **options: Any) -> Any:
        def begin() -> tuple[Any, Any]:
            public, secret = start(1, widths.size, 1.0, GaussianDP(mu), **options)
            row = np.zeros(widths.size)

            def step(noise: Any) -> None:
                secret.open[0] += row / widths
                row[:] = 0.0
                release(public, secret, 0, noise)

            return row, step

        return begin

    batches = scaled(start_batches, release_batch, block=16)
    assert max(
        stream_cost(batches, widths, (one, other), place) for place in (0, 15, 16)
    ) == pytest.approx(mu, abs=1e-6)
    tree = scaled(start_tree, release_leaf, leaves=200)
    assert max(stream_cost(tree, widths, (one, other), place) for place in (0, 5)) == pytest.approx(
        mu, abs=1e-6
    )


# ------------------------------------------------------------------------------ layout, operator norm


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_pairs_are_packed_and_unpacked(dim: int) -> None:
    rng = np.random.default_rng(7)
    rows, rewards = rng.normal(size=(20, dim)), rng.normal(size=20)
    pair, square = np.zeros(pair_size(dim)), np.zeros(triangle_size(dim))
    for row, reward in zip(rows, rewards, strict=True):
        add_row(pair, row, reward, row)
        add_square(square, row, row)
    matrix = np.full((dim, dim), np.nan)
    for flat in (pair, square):
        unpack(flat, matrix)
        np.testing.assert_allclose(matrix, rows.T @ rows, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pair[-dim:], rows.T @ rewards, rtol=1e-12, atol=1e-12)
    assert pair[:-dim].tolist() == square.tolist()
    assert pair_widths(dim).shape == augmented_widths(dim).shape == pair.shape


def test_the_paper_noise_of_one_entry() -> None:
    """SS18's setting (5·10⁷ rounds, L̃² = 2): a released entry has a standard deviation of 14.6, 56.7."""
    for delta, spread in ((0.1, 14.6), (1e-6, 56.7)):
        scale = 2.0 / ApproxDP(1.0, delta).to_gaussian().mu
        assert scale * design_factorized(8, 5 * 10**7).spread(5e7) == pytest.approx(spread, rel=0.01)


def test_the_operator_norm_has_its_closed_forms() -> None:
    assert operator_norm(1) == pytest.approx(2.0 / math.sqrt(math.pi), abs=1e-9)
    assert operator_norm(2) == pytest.approx(math.sqrt(2 / math.pi) + math.sqrt(math.pi / 2), abs=1e-9)
    assert operator_norm(5) == pytest.approx(3.86, abs=0.01)
    norms = [operator_norm(dim) for dim in (50, 100, 201, 1000)]
    assert sorted(norms) == norms


@pytest.mark.parametrize("dim", [5, 6, 20])
def test_the_operator_norm_is_that_of_drawn_matrices(dim: int) -> None:
    """Five standard errors: wrong once in 1.7 million. One dimension more or less must be told apart."""
    drawn = np.random.default_rng(dim).normal(size=(4000, dim, dim))
    norms = np.abs(np.linalg.eigvalsh((drawn + drawn.transpose(0, 2, 1)) / math.sqrt(2.0))).max(axis=1)
    error = 5.0 * norms.std() / math.sqrt(norms.size)
    assert abs(norms.mean() - operator_norm(dim)) < error
    assert abs(norms.mean() - operator_norm(dim + 1)) > error
    assert abs(norms.mean() - operator_norm(dim - 1)) > error
    # The tail bound that policies use, at 1 %.
    assert (norms > operator_norm(dim) + 2.0 * math.sqrt(math.log(100.0))).mean() <= 0.01
