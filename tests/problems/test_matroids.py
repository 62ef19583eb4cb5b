"""Matroids: independence against a second definition of each, and bases against all bases."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpbandits as dpb
from dpbandits.errors import InvalidInput, RoundError
from dpbandits.problems.matroids.greedy import improve, rebuild, start_greedy
from dpbandits.problems.matroids.linear import start_vectors
from dpbandits.recipes import Recipe

Independent = Callable[[tuple[int, ...]], bool]


class Case(NamedTuple):
    """A matroid, and its independent sets as one would say them without thinking of speed."""

    matroid: dpb.matroids.Matroid
    independent: Independent


def rational_rank(rows: list[list[Fraction]]) -> int:
    rows, rank = [row[:] for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column] != 0), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for r in range(rank + 1, len(rows)):
            factor = rows[r][column] / rows[rank][column]
            rows[r] = [x - factor * y for x, y in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank


NUMBERS = st.sampled_from([0, 0, 1, 1, -1, 2, 3, 0.5, 0.1, 10**9])


@st.composite
def linear(draw: Any) -> Case:
    items, dim = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    vectors = [[draw(NUMBERS) for _ in range(dim)] for _ in range(items)]
    if items > 2 and draw(st.booleans()):
        vectors[1] = [2 * x for x in vectors[0]]  # parallel, unless it is a loop
    exact = [[Fraction(x) for x in row] for row in vectors]
    return Case(
        dpb.matroids.LinearMatroid(tuple(map(tuple, vectors))),
        lambda chosen: rational_rank([exact[i] for i in chosen]) == len(chosen),
    )


def acyclic(edges: list[tuple[int, int]]) -> bool:
    group = {v: v for edge in edges for v in edge}
    for one, other in edges:
        if group[one] == group[other]:
            return False
        merged = group[other]
        group = {v: group[one] if g == merged else g for v, g in group.items()}
    return True


@st.composite
def graphic(draw: Any) -> Case:
    edge = st.tuples(st.integers(0, 3), st.integers(0, 3))  # loops and parallel edges among them
    edges = draw(st.lists(edge, min_size=1, max_size=6))
    return Case(
        dpb.matroids.GraphicMatroid(tuple(edges)), lambda chosen: acyclic([edges[i] for i in chosen])
    )


@st.composite
def counting(draw: Any) -> Case:
    items = draw(st.integers(1, 6))
    kind = draw(st.sampled_from(["uniform", "partition", "laminar"]))
    if kind == "uniform":
        most = draw(st.integers(0, 7))
        return Case(dpb.matroids.UniformMatroid(items, most), lambda chosen: len(chosen) <= most)
    if kind == "partition":
        groups = draw(st.lists(st.integers(0, 2), min_size=items, max_size=items))
        capacities = draw(st.lists(st.integers(0, 2), min_size=3, max_size=3))
        return Case(
            dpb.matroids.PartitionMatroid(tuple(groups), tuple(capacities)),
            lambda chosen: all(sum(groups[i] == g for i in chosen) <= capacities[g] for g in range(3)),
        )
    ends = sorted(draw(st.sets(st.integers(0, items), max_size=4)))
    sets = [tuple(range(end)) for end in ends] + [tuple(range(max([0, *ends]), items))]
    capacities = [draw(st.integers(0, 3)) for _ in sets]
    return Case(
        dpb.matroids.LaminarMatroid(items, tuple(sets), tuple(capacities)),
        lambda chosen: all(
            len(set(chosen) & set(one)) <= most for one, most in zip(sets, capacities, strict=True)
        ),
    )


@st.composite
def transversal(draw: Any) -> Case:
    one = st.sets(st.integers(0, 3), max_size=3)
    places = [tuple(sorted(x)) for x in draw(st.lists(one, min_size=1, max_size=6))]

    def independent(chosen: tuple[int, ...]) -> bool:
        options = itertools.product(*(places[i] for i in chosen))
        return any(len(set(option)) == len(chosen) for option in options)

    return Case(dpb.matroids.TransversalMatroid(tuple(places)), independent)


@dataclasses.dataclass(frozen=True)
class OwnMatroid(dpb.matroids.Matroid):
    """An outsider's: at most two items, and not both 0 and 1."""

    count: int

    @property
    def size(self) -> int:
        return self.count

    def independent(self, chosen: Iterable[int]) -> bool:
        chosen = set(chosen)
        return len(chosen) <= 2 and not {0, 1} <= chosen


