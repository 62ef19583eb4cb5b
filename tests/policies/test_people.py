"""People who return: what their rounds cost together, who is learned from, and what is promised."""

import dataclasses
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpbandits as dpb
from dpbandits.audit.recording import ForcedNoise, Mismatch, RecordingExplore, RecordingNoise, Steer
from dpbandits.audit.replay import draws_cost
from dpbandits.engine import is_local, pause_if_due, state_bytes
from dpbandits.errors import BudgetNotAccepted, InvalidInput, NotImplied
from dpbandits.policies import Policy, policy_kinds
from dpbandits.policies.arms.gaussian_thompson import draws_cost as thompson_cost
from dpbandits.policies.arms.gaussian_thompson import draws_multiplier
from dpbandits.policies.arms.shared.estimates import start_estimates, update_estimate
from dpbandits.policies.people import People
from dpbandits.policies.testing import short_form
from dpbandits.privacy.accounting import grouped
from dpbandits.privacy.budgets import ApproxDP, Budget, GaussianDP, NonPrivate, PureDP, RenyiDP
from dpbandits.privacy.calibration import limit_of, reduced
from dpbandits.privacy.guarantees import Guarantee, Returning, Trust, Unit
from dpbandits.problems import Problem
from dpbandits.sums.batches import (
    participation,
    release_batch,
    start_batches,
    toeplitz_root,
)
from dpbandits.sums.binary_tree import leaves_released, release_leaf, start_tree, tree_participation
from dpbandits.sums.factorized import design_factorized, residues
from dpbandits.testing.examples import example_policies

pytestmark = pytest.mark.slow

KEY = bytes(range(32))


# What k data cost together.


def places(length: int, count: int, apart: int) -> list[tuple[int, ...]]:
    """Every way to choose so many places that are at least `apart` of each other."""
    return [
        chosen
        for chosen in itertools.combinations(range(length), count)
        if all(b - a >= apart for a, b in itertools.pairwise(chosen))
    ]


