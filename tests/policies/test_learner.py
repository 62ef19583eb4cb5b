"""Bad input to a learner: one clear sentence, and nothing changes."""

import copy
import math
import os
import pickle
import signal
import sys
import threading
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.errors import (
    BudgetNotAccepted,
    HorizonReached,
    InvalidInput,
    PrivacyError,
    RoundError,
    UnknownName,
)
from dpbandits.policies import policy_named
from dpbandits.problems.arms import centred
from dpbandits.testing.driving import state_bytes


def learner(horizon: int = 50) -> dpb.Learner:
    policy = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0))
    return policy.start(dpb.Arms(3, horizon=horizon), seed=1)


@pytest.mark.parametrize(
    "reward", [math.nan, "0.5", None, [1.0], np.ones(2), np.array([1.0]), 1j, object()]
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


@pytest.mark.parametrize(
    "reward", [math.inf, -math.inf, 7, np.float32(2.0), np.int64(-3), True, np.array(0.5), 10**400]
)
def test_a_reward_out_of_range_is_clipped(reward: float) -> None:
    clipped, plain = learner(), learner()
    clipped.update(clipped.select(), reward)
    plain.update(plain.select(), min(max(reward, 0.0), 1.0))
    assert state_bytes(clipped) == state_bytes(plain)


def test_order_of_calls() -> None:
    it = learner()
    with pytest.raises(RoundError, match=r"no round is open: call select\(\)"):
        it.update(0, 1.0)
    with pytest.raises(RoundError, match=r"no round is open: call select\(\)"):
        it.skip()
    arm = it.select()
    with pytest.raises(RoundError, match=f"chose another action than {arm + 1}"):
        it.update(arm + 1, 1.0)
    it.update(np.int64(arm), 1.0)
    with pytest.raises(RoundError):
        it.update(arm, 1.0)
    it.select()
    with pytest.raises(RoundError, match=r"a round is open: update\(\) or skip\(\) it"):
        it.select()
    assert (it.rounds, it.decided) == (1, 2)
    it.skip()
    assert it.rounds == 2


def test_a_skipped_round_counts_as_a_reward_of_one_half() -> None:
    skipped, given = learner(), learner()
    for _ in range(30):
        skipped.select()
        skipped.skip()
        given.update(given.select(), 0.5)
    assert state_bytes(skipped) == state_bytes(given)


def test_select_takes_no_context_for_arms() -> None:
    with pytest.raises(InvalidInput, match="has no context"):
        learner().select([1.0, 2.0])


def test_no_decision_past_the_horizon_even_with_an_open_round() -> None:
    it = learner(horizon=20)
    for _ in range(20):
        ticket = it.decide()
    before = state_bytes(it)
    with pytest.raises(HorizonReached, match="20 rounds"):
        it.decide()
    assert state_bytes(it) == before
    it.update(ticket, 1.0)  # the last round may still be closed
    with pytest.raises(HorizonReached):
        it.select()


def test_without_a_guarantee_there_is_no_end() -> None:
    it = dpb.arms.GaussianThompson().start(dpb.Arms(2), seed=1)
    assert str(it.guarantee).startswith("No privacy guarantee: ")
    for _ in range(100):
        it.decide()


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
        dpb.arms.ModifiedThompson(privacy=dpb.PureDP(1.0))
    with pytest.raises(BudgetNotAccepted):
        dpb.arms.ModifiedThompson(privacy=1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="needs the horizon"):
        dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)).start(dpb.Arms(3))
    with pytest.raises(InvalidInput, match="is for Arms"):
        dpb.arms.GaussianThompson().start("five arms")  # type: ignore[arg-type]


def test_an_unknown_policy_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'modified-thompson'"):
        policy_named("modified-tompson")
    with pytest.raises(UnknownName, match=r"known are: .*gaussian-thompson"):
        policy_named("zzz")


