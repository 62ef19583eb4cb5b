"""What may be read: made of released values only, with intervals that hold, and nothing else in it."""

import json
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits import Arms, Budget, GaussianDP, LinearActions, LinearContexts, NonPrivate, Policy, PureDP
from dpbandits.audit import replay
from dpbandits.audit.watching import ReadRounds
from dpbandits.engine import Streams, leaves
from dpbandits.engine.streams import run_seed
from dpbandits.mechanisms.rounding import rounded_to
from dpbandits.policies import policy_kinds
from dpbandits.policies.arms.shared.estimates import of_estimates, start_estimates, update_estimate
from dpbandits.policies.released import Reading, of_sums, of_values
from dpbandits.policies.rounds import Round
from dpbandits.policies.testing import rehearse, short_form
from dpbandits.problems import LinearMatroid, UniformMatroid
from dpbandits.sums.batches import release_batch, start_batches
from dpbandits.testing import example_environment, example_policies
from dpbandits.testing.driving import drive
from dpbandits.worlds import BernoulliArms, SphereContexts

pytestmark = pytest.mark.slow

POLICIES = [policy for kind in policy_kinds().values() for policy in example_policies(kind)]
SILENT = {
    "GaussianThompson",
    "ModifiedThompson",
    "ThompsonUCB",
    "UniformArms",
    "UniformActions",
    "UniformBases",
    "UniformKernelActions",
}
# What verbs and draws leave behind; of `BatchedLinThompson` two of them are the posterior.
SCRATCH = {"score", "sample", "draw", "lower", "row", "moved", "message", "outbox", "values", "vectors"}
ONE_IN_A_MILLION = 4.753


def _name(value: object) -> str:
    return f"{value.name()}-{value.privacy}" if isinstance(value, Policy) else str(value)


def _driven(policy: Policy, rounds: int = 300, **options: Any) -> dpb.Learner:
    world, seed = example_environment(policy.problem_kind), run_seed(1, 0)
    learner = rehearse(policy, world.problem(rounds), seed=seed, **options)
    drive(learner, world, seed, rounds)
    return learner


def _told(learner: dpb.Learner) -> str:
    record = learner.released()
    assert record is not None
    return json.dumps(record.to_dict(), allow_nan=False)


def _is_scratch(policy: Policy, name: str) -> bool:
    last = name.rpartition(".")[2]
    if isinstance(policy, dpb.linear.BatchedLinThompson) and last in ("values", "vectors"):
        return False
    return last in SCRATCH or ".matroid." in f".{name}"


def _spoil(state: Any, wanted: Any) -> int:
    found = 0
    for name, value in leaves(state):
        if isinstance(value, np.ndarray) and value.size and wanted(name, value):
            value[...] = 3
            found += 1
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=_name)
def test_scratch_never_enters(policy: Policy) -> None:
    learner = _driven(short_form(policy))
    if type(policy).__name__ in SILENT:
        assert learner.released() is None
        return
    told = _told(learner)
    _spoil(learner._public, lambda name, value: _is_scratch(policy, name))
    assert _told(learner) == told
    # And that it is made of something: a record that never changes would pass.
    assert _spoil(learner._public, lambda name, value: value.dtype.kind == "f") > 0
    assert _told(learner) != told


def test_there_is_scratch_in_most_policies() -> None:
    with_scratch = 0
    for policy in POLICIES:
        public, _ = policy.begin(example_environment(policy.problem_kind).problem(300))
        with_scratch += any(_is_scratch(policy, name) for name, _ in leaves(public))
    assert with_scratch > 30


class ReadsTheSecret(ReadRounds):
    """Reads what no record may show."""

    def answer(self, opened: Round, reward: Any, noise: Any) -> Any:
        message = super().answer(opened, reward, noise)
        self.seen += [value.tobytes() for _, value in leaves(self.secret)]
        return message