def block_matrix(block: int, batches: int) -> np.ndarray:
    """What the whitened releases of factorized blocks move by, by the batch that a datum is in."""
    weights = toeplitz_root(block)
    matrix = np.zeros((batches, batches))
    for j in range(batches):
        end = min(batches, (j // block + 1) * block)
        matrix[j:end, j] = weights[: end - j]
    return matrix / math.sqrt(weights @ weights)


def filled_greedily(block: int, rounds: int, apart: int) -> float:
    """Block after block filled up: what the dynamic programme must do better than."""
    matrix, square = block_matrix(block, block), 0.0
    while rounds:
        now = min(rounds, math.ceil(block / apart))
        square += float(np.sum(matrix[:, : now * apart : apart].sum(1) ** 2))
        rounds -= now
    return math.sqrt(square)


@pytest.mark.parametrize("block", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
@pytest.mark.parametrize("apart", [1, 2, 3])
def test_participation_is_the_worst_of_all_places(block: int, rounds: int, apart: int) -> None:
    # So many blocks that every batch may have one of its own, with an empty one between.
    batches = max(min(2 * block * rounds, 26), apart * rounds)
    matrix = block_matrix(block, batches)
    worst = max(
        float(np.linalg.norm(matrix[:, chosen].sum(1))) for chosen in places(batches, rounds, apart)
    )
    assert participation(block, rounds, apart=apart) == pytest.approx(worst, rel=1e-9)


def test_filling_blocks_greedily_is_not_the_worst() -> None:
    assert filled_greedily(5, 4, 2) == pytest.approx(2.274, abs=5e-4)
    assert participation(5, 4, apart=2) == pytest.approx(2.324, abs=5e-4)
    for block, rounds, apart in itertools.product((2, 4, 7, 16), (2, 5, 9), (1, 2, 5)):
        assert participation(block, rounds, apart=apart) >= filled_greedily(block, rounds, apart) - 1e-12


def test_participation_of_several_sizes_is_at_least_that_of_each() -> None:
    for rounds in (1, 3, 8):
        both = participation((2, 16), rounds)
        assert both >= max(participation(2, rounds), participation(16, rounds)) - 1e-12
    assert participation(1, 9) == 3.0 and participation(64, 1) == 1.0
    table = [participation(64, k) for k in (2, 4, 8, 16)]
    np.testing.assert_allclose(table, [1.86, 3.48, 6.48, 11.89], atol=6e-3)


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_tree_participation_is_the_worst_of_all_leaves(levels: int, rounds: int) -> None:
    trees = 2 if levels > 1 else 4
    leaves = trees * (2**levels - 1)
    moved = tree_moves(levels, leaves)
    worst = max(float(np.linalg.norm(moved[:, chosen].sum(1))) for chosen in places(leaves, rounds, 1))
    assert tree_participation(levels, rounds) == pytest.approx(worst, rel=1e-9)


def tree_moves(levels: int, leaves: int) -> np.ndarray:
    """What each release of a Gaussian tree moves by, by leaf, taken from the tree itself."""
    columns = []
    for moved in range(leaves):
        locations = []
        for value in (0.0, 1.0):
            public, secret = start_tree(1, 1, 1.0, GaussianDP(1.0), leaves=2**levels - 1)
            noise = RecordingNoise(np.random.default_rng(1), Steer())
            for leaf in range(leaves):
                assert leaves_released(public, 0) == leaf
                secret.open[0, 0] = value if leaf == moved else 0.0
                release_leaf(public, secret, 0, noise)
            locations.append([draw.location / draw.scale for draw in noise.draws])
        columns.append(np.subtract(locations[1], locations[0]))
    return np.array(columns).T


def test_leaves_are_counted_through_doubling_trees() -> None:
    public, secret = start_tree(1, 1, 1.0, GaussianDP(1.0))
    for leaf in range(40):
        assert leaves_released(public, 0) == leaf
        release_leaf(public, secret, 0, np.random.default_rng(1))


@pytest.mark.parametrize("apart", [1, 3])
def test_participation_in_a_stream_is_the_worst_of_all_rows(apart: int) -> None:
    design = design_factorized(3, 20)
    omega = residues(design.gaps, design.gaps_hat)
    powers = (1.0 - design.gaps) ** np.arange(3000)[:, None]
    column = np.concatenate([[1.0], powers @ omega])
    assert (np.diff(column) < 0.0).all() and (column > 0.0).all()
    for rounds in (1, 2, 3):
        sums = []
        for chosen in places(9, rounds, apart):
            total = np.zeros(column.size + 9)
            for place in chosen:
                total[place : place + column.size] += column
            sums.append(float(np.linalg.norm(total)))
        worst = max(sums) / float(np.linalg.norm(column))
        assert design.participation(rounds, apart=apart) == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("prepulls", [0, 1, 3, 10])
@pytest.mark.parametrize("rounds", [1, 2, 4, 16])
def test_thompson_draws_cost_as_their_worst_count(prepulls: int, rounds: int) -> None:
    """A draw around n decisions, m of them hers: m²/(n + 1), for every n ≥ max(b, m)."""

    def worst(most: int) -> float:
        pairs = itertools.product(range(1, most + 1), range(1, 60))
        return max(m * m / (n + 1.0) for m, n in pairs if n >= max(prepulls, m))

    found = math.sqrt(worst(rounds) / worst(1))
    assert draws_multiplier(rounds, prepulls) == pytest.approx(found, rel=1e-12)
    assert thompson_cost(2, 101 + 2 * prepulls, prepulls, 1.0) ** 2 == pytest.approx(
        101.0 * worst(1), rel=1e-12
    )


def test_group_privacy_and_its_inverse() -> None:
    assert grouped(PureDP(0.25), 4) == PureDP(1.0) and grouped(GaussianDP(0.5), 2.0) == GaussianDP(1.0)
    assert grouped(NonPrivate(), 3) == NonPrivate() == reduced(NonPrivate(), 3)
    # Two steps: P(E) ≤ e^ε(e^ε P″(E) + δ) + δ.
    held = grouped(ApproxDP(1.0, 1e-6), 2)
    assert isinstance(held, ApproxDP) and held.epsilon == 2.0
    assert held.delta == pytest.approx(1e-6 * (1.0 + math.e), rel=1e-12)
    for budget in (RenyiDP(8.0, 1.0), ApproxDP(10.0, 0.1)):
        with pytest.raises(NotImplied):
            grouped(budget, 2)
    for wanted in (PureDP(2.0), GaussianDP(0.3), ApproxDP(1.0, 1e-6), RenyiDP(8.0, 4.0)):
        # Exactly what was asked for, to rounding: neither less nor more.
        assert grouped(reduced(wanted, 3.7), 3.7).within(wanted) == wanted
        with pytest.raises(NotImplied):
            grouped(reduced(wanted, 3.7), 3.71).within(wanted)


# What is run, and what is promised for it.


def with_people(problem: Problem, rounds: int | None) -> Any:
    return dataclasses.replace(problem, rounds_per_person=rounds)


ALL = [policy for kind in policy_kinds().values() for policy in example_policies(kind)]
PRIVATE = [policy for policy in ALL if not isinstance(policy.privacy, NonPrivate)]


def label(policy: Any) -> str:
    return f"{policy.name()}-{policy.privacy}"


@pytest.mark.parametrize("policy", ALL, ids=label)
def test_one_round_each_is_run_as_before_and_more_with_the_reduced_budget(policy: Policy) -> None:
    problem = policy.problem_kind.testing.example(48)
    plain, once, four = (with_people(problem, k) for k in (None, 1, 4))
    before = state_bytes(*policy.begin(plain))
    assert state_bytes(*policy.begin(once)) == before
    recipe = policy.for_people(four)
    assert state_bytes(*policy.begin(four)) == state_bytes(*recipe.begin(plain))
    if not isinstance(policy.privacy, NonPrivate):
        assert state_bytes(*policy.begin(four)) != before
        multiple = recipe.multiplier(four)
        assert 2.0 <= multiple <= 4.0
        assert recipe.privacy == reduced(policy.privacy, multiple)
    first, one, many = (policy.guarantee(p) for p in (plain, once, four))
    assert first.rounds_per_person is None
    assert dataclasses.replace(one, rounds_per_person=None) == first
    if not isinstance(policy.privacy, NonPrivate):
        # For all four rounds what was asked for, not more and not less.
        assert many.budget == first.budget and many.rounds_per_person == 4
        assert many.implies(one) and many.implies(first) and one.implies(first)
        assert not first.implies(one) and not one.implies(many)
        apart = policy.open_batches(policy.begin(four)[0], example_action(policy)) is not None
        assert (many.returning is Returning.APART) == apart == recipe.keeps_apart()
        assert (many.returning is Returning.GROUPED) == (multiple == 4.0)


def example_action(policy: Policy) -> Any:
    return (np.array([0, 1, 2]),) if policy.problem_kind is dpb.MatroidBases else 0


def test_calibration_by_the_numbers() -> None:
    arms = dpb.Arms(5, rounds_per_person=4)
    public, _ = dpb.NoiseAwareIMED(privacy=GaussianDP(1.0)).begin(arms)
    assert public.batches.scale == 2.0 and public.batches.weights.size == 1
    assert dpb.NoiseAwareIMED(privacy=PureDP(1.0)).begin(arms)[0].batches.scale == 4.0
    lazy = dpb.arms.LazyUCB(privacy=GaussianDP(1.0))
    assert lazy.for_people(arms).privacy == GaussianDP(0.5)
    linear = dpb.RandomizedLinUCB(privacy=ApproxDP(1.0, 1e-6))
    public, _ = linear.begin(dpb.LinearContexts(3, rounds_per_person=16))
    assert public.batches.scale == pytest.approx(4 * 4.224679, rel=1e-6)
    # Blocks that were asked for are kept, and cost what they cost.
    blocks = dataclasses.replace(linear, blocks=(2, 3))
    public, _ = blocks.begin(dpb.LinearContexts(3, rounds_per_person=4))
    norm = math.sqrt(1.25) * participation((2, 3), 4)
    assert public.batches.scale == pytest.approx(norm * 4.224679, rel=1e-6)
    matroid = dpb.MatroidBases(dpb.matroids.UniformMatroid(6, 2), rounds_per_person=4)
    focused = dpb.FocusedMatroidUCB(privacy=GaussianDP(1.0))
    assert focused.begin(matroid)[0].batches.scale == pytest.approx(2.0 * math.sqrt(2.0))
    local, _ = dpb.local.LocalUCB(privacy=PureDP(1.0), rewards="bounded").begin(arms)
    assert local.scale == 4.0
    local, _ = dpb.local.LocalUCB(privacy=GaussianDP(1.0), rewards="bounded").begin(arms)
    assert local.scale == 2.0
    # Thompson sampling has no budget to divide: it costs more.
    free = [
        dpb.arms.GaussianThompson().guarantee(dpb.Arms(2, horizon=200, rounds_per_person=k)).budget.size
        for k in (1, 4)
    ]
    assert free == [10.0, pytest.approx(10.0 * draws_multiplier(4, 0))]


def test_a_policy_from_outside_cannot_forget_people_who_return() -> None:
    """It writes `begin` and `guarantee` for one round, also by its parent's: calibrated once."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Outside(dpb.NoiseAwareIMED):
        abstract = True

        def begin(self, problem: Any) -> tuple[Any, Any]:
            return super().begin(problem)

        def guarantee(self, problem: Any) -> Guarantee:
            return super().guarantee(problem)

        def multiplier(self, problem: Any) -> float:
            return Policy.multiplier(self, problem)

        def keeps_apart(self) -> bool:
            return False

    policy, problem = Outside(privacy=GaussianDP(1.0)), dpb.Arms(3, rounds_per_person=4)
    assert policy.begin(problem)[0].batches.scale == 4.0
    promised = policy.guarantee(problem)
    assert promised.budget == GaussianDP(1.0) and promised.returning is Returning.GROUPED


def test_printed_noise_and_wishart_noise_refuse_people_who_return() -> None:
    problem = dpb.LinearContexts(3, horizon=100, rounds_per_person=2)
    changes: tuple[dict[str, Any], ...] = ({"noise": "wishart"}, {"calibration": "paper"})
    for options in changes:
        policy = dpb.linear.TreeLinUCB(privacy=ApproxDP(1.0, 0.1), **options)
        once = with_people(problem, 1)
        assert policy.guarantee(once).rounds_per_person == 1
        policy.check(once)
        for refused in (policy.check, policy.begin, policy.guarantee, policy.start):
            with pytest.raises(InvalidInput, match="one round of each person"):
                refused(problem)
    kernel = dpb.kernels.Capri(privacy=ApproxDP(1.0, 1e-5), calibration="paper")
    with pytest.raises(InvalidInput, match="one round of each person"):
        kernel.guarantee(with_people(dpb.KernelContexts.testing.example(1000), 2))


def test_what_was_spent_is_that_of_all_rounds() -> None:
    class Reading(dpb.arms.GaussianThompson):
        abstract = True

        def spent(self, public: Any) -> Budget:
            return GaussianDP(public)

    problem = dpb.Arms(2, horizon=200, rounds_per_person=4)
    policy = Reading()
    limit = policy.guarantee(problem).budget
    assert policy.spent_by_person(with_people(problem, None), 0.5) == GaussianDP(0.5)
    assert policy.spent_by_person(problem, 0.5) == GaussianDP(2.0)
    assert policy.spent_by_person(problem, 9.9) == limit


def test_messages_of_people_who_return_are_not_taken_for_forged() -> None:
    """Noise of 50 of the scales that one message would have is usual for 50² of them."""
    problem = dpb.Arms(2, rounds_per_person=2500)
    policy = dpb.local.LocalUCB(privacy=GaussianDP(1.0), rewards="bounded")
    assert policy.parse_message(problem, [0, 45.0]) == (0, 45.0)
    with pytest.raises(InvalidInput, match="within 40 scales"):
        policy.parse_message(with_people(problem, None), [0, 45.0])


# The sentence.


def promise(rounds: int | None, **fields: Any) -> Guarantee:
    usual: dict[str, Any] = {"budget": GaussianDP(1.0), "unit": Unit.REWARD, "trust": Trust.CENTRAL}
    return Guarantee(rounds_per_person=rounds, status="proved", **(usual | fields))


def test_the_sentence_for_people_who_return() -> None:
    assert str(promise(4, returning=Returning.APART)) == (
        "All decisions together are 1-GDP, so (4.887, 1e-6)-DP, under replacement of everything "
        "learned from one person (the rewards of at most 4 rounds, in different batches), for any "
        "number of rounds, if `person` tells people apart and the seed stays secret; who takes part "
        "when is not protected."
    )
    assert str(promise(1, unit=Unit.ROUND, trust=Trust.JOINT, budget=PureDP(0.5), public=("κ",))) == (
        "The decisions for everyone else together are 0.5-DP under replacement of everything learned "
        "from one person (the context and reward of at most one round), for any number of rounds, if "
        "`person` tells people apart and the seed stays secret; who takes part when is not protected, "
        "and her own later decisions, which she alone sees, may depend on her earlier data; public by "
        "declaration: κ."
    )
    local = str(promise(2, trust=Trust.LOCAL, unit=Unit.REWARD_VECTOR, returning=Returning.GROUPED))
    assert local.startswith("All messages of one person together are 1-GDP")
    assert (
        "everything reported by one person (the rewards of at most 2 rounds, by group privacy)" in local
    )
    assert "if no person sends more than 2 messages and the seed" in local
    assert "sends more than one message and" in str(promise(1, trust=Trust.LOCAL))


def test_more_rounds_imply_fewer_and_telling_apart_implies_not_doing_so() -> None:
    none, one, four, eight = (promise(k) for k in (None, 1, 4, 8))
    order = [eight, four, one, none]
    for stronger, weaker in itertools.combinations(order, 2):
        assert stronger.implies(weaker) and not weaker.implies(stronger)
    assert all(same.implies(same) for same in order)
    apart = promise(4, returning=Returning.APART)
    assert four.implies(apart) and not apart.implies(four)
    assert apart.implies(one) and apart.implies(none) and not apart.implies(promise(2))
    assert promise(4, returning=Returning.GROUPED).implies(four)
    assert not promise(8, budget=GaussianDP(1.1)).implies(none)


def test_the_promise_survives_json_and_old_records_load() -> None:
    for held in (promise(None), promise(1), promise(4, returning=Returning.APART)):
        record = json.loads(json.dumps(held.to_dict()))
        assert Guarantee.from_dict(record) == held and record["sentence"] == str(held)
    old = {
        k: v for k, v in promise(None).to_dict().items() if k not in ("rounds_per_person", "returning")
    }
    assert Guarantee.from_dict(old) == promise(None)


# Precision weights of independent Gaussian batches.


def test_independent_gaussian_batches_are_weighed_by_precision() -> None:
    """The mean, and the variance that is stated for it, against all batches at once."""
    lengths, sums = [4, 6, 10, 40], [3.0, 1.0, 7.5, 22.0]
    batches, secret = start_batches(1, 1, 1.0, GaussianDP(0.2), block=1)
    known, plays, noise = start_estimates(1), 0, RecordingNoise(np.random.default_rng(3), Steer())
    for length, value in zip(lengths, sums, strict=True):
        before, plays = float(batches.total[0, 0]), plays + length
        secret.open[0, 0] = value - 0.5 * length
        release_batch(batches, secret, 0, noise)
        update_estimate(known, batches, 0, plays, length, before)
    n = np.array(lengths, float)
    released = np.array([draw.result for draw in noise.draws]) + 0.5 * n
    weights = n / (n / 4 + 25.0)
    assert known.mean[0] == pytest.approx(weights @ released / (weights @ n), rel=1e-12)
    stated = 0.25 / known.weight[0] + known.variance[0] / known.weight[0] ** 2
    true = (weights**2 @ (n / 4 + 25.0)) / (weights @ n) ** 2
    assert stated == pytest.approx(true, rel=1e-12)
    # The plain mean is worse: that is why.
    assert true < (n / 4 + 25.0).sum() / n.sum() ** 2


# Who is learned from.

Visits = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2), st.integers(0, 3)), max_size=60)


class Exact:
    """The same rule by sets: what the register may be stricter than, never laxer."""

    def __init__(self, rounds: int) -> None:
        self.rounds, self.counts = rounds, Counter[Any]()
        self.open: dict[int, tuple[int, set[Any]]] = {}

    def take(self, person: Any, batches: Any) -> bool:
        current = [(number, *self.open.get(slot, (None, set()))) for slot, number in batches]
        members = [people for number, opened, people in current if opened == number]
        if self.counts[person] >= self.rounds or any(person in people for people in members):
            return False
        self.note(person, batches)
        return True

    def note(self, person: Any, batches: Any) -> None:
        self.counts[person] += 1
        for slot, number in batches:
            if slot not in self.open or self.open[slot][0] != number:
                self.open[slot] = (number, set())
            self.open[slot][1].add(person)


def numbered(visits: Any) -> list[tuple[int, list[tuple[int, int]]]]:
    """Visits with batch numbers that only go up."""
    number: Counter[int] = Counter()
    found = []
    for person, slot, step in visits:
        number[slot] += step == 0
        found.append((person, [(slot, number[slot])]))
    return found


@given(visits=Visits, rounds=st.sampled_from([1, 2, 3, 4, 16, 300]))
def test_a_few_people_are_counted_exactly(visits: Any, rounds: int) -> None:
    people, exact = People(rounds, expected=1000, key=KEY), Exact(rounds)
    for person, batches in numbered(visits):
        would = people.counts(person, batches)
        wanted = exact.take(person, batches if rounds > 1 else [])
        assert people.take(person, batches) == would == wanted


@given(visits=Visits, rounds=st.sampled_from([1, 2, 4]), expected=st.sampled_from([1, 2, 5]))
def test_a_crowd_is_never_counted_too_little(visits: Any, rounds: int, expected: int) -> None:
    """Far more people than it is made for: it refuses too many, and never one round too few."""
    people, exact = People(rounds, expected=expected, key=KEY), Exact(rounds)
    for person, batches in numbered(visits):
        if people.take(person, batches):
            checked = exact.take(person, batches if rounds > 1 else [])
            assert checked, "learned from more than the rule allows"


def test_a_register_that_forgets_would_be_noticed() -> None:
    """The control of the tests above: without its filters, and without its counts."""

    class Forgets(People):
        def take(self, person: Any, batches: Any = None) -> bool:
            return super().take(person, None)

    visits = [(7, [(0, 0)])] * 2
    forgets, exact = Forgets(4, expected=10, key=KEY), Exact(4)
    assert [forgets.take(*v) for v in visits] == [True, True]
    assert [exact.take(*v) for v in visits] == [True, False]
    assert [People(1, expected=10, key=KEY).take(*v) for v in visits] == [True, True]  # two registers


def test_in_several_slots_she_must_be_in_none() -> None:
    people = People(9, expected=100, key=KEY)
    assert people.take("a", [(0, 0), (1, 0)])
    assert not people.counts("a", [(1, 0), (2, 0)])
    assert people.counts("a", [(1, 1), (2, 0)]) and people.counts("b", [(0, 0), (1, 0)])
    # A refused round is in no batch.
    assert people.take("a", [(2, 0)])


def test_a_register_refuses_few_and_says_how_many() -> None:
    """Full with the people it is made for: below 1 %, as it says itself, within 4.75 standard errors."""
    people = People(2, expected=4000, key=KEY)
    for person in range(4000):
        for number in (0, 1):
            people.take(person, [(0, 2 * person + number)])
    stated = people.false_refusals
    assert 0.001 < stated < 0.01
    newcomers = 20_000
    refused = sum(not people.counts(-1 - person) for person in range(newcomers))
    assert abs(refused / newcomers - stated) < 4.753 * math.sqrt(stated / newcomers)
    batch = People(2, expected=4000, key=KEY)
    taken = sum(batch.take(person, [(0, 0)]) for person in range(4000))
    assert taken > 0.99 * 4000 and not any(batch.counts(person, [(0, 0)]) for person in range(4000))


def test_memory_is_bounded_and_stated() -> None:
    small, sizes = People(1), []
    assert small.nbytes == 7 * math.ceil(math.ceil(1_000_000 / math.log(2.0)) / 8)
    for rounds, bits in ((1, 10.1), (3, 20.2), (15, 40.4), (255, 80.8)):
        per_person = 8 * People(rounds, expected=100_000).nbytes / 100_000
        assert per_person == pytest.approx(bits, rel=1e-3)
    people = People(2, expected=500, key=KEY)
    for person in range(5000):  # one batch of far more people than expected
        people.take(person, [(0, 0)])
        sizes.append(people.nbytes)
    assert sizes[-1] == sizes[1000] < 6000
    # And it goes on refusing whoever is in it.
    assert not any(people.counts(person, [(0, 0)]) for person in range(0, 5000, 7))


@pytest.mark.parametrize("rounds", [1, 4, 1000])
def test_a_register_goes_on_as_it_was_saved(rounds: int) -> None:
    people = People(rounds, expected=300)
    visits = [(person % 170, [(person % 3, person // 400)]) for person in range(900)]
    for person, batches in visits[:700]:
        people.take(f"person {person}", batches)
    kept = {name: array.copy() for name, array in people.arrays().items()}
    again = People.from_arrays(rounds, kept)
    assert again.nbytes == people.nbytes
    for person, batches in visits[700:]:
        assert again.take(f"person {person}", batches) == people.take(f"person {person}", batches)
    for name, array in people.arrays().items():
        np.testing.assert_array_equal(array, again.arrays()[name])
    for wrong in ({"bits": kept["bits"][:-1]}, {"cells": kept["cells"][:, 1:]}):
        if rounds > 1 or "cells" in wrong:
            with pytest.raises(ValueError, match="size"):
                People.from_arrays(rounds, kept | wrong)


def test_keys_are_secret_and_names_are_checked() -> None:
    one, other = People(1, expected=100), People(1, expected=100)
    for people in (one, other):
        people.take("ada")
    assert (one.arrays()["cells"] != other.arrays()["cells"]).any()
    assert "ada" not in repr(one)
    same = People(1, expected=100, key=KEY)
    assert [same.take(name) for name in ("1", 1, b"1", np.int64(1))] == [True, True, True, False]
    for wrong in (None, 1.0, True, ("a",)):
        with pytest.raises(InvalidInput, match="expected person"):
            same.take(wrong)
    with pytest.raises(InvalidInput, match="32 bytes"):
        People(1, key=b"short")


# Replay of everything that was learned from one person.

HER = "her"


def play(
    policy: Policy,
    problem: Any,
    people: list[tuple[Any, Any]],
    noise: Any,
    before: list[Any] | None = None,
    *,
    register: Callable[[int], Any],
    rule: bool = True,
) -> list[Any]:
    """Rounds of (name, (context, reward)), learned from by the rule; what was drawn and seen in each."""
    public, secret = policy.begin(problem)
    known, found = register(problem.rounds_per_person), []
    for index, (name, (context, reward)) in enumerate(people):
        explore = RecordingExplore(5, index)
        noise.start_round(*(() if before is None else (before[index][0],)))
        pause_if_due(public, secret, noise, index)
        local = is_local(type(public))
        if not local:
            public.release(secret, noise)
        action = public.select(context, explore)
        seen = state_bytes(public)
        taken = known.take(name, (policy.open_batches(public, action) or ()) if rule else ())
        if taken:
            if local:
                message = public.report(context, action, reward, noise)
                seen.append(np.asarray(message[-1]).tobytes())
                public.receive(message)
            else:
                public.observe(secret, context, action, reward)
        own = name == HER and problem.trust == "joint"
        shown = [] if own else [np.asarray(action).tobytes(), *explore.calls]
        found.append((noise.draws, shown, seen + state_bytes(public), taken))
    return found


def person_cost(
    policy: Policy,
    problem: Any,
    length: int,
    *,
    register: Callable[[int], Any] = Exact,
    rule: bool = True,
) -> float:
    """The most that replacing all of her rounds costs, over times at which she comes."""
    ends = problem.testing.extreme_people(problem)[:2]
    budget, worst = policy.guarantee(problem).budget, 0.0
    for every, first, steer in itertools.product((1, 2, 5), (0, 4), (Steer(), Steer(-1))):
        for others in (0, 1):
            stream = [
                (HER, ends[0])
                if t >= first and (t - first) % every == 0
                else (t, ends[(others + t) % 2])
                for t in range(length)
            ]
            neighbour = [(name, ends[1] if name == HER else person) for name, person in stream]
            noise = RecordingNoise(np.random.default_rng(1), steer)
            options: dict[str, Any] = {"register": register, "rule": rule}
            record = play(policy, problem, stream, noise, **options)
            forced = play(policy, problem, neighbour, ForcedNoise(), record, **options)
            moved = []
            for one, other in zip(record, forced, strict=True):
                if one[1:] != other[1:] or len(one[0]) != len(other[0]):
                    raise Mismatch("something that is seen depends on her")
                moved += [pair for pair in zip(one[0], other[0], strict=True) if not alike(*pair)]
            worst = max(worst, draws_cost(moved, budget))
    return worst / limit_of(budget)


def alike(one: Any, other: Any) -> bool:
    return np.array_equal(one.location, other.location)


ARMS = short_form(dpb.NoiseAwareIMED(privacy=GaussianDP(1.0)))
LINEAR: Any = short_form(dpb.RandomizedLinUCB(privacy=ApproxDP(1.0, 1e-6)))
INDEPENDENT = dataclasses.replace(LINEAR, blocks=None)


@pytest.mark.parametrize(
    ("policy", "rounds", "floor"),
    [
        *((ARMS, k, 0.9999) for k in (1, 2, 4)),
        *((dataclasses.replace(ARMS, privacy=PureDP(1.0)), k, 0.9999) for k in (1, 2, 4)),
        *((LINEAR, k, 0.95) for k in (1, 2, 4)),
        *((INDEPENDENT, k, 0.95) for k in (2, 4)),
    ],
)
def test_all_rounds_of_one_person_cost_the_budget(policy: Policy, rounds: int, floor: float) -> None:
    problem = with_people(policy.problem_kind.testing.example(48), rounds)
    cost = person_cost(policy, problem, 48)
    assert floor <= cost <= 1.0 + 1e-9


@pytest.mark.parametrize("policy", [ARMS, LINEAR, INDEPENDENT], ids=label)
def test_two_rounds_in_one_batch_are_caught(policy: Policy) -> None:
    problem = with_people(policy.problem_kind.testing.example(48), 4)
    assert person_cost(policy, problem, 48, rule=False) > 1.3


@pytest.mark.parametrize("expected", [100, 5])
def test_the_register_keeps_the_rule_in_a_run(expected: int) -> None:
    """Also where it is far too small, and loses most rounds."""
    problem = with_people(ARMS.problem_kind.testing.example(48), 2)
    register = partial(People, expected=expected, key=KEY)
    assert person_cost(ARMS, problem, 48, register=register) <= 1.0 + 1e-9
    if expected == 100:
        assert person_cost(ARMS, problem, 48, register=register) > 0.9999


@pytest.mark.parametrize("policy", PRIVATE, ids=label)
def test_no_policy_costs_one_person_more_than_it_says(policy: Policy) -> None:
    problem = with_people(policy.problem_kind.testing.example(24), 3)
    cost = person_cost(short_form(policy), problem, 24)
    assert cost <= 1.0 + 1e-9


@pytest.mark.parametrize("declared", [2, None])
def test_a_seed_gives_the_register_its_key(declared: int | None) -> None:
    """Or names that fall into the same cells would be other ones at each start."""

    def register(seed: int | None) -> bytes:
        problem = dpb.Arms(3, rounds_per_person=declared)
        learner = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)).start(problem, seed=seed, in_flight=2)
        learner.decide(person="ada")
        people = learner._rounds.people
        assert people is not None
        return people.token("bob")

    assert register(7) == register(7)
    assert len({register(7), register(8), register(None), register(None)}) == 4


def test_noise_for_many_rounds_of_a_person_is_planned_once() -> None:
    """Planned for them twice, ε would be too small for any noise, and the learner would end."""
    policy = dpb.NoiseAwareIMED(privacy=PureDP(1e-6), first_batch=2, growth=0.001)
    problem = dpb.Arms(2, rounds_per_person=10_000)
    # The control: that is what happens to a recipe that was already planned for them.
    with pytest.raises(BudgetNotAccepted):
        policy.for_people(problem).begin(problem)
    rows = dpb.History(action=[0, 1], reward=[1.0, 0.0])
    policy.start(problem, seed=0, public_history=rows)
    learner = dpb.NoiseAwareIMED(privacy=PureDP(1e-4), first_batch=1).start(
        dpb.Arms(2, rounds_per_person=3000), seed=0, compiled=False
    )
    for _ in range(3010):  # from the 3,001st on she is given what leads
        learner.update(learner.select(person="a"), 1.0)
