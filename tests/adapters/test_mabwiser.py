"""MABWiser's verbs, and its simulator."""

import logging
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.adapters import MAB, for_simulator
from dpbandits.errors import DPBanditsError, HorizonReached, InvalidInput, RoundError

ARMS = ["red", "green", "blue"]
MEANS = np.array([0.9, 0.5, 0.1])


def log(rows: int, seed: int = 0) -> tuple[list[str], list[float]]:
    chance = np.random.default_rng(seed)
    chosen = chance.integers(3, size=rows)
    return [ARMS[arm] for arm in chosen], (chance.random(rows) < MEANS[chosen]).astype(float).tolist()


def mab(**options: Any) -> MAB:
    return MAB(ARMS, dpb.NoiseAwareIMED(privacy=dpb.PureDP(2.0)), **options)


def fitted(**options: Any) -> MAB:
    one = mab(seed=1, **options)
    one.fit(*log(300))
    return one


def test_batches_of_predictions_are_learned_from() -> None:
    one, chance, earned = fitted(), np.random.default_rng(5), 0.0
    for _ in range(5):
        arms = one.predict([[0.0]] * 40)  # contexts say how many, where there are none
        rewards = [float(chance.random() < MEANS[ARMS.index(arm)]) for arm in arms]
        one.partial_fit(arms, rewards)
        earned += sum(rewards)
    learner = one.learner
    assert learner.rounds == learner.decided == 300 + 200  # closed by each partial_fit
    assert earned > 0.7 * 200
    told = one.predict_expectations()
    assert max(told, key=told.__getitem__) == "red"
    assert "the rows of a history of 300 are taken as they are" in str(one.guarantee)


def test_expectations_open_no_round_and_are_what_is_released() -> None:
    one = mab(seed=1)
    assert all(math.isnan(value) for value in one.predict_expectations().values())
    assert one.predict_expectations([[0.0], [0.0]])[1].keys() == set(ARMS)
    assert one.learner.decided == 0


def test_a_missing_reward_is_closed_without_one() -> None:
    one = fitted()
    arms = [one.predict() for _ in range(3)]
    one.partial_fit(arms, [1.0, math.nan, None])
    assert one.learner.rounds == 303 and not one._open


@pytest.mark.slow
def test_contexts_have_a_block_for_each_arm() -> None:
    chance, best = np.random.default_rng(0), np.eye(2)
    policy = dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(4.0))
    one = MAB(["x", "y"], policy, features=2, seed=1)
    contexts = np.eye(2)[chance.integers(2, size=2000)]
    chosen = chance.integers(2, size=2000)
    rewards = np.einsum("nd,nd->n", contexts, best[chosen])
    one.fit(np.array(["x", "y"])[chosen], rewards, contexts)
    assert one.predict([1.0, 0.0]) == "x"
    assert one.predict([[0.0, 1.0], [1.0, 0.0]]) == ["y", "x"]
    one.partial_fit(["x", "y", "x"], [1.0, 1.0, 1.0])
    told = one.predict_expectations([[1.0, 0.0], [0.0, 1.0]])
    assert told[0]["x"] > told[0]["y"] and told[1]["y"] > told[1]["x"]
    assert one.predict_expectations([1.0, 0.0]).keys() == {"x", "y"}


