"""Hostile values in every public constructor and method: one sentence, and nothing has changed.

3,280 examples, some 9,000 calls. DPBANDITS_HOSTILE=110 runs 110 times as many: about a million calls.
"""

import dataclasses
import datetime
import decimal
import fractions
import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpbandits as dpb
from dpbandits.engine import arguments
from dpbandits.errors import DPBanditsError
from dpbandits.policies import policy_kinds
from dpbandits.policies.learner import offered_context
from dpbandits.policies.testing import rehearse
from dpbandits.recipes import Recipe
from dpbandits.testing.driving import alike, state_bytes
from dpbandits.testing.examples import example_budget
from dpbandits.worlds import DayAndNight, Environment, LogNormal

pytestmark = pytest.mark.slow

PURE = dpb.PureDP(1.0)
TIMES = int(os.environ.get("DPBANDITS_HOSTILE", "1"))


def examples(count: int) -> settings:
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    # No deadline: what is attempted may compile.
    return settings(max_examples=count * TIMES, deadline=None, suppress_health_check=checks)


class Broken:
    """Raises whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return Broken
        raise RuntimeError("broken")

    def __repr__(self) -> str:
        raise RuntimeError("broken")

    def __float__(self) -> float:
        raise RuntimeError("broken")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("broken")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("broken")

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("broken")

    __hash__ = object.__hash__


NUMBERS: list[Any] = [
    *(0, 1, 2, 3, 5, 7, 64, 4096, 4097, 10**5, 10**9, 10**12, 10**15, 10**15 + 1, 2**31, 2**53 + 1),
    *(2**62, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, 10**5000, -1, -(2**63), -(10**400)),
    *(0.0, -0.0, 5e-324, 1e-310, 1e-200, 1e-100, 1e-18, 1e-12, 1e-9, 1e-3, 0.1, 0.5, 1.0, 1.0 + 2e-16),
    *(1.5, 2.5, 1e3, 1e6, 1e12, 1e18, 1e100, 1e154, 1e200, 1.7e308, math.inf, -math.inf, math.nan, -0.5),
    *(True, False, np.True_, np.int8(5), np.uint8(200), np.int64(-1), np.uint64(2**64 - 1)),
    *(np.float16(0.5), np.float16(6e4), np.float32(1e-40), np.float64(math.nan), np.longdouble(0.5)),
    *(
        np.longdouble("1e4000"),
        fractions.Fraction(1, 3),
        fractions.Fraction(10**400),
        decimal.Decimal(1),
    ),
]
OTHERS: list[Any] = [
    *(
        None,
        "",
        "1",
        "0.5",
        "nan",
        "exact",
        "local",
        "binary",
        "\ud800",
        "0-\ud800",
        b"",
        b"1",
        bytearray(2),
    ),
    *(
        1j,
        np.complex64(1),
        np.datetime64("2024-01-01"),
        np.timedelta64(3, "D"),
        datetime.date(2024, 1, 1),
    ),
    *(
        (),
        (0,),
        (1, 2),
        [],
        [1],
        [0.5, 0.5],
        [[1.0, 0.0], [0.0, 1.0]],
        [[1.0], [1.0, 2.0]],
        [None],
        ["1", "2"],
    ),
    *(
        [10**400, 1],
        [math.nan, 1.0],
        [[math.inf, 0.0]],
        [Broken()],
        {},
        {"a": 1},
        {0: 1},
        set(),
        range(3),
    ),
    *(np.zeros(0), np.zeros(2), np.zeros((0, 2)), np.ones((2, 2)), np.ones((2, 3)), np.zeros((2, 2, 2))),
    *(np.array(0.5), np.array("1"), np.array([1, None]), np.array(["1", "2"]), np.array([[1j, 2]])),
    *(np.array(["2024-01-01"], "M8[D]"), np.ma.masked, np.ma.array([[1.0, 2.0]], mask=[[False, True]])),
    *(np.array([[1e308, 1e308]]), np.array([1, 2], object), np.full((2, 2), 2**62), object(), Broken()),
    *(
        int,
        len,
        dpb.PureDP(1.0),
        dpb.Arms(3),
        dpb.kernels.SquaredExponential(0.2),
        dpb.matroids.UniformMatroid(3, 1),
    ),
    *(dpb.NonPrivate(), dpb.Trust.LOCAL, dpb.Ticket(0, "0-0"), dpb.arms.UniformArms),
    dpb.Ticket(0, 7),  # type: ignore[arg-type]
]
number = st.sampled_from(NUMBERS) | st.integers() | st.floats()
hostile = number | st.sampled_from(OTHERS) | st.lists(number, max_size=3) | st.text(max_size=3)


def started(**options: Any) -> dpb.Learner:
    return dpb.arms.UCB1().start(dpb.Arms(3), **options)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: dpb.arms.LazyUCB(privacy=dpb.PureDP(1e-18)), "whose ε is within 1e-12 and 1e\\+12"),
        (lambda: dpb.arms.LazyUCB(privacy=dpb.PureDP(1e200)), "whose ε is within"),
        (
            lambda: dpb.local.LocalLinUCB(privacy=dpb.ApproxDP(0.0, 1e-300)),
            "whose μ that suffices is within",
        ),
        (lambda: dpb.Arms(3, horizon=10**30), "expected horizon to be at most 1,000,000,000,000,000"),
        (lambda: dpb.Arms(10**9), "expected arms to be at most 100,000, got 1000000000"),
        (lambda: dpb.Arms(3, capacity=2**63), "expected capacity to be at most"),
        (
            lambda: dpb.Arms(3, rounds_per_person=10**6),
            "expected rounds_per_person to be at most 10,000",
        ),
        (lambda: dpb.LinearContexts(10**6), "expected dim to be at most 1,000"),
        (lambda: dpb.LinearContexts(2, arms=10**6), "expected arms to be at most 100,000"),
        (lambda: dpb.LinearContexts(1000, arms=1000), "a Gram matrix for each arm takes"),
        (
            lambda: dpb.LazyThompson(privacy=PURE, first_batch=2**63),
            "expected first_batch to be at most",
        ),
        (
            lambda: dpb.LazyThompson(privacy=PURE, growth=1e300),
            "expected growth > 0 and at most 1000, got",
        ),
        (
            lambda: dpb.arms.UCB1().start(dpb.Arms(3), in_flight=2**63),
            "expected in_flight to be at most",
        ),
        (
            lambda: dpb.arms.UCB1().start(dpb.Arms(3), seed=-1),
            "expected seed to be a whole number >= 0, got -1",
        ),
        (lambda: started(seed="1"), "expected seed to be a whole number"),
        (lambda: started(seed=True), "expected seed to be a whole number"),
        (lambda: started(seed=1.0), "expected seed to be a whole number"),
        (lambda: dpb.arms.UCB1().start(dpb.Arms(3), seed=10**1000), "at most 1,000 digits"),
        (lambda: started(compiled="no"), "expected compiled to be one of True, False"),
        (
            lambda: dpb.LazyThompson(privacy=dpb.GaussianDP(1.0), block=4096).start(dpb.Arms(10**5)),
            "takes 409,600,000 numbers",
        ),
    ],
)
def test_extremes_are_refused_in_a_sentence(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(DPBanditsError, match=says):
        make()


@pytest.mark.parametrize("kind", policy_kinds().values(), ids=lambda kind: kind.name())
@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_the_ends_of_what_is_let_through_can_be_played(kind: type[dpb.Policy], size: float) -> None:
    for budget in (dpb.PureDP, dpb.GaussianDP):
        if budget in kind.accepts:
            for horizon in (100, 10**15):
                play(kind(privacy=budget(size)), kind.problem_kind.testing.example(horizon))


def test_seeds_of_any_size() -> None:
    for seed in (0, 2**64, 10**400, np.uint64(2**64 - 1)):
        assert dpb.arms.UCB1().start(dpb.Arms(3), seed=seed).select() in range(3)


def attempt(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What the call returns; None if it was refused, which must be in one sentence of ours."""
    try:
        return call(*given, **named)
    except DPBanditsError as error:
        said = str(error)
    if not said or "\n" in said or len(said) > 1500:
        pytest.fail(f"not one sentence: {said}")
    return None


