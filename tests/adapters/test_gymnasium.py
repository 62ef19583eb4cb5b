"""Worlds in Gymnasium's own checker."""

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import dpbandits as dpb
from dpbandits.adapters import GymnasiumWorld
from dpbandits.errors import InvalidInput, RoundError
from dpbandits.problems import SquaredExponential, UniformMatroid

WORLDS = [
    dpb.worlds.BernoulliArms([0.9, 0.5, 0.1]),
    dpb.worlds.TruncatedExponentialArms([1.0, 2.0]),
    dpb.worlds.SphereContexts(dim=3, actions=4),
    dpb.worlds.DisjointContexts(dim=2, arms=3),
    dpb.worlds.FixedActions(dim=3, actions=4, public=True),
    dpb.worlds.MatroidArms(UniformMatroid(5, 2), [0.9, 0.8, 0.3, 0.2, 0.1]),
    dpb.worlds.KernelWorld(SquaredExponential(0.3), [0.0, 0.5, 1.0], [0.0, 1.0], norm=0.5),
]


@pytest.mark.filterwarnings("ignore::UserWarning:gymnasium")  # of spaces it would rather have
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world).__name__)
def test_gymnasiums_checker_passes(world: dpb.worlds.Environment) -> None:
    env = GymnasiumWorld(world, rounds=30)
    check_env(env, skip_render_check=True)
    env.reset(seed=1)
    total, ends = 0.0, []
    for _ in range(30):
        seen, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(seen) and not terminated
        assert np.sum(info["reward"]) == pytest.approx(reward)
        assert info["regret"] >= 0.0
        total += info["regret"]
        ends.append(truncated)
    assert info["total_regret"] == pytest.approx(total)
    assert ends == [False] * 29 + [True]


def test_a_run_is_that_of_the_world_with_the_same_generator() -> None:
    world = dpb.worlds.SphereContexts(dim=3, actions=4)
    env = GymnasiumWorld(world, rounds=20)
    seen, _ = env.reset(seed=5)
    chance = copied_generator(5)
    state = world.world()
    for round_ in range(20):
        context = state.offer(chance)
        assert np.array_equal(context[0], seen)
        action = round_ % 4
        reward = state.pay(context, action, chance)
        best, mean, _ = state.settle(context, action, reward)
        seen, paid, _, _, info = env.step(action)
        assert paid == reward and info["regret"] == best - mean


def copied_generator(seed: int) -> np.random.Generator:
    env = GymnasiumWorld(dpb.worlds.BernoulliArms([0.9, 0.1]))
    super(GymnasiumWorld, env).reset(seed=seed)
    return env.np_random


def test_scores_choose_the_best_basis() -> None:
    env = GymnasiumWorld(WORLDS[5])
    env.reset(seed=0)
    *_, info = env.step(np.array([0.1, 0.9, 0.2, 0.8, 0.0]))
    assert sorted(info["action"].tolist()) == [1, 3]
    assert info["regret"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: GymnasiumWorld(dpb.Arms(3)), InvalidInput, "a world such as"),  # type: ignore[arg-type]
        (lambda: GymnasiumWorld(WORLDS[0], rounds=0), InvalidInput, "rounds"),
        (lambda: GymnasiumWorld(WORLDS[0]).step(0), RoundError, "reset"),
        (lambda: begun().step(7), InvalidInput, "Discrete"),
        (lambda: [begun(1).step(0), begun(1, 1).step(0)], RoundError, "reset"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def begun(rounds: int = 10, steps: int = 0) -> GymnasiumWorld:
    env = GymnasiumWorld(WORLDS[0], rounds=rounds)
    env.reset(seed=0)
    for _ in range(steps):
        env.step(0)
    return env
