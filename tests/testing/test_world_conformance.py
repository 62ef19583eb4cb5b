"""Every world keeps every promise, and every check catches a world that breaks its promise."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from faulty_worlds import WORLD_FAULTS
from movielens_files import write_100k

from dpbandits import worlds
from dpbandits.errors import ConformanceError
from dpbandits.problems import KernelContexts, MatroidBases, UniformMatroid
from dpbandits.testing import WORLD_CHECKS, check_environment, example_environment
from dpbandits.worlds import (
    BernoulliArms,
    DisjointContexts,
    Environment,
    FixedActions,
    LoggedArms,
    LoggedContexts,
    LowRankContexts,
    MatroidArms,
    MovieRatings,
    RotatingContexts,
    ScriptedArms,
    ShiftingArms,
    SphereContexts,
    SwitchingContexts,
    TruncatedExponentialArms,
)

pytestmark = pytest.mark.slow

Check = Callable[[Environment], None]
WORLDS = [
    BernoulliArms((0.8, 0.5, 0.2)),
    TruncatedExponentialArms((0.1, 2.0, 10.0)),
    ShiftingArms(((0.9, 0.5, 0.2), (0.1, 0.5, 0.6), (0.3, 0.2, 0.9)), (60, 130)),
    ShiftingArms(((0.9, 0.5), (0.1, 0.5)), (600,), against="moving"),
    ScriptedArms(np.random.default_rng(1).integers(0, 5, (1000, 3)) / 4.0),
    example_environment(MatroidBases),
    MatroidArms(UniformMatroid(4, 2), (0.9, 0.7, 0.4, 0.1)),
    SphereContexts(dim=3, actions=5),
    SphereContexts(dim=2, actions=4, rewards="gaussian"),
    FixedActions(dim=3, actions=6),
    FixedActions(dim=3, actions=6, public=True),
    DisjointContexts(dim=2, arms=3),
    LowRankContexts(dim=5, actions=6, rank=2),
    # Its uniform regret is that of a world that switches half way.
    SwitchingContexts(dim=4, actions=5, switch=500),
    RotatingContexts(dim=4, actions=5, turn=600),
    example_environment(KernelContexts),
    LoggedArms(actions=("a", "b", "c"), rewards=((0, 1),) * 3, weights=((3, 2), (4, 1), (1, 9))),
    LoggedArms(
        actions=(7, 8), rewards=((1, 2.5, 5), (3,)), weights=((1, 1, 2), (9,)), reward_range=(1, 5)
    ),
    LoggedContexts(("a", "b"), ((0.6, 0.0), (0.0, 1.0)), (30, 10), ((0.2, 0.4), (0.9, 0.0))),
    LoggedContexts(
        actions=("a", "b", "c"),
        features=((1.0, 0.5), (0.0, 1.5), (-1.0, 0.0), (0.2, 0.2), (0.0, 0.0), (2.0, 0.0)),
        shares=(1, 3),
        rates=((0.5, 0.1, 1.0), (0.0, 0.3, 0.7)),
        per_action=True,
        max_norm=2.0,
    ),
]


def _name(value: object) -> str:
    return value.name() if isinstance(value, Environment) else getattr(value, "__name__", str(value))


def test_every_world_is_tested() -> None:
    named = [getattr(worlds, name) for name in worlds.__all__]
    kinds = {one for one in named if issubclass(one, Environment) and one is not Environment}
    assert kinds == {type(world) for world in WORLDS} | {MovieRatings}


@pytest.mark.parametrize("check", WORLD_CHECKS, ids=_name)
@pytest.mark.parametrize("world", WORLDS, ids=_name)
def test_every_world_keeps_every_promise(world: Environment, check: Check) -> None:
    check(world)


def test_a_world_made_of_files_conforms(tmp_path: Path) -> None:
    write_100k(tmp_path)
    check_environment(MovieRatings(str(tmp_path), top=4))


@pytest.mark.parametrize(("world", "check"), WORLD_FAULTS, ids=_name)
def test_the_check_catches_its_fault(world: Environment, check: Check) -> None:
    with pytest.raises(ConformanceError, match=type(world).__name__):
        check(world)


def test_every_check_has_a_control() -> None:
    assert {check for _, check in WORLD_FAULTS} == set(WORLD_CHECKS)


def test_all_that_fails_is_listed() -> None:
    world = next(world for world, _ in WORLD_FAULTS if type(world).__name__ == "BestIsTooHigh")
    with pytest.raises(ConformanceError, match=r"(?s)that of some action.*uniform_regret"):
        check_environment(world)
