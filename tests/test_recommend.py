"""Which policy is recommended for arms, against what is measured on random ones."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.errors import InvalidInput
from dpbandits.policies import Policy
from dpbandits.policies.arms import NoiseAwareIMED, SequentialHalving
from dpbandits.privacy.budgets import ApproxDP, Budget, GaussianDP, PureDP
from dpbandits.privacy.guarantees import Trust
from dpbandits.problems import Problem, UniformMatroid
from dpbandits.worlds import BernoulliArms, KernelWorld

_WORLDS, _RUNS = 12, 10


def ratio(budget: Budget, arms: int, rounds: int, rate: float | None) -> tuple[float, float, Policy]:
    """Regret of what is recommended over that of the other of two policies, in logarithms: its mean over
    random worlds, the error of that, and what is recommended.
    """
    chance, found = np.random.default_rng(arms * rounds), []
    policy = dpb.recommend(dpb.Arms(arms, horizon=rounds), budget, rate=rate).policy
    is_short = isinstance(policy, SequentialHalving)
    other: Policy = SequentialHalving(privacy=budget, rounds=rounds // 10)
    if is_short:
        other = NoiseAwareIMED(privacy=budget)
    for world in range(_WORLDS):
        means = chance.uniform(0.05, 0.95, arms) if rate is None else chance.gamma(1.0, rate, arms)
        played = {"it": policy, "other": other}
        environment = BernoulliArms(tuple(means.clip(0.0, 1.0).tolist()))
        trace = dpb.simulate(
            played, environment, rounds, _RUNS, seed=1000 + world, points=1, progress=False
        )
        it, others = (trace.regret(label)[:, -1].mean() for label in played)
        found.append(np.log(it / others))
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(_WORLDS)), policy


@pytest.mark.slow
@pytest.mark.parametrize("budget", [PureDP(0.3), PureDP(1.0), GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize("case", ["few rounds", "few clicks", "many rounds"])
def test_what_is_recommended_loses_less(budget: Budget, case: str) -> None:
    """By three standard errors over worlds: fails by chance in under 1 of 700 cases, were both alike.

    That the other one would fail is the control: it is what is recommended in the other cases.
    """
    arms, rate = 30, 0.01 if case == "few clicks" else None
    first_try = NoiseAwareIMED(privacy=budget).schedule()[0]
    rounds = arms * first_try * {"few rounds": 8, "few clicks": 20, "many rounds": 300}[case]
    mean, error, policy = ratio(budget, arms, rounds, rate)
    assert isinstance(policy, NoiseAwareIMED if case == "many rounds" else SequentialHalving)
    assert mean < -3.0 * error


def test_a_rate_is_for_arms_that_a_server_may_see() -> None:
    found = dpb.recommend(dpb.Arms(34, horizon=100_000), PureDP(1.0), rate=0.005)
    # 1.5/0.005 rounds for each of 34 arms are a tenth of all, and a search takes a fifth more.
    assert isinstance(found.policy, SequentialHalving) and found.policy.rounds == 12_240
    for problem, trust in ((dpb.LinearContexts(3), Trust.JOINT), (dpb.Arms(5), Trust.LOCAL)):
        with pytest.raises(InvalidInput, match="of use for arms"):
            dpb.recommend(problem, PureDP(1.0), rate=0.01, trust=trust)
    for rate in (0.0, 1.0, 1.5, math.nan):
        with pytest.raises(InvalidInput, match="rate"):
            dpb.recommend(dpb.Arms(5), PureDP(1.0), rate=rate)


def test_arms_that_come_and_go_are_never_searched_among() -> None:
    """Halving refuses them; a horizon that is short changes nothing there."""
    for capacity, kind in ((None, SequentialHalving), (20, NoiseAwareIMED)):
        problem = dpb.Arms(10, capacity=capacity, horizon=500)
        policy = dpb.recommend(problem, PureDP(1.0)).policy
        assert isinstance(policy, kind)
        policy.check(problem)


def test_what_is_said_of_people_who_return_is_about_what_is_run() -> None:
    """All rounds of a person share the budget, so that one round has less of it."""

    def said(problem: Problem, budget: Budget, **options: Any) -> str:
        return dpb.recommend(problem, budget, **options).reason

    arms = dpb.Arms(5, horizon=3000)
    assert isinstance(dpb.recommend(arms, PureDP(1.0)).policy, NoiseAwareIMED)
    often = dpb.recommend(replace(arms, rounds_per_person=50), PureDP(1.0))
    assert isinstance(often.policy, SequentialHalving) and "little better than uniform" in often.reason

    contexts, matroid = (
        dpb.LinearContexts(5, horizon=5000),
        dpb.MatroidBases(UniformMatroid(7, 3), horizon=5000),
    )
    for problem, budget in ((contexts, ApproxDP(1.0, 1e-6)), (matroid, PureDP(1.0))):
        assert "expect little better" not in said(problem, budget)
        assert "expect little better" in said(replace(problem, rounds_per_person=50), budget)
    local = [
        said(replace(contexts, rounds_per_person=k), GaussianDP(1.0), trust=Trust.LOCAL) for k in (1, 4)
    ]
    assert "some 100,000 rounds" in local[0] and "some 400,000 rounds" in local[1]


def test_bits_are_recommended_where_they_are_quieter_as_run() -> None:
    """K rounds of a person divide ε by k, a Gaussian budget by √k: with many of them numbers are."""
    problem = replace(KernelWorld.standard().problem(20_000), rounds_per_person=1)
    for k, budget in ((1, PureDP(1.0)), (4, PureDP(1.0)), (16, ApproxDP(1.0, 1e-5))):
        returning = replace(problem, rounds_per_person=k)
        found = dpb.recommend(returning, ApproxDP(1.0, 1e-5), trust=Trust.LOCAL)
        assert found.policy.privacy == budget
        assert ("few rounds" in found.reason or "rounds can explain only" in found.reason) == (k > 1)
