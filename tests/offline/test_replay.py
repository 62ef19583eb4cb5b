"""Replay by rejection: matched rows only are rounds, and the privacy replay passes through it."""

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import dpbandits as dpb
from dpbandits.audit.recording import ForcedNoise, Mismatch, RecordingExplore, RecordingNoise, Steer
from dpbandits.audit.replay import _differ, draws_cost
from dpbandits.audit.watching import WatchedRounds, bits
from dpbandits.engine import state_bytes
from dpbandits.errors import DPBanditsError, LooseBound
from dpbandits.features import CrossedFeatures, FeatureMap, Number
from dpbandits.offline import Rows, replay
from dpbandits.offline.replay import play, refuse_unless_uniform
from dpbandits.policies.testing import rehearse
from dpbandits.privacy.calibration import limit_of

LABELS = ("a", "b", "c")
MEANS = np.array([0.2, 0.8, 0.4])
PURE, MU = dpb.PureDP(1.0), dpb.GaussianDP(1.0)
IMED = dpb.NoiseAwareIMED(privacy=PURE)
LINEAR = dpb.RandomizedLinUCB(privacy=MU, first_batch=2)


def logged(size: int, seed: int = 0, *, contexts: bool = False) -> Rows:
    """A uniformly random log. With contexts the best action is that of the larger feature."""
    chance = np.random.default_rng([seed, 7])
    actions = chance.integers(3, size=size)
    means = MEANS[actions]
    hers = None
    if contexts:
        hers = chance.random((size, 2)) / 1.5
        means = np.where(actions == 2, 0.1, 0.9 * hers[np.arange(size), actions % 2])
    rewards = (chance.random(size) < means).astype(float)
    return Rows(actions=actions, rewards=rewards, labels=LABELS, contexts=hers)


CONTEXTS = dpb.LinearContexts(2, arms=3)


# Only matched rows are rounds.


@pytest.mark.parametrize(("every", "warned"), [(4, 0), (20, 1)])
def test_that_a_bound_is_loose_is_counted_by_rounds(every: int, warned: int) -> None:
    """Rows that are skipped are no rounds: with a quarter of long ones nothing is said."""
    chance = np.random.default_rng(0)
    contexts = np.tile([0.2, 0.0], (3000, 1))
    contexts[chance.random(3000) < 1.0 / every] = 0.7, 0.0
    actions, rewards = chance.integers(3, size=3000), np.ones(3000)
    rows = Rows(actions=actions, rewards=rewards, labels=LABELS, contexts=contexts)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        replay(LINEAR, rows, problem=CONTEXTS, seed=0)
    assert [one.category for one in caught] == [LooseBound] * warned


@pytest.mark.parametrize("policy", [IMED, dpb.arms.UCB1(), dpb.LazyThompson(privacy=MU)])
def test_without_contexts_it_is_the_run_on_matched_rows_alone(policy: dpb.TrustedPolicy) -> None:
    rows = logged(3000)
    found = replay(policy, rows, seed=3)
    by_hand = policy.start(dpb.Arms(3), seed=3)
    for row, action in zip(found.matched, found.actions, strict=True):
        assert by_hand.select() == action == rows.actions[row]
        by_hand.update(int(action), rows.rewards[row])
    # Between two matches no row would have matched.
    for before, row, action in zip([-1, *found.matched], found.matched, found.actions, strict=False):
        assert action not in rows.actions[before + 1 : row]
    assert 800 < found.rounds < 1200 and found.reward == rows.rewards[found.matched].mean()


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_with_contexts_the_state_is_that_of_a_run_on_matched_rows_alone(compiled: bool) -> None:
    """Skipped rows fill no batch, count nobody and move no schedule: the state has the same bits."""
    rows = logged(150, contexts=True)
    learner = LINEAR.start(CONTEXTS, seed=1, compiled=compiled, noise="float")
    matched, actions = play(learner, rows)
    other = LINEAR.start(CONTEXTS, seed=1, compiled=compiled, noise="float")
    assert rows.contexts is not None
    for row, action in zip(matched, actions, strict=True):
        other.select(rows.contexts[row])
        opened = other._rounds.open[0]  # whatever it chose: exploration is not what is tested here
        opened.action, opened.kept = int(action), (opened.kept[0], int(action))
        other.update(int(action), rows.rewards[row])
    assert learner.rounds == other.rounds == matched.size and 30 < matched.size < 75
    if learner._rounds.open:  # the last decision, which no row answered
        learner._rounds.open.clear()
        other._rounds.public.release(other._rounds.secret, other._noise)
    assert [*state_bytes(learner._public)] == [*state_bytes(other._public)]
    assert [*state_bytes(learner._secret)] == [*state_bytes(other._secret)]


