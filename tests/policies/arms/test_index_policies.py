"""KL-UCB and the four policies on batches, against the textbook rules written here once more."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits import Arms, GaussianDP, NonPrivate, Policy, PureDP
from dpbandits.errors import InvalidInput
from dpbandits.policies.arms import (
    KLUCB,
    AdaptiveKLUCB,
    AdaptiveUCB,
    PrivateIMED,
    PrivateKLUCB,
)
from dpbandits.privacy.calibration import laplace_epsilon
from dpbandits.worlds import BernoulliArms

MEANS = (0.7, 0.6, 0.3)
BATCHED = (AdaptiveUCB, AdaptiveKLUCB, PrivateKLUCB, PrivateIMED)
Index = Callable[[float, int, int, float], float]


def kl(x: float, y: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.array([x, 1 - x]) * np.log(np.array([x, 1 - x]) / np.array([y, 1 - y]))
    return float(np.nansum(parts))


def largest_within(x: float, level: float) -> float:
    """The textbook's bisection for max{q : kl(x, q) ≤ level}."""
    low, high = x, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if kl(x, middle) <= level else (low, middle)
    return low


def ucb(x: float, n: int, t: int, best: float) -> float:
    return x + math.sqrt(3.1 * math.log(2 * t) / (2 * n))


def klucb(x: float, n: int, t: int, best: float) -> float:
    return largest_within(x, 3.1 * math.log(t) / n)


def plain_klucb(x: float, n: int, t: int, best: float) -> float:
    return largest_within(x, math.log(t) / n)


def klucb_of_the_proof(x: float, n: int, t: int, best: float) -> float:
    return largest_within(x, (math.log(t) + 3 * math.log(math.log(t))) / n)


def imed(x: float, n: int, t: int, best: float) -> float:
    return -n * kl(x, best) - math.log(n)


def play(policy: dpb.TrustedPolicy, rounds: int, seed: int = 0) -> tuple[list[int], list[float]]:
    """Decisions and rewards of a learner with some rewards missing (½) and some in between."""
    learner, rng = policy.start(Arms(len(MEANS)), seed=seed), np.random.default_rng(seed)
    actions, rewards = [], []
    for t in range(rounds):
        arm = learner.select()
        reward = float(rng.random() < MEANS[arm]) if t % 7 else 0.25
        if t % 11 == 5:
            learner.skip()
            reward = 0.5
        else:
            learner.update(arm, reward)
        actions.append(arm)
        rewards.append(reward)
    return actions, rewards


def referee(
    actions: list[int],
    rewards: list[float],
    index: Index,
    forgets: bool,
    end: Callable[[int], int],
) -> int:
    """Follow the rule on the rewards seen: every decision must be one it allows. Counts free choices."""
    batches: list[list[list[float]]] = [[] for _ in MEANS]
    t = free = 0
    while t < len(actions):
        arm = actions[t]
        if t < len(MEANS):
            assert arm == t
        else:
            known = [b[-1] if forgets else [reward for batch in b for reward in batch] for b in batches]
            means = [sum(rows) / len(rows) for rows in known]
            values = [
                index(x, len(rows), t + 1, max(means)) for x, rows in zip(means, known, strict=True)
            ]
            assert values[arm] >= max(values) - 1e-8
            free += sorted(values)[-2] < max(values) - 1e-8
        played = sum(len(batch) for batch in batches[arm])
        length = end(played) - played
        assert set(actions[t : t + length]) == {arm}
        batches[arm].append(rewards[t : t + length])
        t += length
    return free


@pytest.mark.parametrize(("loglog", "index"), [(0.0, plain_klucb), (3.0, klucb_of_the_proof)])
def test_klucb_is_the_textbooks(loglog: float, index: Index) -> None:
    actions, rewards = play(KLUCB(loglog=loglog), 700)
    assert referee(actions, rewards, index, False, lambda n: n + 1) > 500
    assert min(actions.count(arm) for arm in range(3)) > 5