BUDGETS: dict[type[Recipe], dict[str, Any]] = {
    dpb.PureDP: {"epsilon": 1.0},
    dpb.ApproxDP: {"epsilon": 1.0, "delta": 1e-6},
    dpb.GaussianDP: {"mu": 1.0},
    dpb.ZeroConcentratedDP: {"rho": 0.5},
    dpb.RenyiDP: {"order": 8.0, "divergence": 1.0},
}
GRID = ((0.0,), (0.5,), (1.0,))
KERNEL = dpb.kernels.SquaredExponential(0.2)
MATROIDS: dict[type[Recipe], dict[str, Any]] = {
    dpb.matroids.UniformMatroid: {"items": 4, "most": 2},
    dpb.matroids.PartitionMatroid: {"groups": (0, 0, 1), "capacities": (1, 1)},
    dpb.matroids.LaminarMatroid: {"items": 4, "sets": ((0, 1), (0, 1, 2)), "capacities": (1, 2)},
    dpb.matroids.LinearMatroid: {"vectors": ((1, 0), (0, 1), (1, 1))},
    dpb.matroids.GraphicMatroid: {"edges": ((0, 1), (1, 2), (2, 0))},
    dpb.matroids.TransversalMatroid: {"places": ((0,), (0, 1), (1,))},
    dpb.matroids.TruncatedMatroid: {"matroid": dpb.matroids.UniformMatroid(4, 3), "most": 2},
    dpb.matroids.RestrictedMatroid: {"matroid": dpb.matroids.UniformMatroid(4, 3), "items": (0, 2)},
}
DECLARED: dict[str, Any] = {"horizon": 100, "rounds_per_person": None}
PROBLEMS: dict[type[Recipe], dict[str, Any]] = {
    dpb.Arms: {"arms": 3, "capacity": None, **DECLARED},
    dpb.LinearContexts: {"dim": 2, "arms": None, "max_norm": 1.0, "max_reward": 1.0, **DECLARED},
    dpb.LinearActions: {
        "features": ((1.0, 0.0), (0.0, 1.0)),
        "max_norm": 1.0,
        "max_reward": 1.0,
        **DECLARED,
    },
    dpb.MatroidBases: {"matroid": dpb.matroids.UniformMatroid(4, 2), **DECLARED},
    dpb.KernelContexts: {
        **{"kernel": KERNEL, "contexts": GRID, "actions": GRID, "weights": None, "max_reward": 1.0},
        **{"max_norm": None, "max_rank": 8, **DECLARED},
    },
}
KERNELS: dict[type[Recipe], dict[str, Any]] = {
    dpb.kernels.SquaredExponential: {"length_scale": 0.2, "on": "pair"},
    dpb.kernels.Matern: {"length_scale": 0.2, "smoothness": 2.5, "on": "pair"},
    dpb.kernels.LinearKernel: {"on": "pair"},
    dpb.kernels.PolynomialKernel: {"degree": 2, "offset": 1.0, "on": "pair"},
    dpb.kernels.KernelSum: {"left": KERNEL, "right": KERNEL},
    dpb.kernels.KernelProduct: {"left": KERNEL, "right": KERNEL},
}
ENVIRONMENTS: dict[type[Recipe], dict[str, Any]] = {
    dpb.worlds.BernoulliArms: {"means": (0.5, 0.2)},
    dpb.worlds.TruncatedExponentialArms: {"rates": (1.0, 2.0)},
    dpb.worlds.MatroidArms: {"matroid": dpb.matroids.UniformMatroid(3, 1), "means": (0.1, 0.2, 0.3)},
    dpb.worlds.SphereContexts: {"dim": 3, "actions": 4, "gap": 0.1, "rewards": "signs"},
    dpb.worlds.FixedActions: {"dim": 3, "actions": 4, "gap": 0.1, "public": True, "seed": 1},
    dpb.worlds.DisjointContexts: {"dim": 2, "arms": 3},
    dpb.worlds.LowRankContexts: {"dim": 4, "actions": 3, "rank": 2},
    dpb.worlds.SwitchingContexts: {"dim": 4, "actions": 3, "switch": 5, "tilt": 0.1},
    dpb.worlds.RotatingContexts: {"dim": 4, "actions": 3, "turn": 5, "tilt": 0.1},
    dpb.worlds.KernelWorld: {
        **{"kernel": KERNEL, "contexts": GRID, "actions": GRID, "norm": 0.5, "seed": 1, "centres": 3},
        **{"max_reward": 1.0, "weights": None, "declared": None},
    },
    LogNormal: {"median": 3.0, "sigma": 1.0, "never": 0.1},
    DayAndNight: {"night": 0.2, "day": 10.0},
}
POLICIES = {kind: {f.name: ... for f in dataclasses.fields(kind)} for kind in policy_kinds().values()}


