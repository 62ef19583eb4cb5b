"""Exp3 with and without privacy: batches, weights, rounds in flight, and regret where arms change."""

import math

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.arms import Exp3, LazyUCB, PrivateExp3, UniformArms
from dpbandits.engine import Streams
from dpbandits.errors import InvalidInput
from dpbandits.privacy.budgets import Budget, GaussianDP, NonPrivate, PureDP
from dpbandits.problems import Arms
from dpbandits.worlds import ScriptedArms, ShiftingArms


@pytest.mark.parametrize(
    ("budget", "length", "cost"),
    [
        (PureDP(1.0), 2, 1.1 * (0.5 + 1.0) + 2.0),
        (PureDP(0.1), 20, 1.1 * (5.0 + 10.0) + 20.0),
        (PureDP(8.0), 1, 1.1 * (0.25 + 1.0 / 32.0) + 1.0),
        (GaussianDP(0.5), 4, 1.1 * (1.0 + 1.0) + 4.0),
        (NonPrivate(), 1, 1.275),
    ],
)
def test_batches_are_twice_the_scale_of_the_noise(budget: Budget, length: int, cost: float) -> None:
    public, _ = PrivateExp3(privacy=budget).begin(Arms(3))
    assert public.batch == length
    assert public.cost == pytest.approx(cost)


def test_the_weights_are_those_of_the_formula() -> None:
    public, secret = PrivateExp3(privacy=NonPrivate(), batch=2).begin(Arms(3))
    noise, explore, _ = Streams.of(1)
    arm = public.select(None, explore)
    np.testing.assert_allclose(public.chances, 1.0 / 3.0)
    for reward in (1.0, 0.75):
        public.release(secret, noise)
        assert public.select(None, explore) == arm  # the same for a batch
        public.observe(secret, None, arm, reward)
    public.release(secret, noise)
    gain = np.zeros(3)
    gain[arm] = (0.5 + 0.25) * 3.0
    np.testing.assert_allclose(public.gain, gain)
    public.select(None, explore)
    cost = 1.1 * 0.5 + 2.0
    rate = min(math.sqrt(math.log(3.0) / (2.0 * cost * 3.0 * (2 + 2))), 1.0 / (2.0 * 3.0 * 2.0))
    mixed, weights = rate * 3.0 * 2.0, np.exp(rate * gain)
    np.testing.assert_allclose(
        public.chances, (1.0 - mixed) * weights / weights.sum() + mixed / 3.0, rtol=1e-12
    )


def test_gains_are_unbiased() -> None:
    """Of 2,000 runs the mean of Ĝ is within 5 errors of each arm's sum (false alarm below 10⁻⁵).

    Control: the sums of what was paid, not divided by the odds, are far from it.
    """
    script = np.random.default_rng(3).random((40, 3)) * np.array([1.0, 0.6, 0.3])
    gains, plain = np.zeros((2000, 3)), np.zeros((2000, 3))
    for run in range(2000):
        public, secret = PrivateExp3(privacy=PureDP(2.0), batch=4).begin(Arms(3))
        noise, explore, _ = Streams.of(run)
        for row in script:
            public.release(secret, noise)
            arm = public.select(None, explore)
            public.observe(secret, None, arm, float(row[arm]))
        public.release(secret, noise)
        gains[run], plain[run] = public.gain, public.batches.total[:, 0]
    wanted = (script - 0.5).sum(axis=0)

    def off(found: np.ndarray) -> np.ndarray:
        error = found.std(axis=0, ddof=1) / math.sqrt(len(found))
        return np.asarray(np.abs(found.mean(axis=0) - wanted) / error)

    assert (off(gains) < 5.0).all()
    assert (off(plain) > 5.0).all()