@pytest.mark.parametrize(
    "policy",
    [
        dpb.NoiseAwareIMED(privacy=GaussianDP(1.0)),
        dpb.RandomizedLinUCB(privacy=GaussianDP(1.0)),
        dpb.FocusedMatroidUCB(privacy=PureDP(1.0)),
        dpb.kernels.Capri(privacy=GaussianDP(1.0)),
    ],
    ids=_name,
)
def test_the_record_is_equal_on_neighbouring_streams(policy: Policy) -> None:
    # One round at a time and by a clock; with seven in flight the conformance suite does it for all.
    kind = policy.problem_kind
    rounds = kind.testing.example(None).testing.replay_rounds
    for options in ({}, {"in_flight": 50, "patience": 4.0}):
        settings: dict[str, Any] = {"rounds": rounds, "thorough": False, **options}
        assert replay(
            short_form(policy), kind.testing.example(rounds), machine=ReadRounds, **settings
        ).private
        control = replay(
            short_form(policy), kind.testing.example(rounds), machine=ReadsTheSecret, **settings
        )
        assert control.failure is not None


@pytest.mark.parametrize("places", [1, 7])
@pytest.mark.parametrize(
    "kind",
    [
        dpb.NoiseAwareIMED,
        dpb.LazyThompson,
        dpb.arms.PrivateKLUCB,
        dpb.arms.TreeUCB,
        dpb.arms.TreeThompson,
        dpb.arms.HybridThompson,
        dpb.arms.UCB1,
        dpb.arms.KLUCB,
        dpb.FocusedMatroidUCB,
        dpb.matroids.CombinatorialTreeUCB,
        dpb.matroids.MatroidUCB,
    ],
)
def test_means_are_those_of_the_rounds_they_name(kind: type[dpb.TrustedPolicy], places: int) -> None:
    world = example_environment(kind.problem_kind)
    learner = kind(privacy=NonPrivate()).start(world.problem(400), seed=1, in_flight=places)
    chance = np.random.default_rng(3)
    rewards: dict[int, list[float]] = {}
    for _ in range(400):
        ticket = learner.decide()
        items = np.atleast_1d(ticket.action)
        given = chance.random(items.size)
        for item, reward in zip(items.tolist(), given.tolist(), strict=True):
            rewards.setdefault(item, []).append(reward)
        learner.update(ticket, given if np.ndim(ticket.action) else float(given[0]))
        record = learner.released()
        assert record is not None and record.plays is not None
        for item, plays in enumerate(record.plays):
            if plays:
                expected = np.mean(rewards[item][:plays])
                assert record.mean[item] == pytest.approx(expected, abs=1e-5), (item, plays)
    # In the end nearly all rounds are in, but for batches that are open and rounds in flight.
    assert record is not None and record.plays is not None
    assert record.plays.sum() > 200 * items.size


def test_a_forgetful_policy_tells_of_its_last_batch() -> None:
    learner = dpb.arms.LazyUCB(privacy=NonPrivate()).start(Arms(2), seed=1)
    for index in range(20):
        arm = learner.select()
        learner.update(arm, float(index < 6))
    record = learner.released()
    assert record is not None and record.plays is not None
    assert record.plays.tolist() == [4, 4] and record.mean.tolist() == [0.0, 0.0]


