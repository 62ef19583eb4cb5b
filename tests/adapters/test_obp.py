"""The Open Bandit Pipeline's simulator and estimators; and its feedback as a table."""

import copy
from typing import Any

import numpy as np
import pytest
from obp_without_torch import obp

import dpbandits as dpb
from dpbandits.adapters import OBPPolicy, feedback_frame
from dpbandits.errors import InvalidInput, PrivacyError, RoundError

MEANS = np.array([0.9, 0.5, 0.1])


def feedback(rows: int = 1500) -> dict[str, Any]:
    chance = np.random.default_rng(0)
    action = chance.integers(3, size=rows)
    return {
        "n_rounds": rows,
        "n_actions": 3,
        "action": action,
        "position": None,
        "reward": (chance.random(rows) < MEANS[action]).astype(int),
        "pscore": np.full(rows, 1.0 / 3.0),
        "context": np.zeros((rows, 1)),
    }


def policy(**options: Any) -> OBPPolicy:
    options = {"n_actions": 3, "random_state": 1, **options}
    return OBPPolicy(dpb.NoiseAwareIMED(privacy=dpb.PureDP(2.0)), **options)


def test_obps_own_simulator_and_estimator() -> None:
    simulator, ope = obp("simulator"), obp("ope")
    logged, one = feedback(), policy(replay=True)
    action_dist = simulator.run_bandit_simulation(bandit_feedback=logged, policy=one)
    assert action_dist.shape == (1500, 3, 1)
    assert one.n_trial == one.learner.rounds == one.action_counts.sum()
    assert 400 < one.n_trial < 600  # rows that match; the others are no rounds
    estimate = ope.OffPolicyEvaluation(bandit_feedback=logged, ope_estimators=[ope.ReplayMethod()])
    value = estimate.estimate_policy_values(action_dist=action_dist)["rm"]
    assert value > 0.7  # uniform play: .5
    # What the policy learned from is what the estimator counts.
    matched = action_dist[np.arange(1500), logged["action"], 0] == 1.0
    assert matched.sum() == one.n_trial


def test_it_is_taken_for_a_context_free_policy() -> None:
    class Theirs:
        name = "CONTEXT_FREE"

    class Others:
        name = "CONTEXTUAL"

    assert policy().policy_type == Theirs() and policy().policy_type != Others()


def test_the_simulators_loop_by_hand() -> None:
    """As `run_bandit_simulation` does it, for those without obp."""
    logged, one = feedback(), policy(replay=True)
    earned = 0.0
    for action, reward in zip(logged["action"], logged["reward"], strict=True):
        if one.select_action()[0] == action:
            one.update_params(action=action, reward=reward)
            earned += reward
    assert one.n_trial == one.learner.rounds < 600
    assert earned > 0.7 * one.n_trial
    assert "2-DP" in str(one.guarantee) and "the actions and the length of the log" in str(one.guarantee)
    trials = one.n_trial
    with pytest.raises(RoundError, match="spend the budget again"):
        one.initialize()
    assert one.n_trial == trials and one.learner.rounds == trials  # nothing was changed
    other = policy()
    other.initialize()
    assert other.n_trial == 0 and other.select_action().shape == (1,)


def test_without_replay_a_decision_without_an_answer_is_a_round() -> None:
    one = policy()
    for _ in range(10):
        one.select_action()
    assert one.learner.rounds == 9 and one.n_trial == 0
    assert "the log" not in str(one.guarantee)


def test_a_copy_begins_anew_or_is_refused() -> None:
    one = policy()
    assert copy.deepcopy(one).select_action().shape == (1,)
    one.select_action()
    with pytest.raises(PrivacyError, match="cannot be copied"):
        copy.deepcopy(one)


def test_feedback_is_a_table() -> None:
    frame = feedback_frame(feedback(10))
    assert frame.columns == ["action", "reward", "propensity", "position"]
    assert frame["position"].to_list() == [0] * 10
    assert feedback_frame({"action": [1], "reward": [0.5]}).columns == ["action", "reward", "position"]
    placed = feedback_frame({**feedback(3), "position": np.array([2, 0, 1])})
    assert placed["position"].to_list() == [2, 0, 1]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: policy().update_params(0, 1.0), RoundError, "no decision is open"),
        (lambda: wrong_action(), RoundError, "another action"),
        (lambda: twice(), RoundError, "no decision is open"),
        (lambda: policy().update_params(3, 1.0), InvalidInput, "action to be at most 2"),
        (lambda: policy(n_actions=1), InvalidInput, "n_actions"),
        (lambda: policy().guarantee, RoundError, "nothing was decided"),
        (lambda: feedback_frame([1]), InvalidInput, "feedback dictionary"),  # type: ignore[arg-type]
        (lambda: feedback_frame({"action": [0]}), InvalidInput, "has no reward"),
        (lambda: feedback_frame({"action": [0], "reward": [[1.0]]}), InvalidInput, "one column"),
        (lambda: feedback_frame({"action": [0, 1], "reward": [1.0]}), InvalidInput, "one length"),
        (lambda: feedback_frame({"action": [], "reward": []}), InvalidInput, "at least 1"),
        (lambda: feedback_frame({"action": ["a"], "reward": [1.0]}), InvalidInput, "numbers"),
        (lambda: feedback_frame({"action": [0.5], "reward": [1.0]}), InvalidInput, "row 0"),
        (lambda: feedback_frame({"action": [0], "reward": [np.nan]}), InvalidInput, "reward"),
        (lambda: with_pscore(0.0), InvalidInput, "above 0"),
        (lambda: with_pscore(1.5), InvalidInput, "at most 1"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


def wrong_action() -> None:
    one = policy()
    one.update_params((one.select_action()[0] + 1) % 3, 1.0)


def twice() -> None:
    one = policy()
    action = one.select_action()[0]
    one.update_params(action, 1.0)
    one.update_params(action, 1.0)


def with_pscore(value: float) -> None:
    feedback_frame({"action": [0], "reward": [1.0], "pscore": [value]})