def test_a_hand_written_replay_that_skips_rounds_learns_less() -> None:
    """What it is not: rows that do not match, answered as missing, fill batches."""
    rows = logged(6000)
    found = replay(IMED, rows, seed=0)
    learner, matched = IMED.start(dpb.Arms(3), seed=0), []
    for action, reward in zip(rows.actions, rows.rewards, strict=True):
        if learner.select() == action:
            learner.update(int(action), reward)
            matched.append(reward)
        else:
            learner.skip()
    assert learner.rounds == 6000 and found.rounds < 2200
    assert found.reward > np.mean(matched[: found.rounds])


@pytest.mark.slow
def test_its_law_is_that_of_an_experiment() -> None:
    """Mean reward after 300 rounds, in 60 replays and 60 experiments: equal within five standard errors
    (an error rate below 1e-6), and not equal to that of uniform play.
    """
    replays = [replay(IMED, logged(1100, seed), seed=seed).rewards[:300].mean() for seed in range(60)]
    online = []
    for seed in range(60):
        learner, chance = IMED.start(dpb.Arms(3), seed=1000 + seed), np.random.default_rng([seed, 8])
        earned = 0.0
        for _ in range(300):
            action = learner.select()
            reward = float(chance.random() < MEANS[action])
            learner.update(action, reward)
            earned += reward
        online.append(earned / 300)
    error = np.sqrt((np.var(replays) + np.var(online)) / 60)
    assert abs(np.mean(replays) - np.mean(online)) < 5 * error
    assert abs(np.mean(replays) - MEANS.mean()) > 5 * error  # the control


@pytest.mark.slow
def test_intervals_cover_and_halved_ones_do_not() -> None:
    """The mean of what was decided for, in 400 replays, each 95 % or more: fewer are covered than the
    1e-6 quantile with that chance only, by the binomial law. The control: halved intervals (67 %).
    """
    covered, halved = 0, 0
    for seed in range(400):
        found = replay(dpb.arms.UCB1(), logged(600, seed), seed=seed)
        off = abs(MEANS[found.actions].mean() - found.reward)
        covered += off <= (found.high - found.low) / 2
        halved += off <= (found.high - found.low) / 4
    least = int(binom.ppf(1e-6, 400, 0.95))
    assert covered >= least > halved


# Privacy, by the audit's own means: recorded draws are forced on a neighbouring log.


def record(policy: dpb.TrustedPolicy, problem: dpb.Problem, rows: Rows, noise: Any) -> Any:
    """A replay on these draws: all that could be seen of it."""
    learner = rehearse(policy, problem, seed=0)
    rounds = WatchedRounds.of(policy, problem)
    explore = RecordingExplore(0, 2)
    learner.lend(rounds, noise, explore)
    matched, actions = play(learner, rows, policy.guarantee(problem).horizon)
    return noise.draws, explore.calls, rounds.seen, matched, actions


def cost_of(policy: dpb.TrustedPolicy, problem: dpb.Problem, rows: Rows, other: Rows) -> float:
    """What the draws cost between two logs; a `Mismatch` where anything seen differs."""
    recording = RecordingNoise(np.random.default_rng(1), Steer())
    recording.start_round()
    draws, *seen = record(policy, problem, rows, recording)
    forced = ForcedNoise()
    forced.start_round(draws)
    draws_again, *seen_again = record(policy, problem, other, forced)
    if len(draws) != len(draws_again) or not _same(seen, seen_again):
        raise Mismatch("what could be seen differs")
    pairs = zip(draws, draws_again, strict=True)
    moved = [pair for pair in pairs if _differ(pair[0].location, pair[1].location)]
    return draws_cost(moved, policy.guarantee(problem).budget)