def _batches(rate: float, budget: Budget, runs: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Three short batches of each of many arms."""
    chance, arms = np.random.default_rng(seed), runs
    batches, buffers = start_batches(arms, 1, 1.0, budget)
    estimates, plays = start_estimates(arms), np.zeros(arms, np.int64)
    for length in (8, 8, 16):
        plays += length
        for arm in range(arms):
            before = batches.total[arm, 0]
            buffers.open[arm, 0] = chance.binomial(length, rate) - 0.5 * length
            release_batch(batches, buffers, arm, chance)
            update_estimate(estimates, batches, arm, int(plays[arm]), length, before)
    return estimates, batches, plays


@pytest.mark.parametrize("budget", [PureDP(0.5), PureDP(2.0), GaussianDP(1.0)], ids=str)
def test_intervals_of_rates_hold(budget: Budget) -> None:
    # Intervals that hold with 95 % fail this with probability 10⁻⁶ for each rate.
    runs, without = 3000, []
    least = 0.95 - ONE_IN_A_MILLION * math.sqrt(0.95 * 0.05 / runs)
    for rate in (0.01, 0.1, 0.5):
        estimates, batches, plays = _batches(rate, budget, runs)
        reading = of_estimates("arm", estimates, batches, plays)
        assert _share(reading, rate) > least, rate
        # The control: noise is left out of the width.
        total = estimates.weight * (estimates.mean - 0.5)
        without.append(_share(of_sums("arm", total, estimates.weight, 0.0), rate))
    assert min(without) < least


def _share(reading: Reading, truth: Any) -> float:
    return float(np.mean((reading.low <= truth) & (truth <= reading.high)))


@pytest.mark.parametrize(
    "policy",
    [
        dpb.NoiseAwareIMED(privacy=PureDP(2.0)),
        dpb.LazyThompson(privacy=GaussianDP(1.0)),
        dpb.arms.HybridThompson(privacy=PureDP(2.0)),
        dpb.local.LocalUCB(privacy=PureDP(2.0)),
    ],
    ids=_name,
)
def test_intervals_hold_where_play_is_adaptive(policy: Policy) -> None:
    # 300 intervals that hold with 95 % independently fail this with probability 10⁻⁶.
    means, runs, found = (0.5, 0.4, 0.1), 100, []
    world = BernoulliArms(means)
    for run in range(runs):
        learner = rehearse(policy, world.problem(400), seed=run_seed(2, run))
        drive(learner, world, run_seed(2, run), 400)
        record = learner.released()
        assert record is not None
        known = np.isfinite(record.mean)
        found += list(((record.low <= means) & (means <= record.high))[known])
    assert len(found) > 290
    assert np.mean(found) > 0.95 - ONE_IN_A_MILLION * math.sqrt(0.95 * 0.05 / len(found))


def test_intervals_of_parameters_hold() -> None:
    world, policy, runs = SphereContexts(dim=2, actions=3, gap=0.1), dpb.RandomizedLinUCB, 60
    found, narrow = [], []
    for run in range(runs):
        learner = policy(privacy=GaussianDP(2.0)).start(
            world.problem(None), seed=run_seed(3, run), compiled=False
        )
        state = world.world()
        drive(learner, world, Streams.of(run_seed(3, run)).chance, 150, state)
        record = learner.released()
        assert record is not None and record.what == "parameter"
        off, half = np.abs(record.mean - state.shown.theta), (record.high - record.low) / 2.0
        found += list(off <= half)
        narrow += list(off <= half / 3.0)  # the control
    least = 0.95 - ONE_IN_A_MILLION * math.sqrt(0.95 * 0.05 / len(found))
    assert np.mean(found) > least > np.mean(narrow)


def test_sure_is_not_too_sure() -> None:
    # Of arms whose rates are drawn at random; the share of right leaders may fall short of what was
    # said by chance with probability 10⁻⁶. The control forgets the noise.
    chance, runs, n, scale = np.random.default_rng(4), 4000, 40, 4.0
    kept: dict[float, list[tuple[bool, float]]] = {2.0 * scale**2: [], 0.0: []}
    for _ in range(runs):
        rates = chance.uniform(0.2, 0.8, 4)
        total = chance.binomial(n, rates) - 0.5 * n + chance.laplace(0.0, scale, 4)
        for variance, results in kept.items():
            reading = of_sums("arm", total, np.full(4, n), variance, laplace=True)
            assert reading.sure is not None
            results.append((reading.leading == (int(np.argmax(rates)),), reading.sure))

    def excess(results: list[tuple[bool, float]]) -> float:
        right, sure = np.array(results, np.float64).T
        return float(np.mean(sure - right) / (np.std(sure - right) / math.sqrt(runs)))

    honest, forgetful = kept.values()
    assert excess(honest) < ONE_IN_A_MILLION < excess(forgetful)


def test_sure_by_hand() -> None:
    reading = of_values("action", np.array([1.0, 0.0]), np.full(2, 1.96 / 2.0))
    assert reading.leading == (0,)
    assert reading.sure == pytest.approx(0.8413, abs=1e-3)  # Φ(1)
    unknown = of_sums("arm", np.array([4.0, 0.0]), np.array([10, 0]), 0.0)
    assert unknown.leading == (0,) and unknown.sure == 0.0


@pytest.mark.parametrize(
    "matroid", [UniformMatroid(6, 2), LinearMatroid(((1, 0), (2, 0), (0, 1), (1, 1)))]
)
def test_the_best_basis_leads(matroid: Any) -> None:
    chance = np.random.default_rng(5)
    for _ in range(20):
        total, size = chance.uniform(-20.0, 20.0, matroid.size), np.full(matroid.size, 50)
        reading = of_sums("item", total, size, 0.0, matroid=matroid.state())
        bases = [
            one for one in combinations(range(matroid.size), matroid.rank) if _independent(matroid, one)
        ]
        best = max(bases, key=lambda one: sum(total[item] for item in one))
        assert reading.leading == best
        # No surer than of the one exchange that is closest.
        closest = min(
            float(total[i] - total[j]) / 50.0
            for i in best
            for j in set(range(matroid.size)) - set(best)
            if _independent(matroid, (*(set(best) - {i}), j))
        )
        pair = of_sums("arm", np.array([50.0 * closest, 0.0]), np.full(2, 50), 0.0)
        assert reading.sure is not None and pair.sure is not None
        assert reading.sure <= pair.sure + 0.02


def _independent(matroid: Any, items: Any) -> bool:
    state = matroid.state()
    state.clear()
    return all(bool(state.join(item)) for item in items)


def test_a_matroid_of_rank_one_is_as_sure_as_arms() -> None:
    total, size = np.array([9.0, 3.0, -4.0]), np.full(3, 40)
    items = of_sums("item", total, size, 9.0, matroid=UniformMatroid(3, 1).state())
    arms = of_sums("arm", total, size, 9.0)
    assert items.leading == arms.leading and items.sure == pytest.approx(arms.sure)


def test_the_last_bits_of_a_release_are_not_shown() -> None:
    total, size, variance = np.array([12.3, -4.56]), np.array([30, 40]), 4.0
    told = of_sums("arm", total, size, variance)
    moved = of_sums("arm", np.nextafter(total, math.inf), size, variance)
    for name in ("mean", "low", "high"):
        assert getattr(told, name).tobytes() == getattr(moved, name).tobytes()
    step = 2.0 ** (math.frexp(2.0 / 30)[1] - 13)
    assert told.mean[0] / step == round(told.mean[0] / step)
    assert abs(told.mean[0] - (12.3 / 30 + 0.5)) <= step / 2
    assert rounded_to(0.1, 0.0) == 0.1 and math.isnan(rounded_to(math.nan, math.nan))


def test_a_reading_before_and_after() -> None:
    learner = dpb.NoiseAwareIMED(privacy=PureDP(1.0)).start(Arms(3), seed=1)
    record = learner.released()
    assert record is not None
    assert np.isnan(record.mean).all() and record.leading == () and record.spent is None
    assert record.to_dict()["mean"] == [None, None, None]
    assert str(record).count("nothing yet") == 3 and "spent: nothing" in str(record)
    world = BernoulliArms((0.9, 0.5, 0.1))
    drive(learner, world, run_seed(1, 0), 500)
    record = learner.released()
    assert record is not None
    assert record.leading == (0,) and record.sure is not None and record.sure > 0.9
    assert (record.rounds, record.decided, record.spent) == (
        499,
        500,
        PureDP(1.0),
    )  # as of the last decision
    text = str(record)
    assert "leading: 0, at least 9" in text and str(learner.guarantee) in text
    assert "The same holds for this record" in text


def test_a_policy_without_privacy_never_pretends() -> None:
    record = _driven(dpb.arms.UCB1()).released()
    assert record is not None and record.spent is None
    assert "No privacy guarantee" in str(record) and "The same holds" not in str(record)


def test_arms_that_come_and_go() -> None:
    learner = dpb.NoiseAwareIMED(privacy=PureDP(1.0)).start(Arms(2, capacity=5), seed=1)
    means = (0.2, 0.9, 0.5)

    def play(rounds: int) -> None:
        chance = np.random.default_rng(1)
        for _ in range(rounds):
            arm = learner.select()
            learner.update(arm, float(chance.random() < means[arm]))

    play(300)
    record = learner.released()
    assert record is not None and record.mean.size == 2 and record.leading == (1,)
    assert learner.add() == 2
    learner.retire(1)
    play(300)
    record = learner.released()
    assert record is not None and record.active is not None
    assert record.mean.size == 3 and record.leading == (2,)
    assert record.active.tolist() == [True, False, True]
    assert record.mean[1] > 0.7 and "out of play" in str(record)
    assert "which arms are in play when (2 changes)" in str(record)


def test_people_and_a_server_tell_what_the_rehearsal_tells() -> None:
    policy, problem = dpb.local.LocalUCB(privacy=PureDP(1.0)), Arms(3)
    server = policy.start(problem, seed=1)
    for index in range(50):
        person = policy.person(problem, server.broadcast(), seed=index)
        arm = person.select()
        server.receive(person.report(float(arm == 0)))
    record = server.released()
    assert record is not None and record.plays is not None
    assert record.rounds == record.plays.sum() == 50
    assert record.guarantee is server.guarantee


def test_features_and_rewards_have_units() -> None:
    theta, chance = np.array([0.2, -0.1]), np.random.default_rng(1)
    problem = LinearContexts(2, max_norm=2.0, max_reward=0.5)
    learner = dpb.LinUCB().start(problem, seed=1, compiled=False)
    for _ in range(300):
        features = chance.uniform(-1.0, 1.0, (3, 2))
        action = learner.select(features)
        learner.update(action, float(features[action] @ theta))
    record = learner.released()
    assert record is not None
    assert record.mean == pytest.approx(theta, abs=0.01)
    assert (record.low < theta).all() and (theta < record.high).all()


@pytest.mark.parametrize(
    "kind", [dpb.RandomizedLinUCB, dpb.linear.BatchedLinUCB, dpb.linear.BatchedLinThompson]
)
def test_a_public_decision_set_is_read_by_action(kind: type[dpb.TrustedPolicy]) -> None:
    problem = LinearActions(((2.0, 0.0), (0.0, 2.0), (1.0, 1.0)), max_norm=2.0, max_reward=0.5)
    learner = kind(privacy=GaussianDP(20.0)).start(problem, seed=1, compiled=False)
    means = np.array([0.4, -0.4, 0.0])
    for _ in range(600):
        action = learner.select()
        learner.update(action, means[action])
    record = learner.released()
    assert record is not None and record.what == "action"
    assert record.leading == (0,) and (record.low <= means).all() and (means <= record.high).all()
    assert record.mean[0] == pytest.approx(0.4, abs=0.1)


def test_parameters_of_arms_are_in_blocks() -> None:
    problem = LinearContexts(2, arms=3)
    learner = dpb.RandomizedLinUCB(privacy=GaussianDP(1.0)).start(problem, seed=1, compiled=False)
    assert learner.released().mean.shape == (3, 2)  # type: ignore[union-attr]
    chance = np.random.default_rng(1)
    for _ in range(40):
        learner.update(learner.select(chance.uniform(-0.5, 0.5, 2)), 0.5)
    record = learner.released()
    assert record is not None and np.isfinite(record.mean).all() and record.leading == ()
    assert "2, 1" in str(record)


def test_actions_that_are_dropped_keep_their_last_estimate() -> None:
    world, seed = example_environment(dpb.KernelContexts), run_seed(1, 0)
    learner = dpb.kernels.Capri(privacy=GaussianDP(20.0)).start(world.problem(None), seed=seed)
    drive(learner, world, seed, 8000)
    record = learner.released()
    assert record is not None and record.active is not None
    assert not record.active.all() and np.isfinite(record.mean).all()
    assert isinstance(world, dpb.worlds.KernelWorld)
    assert record.leading == tuple(int(best) for best in np.argmax(world.means(), axis=1))
    assert _share(record, world.means()) == 1.0
    wide = (record.high - record.low)[~record.active]
    assert (wide > (record.high - record.low)[record.active].min()).all()


@pytest.mark.parametrize("name", ["GaussianThompson", "ModifiedThompson", "ThompsonUCB"])
def test_what_has_no_record_says_why(name: str) -> None:
    kind = getattr(dpb.arms, name)
    assert kind.released is not Policy.released
    assert kind.released.__doc__.startswith("None: ")
