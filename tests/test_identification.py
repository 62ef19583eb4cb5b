"""Searches for the best arm: evidence, errors, samples, and what is public of them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import dpbandits as dpb
from dpbandits.audit import replay
from dpbandits.audit.broken_identification import BROKEN_IDENTIFICATION
from dpbandits.engine.streams import run_seed
from dpbandits.errors import InvalidInput
from dpbandits.limits import characteristic_time, least_samples
from dpbandits.policies.arms.best_arm_race import BestArmRace
from dpbandits.policies.arms.sequential_halving import SequentialHalving
from dpbandits.policies.arms.shared.divergences import private_kl
from dpbandits.policies.arms.shared.e_values import evidence_of_better, start_tilts
from dpbandits.policies.testing import rehearse
from dpbandits.sums.batches import start_batches
from dpbandits.testing.driving import drive

BUDGETS = [dpb.PureDP(0.1), dpb.PureDP(1.0), dpb.GaussianDP(1.0), dpb.NonPrivate()]
EASY = dpb.worlds.BernoulliArms((0.3, 0.8, 0.5))


# What evidence is.


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_every_e_value_has_a_mean_of_one(budget: dpb.Budget) -> None:
    """Exactly, for Bernoulli rewards: so at most one for all rewards within [0, 1]."""
    batches, _ = start_batches(2, 1, 1.0, budget, cumulative=False)
    tilts = start_tilts(batches)
    n, counts = 7, np.arange(8)
    assert tilts.tilt.size > 4 and (np.diff(tilts.tilt) < 0.0).all()
    for q in (0.02, 0.5, 0.9):
        chances = scipy.stats.binom.pmf(counts, n, q)
        for tilt, rise, fall in zip(tilts.tilt, tilts.rise, tilts.fall, strict=True):
            for sign, change in ((1.0, rise), (-1.0, fall)):
                mean = float(chances @ np.exp(sign * tilt * counts)) / (1.0 + q * change) ** n
                assert mean == pytest.approx(1.0)
    if batches.scale > 0.0:
        noise: Any = scipy.stats.laplace if batches.laplace else scipy.stats.norm
        for tilt, price in zip(tilts.tilt, tilts.price, strict=True):
            if tilt * batches.scale < 0.8:  # steeper ones have tails too heavy to be added up here
                wide = batches.scale * (1.0 + 2.0**-9)
                moment = _moment(noise(scale=wide), float(tilt), 60.0 * wide)
                assert math.log(moment) == pytest.approx(price, abs=1e-4)


def _moment(law: Any, tilt: float, far: float) -> float:
    """E e^(l Z) for a symmetric law: twice the even part, up to far out."""
    found, _ = scipy.integrate.quad(
        lambda z: 2.0 * math.cosh(tilt * z) * law.pdf(z), 0.0, far, limit=200
    )
    return float(found)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_evidence_is_the_minimum_and_is_never_overstated(budget: dpb.Budget) -> None:
    rng = np.random.default_rng(1)
    batches, _ = start_batches(2, 1, 1.0, budget, cumulative=False)
    tilts, grid = start_tilts(batches), np.linspace(0.0, 1.0, 20_001)[:, np.newaxis]
    positive = 0
    for _ in range(40):
        plays = rng.integers(50, 5000, 2)
        batches.released[:] = rng.integers(1, 5, 2)
        batches.total[:, 0] = plays * (np.sort(rng.random(2))[::-1] - 0.5)
        least = float(sum(_log_means(tilts, batches, plays, grid, arm) for arm in (0, 1)).min())
        found = evidence_of_better(tilts, batches, plays, 0, 1)
        if least > 0.0:
            positive += 1
            assert found <= least + 1e-9 and found >= least - 0.011 - 1e-4 * least
        else:
            assert found <= 0.0 or found <= least + 0.02
    assert positive > 10


def _log_means(tilts: Any, batches: Any, plays: Any, grid: Any, arm: int) -> Any:
    """ln M⁺(q) of arm 0, or ln M⁻(q) of arm 1, for every q of the grid."""
    sign = 1.0 if arm == 0 else -1.0
    total = sign * (batches.total[arm, 0] + 0.5 * plays[arm])
    moment = np.log1p(grid * np.expm1(sign * tilts.tilt))
    value = tilts.tilt * total - plays[arm] * moment - batches.released[arm] * tilts.price
    return scipy.special.logsumexp(value, axis=1) - math.log(tilts.tilt.size)


# Errors.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("means", "budget", "error"),
    [
        ((0.5, 0.55), dpb.PureDP(1.0), 0.1),
        ((0.8, 0.9, 0.8), dpb.PureDP(0.3), 0.1),
        ((0.05, 0.1, 0.05, 0.05), dpb.GaussianDP(1.0), 0.05),
        ((0.4, 0.4, 0.4, 0.4, 0.55), dpb.NonPrivate(), 0.2),
    ],
)
def test_the_race_is_seldom_wrong(means: tuple[float, ...], budget: dpb.Budget, error: float) -> None:
    """10⁴ runs. One that is wrong with probability `error` fails with a probability of 10⁻⁶."""
    world = dpb.worlds.BernoulliArms(means)
    found = dpb.identify(BestArmRace(privacy=budget, error=error), world, runs=10_000, seed=3)
    assert found.unfinished == 0
    assert found.wrong <= scipy.stats.binom.isf(1e-6, found.runs, error)
    assert found.samples.mean() > (found.least_samples or math.inf)


class Hasty(BestArmRace):
    """Asks for no evidence, and says that it is seldom wrong."""

    abstract = True

    def begin(self, problem: dpb.Arms) -> tuple[Any, Any]:
        public, secret = super().begin(problem)
        return public._replace(needed=-2.0), secret


@pytest.mark.slow
def test_a_race_that_stops_too_soon_is_wrong_too_often() -> None:
    """The control of the test above, on the first of its instances."""
    world = dpb.worlds.BernoulliArms((0.5, 0.55))
    found = dpb.identify(Hasty(privacy=dpb.PureDP(1.0), error=0.1), world, runs=10_000, seed=3)
    assert found.wrong > scipy.stats.binom.isf(1e-6, found.runs, 0.1)


def test_between_equals_it_does_not_stop() -> None:
    """It would with probability 0.05, so that 8 of 40 have one of 3·10⁻⁴."""
    world = dpb.worlds.BernoulliArms((0.5, 0.5))
    found = dpb.identify(BestArmRace(privacy=dpb.PureDP(1.0)), world, runs=40, seed=1, max_rounds=20_000)
    assert found.unfinished > 32 and found.wrong == 0
    assert (found.samples[found.recommendation < 0] == 20_000).all()


def test_halving_errs_less_with_more_rounds_and_with_less_noise() -> None:
    world, shares = dpb.worlds.BernoulliArms((0.5, 0.5, 0.65, 0.5)), {}
    for epsilon in (0.1, 1.0):
        for rounds in (200, 800):
            policy = SequentialHalving(privacy=dpb.PureDP(epsilon), rounds=rounds)
            shares[epsilon, rounds] = dpb.identify(policy, world, runs=2000, seed=1).error_between(0.999)
    assert shares[0.1, 800][1] < shares[0.1, 200][0] and shares[1.0, 800][1] < shares[1.0, 200][0]
    assert shares[1.0, 200][1] < shares[0.1, 200][0]


def test_no_arm_gains_from_its_number() -> None:
    """Of equal arms without noise, where ties are many, each is recommended as often (χ², 10⁻⁶)."""
    world = dpb.worlds.BernoulliArms((0.5, 0.5, 0.5, 0.5))
    policy = SequentialHalving(privacy=dpb.NonPrivate(), rounds=33)
    found = dpb.identify(policy, world, runs=4000, seed=2)
    assert scipy.stats.chisquare(np.bincount(found.recommendation, minlength=4)).pvalue > 1e-6


# What a search is to its user.


@pytest.mark.parametrize("budget", [dpb.PureDP(1.0), dpb.NonPrivate()], ids=str)
@pytest.mark.parametrize("kind", [BestArmRace, SequentialHalving])
def test_a_learner_ends_as_the_compiled_search_does(kind: Any, budget: dpb.Budget) -> None:
    policy = kind(privacy=budget, **({"rounds": 300} if kind is SequentialHalving else {}))
    found = dpb.identify(policy, EASY, runs=4, seed=5, max_rounds=3000)
    again = dpb.identify(policy, EASY, runs=4, seed=5, max_rounds=3000, threads=3)
    assert (found.samples == again.samples).all()
    for run in range(4):
        learner = rehearse(policy, EASY.problem(3000), seed=run_seed(5, run))
        actions = drive(learner, EASY, run_seed(5, run), 1500).actions
        record = learner.released()
        assert record is not None and record.stopped is not None
        assert (record.recommendation, record.stopped) == (
            found.recommendation[run],
            found.samples[run],
        )
        assert set(actions[record.stopped :]) == {record.recommendation}
        assert f"recommended: {record.recommendation}, after {record.stopped:,} decisions" in str(record)
        assert record.to_dict()["recommendation"] == record.recommendation == record.leading[0]


def test_halving_uses_the_rounds_that_it_was_given() -> None:
    for arms, rounds in ((2, 50), (3, 100), (7, 1000), (8, 25)):
        policy = SequentialHalving(privacy=dpb.PureDP(1.0), rounds=rounds)
        world = dpb.worlds.BernoulliArms(tuple(np.linspace(0.2, 0.8, arms)))
        found = dpb.identify(policy, world, runs=5, seed=1)
        assert (found.samples < rounds).all() and (found.samples > rounds - 1 - arms).all()
    hurried = SequentialHalving(privacy=dpb.PureDP(1.0), rounds=2)
    world = dpb.worlds.BernoulliArms((0.5,) * 100)
    assert (dpb.identify(hurried, world, runs=5, seed=1).samples == 100 + 50 + 25 + 13 + 7 + 4 + 2).all()


@pytest.mark.parametrize("kind", [BestArmRace, SequentialHalving])
def test_after_the_end_no_reward_is_kept(kind: Any) -> None:
    policy = kind(privacy=dpb.PureDP(1.0), **({"rounds": 100} if kind is SequentialHalving else {}))
    learner = policy.start(EASY.problem(None), seed=1)
    drive(learner, EASY, run_seed(1, 0), 1500)
    before = learner._secret.open.copy()
    for reward in (0.0, 1.0, 1.0, 0.3):
        learner.update(learner.select(), reward)
    assert (learner._secret.open == before).all()


@pytest.mark.parametrize("kind", [BestArmRace, SequentialHalving])
def test_with_many_rounds_in_flight_it_ends_too(kind: Any) -> None:
    policy = kind(privacy=dpb.PureDP(1.0), **({"rounds": 600} if kind is SequentialHalving else {}))
    learner = policy.start(EASY.problem(None), seed=1, in_flight=100)
    drive(learner, EASY, run_seed(1, 0), 2500)
    record = learner.released()
    assert record is not None and record.recommendation == 1 and record.stopped is not None
    if kind is SequentialHalving:
        assert 500 < record.stopped <= 700


def test_what_was_open_is_forgotten_at_the_end_of_a_race() -> None:
    """By the decision that releases what settles it, though rounds are in flight."""
    policy = BestArmRace(privacy=dpb.PureDP(50.0), first_batch=2, error=0.5)
    learner = policy.start(dpb.Arms(3), seed=1, in_flight=6)
    held = False
    for _ in range(300):
        ticket = learner.decide()
        record = learner.released()
        assert record is not None
        over = record.recommendation is not None
        assert not over or not learner._secret.open.any()
        held = held or bool(learner._secret.open.any())  # the control: it does hold answers before
        learner.update(ticket, float(ticket.action == 1))
        if over:
            break
    assert over and held


# Privacy; the conformance suite replays both policies.


@pytest.mark.slow
@pytest.mark.parametrize("budget", [dpb.PureDP(1.0), dpb.GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize("kind", BROKEN_IDENTIFICATION)
def test_a_search_that_ends_on_raw_data_is_caught(kind: Any, budget: dpb.Budget) -> None:
    honest = kind.__mro__[1](
        privacy=budget,
        **{name: getattr(kind, name) for name in ("rounds", "first_batch") if name in vars(kind)},
    )
    problem = dpb.Arms(3, horizon=48)
    assert replay(honest, problem, rounds=48).private
    found = replay(kind(privacy=budget), problem, rounds=48)
    assert not found.private and found.failure


# What is needed at least.


def test_the_limit_of_two_arms_has_a_closed_form() -> None:
    """By symmetry half of the samples each, and ½ between: 1/T* = d_ε(.6, .5)."""
    for epsilon in (0.05, 0.5, math.inf):
        expected = 1.0 / private_kl(0.6, 0.5, epsilon)
        assert characteristic_time((0.6, 0.4), epsilon) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.inf])
def test_the_limit_is_the_best_of_all_shares(epsilon: float) -> None:
    means, grid = (0.7, 0.5, 0.4), np.linspace(0.4, 0.7, 601)
    cost = {mean: np.array([private_kl(mean, level, epsilon) for level in grid]) for mean in means}

    def worst(shares: Any) -> float:
        first = shares[0] * cost[0.7]
        return min(
            float((first + share * cost[mean])[grid >= mean - 1e-12].min())
            for share, mean in zip(shares[1:], means[1:], strict=True)
        )

    some = [
        np.array([a, b, 1.0 - a - b])
        for a in np.linspace(0.02, 0.96, 95)
        for b in np.linspace(0.01, 0.97, 97)
        if a + b < 1.0
    ]
    best = max(map(worst, some))
    assert characteristic_time(means, epsilon) == pytest.approx(1.0 / best, rel=0.01)


def test_the_limit_at_its_ends() -> None:
    assert characteristic_time((0.5, 0.5, 0.1)) == math.inf
    assert characteristic_time((0.5,)) == 0.0
    times = [characteristic_time((0.6, 0.5, 0.2), epsilon) for epsilon in (0.001, 0.01, 1.0, 100.0)]
    assert times == sorted(times, reverse=True)
    assert times[-1] == pytest.approx(characteristic_time((0.6, 0.5, 0.2)))
    assert times[0] / times[1] == pytest.approx(10.0, rel=0.1)  # as 1/ε where that is small
    assert characteristic_time((1.0, 0.0)) == pytest.approx(1.0 / math.log(2.0))
    assert least_samples((0.6, 0.4), 0.5) == 0.0
    assert least_samples((0.6, 0.4), 0.01) > least_samples((0.6, 0.4), 0.1) > 0.0
    for wrong in ((0.6, 1.4), (), "ab"):
        with pytest.raises(InvalidInput):
            characteristic_time(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="epsilon"):
        characteristic_time((0.6, 0.5), -1.0)
    with pytest.raises(InvalidInput, match="error"):
        least_samples((0.6, 0.5), 0.0)


# Mistakes.


def test_what_cannot_be_searched_is_refused() -> None:
    race = BestArmRace(privacy=dpb.PureDP(1.0))
    for policy, world, said in (
        (dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), EASY, "recommends no arm; BestArmRace"),
        (race, dpb.worlds.SphereContexts(dim=2), "expected arms"),
        (race, 3, "expected arms"),
        ("race", EASY, "expected a policy"),
    ):
        with pytest.raises(InvalidInput, match=said):
            dpb.identify(policy, world, runs=2)  # type: ignore[arg-type]
    numbers: list[dict[str, Any]] = [{"runs": 0}, {"max_rounds": 0}, {"threads": 0}, {"seed": -1}]
    for wrong in numbers:
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            dpb.identify(race, EASY, **wrong)
    for kind in (BestArmRace, SequentialHalving):
        with pytest.raises(InvalidInput, match="arms that stay"):
            kind(privacy=dpb.PureDP(1.0)).start(dpb.Arms(3, capacity=5))
    with pytest.raises(InvalidInput, match="error"):
        BestArmRace(privacy=dpb.PureDP(1.0), error=0.0)


def test_a_result_says_what_was_found() -> None:
    found = dpb.identify(BestArmRace(privacy=dpb.PureDP(1.0)), EASY, runs=50, seed=1)
    row = found.row()
    assert row["samples"] == found.samples.mean() and row["unfinished"] == 0 == found.wrong
    low, high = found.error_between(0.95)
    assert low == 0.0 and high == pytest.approx(1.0 - 0.025 ** (1 / 50))
    assert "best-arm-race" in str(found) and "1-DP" in str(found)
    halving = SequentialHalving(privacy=dpb.PureDP(1.0), rounds=50)
    assert dpb.identify(halving, EASY, runs=2, seed=1).least_samples is None


@pytest.mark.parametrize("in_flight", [1, 4, 20])
def test_halving_ends_among_people_who_are_not_learned_from(in_flight: int, tmp_path: Path) -> None:
    """Every other decision is for one who comes again and again; a save in between goes on."""
    problem = dpb.Arms(8, rounds_per_person=1)
    for seed in range(4):
        policy = dpb.arms.SequentialHalving(privacy=dpb.PureDP(1.0), rounds=200)
        learner = policy.start(problem, in_flight=in_flight, seed=seed)
        for number in range(700):
            person = "again" if number % 2 else f"new {number}"
            learner.update(learner.decide(person=person), 1.0)
            if number % 97 == 0:
                learner = dpb.load(learner.save(tmp_path / f"{seed}-{number}"))
        record = learner.released()
        assert record is not None and record.recommendation is not None
        learner.close()
        learner.decide(person="the last")
        assert not learner._secret.open.any()  # what was in open batches is forgotten


def test_evidence_is_priced_for_noise_that_is_a_little_wider() -> None:
    """Exact draws are: with the price of the plain scale the mean would be above 1 after each batch."""
    from dpbandits.mechanisms.exact import _MARGIN

    for privacy in (dpb.PureDP(1.0), dpb.PureDP(1e-4), dpb.GaussianDP(0.1)):
        public, _ = dpb.arms.BestArmRace(privacy=privacy).begin(dpb.Arms(2))
        tilts, laplace = public.tilts, public.batches.laplace
        for wider, is_covered in ((_MARGIN, True), (1.0 + 2.0**-8, False)):  # the second is a control
            squares = (tilts.tilt * public.batches.scale * wider) ** 2
            moments = -np.log(np.maximum(1.0 - squares, 1e-300)) if laplace else 0.5 * squares
            assert np.isfinite(tilts.price).all() and ((moments <= tilts.price) == is_covered).all()