@pytest.mark.parametrize("policy", [PrivateExp3(privacy=PureDP(0.5)), Exp3()])
def test_decisions_in_flight_are_spread_and_all_counted(policy: dpb.Policy) -> None:
    learner = policy.start(Arms(4), in_flight=100, seed=1)  # type: ignore[attr-defined]
    tickets = [learner.decide() for _ in range(100)]
    actions = [ticket.action for ticket in tickets]
    # Nothing is known: an arm in more than half of 25 batches or more has a probability below 10⁻³.
    assert max(np.bincount(actions, minlength=4)) <= 60
    length = learner._public.batch
    assert all(len(set(actions[at : at + length])) == 1 for at in range(0, 100, length))
    for ticket in tickets:
        learner.update(ticket, 1.0)
    for _ in range(100):
        learner.update(learner.decide(), 1.0)
    public = learner._public
    assert public.observed() == learner.rounds
    assert (public.open < public.batch).all()


def test_a_clock_that_closes_many_rounds_at_once_makes_longer_batches() -> None:
    learner = PrivateExp3(privacy=PureDP(1.0)).start(Arms(2), in_flight=50, patience=10.0, seed=1)
    tickets = [learner.decide(now=0.0) for _ in range(40)]
    for ticket in tickets:
        learner.update(ticket, 1.0)
    learner.decide(now=100.0)
    public = learner._public
    played = np.bincount([ticket.action for ticket in tickets], minlength=2)
    assert public.closed.tolist() == played.tolist() and public.open.sum() == 0
    assert public.batches.released.tolist() == [1, 1]


def test_regret_is_below_its_bound_where_stretches_grow() -> None:
    """Two arms take turns to be best, in stretches that grow fourfold: means of 20 runs.

    The deviation of a run is about a tenth of the bound. Control: uniform play is above it.
    """
    rounds, best = 40_000, np.zeros(40_000, np.int64)
    for place in range(8):
        best[4**place * 2 :] = place % 2
    table = np.full((rounds, 3), 0.1)
    table[np.arange(rounds), best] = 0.9
    policies = {"private": PrivateExp3(privacy=PureDP(1.0)), "open": Exp3(), "uniform": UniformArms()}
    trace = dpb.simulate(policies, ScriptedArms(table), rounds, 20, seed=2, progress=False)
    for label, cost in (("private", 3.65), ("open", 1.275)):
        bound = math.sqrt(8.0 * cost * 3.0 * rounds * math.log(3.0))
        assert trace.regret(label)[:, -1].mean() < bound
    assert trace.regret("uniform")[:, -1].mean() > math.sqrt(8.0 * 3.65 * 3.0 * rounds * math.log(3.0))


def test_a_memory_follows_changes() -> None:
    """By 5 standard errors over 20 paired runs; where nothing changes it is the other way round."""
    rows = ((0.8, 0.2, 0.5), (0.2, 0.8, 0.5), (0.8, 0.2, 0.5), (0.2, 0.8, 0.5))
    moving = ShiftingArms(rows, (10_000, 20_000, 30_000), "moving")
    held = PureDP(1.0)
    policies = {
        "all": PrivateExp3(privacy=held),
        "fading": PrivateExp3(privacy=held, memory=4000),
        "ucb": LazyUCB(privacy=held),
    }

    def ahead(world: dpb.worlds.Environment, first: str, second: str) -> float:
        trace = dpb.simulate(policies, world, 40_000, 20, seed=3, progress=False)
        gap = trace.regret(second)[:, -1] - trace.regret(first)[:, -1]
        return float(gap.mean() / (gap.std(ddof=1) / math.sqrt(gap.size)))

    assert ahead(moving, "fading", "all") > 5.0
    assert ahead(moving, "fading", "ucb") > 5.0
    assert ahead(dpb.worlds.BernoulliArms((0.8, 0.2, 0.5)), "all", "fading") > 5.0


def test_the_twin_is_exp3() -> None:
    assert PrivateExp3(privacy=PureDP(1.0), rate=2.0, memory=9).twin() == Exp3(rate=2.0, memory=9)
    twin = PrivateExp3(privacy=PureDP(1.0), batch=3).twin()
    assert twin == PrivateExp3(privacy=NonPrivate(), batch=3)


@pytest.mark.parametrize("option", [{"batch": 0}, {"memory": 0}, {"rate": 0.0}, {"memory": 2.5}])
def test_bad_options_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(option))):
        PrivateExp3(privacy=PureDP(1.0), **option)  # type: ignore[arg-type]
