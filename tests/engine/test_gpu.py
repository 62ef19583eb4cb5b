"""Kernels for a GPU, without one: all policies compile, and numba's simulator plays like the loop."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from movielens_files import write_100k
from needed import missing

from dpbandits import Policy, PureDP, simulate
from dpbandits.engine import Chance, has_pauses
from dpbandits.engine.state import classes, leaves
from dpbandits.errors import InvalidInput
from dpbandits.policies import policy_kinds
from dpbandits.policies.arms import UniformArms
from dpbandits.policies.linear import LinUCB, TreeContextualThompson
from dpbandits.policies.matroid import UniformBases
from dpbandits.testing import example_environment, example_policies
from dpbandits.testing.examples import uniform_policy
from dpbandits.worlds import (
    BernoulliArms,
    DisjointContexts,
    Environment,
    FixedActions,
    LoggedArms,
    LoggedContexts,
    LowRankContexts,
    MovieRatings,
    RotatingContexts,
    SphereContexts,
    SwitchingContexts,
    TruncatedExponentialArms,
)
from dpbandits.worlds.arms import BernoulliWorld

pytestmark = pytest.mark.slow
_SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(autouse=True)
def _compiler() -> None:
    if find_spec("numba_cuda") is None:
        missing("numba-cuda")


def _plays_on_gpu(policy: Policy) -> bool:
    problem = example_environment(policy.problem_kind).problem(1000)
    return not has_pauses(policy.begin(problem)[0])


def _code_of(policy: Policy) -> tuple[Any, ...]:
    """What its kernel is compiled for: classes, and kinds of arrays and numbers, but no values."""
    states = policy.begin(example_environment(policy.problem_kind).problem(1000))
    kinds = (
        (name, getattr(value, "dtype", type(value)), getattr(value, "ndim", 0))
        for state in states
        for name, value in leaves(state)
    )
    return *(one for state in states for one in classes(state)), *kinds


# At each kind of budget, which decides what noise is drawn; where the code is the same, once.
POLICIES = {
    _code_of(policy): policy
    for policy in (
        *(policy for kind in policy_kinds().values() for policy in example_policies(kind)),
        TreeContextualThompson(privacy=PureDP(1.0), noise="gamma"),
    )
    if _plays_on_gpu(policy)
}


def test_policies_of_one_code_have_one_kernel() -> None:
    """So none is left out: budgets of one policy differ in values, policies in classes."""
    from ptx import signature

    for kind in policy_kinds().values():
        for policy in filter(_plays_on_gpu, example_policies(kind)):
            environment = example_environment(policy.problem_kind)
            alike = POLICIES[_code_of(policy)]
            assert signature(policy, environment) == signature(alike, environment)
    assert len(POLICIES) >= len({policy.name() for policy in POLICIES.values()})


@pytest.mark.parametrize(
    "policy", POLICIES.values(), ids=lambda policy: f"{policy.name()}-{policy.privacy}"
)
def test_every_policy_compiles_for_a_gpu(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptx import ptx

    code = ptx(monkeypatch, policy, example_environment(policy.problem_kind))
    assert ".entry" in code
    assert ".target sm_90" in code


WORLDS = [
    TruncatedExponentialArms((1.0, 2.0)),
    FixedActions(dim=3, actions=4),
    FixedActions(dim=3, actions=4, public=True),
    LowRankContexts(),
    SwitchingContexts(),
    RotatingContexts(),
    DisjointContexts(),
    LoggedArms(actions=("a", "b"), rewards=((0, 0.5, 1), (1,)), weights=((3, 2, 1), (4,))),
    LoggedContexts(("a", "b"), ((0.6, 0.0), (0.0, 1.0)), (30, 10), ((0.2, 0.4), (0.9, 0.0))),
    LoggedContexts(("a", "b"), ((0.6, 0.0), (0.0, 1.0)), (1,), ((0.2, 0.4),), per_action=True),
]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.in_words())
def test_every_world_compiles_for_a_gpu(world: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptx import ptx

    assert ".entry" in ptx(monkeypatch, uniform_policy(world.problem(1000)), world)


def test_many_features_compile_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where actions are looked at side by side."""
    from ptx import ptx

    policy, world = LinUCB(), SphereContexts(dim=30, actions=40)
    assert policy.begin(world.problem(1000))[0].tile.size
    assert ".entry" in ptx(monkeypatch, policy, world)


def test_films_compile_for_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptx import ptx

    write_100k(tmp_path)
    assert ".entry" in ptx(monkeypatch, UniformBases(), MovieRatings(str(tmp_path), top=4))


class WritingWorld(BernoulliWorld):
    """Moves the means, which it says no round changes."""

    def pay(self, context: None, action: int, chance: Chance) -> float:
        self.means[action] += 0.1
        return 0.0


class WritingArms(BernoulliArms):
    """The environment of that world."""

    def world(self) -> WritingWorld:
        return WritingWorld(*super().world())


def test_control_a_table_that_a_verb_writes_to_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.errors import TypingError
    from ptx import ptx

    with pytest.raises(TypingError, match="readonly"):
        ptx(monkeypatch, UniformArms(), WritingArms((0.5, 0.6)))


def test_the_simulator_plays_what_the_plain_loop_does() -> None:
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, str(_SUPPORT / "cuda_simulator.py")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "policies agree" in result.stdout


def test_a_kernel_is_compiled_once_on_a_machine(tmp_path: Path) -> None:
    """In the next process it comes from the disk; one of another number of registers does not."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def run(registers: int) -> str:
        command = [sys.executable, str(_SUPPORT / "kept_kernel.py"), str(registers)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert [run(registers) for registers in (64, 96, 64)] == [
        "compiling\nkept\n",
        "compiling\nkept\n",
        "kept\n",
    ]


def test_without_a_gpu_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpbandits.engine import gpu

    monkeypatch.setattr(gpu, "device_name", lambda: None)
    with pytest.raises(InvalidInput, match="needs an NVIDIA GPU and its driver, and none was found"):
        simulate(UniformArms(), BernoulliArms((0.5, 0.6)), 10, 2, device="cuda")