@pytest.fixture
def quiet_root() -> Iterator[None]:
    """MABWiser's simulator has everybody's loggers tell everything, and leaves them so."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.mark.usefixtures("quiet_root")
def test_mabwisers_simulator_runs_it() -> None:
    mabwiser = pytest.importorskip("mabwiser.mab")
    from mabwiser.simulator import Simulator

    decisions, rewards = log(600, seed=2)
    random = mabwiser.MAB(ARMS, mabwiser.LearningPolicy.Random())
    one = mab(seed=1)
    simulator = Simulator(
        [("private", for_simulator(one)), ("random", random)], decisions, rewards, test_size=0.4
    )
    simulator.run()
    assert len(simulator.bandit_to_predictions["private"]) == 240
    assert one.learner.past.history == 360
    value = {
        name: np.nansum([arm["sum"] for arm in stats.values()])  # nan for what was never predicted
        for name, stats in simulator.bandit_to_arm_to_stats_avg.items()
    }
    assert value["private"] > 1.3 * value["random"]
    assert simulator.bandit_to_expectations["private"]["red"] > 0.7


def test_a_log_keeps_its_rows_without_a_reward() -> None:
    one = mab()
    one.fit(["red", "blue", "red"], [1.0, None, math.nan])
    assert one.learner.rounds == one.learner.past.history == 3


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: fitted().fit(*log(10)), RoundError, "once"),
        (lambda: predicted().fit(*log(10)), RoundError, "first"),
        (lambda: predicted().partial_fit(["red"], []), RoundError, "got 1 and 0"),
        (lambda: predicted().partial_fit([other()], [1.0]), RoundError, "row 0 of decisions is not"),
        (lambda: predicted().partial_fit(["pink"], [1.0]), InvalidInput, "no arm 'pink'"),
        (lambda: predicted().partial_fit(["red"], [1.0], [[1.0]]), InvalidInput, "leave them out"),
        (lambda: answered().partial_fit(["red"], [1.0]), RoundError, "nothing was predicted since"),
        (lambda: [one.predict() for one in [mab(in_flight=1)] * 2], RoundError, "1 may"),
        (
            lambda: mab().fit(["red"], [1.0], [[1.0]]),
            InvalidInput,
            "expected no contexts; features=… says how many numbers a context has",
        ),
        (
            lambda: MAB(ARMS, dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(1.0))),
            InvalidInput,
            "RandomizedLinUCB decides by contexts: say how many numbers one has, features=3",
        ),
        (lambda: mab().partial_fit(["red"], [1.0]), RoundError, "nothing was predicted since"),
        (lambda: mab().fit(["red"], ["x"]), InvalidInput, "column of numbers"),
        (lambda: mab().fit(["red"], [1.0, 1.0]), InvalidInput, "as many rows"),
        (lambda: mab().fit([], []), InvalidInput, "at least one"),
        (lambda: contextual().predict(), InvalidInput, "a context for each person"),
        (lambda: contextual().predict([]), InvalidInput, "at least one context"),
        (lambda: contextual().fit(["x"], [1.0]), InvalidInput, "a context for each row"),
        (lambda: contextual().predict_expectations([[1.0]]), InvalidInput, "contexts of 2 numbers"),
        (lambda: MAB(["a", "a"], mab().policy), InvalidInput, "different names"),
        (lambda: MAB([1, True], mab().policy), InvalidInput, "different names"),
        (lambda: MAB([[1], [True]], mab().policy), InvalidInput, "different names"),
        (lambda: MAB(["a"], mab().policy), InvalidInput, "arms"),
        (lambda: mab(in_flight="many"), InvalidInput, "in_flight"),
        (lambda: MAB("red", mab().policy), InvalidInput, "arms as a sequence"),
        (lambda: MAB(ARMS, dpb.Arms(3)), InvalidInput, "a policy such as"),  # type: ignore[arg-type]
        (lambda: MAB(ARMS, mab().policy, problem=dpb.Arms(2)), InvalidInput, "of 3 arms"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        call()
    assert isinstance(caught.value, DPBanditsError) and "\n" not in str(caught.value)


def test_a_refused_batch_changes_nothing() -> None:
    one = fitted()
    arms = [one.predict() for _ in range(2)]
    for rewards in (["a", 1.0], [1.0, "b"]):
        with pytest.raises(InvalidInput):
            one.partial_fit(arms, rewards)
    one.partial_fit(arms, [1.0, 1.0])
    assert one.learner.rounds == 302


def test_a_refused_prediction_opens_nothing() -> None:
    policy = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0), prepulls=2)
    one = MAB(ARMS, policy, problem=dpb.Arms(3, horizon=20), seed=1)
    with pytest.raises(HorizonReached):
        one.predict([None] * 21)
    assert one.learner.decided == 0 and not one._open
    other = contextual()
    with pytest.raises(InvalidInput):
        other.predict([[1.0, 0.0], [1.0]])
    assert other.learner.decided == 0 and not other._open


def predicted() -> MAB:
    one = fitted()
    one.predict()
    return one


def other() -> str:
    """Not what `predicted` chose."""
    one = fitted()
    return ARMS[(ARMS.index(one.predict()) + 1) % 3]


def answered() -> MAB:
    one = fitted()
    one.partial_fit([one.predict()], [1.0])
    return one


def contextual() -> MAB:
    policy = dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(4.0))
    return MAB(["x", "y"], policy, features=2, seed=1)


def test_asking_what_is_promised_does_not_begin_without_the_log() -> None:
    mab = MAB(["red", "blue"], dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), seed=0)
    assert "a history" not in str(mab.guarantee)
    mab.fit(["red", "blue"], [1, 0])
    assert "the rows of a history of 2 are taken as they are" in str(mab.guarantee)