def _same(one: list[Any], other: list[Any]) -> bool:
    (calls, seen, *rest), (calls_, seen_, *rest_) = one, other
    return (
        calls == calls_
        and seen == seen_
        and all(bits(a) == bits(b) for a, b in zip(rest, rest_, strict=True))
    )


def with_reward(rows: Rows, row: int) -> Rows:
    rewards = rows.rewards.copy()
    rewards[row] = 1.0 - rewards[row]
    return replace(rows, rewards=rewards)


CASES: dict[str, tuple[dpb.TrustedPolicy, dpb.Problem, Rows]] = {
    "imed": (IMED, dpb.Arms(3), logged(150)),
    "thompson": (dpb.LazyThompson(privacy=MU), dpb.Arms(3), logged(150)),
    "tree": (dpb.arms.TreeUCB(privacy=PURE), dpb.Arms(3, horizon=40), logged(150)),
    # Its noise is drawn for every decision: a skipped row must not draw again.
    "modified": (dpb.arms.ModifiedThompson(privacy=MU), dpb.Arms(3, horizon=30), logged(120)),
    "linear": (LINEAR, CONTEXTS, logged(80, contexts=True)),
    "kernel": (
        dpb.KernelThompson(privacy=MU),
        dpb.KernelContexts(dpb.kernels.Matern(0.5), [0.0, 1.0], [0.0, 0.5, 1.0]),
        replace(logged(400), contexts=np.arange(400) % 2),
    ),
}
# What some row's reward must cost at least, as a share of the limit: otherwise nothing was tested.
FLOORS = {"imed": 0.99, "thompson": 0.6, "tree": 0.8, "modified": 0.5, "linear": 0.25, "kernel": 0.45}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_privacy_replay_passes_through_it(name: str) -> None:
    """Each row's reward replaced: the same rows match, the same is seen, and the cost is in budget."""
    policy, problem, rows = CASES[name]
    limit = limit_of(policy.guarantee(problem).budget)
    costs = [cost_of(policy, problem, rows, with_reward(rows, row)) for row in range(60)]
    assert max(costs) <= limit * (1 + 1e-9)
    assert max(costs) >= FLOORS[name] * limit
    assert 0.0 in costs  # rows that do not match cost nothing


@pytest.mark.slow
def test_a_replaced_context_is_not_covered_and_that_is_found_out() -> None:
    """The control, and why only rewards are covered: another context may match where hers did not."""
    policy, problem, rows = CASES["linear"]
    assert rows.contexts is not None
    caught = 0
    for row in range(len(rows)):
        contexts = rows.contexts.copy()
        contexts[row] = [0.66, 0.0] if row % 2 else [0.0, 0.66]
        try:
            cost_of(policy, problem, rows, replace(rows, contexts=contexts))
        except Mismatch:
            caught += 1
    assert caught > 0


def test_counting_skipped_rows_by_action_is_not_covered_either() -> None:
    """Another control: with another logged action a row may match, and all later rows move."""
    policy, problem, rows = CASES["imed"]
    caught = 0
    for row in range(30):
        actions = rows.actions.copy()
        actions[row] = (actions[row] + 1) % 3
        try:
            cost_of(policy, problem, rows, replace(rows, actions=actions))
        except Mismatch:
            caught += 1
    assert caught > 0


def test_the_guarantee_says_what_it_covers() -> None:
    said = str(replay(IMED, logged(300), seed=0).guarantee)
    assert "under replacement of one reward" in said
    assert "the actions and the length of the log" in said
    found = replay(LINEAR, logged(300, contexts=True), problem=CONTEXTS, seed=0)
    said = str(found.guarantee)
    assert "under replacement of one reward" in said and "context and reward" not in said
    assert "the contexts, the actions and the length of the log" in said
    assert "not private" in str(found)
    assert not replay(dpb.arms.UCB1(), logged(300), seed=0).guarantee.is_private