PLAIN = st.one_of(
    linear(),
    graphic(),
    counting(),
    transversal(),
    st.integers(2, 6).map(lambda n: Case(OwnMatroid(n), OwnMatroid(n).independent)),
)


@st.composite
def derived(draw: Any) -> Case:
    matroid, independent = draw(PLAIN)
    if draw(st.booleans()):
        most = draw(st.integers(0, 3))
        return Case(matroid.truncated(most), lambda chosen: len(chosen) <= most and independent(chosen))
    items = draw(st.permutations(range(matroid.size)))[: draw(st.integers(1, matroid.size))]
    return Case(matroid.restricted(items), lambda chosen: independent(tuple(items[i] for i in chosen)))


MATROIDS = st.one_of(PLAIN, derived())


def subsets(size: int) -> list[tuple[int, ...]]:
    return [s for k in range(size + 1) for s in itertools.combinations(range(size), k)]


def largest_weight(case: Case, weights: np.ndarray[Any, Any]) -> float:
    """Over all bases, in whole numbers, so exactly."""
    sets = [s for s in subsets(case.matroid.size) if case.independent(s)]
    rank = max(map(len, sets))
    return max(float(sum(weights[i] for i in s)) for s in sets if len(s) == rank)


@settings(max_examples=150)
@given(case=MATROIDS, data=st.data())
def test_bases_have_the_largest_weight_of_all(case: Case, data: Any) -> None:
    matroid, size = case.matroid, case.matroid.size
    for chosen in subsets(size):
        assert matroid.independent(chosen) == case.independent(chosen), chosen
    assert matroid.loops == tuple(i for i in range(size) if not case.independent((i,)))
    # Few different weights, so that many are tied; in whole numbers, so that sums are exact.
    some = st.lists(st.integers(-2, 3), min_size=size, max_size=size)
    greedy = start_greedy(matroid.state(), size)
    for step in range(4):
        weights = np.array(data.draw(some), float)
        basis = matroid.best_basis(weights)
        assert matroid.independent(basis) and len(basis) == matroid.rank
        assert not set(basis) & set(matroid.loops)
        best = largest_weight(case, weights)
        assert sum(weights[list(basis)]) == best
        # And kept up to date, from whatever basis it was before.
        (rebuild if step == 0 else improve)(greedy, weights)
        assert sum(weights[greedy.basis]) == best
        assert matroid.independent(greedy.basis.tolist())
        assert sorted(greedy.basis) == np.flatnonzero(greedy.inside).tolist()


@settings(max_examples=60)
@given(case=MATROIDS)
def test_a_matroid_and_its_problem_survive_json(case: Case) -> None:
    assert Recipe.from_json(case.matroid.to_json()) == case.matroid
    if case.matroid.rank > 0:
        problem = dpb.MatroidBases(case.matroid, horizon=9)
        assert dpb.Problem.from_json(problem.to_json()) == problem
    else:
        with pytest.raises(InvalidInput, match="at least one item"):
            dpb.MatroidBases(case.matroid)


COMPILED = [
    dpb.matroids.LinearMatroid(tuple(itertools.product((0, 1), repeat=4))),
    dpb.matroids.TransversalMatroid(((0, 1), (1,), (0, 2), (2, 3), (3,), (0, 3))),
    dpb.matroids.LaminarMatroid(8, ((0, 1, 2), (0, 1), (3, 4, 5)), (2, 1, 2))
    .truncated(4)
    .restricted(range(7)),
    OwnMatroid(6),
]


@pytest.mark.parametrize("matroid", COMPILED, ids=lambda matroid: type(matroid).__name__)
def test_compiled_and_plain_choose_alike(matroid: dpb.matroids.Matroid) -> None:
    quick = {f: numba.njit(f) for f in (rebuild, improve)}
    rng = np.random.default_rng(0)
    plain, compiled = (start_greedy(matroid.state(), matroid.size) for _ in range(2))
    for step in range(60):
        weights = rng.integers(0, 4, matroid.size).astype(float)
        function = improve if step % 3 else rebuild
        function(plain, weights)
        quick[function](compiled, weights)
        assert plain.basis.tolist() == compiled.basis.tolist()
        assert plain.order.tolist() == compiled.order.tolist()