def fields_of(kind: type[dpb.Policy]) -> dict[str, Any]:
    """The options of a policy at the first budget it accepts, all at their defaults."""
    made = kind(privacy=example_budget(kind.accepts[0]))
    return {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}


@st.composite
def spoiled(draw: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """Arguments of which one or two are hostile."""
    names = draw(st.lists(st.sampled_from(sorted(fields)), min_size=1, max_size=2, unique=True))
    return fields | {name: draw(hostile) for name in names}


def made_of(table: dict[type[Recipe], dict[str, Any]]) -> st.SearchStrategy[Any]:
    """A class and its arguments, spoiled."""
    return st.sampled_from(list(table)).flatmap(
        lambda kind: st.tuples(st.just(kind), spoiled(table[kind]))
    )


def use(recipe: Any) -> None:
    """A recipe that was let through can be written down, printed and read back."""
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert isinstance(hash(recipe), int) and repr(recipe) and str(recipe)


@given(made_of(BUDGETS), hostile, hostile, st.sampled_from([*BUDGETS, dpb.NonPrivate]))
@examples(400)
def test_budgets(made: Any, one: Any, other: Any, wanted: Any) -> None:
    kind, fields = made
    budget = attempt(kind, **fields)
    if budget is None:
        return
    use(budget)
    attempt(budget.epsilon_at, one)
    attempt(budget.delta_at, one)
    attempt(budget.implies, wanted, delta=one, order=other)
    attempt(budget.implies, one)
    attempt(budget.to_gaussian)
    attempt(budget.within, dpb.PureDP(1.0))
    attempt(dpb.privacy.compose, [budget, dpb.GaussianDP(1.0)])
    attempt(dpb.privacy.compose, [budget, budget])
    if guard := attempt(dpb.privacy.Filter, budget):
        attempt(guard.spend, budget)
        attempt(guard.spend, one)
        attempt(lambda: guard.remaining)


@given(hostile)
@examples(60)
def test_whatever_is_composed(value: Any) -> None:
    attempt(dpb.privacy.compose, value)
    attempt(dpb.privacy.compose, [value])
    attempt(dpb.privacy.Filter, value)
    attempt(dpb.privacy.Odometer().spend, value)
    attempt(Recipe.from_dict, value)
    attempt(Recipe.from_json, value)
    attempt(dpb.load, value)


@given(made_of(PROBLEMS | KERNELS | MATROIDS))
@examples(500)
def test_problems(made: Any) -> None:
    kind, fields = made
    if (problem := attempt(kind, **fields)) is None:
        return
    use(problem)
    if isinstance(problem, dpb.matroids.Matroid) and problem.size < 100:
        attempt(dpb.MatroidBases, problem)
    declared = isinstance(problem, dpb.kernels.Kernel) and attempt(
        dpb.KernelContexts, problem, GRID, GRID
    )
    if declared:
        attempt(declared.features)


@given(st.sampled_from(list(PROBLEMS)), st.lists(hostile, max_size=2))
@examples(200)
def test_contexts_and_rewards(kind: Any, values: list[Any]) -> None:
    problem = kind(**PROBLEMS[kind])
    attempt(offered_context, problem, tuple(values))
    for value in values:
        attempt(problem.reward, value)


@given(st.sampled_from(list(MATROIDS)), hostile)
@examples(100)
def test_matroids(kind: Any, value: Any) -> None:
    matroid = kind(**MATROIDS[kind])
    for method in (matroid.independent, matroid.best_basis, matroid.truncated, matroid.restricted):
        attempt(method, value)


@given(made_of(ENVIRONMENTS))
@examples(300)
def test_environments(made: Any) -> None:
    kind, fields = made
    if (world := attempt(kind, **fields)) is None:
        return
    use(world)
    if isinstance(world, Environment):
        visit(world)


def visit(world: Environment) -> None:
    """One round of a world, if it is a small one."""
    problem, actions = world.problem(10), getattr(world, "actions", 2)
    if getattr(problem, "dimension", 0) > 100 or (isinstance(actions, int) and actions > 100):
        return
    state, chance = world.world(), np.random.default_rng(1)
    context = state.offer(chance)
    action = (np.arange(state.paid.size),) if hasattr(state, "paid") else 0
    state.settle(context, action, state.pay(context, action, chance))
    world.uniform_regret()


@given(st.data())
@examples(800)
def test_policies_are_refused_before_they_start_or_play(data: Any) -> None:
    kind = data.draw(st.sampled_from(list(POLICIES)))
    fields = fields_of(kind)
    budgets = st.sampled_from([budget for budget in kind.accepts]).flatmap(_extreme)
    named = data.draw(spoiled(fields)) | (
        {"privacy": data.draw(budgets)} if data.draw(st.booleans()) else {}
    )
    policy = attempt(kind, **named)
    if policy is None:
        return
    use(policy)
    base = kind.problem_kind.testing.example(data.draw(st.sampled_from((100, 10**15))))
    play(policy, base)


def _extreme(kind: Any) -> st.SearchStrategy[Any]:
    sizes = st.sampled_from((1e-12, 1e-9, 1e-3, 1.0, 1e3, 1e9, 1e12))
    makers: dict[Any, Any] = {
        dpb.PureDP: sizes.map(dpb.PureDP),
        dpb.GaussianDP: sizes.map(dpb.GaussianDP),
        dpb.ApproxDP: st.tuples(sizes, st.sampled_from((1e-300, 1e-6, 0.999))).map(
            lambda x: dpb.ApproxDP(*x)
        ),
        dpb.ZeroConcentratedDP: sizes.map(dpb.ZeroConcentratedDP),
        dpb.RenyiDP: st.tuples(st.sampled_from((1.0 + 2e-16, 8.0, 1e15)), sizes).map(
            lambda x: dpb.RenyiDP(*x)
        ),
        dpb.NonPrivate: st.just(dpb.NonPrivate()),
    }
    made: st.SearchStrategy[Any] = makers[kind]
    return made


def play(policy: dpb.Policy, problem: dpb.Problem, rounds: int = 12) -> None:
    """Whatever starts can be played."""
    attempt(policy.guarantee, problem)
    learner = attempt(rehearse, policy, problem, seed=1)
    if learner is None:
        return
    str(learner.guarantee)
    who = {} if problem.rounds_per_person is None else {"person": 7}
    contexts = [arguments(context) for context, _ in problem.testing.extreme_people(problem)[:4]]
    for index in range(rounds):
        try:
            ticket = learner.decide(*contexts[index % len(contexts)], **who)
        except dpb.errors.HorizonReached:
            return
        learner.update(ticket, alike(float(index % 2), ticket.action))
    attempt(learner.released)
    attempt(lambda: learner.spent)


LEARNERS: list[Callable[[], dpb.Learner]] = [
    lambda: dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)).start(
        dpb.Arms(3, capacity=5, horizon=40), seed=1
    ),
    lambda: dpb.LazyThompson(privacy=dpb.GaussianDP(1.0)).start(
        dpb.Arms(3, rounds_per_person=2), seed=1, in_flight=3
    ),
    lambda: dpb.arms.GaussianThompson().start(dpb.Arms(3), seed=1, in_flight=4, patience=5.0),
    lambda: dpb.LinUCB().start(dpb.LinearContexts(2), seed=1, compiled=False),
    lambda: dpb.matroids.MatroidUCB().start(dpb.MatroidBases(dpb.matroids.UniformMatroid(4, 2)), seed=1),
    lambda: dpb.KernelUCB().start(dpb.KernelContexts(KERNEL, GRID, GRID), seed=1),
]
one_or_more = st.lists(hostile, max_size=2)
CALLS: dict[str, Any] = {
    "decide": st.tuples(
        one_or_more, st.fixed_dictionaries({}, optional={"person": hostile, "now": hostile})
    ),
    "select": st.tuples(one_or_more, st.fixed_dictionaries({}, optional={"person": hostile})),
    "update": st.tuples(st.lists(hostile, min_size=2, max_size=2), st.just({})),
    "skip": st.tuples(st.lists(hostile, max_size=1), st.just({})),
    "update_many": st.tuples(st.lists(hostile, min_size=2, max_size=2), st.just({})),
    "decide_many": st.tuples(
        st.lists(hostile, min_size=1, max_size=1),
        st.fixed_dictionaries({}, optional={"persons": hostile, "now": hostile}),
    ),
    "retire": st.tuples(st.lists(hostile, min_size=1, max_size=1), st.just({})),
    "revive": st.tuples(st.lists(hostile, min_size=1, max_size=1), st.just({})),
    "add": st.just(([], {})),
    "close": st.just(([], {})),
    "released": st.just(([], {})),
}
call = st.sampled_from(list(CALLS)).flatmap(lambda name: st.tuples(st.just(name), CALLS[name]))