def test_an_interval_of_no_length_says_that_it_is_too_short() -> None:
    rows = replace(logged(300), rewards=np.zeros(300))
    assert "interval 0 to 0, too short: about 0 rows" in str(replay(IMED, rows, seed=0))
    assert "too short" not in str(replay(IMED, logged(300), seed=0))


def test_a_log_that_chose_by_contexts_is_refused_though_its_counts_are_uniform() -> None:
    """Of two actions each pays on one side, and the log mostly chose the one that pays. Without contexts
    nothing gives it away: 0.55 a round, where each action would earn 0.35. So it is said.
    """
    chance, size = np.random.default_rng(0), 4000
    right = np.arange(size) // 2 % 2  # the action that pays; both equally often
    actions = np.where(chance.random(size) < 0.9, right, 1 - right)
    rewards = (chance.random(size) < np.where(actions == right, 0.6, 0.1)).astype(float)
    hers = np.stack([right, 1 - right], axis=1).astype(float)
    rows = Rows(actions=actions, rewards=rewards, labels=("a", "b"), contexts=hers)
    with pytest.raises(DPBanditsError, match=r"rows match, and of a random log about 2,000 would"):
        replay(dpb.linear.LinThompson(), rows, problem=dpb.LinearContexts(2, arms=2), seed=0)
    misled = replay(dpb.arms.UCB1(), rows, seed=0)
    assert misled.low > 0.45 and "is taken on trust: without propensities" in str(misled)
    known = replace(logged(300), propensities=np.full(300, 1 / 3))
    assert "on trust" not in str(replay(IMED, known, seed=0))