PRIME = 2147483647


def test_independence_is_exact_where_a_determinant_is_not() -> None:
    tenth = Fraction(0.1)
    nearly = dpb.matroids.LinearMatroid(((1.0, 1.0), (1.0, 1.0 + 2.0**-52), (0.1, 0.2), (0.2, 0.4)))
    assert nearly.independent([0, 1]) and not nearly.independent([2, 3])
    huge = dpb.matroids.LinearMatroid(((10**300, 1), (10**300 + 1, 1), (10**300, 2)))
    assert huge.independent([0, 1]) and huge.independent([0, 2])
    assert float(tenth) == 0.1
    # Its determinant is the first prime: independent, though not modulo that prime.
    vectors = ((1, 1), (1, PRIME + 1))
    assert dpb.matroids.LinearMatroid(vectors).independent([0, 1])
    one_prime = start_vectors([list(vector) for vector in vectors], 1)
    one_prime.clear()
    assert one_prime.join(0) and not one_prime.join(1)


def test_the_primes_are_prime_and_their_product_passes_hadamards_bound() -> None:
    state = dpb.matroids.LinearMatroid(((0.1, 0.2, 0.3), (1e-9, 1.0, 7.0), (3.0, 1e10, 2.0))).state()
    assert state.primes[0] == PRIME and len(set(state.primes.tolist())) == state.primes.size > 1
    for prime in state.primes.tolist():
        assert all(prime % q for q in range(2, math.isqrt(prime) + 1))
    rows = [[Fraction(x) for x in v] for v in ((0.1, 0.2, 0.3), (1e-9, 1.0, 7.0), (3.0, 1e10, 2.0))]
    lengths = 1
    for row in rows:
        scale = math.lcm(*(x.denominator for x in row))
        whole = [int(x * scale) for x in row]
        lengths *= sum((x // math.gcd(*whole)) ** 2 for x in whole)
    assert math.prod(state.primes.tolist()) ** 2 > lengths


class Pairs(NamedTuple):
    """The state of `ManyPairs`."""

    free: np.ndarray[Any, Any]

    def clear(self) -> None:
        self.free[:] = 1

    def join(self, item: int) -> bool:
        if self.free[item // 2] == 0:
            return False
        self.free[item // 2] = 0
        return True


@dataclasses.dataclass(frozen=True)
class ManyPairs(dpb.matroids.Matroid):
    """An outsider's with more items than a table holds: one of each pair."""

    pairs: int

    @property
    def size(self) -> int:
        return 2 * self.pairs

    def state(self) -> Pairs:
        return Pairs(np.ones(self.pairs, np.int64))


def test_the_basis_is_looked_at_again_only_when_an_item_overtakes_one_of_it() -> None:
    asked = []

    class Watched(Pairs):
        def join(self, item: int) -> bool:
            asked.append(item)
            return super().join(item)

    greedy = start_greedy(Watched(np.ones(3, np.int64)), 6)
    weights = np.array([6.0, 1.0, 5.0, 2.0, 4.0, 3.0])
    rebuild(greedy, weights)
    assert sorted(greedy.basis) == [0, 2, 4]
    for changed in (
        [6.0, 1.0, 5.0, 2.0, 4.5, 3.0],
        [4.7, 1.0, 5.0, 2.0, 4.5, 3.0],
        [5, 2.5, 5, 2, 4, 3],
    ):
        asked.clear()
        improve(greedy, np.array(changed, float))
        assert not asked  # others in the basis, or outside, changed places
    improve(greedy, np.array([5.0, 5.5, 5.0, 2.0, 4.0, 3.0]))
    assert asked and sorted(greedy.basis) == [1, 2, 4]


def test_an_outsiders_matroid_is_simulated() -> None:
    matroid = ManyPairs(12)
    means = (0.9, 0.1) * 12
    assert matroid.rank == 12 and matroid.best_basis(means) == tuple(range(0, 24, 2))
    trace = dpb.simulate(
        dpb.matroids.UniformBases(),
        dpb.worlds.MatroidArms(matroid, means),
        4000,
        4,
        seed=0,
        progress=False,
    )
    # One of each pair at random costs 0.4 on average: 12·0.4 a round, give or take 1 in 10⁹.
    assert trace.regret("uniform-bases")[:, -1] / 4000 == pytest.approx(4.8, abs=0.15)


class Load(NamedTuple):
    weight: np.ndarray  # (1,)

    def clear(self) -> None:
        self.weight[0] = 0

    def join(self, item: int) -> bool:
        heavy = 1 if item < 10 else 4
        if self.weight[0] + heavy > 10:
            return False
        self.weight[0] += heavy
        return True


@dataclasses.dataclass(frozen=True)
class Knapsack(dpb.matroids.Matroid):
    """An outsider's that is no matroid: ten light ones fit, or two heavy and two light."""

    @property
    def size(self) -> int:
        return 20

    def state(self) -> Load:
        return Load(np.zeros(1, np.int64))


@pytest.mark.parametrize(
    "kind",
    [dpb.matroids.CombinatorialTreeUCB, dpb.FocusedMatroidUCB, dpb.matroids.PrivateMatroidThompson],
)
def test_no_item_is_chosen_twice_even_of_what_is_no_matroid(kind: Any) -> None:
    """Twice in one sum, a reward would cost more than Gaussian noise for ten items pays for."""
    learner = kind(privacy=dpb.GaussianDP(1.0)).start(dpb.MatroidBases(Knapsack()), seed=3)
    for _ in range(60):
        items = learner.select()
        assert len(set(items.tolist())) == items.size == 10
        learner.update(items, np.ones(10))


@dataclasses.dataclass(frozen=True)
class Shelf(dpb.matroids.Matroid):
    """An outsider's whose `rank` is how many fit on each of three shelves."""

    rank: int

    @property
    def size(self) -> int:
        return 9

    def independent(self, chosen: Iterable[int]) -> bool:
        items = list(chosen)
        shelves = [item // 3 for item in items]
        return len(set(items)) == len(items) and all(shelves.count(x) <= self.rank for x in range(3))


def test_noise_is_not_shared_out_over_an_outsiders_idea_of_rank() -> None:
    """With noise for one item and three released, 1-DP would be printed and 3-DP delivered."""
    with pytest.raises(InvalidInput, match="expected rank to be 3, the items of a basis, got 1"):
        dpb.MatroidBases(Shelf(1))


class BadMatroid(OwnMatroid):
    abstract = True


class NotHereditary(BadMatroid):
    abstract = True

    def independent(self, chosen: Iterable[int]) -> bool:
        return len(set(chosen)) != 1


class NoExchange(BadMatroid):
    abstract = True

    def independent(self, chosen: Iterable[int]) -> bool:
        return set(chosen) <= {0, 1} or set(chosen) <= {2}


class NeverIndependent(BadMatroid):
    abstract = True

    def independent(self, chosen: Iterable[int]) -> bool:
        return False


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: NotHereditary(4).rank, "a part of an independent set"),
        (lambda: NoExchange(4).rank, "must grow by an item"),
        (lambda: NeverIndependent(3).rank, "the empty set"),
        (lambda: OwnMatroid(17).rank, "at most 16"),
        (lambda: dpb.matroids.LinearMatroid(()), "at least one vector"),
        (lambda: dpb.matroids.LinearMatroid(((1, 2), (1,))), "one length"),
        (lambda: dpb.matroids.LinearMatroid(((1, math.nan),)), "finite numbers"),
        (lambda: dpb.matroids.LinearMatroid((("a", 1),)), "finite numbers"),  # type: ignore[arg-type]
        (lambda: dpb.matroids.GraphicMatroid(((0, 1, 2),)), "pairs of vertices"),
        (lambda: dpb.matroids.GraphicMatroid(()), "at least one edge"),
        (lambda: dpb.matroids.PartitionMatroid((0, 2), (1, 1)), "a capacity for each"),
        (lambda: dpb.matroids.PartitionMatroid((0, -1), (1, 1)), "whole number >= 0"),
        (lambda: dpb.matroids.LaminarMatroid(4, ((0, 1), (1, 2)), (1, 1)), "nested or disjoint"),
        (lambda: dpb.matroids.LaminarMatroid(2, ((0, 5),), (1,)), "items below 2"),
        (lambda: dpb.matroids.LaminarMatroid(2, ((0, 1),), ()), "1 capacities"),
        (lambda: dpb.matroids.TransversalMatroid(((0.5,),)), "whole number >= 0"),  # type: ignore[arg-type]
        (lambda: dpb.matroids.UniformMatroid(3, 2).restricted((0, 0)), "different items"),
        (lambda: dpb.matroids.UniformMatroid(3, 2).restricted((3,)), "an item below 3"),
        (lambda: dpb.matroids.UniformMatroid(3, 2).truncated(-1), "whole number >= 0"),
        (lambda: dpb.matroids.UniformMatroid(3, 2).best_basis([1, 2]), "3 finite weights"),
        (lambda: dpb.MatroidBases(5), "a matroid such as"),  # type: ignore[arg-type]
        (
            lambda: dpb.worlds.MatroidArms(dpb.matroids.UniformMatroid(3, 2), (0.5, 0.5)),
            "each of the 3 items",
        ),
        (lambda: dpb.worlds.MatroidArms(dpb.matroids.UniformMatroid(2, 1), (0.5, 1.5)), r"means\[1\]"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        make()


def test_the_chance_of_an_item_in_a_random_order_is_exact() -> None:
    """Against all orders of a small matroid."""
    world = dpb.worlds.MatroidArms(
        dpb.matroids.LinearMatroid(((1, 0), (2, 0), (0, 1), (1, 1), (0, 0))), (0.9, 0.1, 0.5, 0.3, 1.0)
    )
    total = 0.0
    for order in itertools.permutations(range(5)):
        weights = np.empty(5)
        weights[list(order)] = np.arange(5.0, 0.0, -1.0)
        total += sum(world.means[i] for i in world.matroid.best_basis(weights))
    assert world.uniform_regret() == pytest.approx(world.best_return() - total / math.factorial(5))


def test_rewards_of_a_round_are_checked() -> None:
    learner = dpb.matroids.MatroidUCB().start(
        dpb.MatroidBases(dpb.matroids.UniformMatroid(4, 2)), seed=0
    )
    items = learner.select()
    for wrong, says in (
        ([1.0], "each of the 2 items chosen, got 1"),
        (1.0, "one for each item"),
        ([1.0, math.nan], "an item without a rating is 0"),
        ([[1.0, 0.0]], "one for each item"),
        (["a", 1.0], "a list of rewards"),
    ):
        with pytest.raises(InvalidInput, match=says):
            learner.update(items, wrong)
    assert learner.rounds == 0
    learner.update(items.tolist(), (True, 0))
    learner.select()
    learner.skip()
    learner.update(learner.select(), [10**400, -(10**400)])  # clipped
    assert learner.rounds == 3
    with pytest.raises(InvalidInput, match="has no context"):
        learner.select(1.0)


@pytest.mark.parametrize("kind", [dpb.FocusedMatroidUCB, dpb.matroids.PrivateMatroidUCB])
def test_a_basis_that_the_caller_changes_is_not_learned_from(kind: Any) -> None:
    """One item four times in a sum would cost twice the budget; one out of range, the memory."""
    problem = dpb.MatroidBases(dpb.matroids.UniformMatroid(6, 4))
    learner = kind(privacy=dpb.GaussianDP(1.0)).start(problem, seed=1)
    items = learner.select()
    chosen = items.copy()
    items[:] = 0
    with pytest.raises(RoundError, match="the open round chose"):
        learner.update(items, np.ones(4))
    learner.update(chosen, np.ones(4))
    assert sorted(np.flatnonzero(learner._secret.open)) == sorted(chosen)


def test_parameters_that_are_no_fields_are_refused() -> None:
    """Two of such a class would be equal, and one would play the bases of the other."""

    class AtMost(dpb.matroids.Matroid):
        size = 4
        most: int

        def __init__(self, most: int) -> None:
            object.__setattr__(self, "most", most)

        def independent(self, chosen: Any) -> bool:
            return len(set(chosen)) <= self.most

    with pytest.raises(InvalidInput, match="frozen dataclass"):
        dpb.MatroidBases(AtMost(2))