def everything(learner: dpb.Learner) -> tuple[Any, ...]:
    """All that a refused call must leave alone."""
    rounds, streams = learner._rounds, learner._streams
    people = None if rounds.people is None else rounds.people._counts.cells.tobytes()
    flying = [(one.number, one.answered, repr(one.reward)) for one in rounds.open]
    drawn = [str(stream.bit_generator.state) for stream in streams]
    counts = rounds.decided, rounds.closed, rounds.closings, rounds.observed, rounds.now
    return state_bytes(learner), counts, flying, people, drawn, learner.changes, learner._stopped


@given(st.sampled_from(LEARNERS), st.lists(call, min_size=1, max_size=12))
@examples(300)
def test_learners(start: Callable[[], dpb.Learner], calls: list[Any]) -> None:
    learner = start()
    for name, (given_, named) in calls:
        before = everything(learner)
        done = attempt(lambda *a, do=name, **k: (getattr(learner, do)(*a, **k),), *given_, **named)
        assert done or everything(learner) == before, (name, given_, named)
        assert not learner._stopped
    assert "learner" in repr(learner).lower()


@given(st.data())
@examples(200)
def test_tickets_and_rewards_of_open_rounds(data: Any) -> None:
    learner = data.draw(st.sampled_from(LEARNERS[:3]))()
    clock = {} if learner._rounds.patience is None else {"now": 1.0}
    who = {"person": "ada"} if learner._asks_who else {}
    ticket = learner.decide(**clock, **who)
    before = everything(learner)
    for reward in data.draw(st.lists(hostile, min_size=1, max_size=4)):
        try:
            learner.update(ticket, reward)
        except DPBanditsError:
            assert everything(learner) == before
        else:
            return
    learner.update(ticket, 1.0)