@pytest.mark.parametrize(
    ("policy", "index", "forgets", "ratio"),
    [
        (AdaptiveUCB(privacy=NonPrivate()), ucb, True, 2.0),
        (AdaptiveKLUCB(privacy=NonPrivate()), klucb, True, 2.0),
        (PrivateKLUCB(privacy=NonPrivate()), plain_klucb, False, 2.0),
        (PrivateKLUCB(privacy=NonPrivate(), growth=0.1), plain_klucb, False, 1.1),
        (PrivateIMED(privacy=NonPrivate()), imed, False, 2.0),
        (PrivateIMED(privacy=NonPrivate(), growth=0.5), imed, False, 1.5),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_without_noise_each_is_the_textbooks(
    policy: dpb.TrustedPolicy, index: Index, forgets: bool, ratio: float
) -> None:
    for seed in range(5):
        actions, rewards = play(policy, 1000, seed)
        ends = referee(actions, rewards, index, forgets, lambda n: math.ceil(round(ratio * n, 6)) or 1)
        assert ends > 5


def scores(policy: Policy, plays: list[int], sizes: list[int], means: list[float]) -> Any:
    """The indices of given statistics, which are public."""
    public, _ = policy.begin(Arms(len(plays)))
    public.turns.plays[:], public.size[:], public.mean[:] = plays, sizes, means
    public.turns.unknown[0] = 0
    arm = public.select(None, np.random.default_rng(0))
    assert arm == np.argmax(public.score)
    return public.score


def test_indices_by_hand() -> None:
    # t = 8 + 16 + 1 = 25: ln t = 3.218876, ln 2t = 3.912023.
    plays, halves, means = [8, 16], [4, 8], [-0.25, 0.5]
    found = scores(AdaptiveUCB(privacy=PureDP(2.0)), plays, halves, means)
    # −.25 + √(3.1·3.912023/8) + 3.1·3.218876/8;  .5 + √(3.1·3.912023/16) + 3.1·3.218876/16
    assert found == pytest.approx([-0.25 + 1.231222 + 1.247314, 0.5 + 0.870607 + 0.623657], abs=2e-6)
    found = scores(AdaptiveKLUCB(privacy=PureDP(2.0)), [100, 100], [100, 50], [0.2, 1.3])
    # α ln 201/100 = .164402 raises .2 by .082201 to .282201, and allows kl up to .164402.
    assert kl(0.2 + 0.0822012, found[0]) == pytest.approx(0.1644023, abs=1e-6)
    assert found[1] == 1.0
    found = scores(PrivateKLUCB(privacy=PureDP(1.0)), [8, 64], [8, 64], means)
    # ln 73/8 = .536307 from 0: (1 − e^−.536307)/(1 − e^−1); ln 73/64 = .067038 from ½: kl.
    assert found[0] == pytest.approx(0.656672, abs=1e-6)
    assert kl(0.5, found[1]) == pytest.approx(0.067038, abs=1e-6)
    found = scores(PrivateIMED(privacy=PureDP(1.0)), [4, 8, 2], [4, 8, 2], [0.1, 0.5, 0.5])
    # d₁(.1, .5) = −.1 − ln(½ + ½/e) = .279885
    assert found == pytest.approx([-4 * 0.279885 - 1.386294, -2.079442, -0.693147], abs=5e-6)


def test_a_small_budget_makes_the_evidence_small() -> None:
    """Against a mean of 1 the evidence is ε·n·(1 − x), however small the divergence would be."""
    found = scores(PrivateIMED(privacy=PureDP(0.01)), [4, 8], [4, 8], [0.5, 1.7])
    assert found == pytest.approx([-0.01 * 4 * 0.5 - math.log(4), -math.log(8)])


@pytest.mark.parametrize("kind", BATCHED)
def test_one_laplace_draw_meets_either_kind_of_budget(kind: Any) -> None:
    for budget in (PureDP(0.5), GaussianDP(1.0)):
        public, _ = kind(privacy=budget).begin(Arms(2))
        assert public.batches.laplace
        assert public.batches.scale == 1.0 / laplace_epsilon(budget)
        assert public.epsilon == laplace_epsilon(budget)
    assert laplace_epsilon(GaussianDP(1.0)) > 0.9


def test_states_that_look_alike_do_not_run_each_others_code() -> None:
    """Numba tells named tuples apart by name and fields; compiled in one process each stays itself."""
    decided = []
    for kind in (AdaptiveUCB, PrivateIMED):
        runs = []
        for compiled in (False, True):
            learner = kind(privacy=PureDP(1.0)).start(Arms(3), seed=4, compiled=compiled)
            for t in range(120):
                learner.update(arm := learner.select(), float(t % 3 <= arm))
            runs.append([learner.rounds, *np.asarray(learner._public.score)])
        assert runs[0] == runs[1]
        decided.append(tuple(runs[0]))
    assert decided[0] != decided[1]


def test_regret_is_that_of_the_prototypes() -> None:
    """Prototype means ± standard errors over 20 runs; five joint standard errors are one in 10⁶."""
    world = BernoulliArms([0.75, 0.625, 0.5, 0.375, 0.25])
    known = {AdaptiveUCB: (1373.0, 43.0), AdaptiveKLUCB: (1155.0, 43.0), PrivateKLUCB: (110.0, 6.0)}
    policies = {kind.__name__: kind(privacy=PureDP(1.0)) for kind in known}
    trace = dpb.simulate(policies, world, 100_000, 20, seed=1, progress=False)
    for kind, (mean, error) in known.items():
        final = trace.regret(kind.__name__)[:, -1]
        joint = math.hypot(error, final.std(ddof=1) / math.sqrt(20))
        assert abs(final.mean() - mean) < 5 * joint


def test_fields_are_checked() -> None:
    private = PureDP(1.0)
    for kind in (PrivateKLUCB, PrivateIMED):
        with pytest.raises(InvalidInput, match="growth > 0"):
            kind(privacy=private, growth=0.0)
        with pytest.raises(InvalidInput, match="first_batch"):
            kind(privacy=private, first_batch=0)
    for adaptive in (AdaptiveUCB, AdaptiveKLUCB):
        with pytest.raises(InvalidInput, match="expected alpha within"):
            adaptive(privacy=private, alpha=0.0)
    with pytest.raises(InvalidInput, match="loglog"):
        KLUCB(loglog=-1.0)


def test_twins_differ_in_the_budget_only() -> None:
    for kind in BATCHED:
        policy = kind(privacy=PureDP(1.0))
        twin = policy.twin()
        assert twin == dataclasses.replace(policy, privacy=NonPrivate())
        assert twin is not None and twin.twin() is None