def test_unseeded_learners_differ_and_seeded_ones_do_not() -> None:
    def choices(seed: int | None) -> list[int]:
        it = dpb.arms.GaussianThompson().start(dpb.Arms(5), seed=seed)
        return [it.decide().action for _ in range(60)]

    assert choices(3) == choices(3)
    # 60 nearly uniform choices among 5 arms agree with probability below 1e-30.
    assert choices(None) != choices(None)


def test_nothing_but_counts_is_printed() -> None:
    it = learner()
    it.update(it.select(), 0.123456789)
    assert "0.123" not in repr(it) + str(it) and "1 rounds" in repr(it)


def test_a_learner_cannot_be_copied_pickled_or_forked() -> None:
    it = learner()
    for clone in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(PrivacyError, match="cannot be copied"):
            clone(it)
    if (child := os.fork()) == 0:
        try:
            it.select()
        except PrivacyError as error:
            os._exit(7 if "does not survive a fork" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    it.update(it.select(), 1.0)


def test_a_call_that_was_cut_short_ends_the_learner() -> None:
    """Interrupted half way, a state can cost more than it says; so it is not used again."""
    for verb in ("_decide", "_learn"):
        it = learner()
        arm = it.select()
        original = getattr(it._rounds, verb)

        def interrupt(*arguments: Any, run: Any = original) -> Any:
            run(*arguments)
            raise KeyboardInterrupt

        setattr(it._rounds, verb, interrupt)

        def work(it: dpb.Learner = it, arm: int = arm) -> None:
            it.update(arm, 1.0)
            it.select()

        with pytest.raises(KeyboardInterrupt):
            work()
        setattr(it._rounds, verb, original)
        for call in (it.select, it.skip, lambda it=it, arm=arm: it.update(arm, 1.0)):
            with pytest.raises(RoundError, match="was cut short"):
                call()


def test_a_signal_handler_is_refused_while_a_call_is_under_way() -> None:
    """It is run by the same thread, so that waiting for the call to end would be for ever."""
    it = dpb.arms.GaussianThompson().start(dpb.Arms(3), seed=1)
    refused: list[str] = []

    def handle(*_: Any) -> None:
        for name, given in (("select", ()), ("update", (0, 1.0)), ("skip", ()), ("released", ())):
            with pytest.raises(RoundError, match=r"is under way, and a signal handler cannot call"):
                getattr(it, name)(*given)
            refused.append(name)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        for verb in ("_decide", "_learn"):
            original = getattr(it._rounds, verb)

            def interrupted(*given: Any, run: Any = original) -> Any:
                signal.raise_signal(signal.SIGUSR1)
                return run(*given)

            setattr(it._rounds, verb, interrupted)
        it.update(it.select(), 1.0)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(refused) == 8 and (it.rounds, it.decided) == (1, 1)


def test_nothing_is_decided_past_the_horizon_by_a_call_within_a_call() -> None:
    """Also before a call changes anything: what it has checked must still hold then."""
    it = learner(horizon=10)
    for _ in range(9):
        it.update(it.select(), 1.0)

    class Name(int):
        def __int__(self) -> int:
            with pytest.raises(RoundError, match="under way"):
                it.decide()
            return 7

    it.decide(person=Name(7))
    assert it.decided == 10


def test_another_thread_waits_for_a_call_to_end() -> None:
    it = dpb.arms.GaussianThompson().start(dpb.Arms(3), seed=1)
    original = it._rounds._decide
    others: list[Any] = []  # a thread, and then its ticket

    def slow(*given: Any) -> Any:
        it._rounds._decide = original
        others.append(threading.Thread(target=lambda: others.append(it.decide())))
        others[0].start()
        others[0].join(0.05)
        assert len(others) == 1, "it did not wait"
        return original(*given)

    it._rounds._decide = slow
    it.decide()
    others[0].join()
    assert len(others) == 2 and it.decided == 2


def test_nothing_is_promised_where_a_policy_cannot_be_started() -> None:
    local, tree = (
        dpb.local.LocalUCB(privacy=dpb.PureDP(1.0)),
        dpb.linear.TreeLinUCB(privacy=dpb.ApproxDP(1.0, 1e-6)),
    )
    cases: list[tuple[Any, Any, str]] = [
        (local, dpb.LinearContexts(2), "is for Arms"),
        (local, dpb.Arms(3, capacity=5), "arms that stay"),
        (
            dpb.arms.LazyUCB(privacy=dpb.PureDP(1.0)),
            dpb.MatroidBases(dpb.matroids.UniformMatroid(3, 1)),
            "is for Arms",
        ),
        (dpb.LinUCB(), "five arms", "is for LinearProblem"),
        (tree, dpb.LinearContexts(2), "needs the horizon"),
    ]
    for policy, problem, says in cases:
        for call in (policy.start, policy.guarantee):
            with pytest.raises(InvalidInput, match=says):
                call(problem)


@pytest.mark.parametrize(
    "features",
    [
        np.ma.array([[1.0, 0.0], [0.0, 1.0]], mask=[[False, False], [False, True]]),
        np.array([[1j, 0.0], [0.0, 1.0]]),
        np.array([["1", "0"], ["0", "1"]]),
        np.array([["2024-01-01", "2024-01-02"]], "M8[D]"),
        np.array([[1.0, None]]),
        np.array([[1, 2]], object),
        [["1", "0"]],
        [[10**400, 1]],
        [[1.0], [1.0, 2.0]],
    ],
    ids=lambda value: str(getattr(value, "dtype", "list")),
)
def test_features_that_are_no_numbers_are_refused(features: Any) -> None:
    it = dpb.LinUCB().start(dpb.LinearContexts(2), seed=1, compiled=False)
    before = state_bytes(it)
    with pytest.raises(InvalidInput, match=r"expected a \(K, 2\) array of features, got"):
        it.select(features)
    assert state_bytes(it) == before and it.decided == 0


def test_threads_never_get_more_decisions_than_the_horizon() -> None:
    it, decided = learner(horizon=400), []

    def work() -> None:
        try:
            while True:
                decided.append(it.decide())
        except HorizonReached:
            pass

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(decided) == 400


def test_the_action_that_was_chosen_is_updated_whatever_type_is_given() -> None:
    given, plain = learner(), learner()
    for it, kind in ((given, float), (plain, int)):
        it.update(kind(it.select()), 1.0)
    assert state_bytes(given) == state_bytes(plain)


@pytest.mark.parametrize(
    ("arms", "horizon", "prepulls"),
    [(np.uint8(4), 250, 64), (np.int8(4), np.int8(120), 32), (4, 1000, np.int64(10**15))],
)
def test_small_integers_do_not_overflow_in_a_guarantee(arms: Any, horizon: Any, prepulls: Any) -> None:
    one: Any = np.float32(1.0)
    policy = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(one), prepulls=prepulls)
    with pytest.raises(InvalidInput, match="leave no round"):
        policy.start(dpb.Arms(arms, horizon=horizon))
    assert type(dpb.Arms(np.uint8(4)).arms) is int  # type: ignore[arg-type]


def test_what_is_spent_includes_the_open_round() -> None:
    it = dpb.arms.GaussianThompson().start(dpb.Arms(2, horizon=10), seed=1)
    it.update(it.select(), 1.0)
    assert it.spent is None
    it.select()
    assert it.spent == dpb.GaussianDP(math.sqrt(0.5))


def test_a_sum_of_many_rewards_moves_by_at_most_one() -> None:
    """Rewards that make plain floating-point sums round apart; on the grid they cannot."""
    rng = np.random.default_rng(0)
    stored = np.array([centred(r) for r in rng.random(20_000) ** 8])
    low, high = (np.cumsum(np.concatenate([[centred(end)], stored]))[-1] for end in (0.0, 1.0))
    assert high - low == 1.0
    raw = rng.random(20_000) ** 8
    apart = [np.cumsum(np.concatenate([[end], raw]))[-1] for end in (0.0, 1.0)]
    assert apart[1] - apart[0] != 1.0  # the control: without the grid they do