@given(st.data())
@examples(150)
def test_the_start_of_a_learner(data: Any) -> None:
    kind = data.draw(st.sampled_from([dpb.LazyThompson, dpb.arms.GaussianThompson, dpb.local.LocalUCB]))
    policy = kind(privacy=dpb.PureDP(1.0)) if dpb.PureDP in kind.accepts else kind()
    options = ["seed"] if kind is dpb.local.LocalUCB else ["seed", "in_flight", "patience", "compiled"]
    named = {name: data.draw(hostile) for name in data.draw(st.sets(st.sampled_from(options)))}
    problem = data.draw(st.just(dpb.Arms(3)) | hostile)
    attempt(policy.guarantee, problem)
    learner = attempt(policy.start, problem, **named)
    if isinstance(learner, dpb.Learner) and not named.get("compiled"):
        attempt(learner.decide, now=1.0)


@given(st.data())
@examples(150)
def test_the_local_model(data: Any) -> None:
    policy, problem = dpb.local.LocalUCB(privacy=dpb.PureDP(1.0)), dpb.Arms(3)
    server = policy.start(problem, seed=1)
    broadcast, before = server.broadcast(), server.rounds
    value, other = data.draw(hostile), data.draw(hostile)
    attempt(policy.start, problem, broadcast=value)
    attempt(policy.person, problem, value, seed=other)
    attempt(policy.person, value, broadcast)
    attempt(server.receive, value)
    attempt(server.receive, broadcast)
    assert server.rounds == before and server.broadcast() == broadcast
    person = policy.person(problem, broadcast, seed=1)
    attempt(person.report, value)
    attempt(person.select, value)
    person.select()
    message = attempt(person.report, value)
    server.receive(person.report(1.0) if message is None else message)
    assert server.rounds == 1


@given(st.data())
@examples(120)
def test_simulations_and_recommendations(data: Any) -> None:
    world = dpb.worlds.BernoulliArms((0.5, 0.2))
    fields: dict[str, Any] = {
        **{"policies": dpb.arms.UniformArms(), "environment": world, "rounds": 20, "runs": 1, "seed": 1},
        **{"threads": 1, "points": 5, "in_flight": 1, "delays": None, "traffic": None, "patience": None},
        **{"rounds_per_person": None},
    }
    named = data.draw(spoiled(fields))
    # What is let through may take long, and that is no bug.
    long = (named["rounds"], named["runs"], named["threads"], named["points"], named["in_flight"])
    if all(not isinstance(x, int) or x < 1000 for x in long):
        attempt(dpb.simulate, **named, progress=False)
    recommended = data.draw(
        spoiled({"problem": dpb.Arms(3), "privacy": dpb.PureDP(1.0), "trust": None, "kind": None})
    )
    attempt(dpb.recommend, **recommended)
