"""Bad input to a learner: one clear sentence, and nothing changes."""

import math
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.errors import (
    BudgetNotAccepted,
    HorizonReached,
    InvalidInput,
    RoundError,
    UnknownName,
)
from dpbandits.policies import policy_named
from dpbandits.testing.driving import state_bytes


def learner(horizon: int = 50) -> dpb.Learner:
    policy = dpb.ModifiedThompson(privacy=dpb.GaussianDP(1.0))
    return policy.start(dpb.Arms(3, horizon=horizon), seed=1)


@pytest.mark.parametrize(
    "reward", [math.nan, "0.5", None, [1.0], np.ones(2), np.array([1.0]), 1j, True, object()]
)
def test_a_reward_that_is_no_number_is_refused_and_the_round_stays_open(reward: Any) -> None:
    it = learner()
    arm = it.select()
    before = state_bytes(it)
    with pytest.raises(InvalidInput, match="expected reward to be a number"):
        it.update(arm, reward)
    assert state_bytes(it) == before and it.rounds == 0
    it.update(arm, 1.0)
    assert it.rounds == 1


@pytest.mark.parametrize("reward", [math.inf, -math.inf, 7, np.float32(2.0), np.int64(-3)])
def test_a_reward_out_of_range_is_clipped(reward: float) -> None:
    clipped, plain = learner(), learner()
    clipped.update(clipped.select(), reward)
    plain.update(plain.select(), min(max(float(reward), 0.0), 1.0))
    assert state_bytes(clipped) == state_bytes(plain)


def test_order_of_calls() -> None:
    it = learner()
    with pytest.raises(RoundError, match=r"call select\(\) before update"):
        it.update(0, 1.0)
    with pytest.raises(RoundError, match=r"call select\(\) first"):
        it.skip()
    arm = it.select()
    with pytest.raises(RoundError, match=f"chose action {arm}, got an update for {arm + 1}"):
        it.update(arm + 1, 1.0)
    it.update(np.int64(arm), 1.0)
    with pytest.raises(RoundError):
        it.update(arm, 1.0)
    it.select()
    it.select()
    assert it.rounds == 2
    it.skip()
    assert it.rounds == 3


def test_a_skipped_round_counts_as_a_reward_of_one_half() -> None:
    skipped, given = learner(), learner()
    for _ in range(30):
        skipped.select()
        skipped.skip()
        given.update(given.select(), 0.5)
    assert state_bytes(skipped) == state_bytes(given)


def test_select_takes_no_context_for_arms() -> None:
    with pytest.raises(InvalidInput, match="takes no context"):
        learner().select([1.0, 2.0])


def test_no_decision_past_the_horizon_even_with_an_open_round() -> None:
    it = learner(horizon=20)
    for _ in range(20):
        arm = it.select()
    before = state_bytes(it)
    with pytest.raises(HorizonReached, match="20 rounds"):
        it.select()
    assert state_bytes(it) == before
    it.update(arm, 1.0)  # the last round may still be closed
    with pytest.raises(HorizonReached):
        it.select()


def test_without_a_guarantee_there_is_no_end() -> None:
    it = dpb.GaussianThompson().start(dpb.Arms(2), seed=1)
    assert str(it.guarantee).startswith("No privacy guarantee: ")
    for _ in range(100):
        it.select()


@pytest.mark.parametrize("arms", [0, 1, -3, 2.0, "five", True])
def test_arms_must_be_at_least_two(arms: Any) -> None:
    with pytest.raises(InvalidInput, match="expected arms to be a whole number >= 2"):
        dpb.Arms(arms)


@pytest.mark.parametrize("horizon", [0, -1, 1e5, math.nan])
def test_the_horizon_is_a_whole_number(horizon: Any) -> None:
    with pytest.raises(InvalidInput, match="expected horizon"):
        dpb.Arms(3, horizon=horizon)


def test_budgets_and_problems_a_policy_cannot_use() -> None:
    with pytest.raises(BudgetNotAccepted, match="ModifiedThompson accepts GaussianDP"):
        dpb.ModifiedThompson(privacy=dpb.PureDP(1.0))
    with pytest.raises(BudgetNotAccepted):
        dpb.ModifiedThompson(privacy=1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="needs the horizon"):
        dpb.ModifiedThompson(privacy=dpb.GaussianDP(1.0)).start(dpb.Arms(3))
    with pytest.raises(InvalidInput, match="is for Arms"):
        dpb.GaussianThompson().start("five arms")  # type: ignore[arg-type]


def test_an_unknown_policy_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'modified-thompson'"):
        policy_named("modified-tompson")
    with pytest.raises(UnknownName, match="known are: gaussian-thompson"):
        policy_named("zzz")


def test_unseeded_learners_differ_and_seeded_ones_do_not() -> None:
    def choices(seed: int | None) -> list[int]:
        it = dpb.GaussianThompson().start(dpb.Arms(5), seed=seed)
        return [it.select() for _ in range(60)]

    assert choices(3) == choices(3)
    # 60 nearly uniform choices among 5 arms agree with probability below 1e-30.
    assert choices(None) != choices(None)


def test_nothing_but_counts_is_printed() -> None:
    it = learner()
    it.update(it.select(), 0.123456789)
    assert "0.123" not in repr(it) + str(it) and "1 rounds" in repr(it)
