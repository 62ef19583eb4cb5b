"""Learners that start from an earlier log, or from public rows."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits import History
from dpbandits.audit.replay import replay
from dpbandits.audit.watching import WatchedRounds
from dpbandits.engine import leaves
from dpbandits.errors import DPBanditsError, HorizonReached, InvalidInput, RoundError
from dpbandits.policies.testing import short_form
from dpbandits.privacy import Guarantee
from dpbandits.problems import SquaredExponential, UniformMatroid
from dpbandits.testing.driving import state_bytes

MEANS = np.array([0.7, 0.5, 0.4, 0.3])
IMED = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0))
LINEAR = dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(1.0))
ITEMS = dpb.FocusedMatroidUCB(privacy=dpb.GaussianDP(1.0))
BASES = dpb.MatroidBases(UniformMatroid(6, 2))
WARM = [
    IMED,
    dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)),
    dpb.LazyThompson(privacy=dpb.PureDP(1.0)),
    dpb.LazyThompson(privacy=dpb.GaussianDP(1.0)),
    LINEAR,
    dpb.linear.BatchedLinUCB(privacy=dpb.GaussianDP(1.0)),
    ITEMS,
    dpb.FocusedMatroidUCB(privacy=dpb.PureDP(1.0)),
]
IDS = [f"{type(policy).__name__}-{type(policy.privacy).__name__}" for policy in WARM]


def arms_log(rows: int = 400, seed: int = 0, **others: Any) -> History:
    chance = np.random.default_rng(seed)
    action = chance.integers(4, size=rows)
    return History(action=action, reward=chance.random(rows) < MEANS[action], **others)


# ---- what it is good for


def arms_regret(policy: dpb.TrustedPolicy, seed: int, **past: Any) -> float:
    learner, chance = policy.start(dpb.Arms(4), seed=seed, **past), np.random.default_rng(seed)
    regret = 0.0
    for _ in range(400):
        arm = learner.select()
        learner.update(arm, float(chance.random() < MEANS[arm]))
        regret += MEANS.max() - MEANS[arm]
    return regret


@pytest.mark.parametrize("policy", WARM[:4], ids=IDS[:4])
def test_a_warm_start_lowers_regret(policy: dpb.TrustedPolicy) -> None:
    cold = np.mean([arms_regret(policy, seed) for seed in range(8)])
    warm = np.mean([arms_regret(policy, seed, history=arms_log(seed=seed)) for seed in range(8)])
    known = np.mean([arms_regret(policy, seed, public_history=arms_log(seed=seed)) for seed in range(8)])
    assert cold > 15.0
    assert warm < 0.5 * cold and known < 0.5 * cold


def test_contexts_are_known_from_the_first_round() -> None:
    theta, chance = np.array([0.6, -0.6]), np.random.default_rng(0)
    features = chance.normal(size=(3000, 2))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    log = History(features=features, reward=features @ theta)
    # The same of all actions, of which one was chosen.
    sets = chance.normal(size=(3000, 4, 2))
    sets[np.arange(3000), np.arange(3000) % 4] = features
    other = History(features=sets, action=np.arange(3000) % 4, reward=features @ theta)
    pasts: list[dict[str, Any]] = [{"history": log}, {"public_history": log}, {"history": other}]
    for past in pasts:
        learner = LINEAR.start(dpb.LinearContexts(2), seed=1, compiled=False, **past)
        offered = np.array([[0.7, -0.7], [-0.7, 0.7], [0.7, 0.7]])
        assert learner.select(offered) == 0
        released = learner.released()
        assert released is not None and np.allclose(released.mean, theta, atol=0.1)


def test_items_are_known_from_the_first_round() -> None:
    chance = np.random.default_rng(0)
    action = np.array([chance.permutation(6)[:2] for _ in range(900)])
    means = np.array([0.1, 0.9, 0.2, 0.8, 0.3, 0.3])
    log = History(action=np.sort(action), reward=chance.random((900, 2)) < means[np.sort(action)])
    for policy in WARM[6:]:
        for name in ("history", "public_history"):
            past: dict[str, Any] = {name: log}
            learner = policy.start(BASES, seed=1, **past)
            assert sorted(learner.select().tolist()) == [1, 3]


# ---- what is learned


@pytest.mark.parametrize("name", ["history", "public_history"])
@pytest.mark.parametrize("kind", [dpb.NoiseAwareIMED, dpb.LazyThompson])
def test_without_noise_it_knows_the_means(kind: Any, name: str) -> None:
    log = arms_log()
    learner = kind(privacy=dpb.NonPrivate()).start(dpb.Arms(4), seed=1, **{name: log})
    learner.select()
    released = learner.released()
    assert released is not None
    means = [log.reward[log.action == arm].mean() for arm in range(4)]
    assert np.allclose(released.mean, means, atol=1e-5)
    assert released.plays.tolist() == np.bincount(log.action).tolist()


def test_public_rows_are_known_exactly_and_private_ones_are_not() -> None:
    for policy in WARM[:4]:
        log = arms_log(40)
        means = np.array([log.reward[log.action == arm].mean() for arm in range(4)])
        learner = policy.start(dpb.Arms(4), seed=1, public_history=log)
        known = learner.released()
        assert known is not None and np.allclose(known.mean, means, atol=1e-5)
        assert known.spent is None  # nothing of anybody was released
        started = policy.start(dpb.Arms(4), seed=1, history=arms_log(400))
        log = arms_log(400)
        means = np.array([log.reward[log.action == arm].mean() for arm in range(4)])
        started.select()
        told = started.released()
        assert told is not None and not np.isclose(told.mean, means, atol=1e-5).any()


@pytest.mark.parametrize("policy", WARM, ids=IDS)
def test_public_rows_change_neither_noise_nor_sensitivity(policy: dpb.TrustedPolicy) -> None:
    problem = policy.problem_kind.testing.example(40)
    people = problem.testing.extreme_people(problem)[:3]
    past = problem.testing.past(problem, people * 5)
    cold = policy.start(problem, seed=1, compiled=False)
    warm = policy.start(problem, seed=1, compiled=False, public_history=past)
    assert state_bytes(cold) != state_bytes(warm)
    ours, theirs = (dict(leaves(learner._public.batches)) for learner in (cold, warm))
    for name in ("scale", "laplace", "weights", "sizes", "ratio", "widths", "variance", "place"):
        assert np.array_equal(ours[name], theirs[name]), name


def test_columns_of_tables_will_do() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"arm": [0, 1, 3], "click": [True, False, True], "who": ["a", "b", "c"]}
    for frame in (pandas.DataFrame(columns), polars.DataFrame(columns)):
        log = History(action=frame["arm"], reward=frame["click"], person=frame["who"])
        assert log.action.tolist() == [0, 1, 3] and log.reward.tolist() == [1.0, 0.0, 1.0]
        assert IMED.start(dpb.Arms(4), history=log).rounds == 3
    for gaps in (polars.Series([1.0, None]), pandas.array([1.0, None], "Float64"), [True, None]):
        assert np.array_equal(History(reward=gaps).reward, [1.0, math.nan], equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [IMED, LINEAR, WARM[7]])
def test_compiled_learners_start_alike(policy: dpb.TrustedPolicy) -> None:
    problem = policy.problem_kind.testing.example(None)
    people = problem.testing.extreme_people(problem)[:4]
    past = problem.testing.past(problem, people * 9)
    others = problem.testing.past(problem, people * 3)

    def state(compiled: bool) -> bytes:
        options: dict[str, Any] = {"history": past, "public_history": others}
        learner = policy.start(problem, seed=1, compiled=compiled, **options)
        learner.close()
        return state_bytes(learner)

    assert state(True) == state(False)


@pytest.mark.parametrize("policy", [*WARM[:4], *WARM[6:]])
def test_a_row_without_a_reward_is_a_round_that_stores_nothing(policy: dpb.TrustedPolicy) -> None:
    problem: Any = BASES if policy in WARM[6:] else dpb.Arms(4)

    def state(reward: float | None) -> bytes:
        rewards: Any = [1.0, reward, 0.0]
        log = History(action=[0, 1, 1], reward=rewards)
        if problem is BASES:
            log = History(action=[[0, 1], [2, 3], [4, 5]], reward=[[one, one] for one in rewards])
        learner = policy.start(problem, seed=1, history=log)
        assert learner.rounds == learner.past.history == 3
        return state_bytes(learner)

    assert state(None) == state(math.nan) == state(0.5) != state(1.0)  # unknown is the middle


def test_features_that_are_not_finite_are_a_row_of_zeros() -> None:
    def state(*rows: list[float]) -> bytes:
        log = History(features=[[0.5, 0.5], *rows, [3.0, 4.0]], reward=[1.0] * (len(rows) + 2))
        return state_bytes(LINEAR.start(dpb.LinearContexts(2), seed=1, compiled=False, history=log))

    assert state([math.nan, 1.0]) == state([math.inf, 0.0]) == state([0.0, 0.0]) != state([0.0, 1.0])


def test_huge_features_do_not_change_how_others_are_rounded() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 3)) * 7.0
    problem = dpb.LinearContexts(3)

    def others(first: float) -> Any:
        log = History(features=[[first] * 3, *rows], reward=[1.0] * 501)
        return [context[0].tolist() for context, _, _ in problem.past(log)][1:]

    assert others(1e200) == others(0.0) == others(math.nan)


# ---- privacy


class Leaking(WatchedRounds):
    """Learns from a history as if it were public."""

    def learn_past(self, rows: Any, people: Any, noise: Any) -> None:
        self.learn_public(rows)
        self.decided = self.observed = self.given
        self.given = 0


class Exact(WatchedRounds):
    """Puts a history into the sums that are released without noise, and counts as it should."""

    def learn_past(self, rows: Any, people: Any, noise: Any) -> None:
        rows = list(rows)
        super().learn_past(rows, people, noise)
        self.public.batches.total[...] += sum(reward for _, _, reward in rows)


class Dropping(WatchedRounds):
    """Leaves out rows that have no reward."""

    def learn_past(self, rows: Any, people: Any, noise: Any) -> None:
        paired = [one for one in zip(rows, people, strict=True) if not np.isnan(one[0][2]).all()]
        super().learn_past([row for row, _ in paired], [person for _, person in paired], noise)


@pytest.mark.parametrize("policy", WARM, ids=IDS)
@pytest.mark.parametrize("public", [0, 9])
def test_the_budget_covers_the_history(policy: dpb.TrustedPolicy, public: int) -> None:
    rounds = 20
    options: dict[str, Any] = {"history": 8, "public_history": public, "thorough": False}
    small = short_form(policy)
    found = replay(small, rounds=rounds, in_flight=3, reload=rounds // 2, **options)
    assert found.private, found
    one = replay(small, rounds=rounds, **options)
    assert one.passed, one
    assert one.cost == pytest.approx(one.limit, rel=2e-3)  # features are rounded to a grid


@pytest.mark.parametrize("policy", [WARM[0], WARM[1], WARM[4], WARM[6]])
def test_a_history_without_noise_is_caught(policy: dpb.TrustedPolicy) -> None:
    found = replay(short_form(policy), rounds=20, thorough=False, history=8, machine=Leaking)
    assert not found.private and math.isinf(found.cost)


@pytest.mark.parametrize("policy", [WARM[0], WARM[4], WARM[6]])
def test_to_leave_out_rows_without_a_reward_is_caught(policy: dpb.TrustedPolicy) -> None:
    found = replay(short_form(policy), rounds=20, thorough=False, history=8, machine=Dropping)
    assert not found.private


def test_a_history_that_leaks_beside_its_noise_is_caught() -> None:
    found = replay(short_form(IMED), rounds=24, thorough=False, history=8, machine=Exact)
    assert not found.private


@pytest.mark.parametrize("k", [1, 2])
def test_people_in_the_history_are_counted(k: int) -> None:
    """All rows and rounds of one person are replaced together."""
    problem = dpb.Arms(3, rounds_per_person=k)
    found = replay(short_form(IMED), problem, rounds=24, thorough=False, history=8)
    assert found.private, found
    learner = IMED.start(problem, history=arms_log_of(["ada"] * 6))
    assert learner.rounds == 6 and learner._rounds.observed == 1  # the others are in the same batch
    token = learner._token("ada")
    assert token is not None and learner.has_rounds_left(token) == (k == 2)
    named = IMED.start(dpb.Arms(3), history=arms_log_of(["ada", "bob"]))
    named.update(ticket := named.decide(person="ada"), 1.0)
    assert ticket.action in range(3) and named._rounds.observed == 2  # one round of each


def arms_log_of(person: list[Any]) -> History:
    return History(action=[0] * len(person), reward=[1.0] * len(person), person=person)


@pytest.mark.parametrize(("past", "later"), [("5", 5), (5, "5"), ("5", b"5"), (np.int64(5), "5")])
@pytest.mark.parametrize("k", [None, 1])
def test_names_are_of_the_history_s_kind(past: Any, later: Any, k: int | None, tmp_path: Path) -> None:
    """Of another kind, the same person would be two."""
    learner = IMED.start(dpb.Arms(3, rounds_per_person=k), history=arms_log_of([past]))
    for _ in range(2):
        with pytest.raises(InvalidInput, match=r"expected person to be .*, as in the history, got \w+$"):
            learner.decide(person=later)
        learner = dpb.load(learner.save(tmp_path / "learner"))
    learner.update(learner.decide(person=past), 1.0)
    assert learner._rounds.observed == 1  # of the history
    IMED.start(dpb.Arms(3)).decide(person=later)  # without one, any kind will do


# ---- what is said about it


def test_the_guarantee_names_what_is_taken_as_given(tmp_path: Path) -> None:
    learner = IMED.start(dpb.Arms(4), history=arms_log(), public_history=arms_log(7))
    assert learner.past == (400, 7)
    said = str(learner.guarantee)
    assert said.endswith(
        "the reward range [0, 1], all of a public history of 7 rows; the rows of a history of 400 are "
        "taken as they are: what an earlier system chose for others because of her is not protected."
    )
    assert Guarantee.from_dict(learner.guarantee.to_dict()) == learner.guarantee
    shorter = IMED.start(dpb.Arms(4), public_history=arms_log(7)).guarantee
    assert shorter.implies(learner.guarantee) and not learner.guarantee.implies(shorter)
    assert "because of her" not in str(shorter)
    assert not learner.guarantee.implies(IMED.guarantee(dpb.Arms(4)))  # which rests on less
    assert IMED.guarantee(dpb.Arms(4)).implies(learner.guarantee)
    assert "0 rounds after 400 of a history" in repr(learner)
    before = state_bytes(learner)
    loaded = dpb.load(learner.save(tmp_path / "learner"))
    assert loaded.past == (400, 7) and str(loaded.guarantee) == said
    assert state_bytes(loaded) == before and (loaded.rounds, loaded.decided) == (400, 400)
    loaded.select()
    record = loaded.released()
    assert record is not None and "407 are behind these numbers, with those that are public" in str(
        record
    )
    assert record.to_dict()["public_rows"] == 7
    assert "history of 400" in str(record) and "history" in str(record.to_dict())
    joint = LINEAR.start(dpb.LinearContexts(2), history=History(features=[[0, 1]], reward=[1]))
    assert "; the rows of a history of 1 are taken as they are: what an earlier" in str(joint.guarantee)


@pytest.mark.parametrize("policy", [IMED, WARM[2]])
def test_a_save_continues_after_a_history(policy: dpb.TrustedPolicy, tmp_path: Path) -> None:
    def started() -> dpb.Learner:
        return policy.start(
            dpb.Arms(4), in_flight=3, seed=5, history=arms_log(50), public_history=arms_log(9)
        )

    def play(learner: dpb.Learner, rounds: int) -> None:
        for index in range(rounds):
            learner.update(learner.decide(), float(index % 3 == 0))

    whole, parts = started(), started()
    play(whole, 90)
    play(parts, 60)
    parts = dpb.load(parts.save(tmp_path / "learner"))
    play(parts, 30)
    assert state_bytes(parts) == state_bytes(whole)


def test_rows_count_towards_the_horizon() -> None:
    policy = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0), prepulls=2)
    learner = policy.start(dpb.Arms(4, horizon=60), seed=1, history=arms_log(50))
    for _ in range(10):
        learner.update(learner.select(), 1.0)
    with pytest.raises(HorizonReached):
        learner.select()
    with pytest.raises(HorizonReached, match="a history of 60 leaves none to decide"):
        policy.start(dpb.Arms(4, horizon=60), history=arms_log(60))


# ---- what is refused


def start(policy: Any = IMED, problem: Any = None, **past: Any) -> Any:
    return policy.start(problem or dpb.Arms(4), **past)


def on_contexts(**columns: Any) -> Any:
    problem = columns.pop("problem", dpb.LinearContexts(2))
    return LINEAR.start(problem, compiled=False, history=History(**columns))


KERNEL = dpb.KernelContexts(SquaredExponential(0.3), [0.0, 1.0], [0.0, 1.0], horizon=10_000)
WRONG: list[tuple[Any, str]] = [
    (lambda: History(reward=[]), "at least one number"),
    (lambda: History(reward="abc"), "column of numbers"),
    (lambda: History(reward=[[[1.0]]]), "shape"),
    (lambda: History(reward=[1.0, None, "a"]), "column of numbers"),
    (lambda: History(reward=[1.0, None, object()]), "column of numbers"),
    (lambda: History(reward=np.ma.masked_array([1.0, 2.0], [False, True])), "column of numbers"),
    (lambda: History(reward=[1.0], action=["red"]), "whole numbers"),
    (lambda: History(reward=[1.0], action=[0.5]), "action to be a whole number: row 0"),
    (lambda: History(reward=[1.0], action=[[[0]]]), "whole numbers"),
    (lambda: History(reward=[1.0], action=[0, 1]), "as many rows of action"),
    (lambda: History(reward=[1.0], features=[["a"]]), "rows of numbers"),
    (lambda: History(reward=[1.0], person=["a", "b"]), "as many rows of person"),
    (lambda: History(reward=[1.0], person="ada"), "sequence, got str$"),
    (lambda: start(history=arms_log(1, person=[np.zeros(2)])), "row 0 is not$"),
    (lambda: start(history=[1.0]), "expected history as History"),
    (lambda: start(public_history={"reward": [1.0]}), "expected public_history as History"),
    (lambda: start(history=History(reward=[1.0])), "expected history's action"),
    (lambda: start(history=History(reward=[1.0], action=[4])), "one of 4 arms: row 0"),
    (lambda: start(history=History(reward=[1.0], action=[-1])), "one of 4 arms: row 0"),
    (lambda: start(history=History(reward=[1.0], action=[1e300])), "one of 4 arms"),
    (lambda: start(history=History(reward=[1.0], action=[[0, 1]])), "one number for each row"),
    (lambda: start(history=History(reward=[[1.0]], action=[0])), "one reward for each row"),
    (lambda: start(history=arms_log(3, features=[[1.0]] * 3)), "leave out history's features"),
    (lambda: start(public_history=arms_log(1, person=["a"])), "leave her out"),
    (lambda: start(history=arms_log(2, person=["a", 4711.0])), "whole number: row 1 is not$"),
    (lambda: start().decide(person=4711.0), "whole number, got float$"),
    (lambda: start(history=arms_log(2, person=["a", 5])), "row 0 is a text, row 1 is a whole number$"),
    (
        lambda: start(problem=dpb.Arms(4, rounds_per_person=1), history=arms_log(1, person=[None])),
        "say who each row",
    ),
    (lambda: start(problem=dpb.Arms(4, rounds_per_person=1), history=arms_log()), "say who"),
    (lambda: start(problem=dpb.Arms(2, capacity=9), history=arms_log()), "one of 2 arms"),
    (lambda: on_contexts(reward=[1.0]), "2 numbers a row, got none"),
    (lambda: on_contexts(reward=[1.0], features=[[1.0]]), "2 numbers a row"),
    (lambda: on_contexts(reward=[1.0], features=[[1.0, 0.0]], action=[0]), "leave out action"),
    (lambda: on_contexts(reward=[1.0], features=[[[1.0, 0.0]]]), "expected history's action"),
    (lambda: on_contexts(reward=[1.0], features=[[[1.0, 0.0]]], action=[1]), "one of 1 actions"),
    (lambda: on_contexts(reward=[1.0], features=[[[[1.0, 0.0]]]]), "as \\(n, 2\\)"),
    (
        lambda: on_contexts(reward=[1.0], features=[[1.0, 0.0]], problem=dpb.LinearContexts(2, 3)),
        "expected history's action: which of 3 arms",
    ),
    (lambda: start(ITEMS, BASES, history=arms_log()), "2 different items for each row"),
    (lambda: start(ITEMS, BASES, history=History(reward=[1], action=[[0, 1]])), "of the 2 items"),
    (lambda: start(ITEMS, BASES, history=History(reward=[[1, 1]], action=[[0, 0]])), "different items"),
    (lambda: start(ITEMS, BASES, history=History(reward=[[1, 1]], action=[[0, 6]])), "one of 6 items"),
    (
        lambda: start(dpb.KernelThompson(privacy=dpb.GaussianDP(9.0)), KERNEL, history=arms_log()),
        "choose their own designs",
    ),
    (
        lambda: start(dpb.arms.LazyUCB(privacy=dpb.PureDP(1.0)), public_history=arms_log()),
        "LazyUCB cannot start from public rows",
    ),
    (
        lambda: LINEAR.start(
            dpb.LinearContexts(2, rounds_per_person=4),
            public_history=History(features=[[1, 0]], reward=[1]),
        ),
        "cannot follow public rows",
    ),
    (
        lambda: start(dpb.local.LocalUCB(privacy=dpb.PureDP(1.0)), history=arms_log()),
        "nobody holds raw rows",
    ),
    (lambda: start_twice(), "before its first round, and once"),
    (lambda: start(**dict.fromkeys(("history", "public_history"), arms_log())), "the same rows"),
    (lambda: start(history=arms_log(), public_history=arms_log()), "the same rows"),
    (lambda: start(history=of_one(None), public_history=of_one(None)), "the same rows"),
    (lambda: start(history=named("ada"), public_history=arms_log(3)), "the same rows"),
]


def of_one(reward: float | None) -> History:
    return History(action=[0], reward=[reward])


def named(*person: str) -> History:
    return arms_log(3, person=[*person] * 3)


def test_rows_that_differ_may_be_private_and_public() -> None:
    for one, other in ((of_one(1.0), of_one(None)), (of_one(1.0), History(action=[1], reward=[1.0]))):
        assert IMED.start(dpb.Arms(4), history=one, public_history=other).past == (1, 1)


def start_twice() -> None:
    learner = start(history=arms_log())
    learner.learn_past(arms_log(), None)


@pytest.mark.parametrize(("call", "said"), WRONG)
def test_what_is_wrong_is_one_sentence(call: Any, said: str) -> None:
    with pytest.raises((InvalidInput, RoundError), match=said) as caught:
        call()
    assert isinstance(caught.value, DPBanditsError) and "\n" not in str(caught.value)


def test_an_error_and_a_print_show_nothing_of_the_rows() -> None:
    log = History(action=[0], reward=[0.123456], features=[[0.987654]], person=["ada"])
    assert repr(log) == str(log) == "<History, 1 rows>"
    with pytest.raises(InvalidInput) as caught:
        IMED.start(dpb.Arms(4), history=log)
    assert not any(text in str(caught.value) for text in ("ada", "0.98", "0.12"))