def test_a_log_that_took_turns_is_refused() -> None:
    turns = Rows(actions=np.arange(2000) // 100 % 2, rewards=np.zeros(2000), labels=("a", "b"))
    with pytest.raises(DPBanditsError, match=r"rows match, and of a random log about 1,000 would"):
        replay(dpb.arms.UCB1(), turns, seed=0)


# Problems and mistakes.


def test_choosing_again_is_for_one_open_round_and_draws_no_noise() -> None:
    learner = LINEAR.start(CONTEXTS, seed=0, compiled=False)
    with pytest.raises(dpb.errors.RoundError, match="one round in flight, open"):
        learner.select_again([0.1, 0.2])
    learner.select([0.1, 0.2])
    before = state_bytes(learner._public), state_bytes(learner._secret)
    learner.select_again([0.3, 0.1])
    assert (state_bytes(learner._public), state_bytes(learner._secret)) == before
    assert learner.decided == 1
    learner.skip()
    assert learner.rounds == 1
    with pytest.raises(dpb.errors.RoundError, match="one round in flight, open"):
        LINEAR.start(CONTEXTS, in_flight=3, seed=0, compiled=False).select_again([0.1, 0.2])


def test_it_ends_where_a_guarantee_ends() -> None:
    policy = dpb.arms.ModifiedThompson(privacy=MU)
    assert replay(policy, logged(3000), problem=dpb.Arms(3, horizon=50), seed=0).rounds == 50
    assert replay(policy, logged(3000), seed=0).rounds <= 1000


def test_crossed_features_and_maps() -> None:
    person, action = FeatureMap([Number("age", 0, 1)]), FeatureMap([Number("price", 0, 2)])
    chance = np.random.default_rng(0)
    actions = chance.integers(3, size=600)
    ages = chance.random(600)
    rows = Rows(
        actions=actions,
        rewards=(actions == 2) * 1.0,
        labels=LABELS,
        contexts=person.rows({"age": ages}),
        features=person,
    )
    pairs = CrossedFeatures.of(person, action, {"price": [0, 1, 2]})
    for problem in (dpb.LinearContexts.of(pairs), None):
        found = replay(dpb.LinUCB(), rows, problem=problem, seed=0)
        assert found.reward > 0.6  # uniform play: a third
    assert replay(IMED, rows, seed=0).rounds > 150  # which has no use for contexts


@pytest.mark.parametrize(("intercept", "said"), [(True, "0 to 1 on rewards"), (False, "±1 on rewards")])
def test_the_range_of_rewards_is_declared_where_an_intercept_makes_up_for_its_middle(
    intercept: bool, said: str
) -> None:
    ages = FeatureMap([Number("age", 0, 1)], intercept=intercept)
    contexts = ages.rows({"age": np.linspace(0.0, 1.0, 60)})
    actions = np.arange(60) % 3
    rows = Rows(
        actions=actions, rewards=np.where(actions > 1, 1.0, 0.0), labels=LABELS, contexts=contexts
    )
    found = replay(dpb.LinUCB(), replace(rows, features=ages), seed=0)
    assert said in " ".join(found.guarantee.public)


def test_rewards_of_another_range_are_scaled_for_arms() -> None:
    rows = logged(900)
    larger = replace(rows, rewards=rows.rewards * 20 - 10, reward_range=(-10.0, 10.0))
    one, other = replay(IMED, rows, seed=0), replay(IMED, larger, seed=0)
    assert (one.actions == other.actions).all() and other.reward == pytest.approx(one.reward * 20 - 10)


d: Any = dpb
SKEWED = Rows(actions=np.arange(300) % 8 // 3, rewards=np.zeros(300), labels=LABELS)
SKEWED = replace(SKEWED, actions=np.where(SKEWED.actions == 2, 0, SKEWED.actions))
FEW = logged(300)
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a log of another policy": (lambda: replay(IMED, SKEWED), "drawn uniformly at random"),
    "other propensities": (
        lambda: replay(IMED, replace(FEW, propensities=np.full(300, 0.5))),
        "the propensities are not all 1/3",
    ),
    "no policy": (lambda: d.offline.replay(3, FEW), "a policy whose learner is trusted, got 3"),
    "a local policy": (
        lambda: d.offline.replay(dpb.local.LocalUCB(privacy=PURE), FEW),
        "a policy whose learner is trusted",
    ),
    "a frame": (lambda: d.offline.replay(IMED, {"a": [1]}), "expected rows as offline.read(…)"),
    "other actions": (
        lambda: replay(IMED, FEW, problem=dpb.Arms(4)),
        "expected a problem of 3 actions, as the log has, got 4",
    ),
    "sets of items": (
        lambda: replay(IMED, FEW, problem=dpb.MatroidBases(dpb.matroids.UniformMatroid(3, 2))),
        "replay takes Arms, LinearActions, KernelContexts, and LinearContexts with arms",
    ),
    "people who return": (
        lambda: replay(IMED, FEW, problem=dpb.Arms(3, rounds_per_person=2)),
        "rows of a log name nobody",
    ),
    "no contexts": (lambda: replay(LINEAR, FEW, problem=CONTEXTS), "needs contexts that are rows"),
    "features for a grid": (
        lambda: replay(LINEAR, logged(90, contexts=True), problem=CASES["kernel"][1]),
        "KernelContexts needs contexts that are numbers of contexts",
    ),
    "contexts without a bound": (
        lambda: replay(LINEAR, logged(90, contexts=True)),
        "say what is declared about the contexts",
    ),
    "another policy's problem": (
        lambda: replay(IMED, logged(90, contexts=True), problem=CONTEXTS),
        "NoiseAwareIMED is for Arms",
    ),
    "confidence of one": (lambda: replay(IMED, FEW, confidence=1.0), "confidence strictly between"),
    "nothing matches": (
        lambda: replay(
            dpb.arms.UCB1(), Rows(actions=np.array([1]), rewards=np.zeros(1), labels=LABELS), seed=0
        ),
        "none of the 1 rows matches a decision",
    ),
}


@pytest.mark.parametrize(("act", "said"), WRONG.values(), ids=WRONG)
def test_every_mistake_is_one_sentence(act: Callable[[], Any], said: str) -> None:
    with pytest.raises(DPBanditsError, match=re.escape(said)) as caught:
        act()
    assert "\n" not in str(caught.value)


def test_uniform_logs_are_not_refused_for_their_counts() -> None:
    """The chi-square test has an error rate of 1e-6, so of 2,000 logs none is refused."""
    for seed in range(2000):
        rows = Rows(
            actions=np.random.default_rng(seed).integers(3, size=60),
            rewards=np.zeros(60),
            labels=LABELS,
        )
        refuse_unless_uniform(rows)
