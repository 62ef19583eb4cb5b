"""Policies in river's own evaluation."""

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from river import bandit

import dpbandits as dpb
from dpbandits.adapters import GymnasiumWorld, RiverPolicy
from dpbandits.errors import DPBanditsError, InvalidInput, PrivacyError, RoundError
from dpbandits.testing.driving import state_bytes

MEANS = [0.9, 0.5, 0.1]
LOCAL: Any = dpb.local.LocalUCB(privacy=dpb.PureDP(1.0))
ARMS: list[int | str] = [0, 1, 2]


def river_policy(**options: Any) -> RiverPolicy:
    return RiverPolicy(dpb.NoiseAwareIMED(privacy=dpb.PureDP(2.0)), **options)


def test_rivers_evaluate_finds_it_better_than_chance() -> None:
    env = GymnasiumWorld(dpb.worlds.BernoulliArms(MEANS), rounds=400)
    policies = [river_policy(), bandit.RandomPolicy(seed=1)]
    total = [0.0, 0.0]
    steps = 0
    for step in bandit.evaluate(policies, env, n_episodes=3, seed=42):
        total[step["policy_idx"]] += step["reward"]
        steps += 1
    assert steps == 2 * 3 * 400
    # Uniform play earns .5 a round; the chance of .7 over 1200 rounds is nil.
    assert total[0] > 0.75 * 1200 and total[1] < 0.6 * 1200


def test_in_replay_only_matching_rows_are_rounds() -> None:
    chance = random.Random(7)
    arms: list[int | str] = ["a", "b", "c"]
    log: list[Any] = []
    for _ in range(1500):
        chosen = chance.randrange(3)
        log.append((arms, None, arms[chosen], float(chance.random() < MEANS[chosen])))
    policy = river_policy(seed=3, replay=True)
    reward, matched = bandit.evaluate_offline(policy, iter(log))
    assert matched == policy.learner.rounds == policy.learner.decided - 1 < 1500
    # A third of the rows match, whatever is decided; what they earned is what was learned from.
    assert 400 < matched < 600
    earned = reward.get()
    assert earned is not None and earned > 0.7 * matched
    assert policy.ranking[0] == "a"
    for said in (policy.guarantee, policy.learner.released()):
        assert "which decisions are answered, the actions and the length of the log" in str(said)


def test_in_replay_nothing_is_saved_that_would_forget_what_it_rests_on(tmp_path: Path) -> None:
    for replay in (True, False):
        policy = river_policy(seed=3, replay=replay)
        policy.pull(["a", "b"])
        learner = policy.learner
        assert ("the length of the log" in str(learner.guarantee)) is replay
        if replay:
            with pytest.raises(PrivacyError, match="is not saved"):
                learner.save(tmp_path / "saved.npz")
        else:
            learner.save(tmp_path / "saved.npz")


def test_without_replay_a_decision_without_an_answer_is_a_round() -> None:
    """Or else somebody who does not answer would move all who come later by one round."""
    policy = river_policy(seed=3)
    rewards = [1.0, None, 0.0, None, None, 1.0]
    for reward in rewards:
        arm = policy.pull(ARMS)
        if reward is not None:
            policy.update(arm, reward)
    policy.pull(ARMS)
    assert policy.learner.rounds == len(rewards) == policy.learner.decided - 1
    by_hand = river_policy(seed=3)
    for reward in rewards:
        arm = by_hand.pull(ARMS)
        by_hand.learner.update(arm, reward) if reward is not None else by_hand.learner.skip()
        by_hand._asked._open = None
    by_hand.pull(ARMS)
    assert state_bytes(policy.learner) == state_bytes(by_hand.learner)
    assert "the log" not in str(policy.guarantee)


def test_clones_begin_anew_and_what_has_begun_is_not_copied() -> None:
    policy = river_policy(seed=1, replay=True)
    other = policy.clone()
    assert other.replay
    first = [policy.pull(ARMS) for _ in range(2)]
    assert first[0] == first[1] == other.pull(ARMS)
    assert policy.learner.decided == 1  # asked twice, decided once
    assert policy.clone()._n == 0
    with pytest.raises(PrivacyError, match="cannot be copied"):
        copy.deepcopy(policy)


def test_nothing_raw_is_kept_or_shown() -> None:
    policy = river_policy(seed=1)
    for _ in range(200):
        policy.update(policy.pull(ARMS), 1.0)
    assert not policy._rewards  # river's own statistics of raw rewards
    assert policy._n == 200 and "privacy=PureDP" in repr(policy)
    assert set(policy.ranking) == {0, 1, 2}
    assert "2-DP" in str(policy.guarantee)


def answered() -> RiverPolicy:
    policy = river_policy(seed=1)
    policy.update(policy.pull(ARMS), 1.0)
    return policy


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: river_policy().update(0, 1.0), RoundError, "no decision is open"),
        (lambda: answered().update(0, 1.0), RoundError, "no decision is open"),
        (lambda: wrong_arm(), RoundError, "another action"),
        (lambda: asked().update("x", 1.0), InvalidInput, "no arm 'x'"),
        (lambda: asked().update(0, 1.0, 1.0), InvalidInput, "one reward"),
        (lambda: asked().update(asked().pull(ARMS), float("nan")), InvalidInput, "nan"),
        (lambda: asked().pull([*ARMS, 3]), InvalidInput, "arms of the first pull"),
        (lambda: river_policy().pull([0]), InvalidInput, "arms to be a whole number >= 2"),
        (lambda: river_policy(horizon=0), InvalidInput, "horizon"),
        (lambda: river_policy(replay="no"), InvalidInput, "replay"),
        (lambda: river_policy().ranking, RoundError, "nothing was decided"),
        (lambda: RiverPolicy(dpb.Arms(3)), InvalidInput, "a policy for Arms"),  # type: ignore[arg-type]
        (lambda: RiverPolicy(dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(1.0))), InvalidInput, "Arms"),
        (lambda: RiverPolicy(LOCAL), InvalidInput, "Arms"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        call()
    assert isinstance(caught.value, DPBanditsError)
    assert "\n" not in str(caught.value)


def asked() -> RiverPolicy:
    policy = river_policy(seed=1)
    policy.pull(ARMS)
    return policy


def wrong_arm() -> None:
    policy = river_policy(seed=1)
    policy.update((int(policy.pull(ARMS)) + 1) % 3, 1.0)
