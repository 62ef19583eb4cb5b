"""On a GPU: the same laws as on the processor. Run by hand: `pytest -m gpu -n 8 tests/gpu`."""

import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import ERROR, disagreements
from numpy.typing import NDArray

from dpbandits import GaussianDP, Policy, PureDP, Trace, simulate
from dpbandits.engine import has_pauses
from dpbandits.engine.loop import Ledger
from dpbandits.engine.philox import philox_key, start_philox
from dpbandits.errors import InvalidInput
from dpbandits.policies import policy_kinds
from dpbandits.policies.arms import GaussianThompson, NoiseAwareIMED
from dpbandits.policies.kernel import Capri
from dpbandits.policies.testing import short_form
from dpbandits.simulation.replicate import Device
from dpbandits.testing import example_environment, example_policies
from dpbandits.worlds import BernoulliArms, Environment

pytestmark = pytest.mark.gpu
_ROUNDS, _ON_CPU, _ON_GPU = 1000, 1000, 16_384
_WORLD = BernoulliArms((0.8, 0.6, 0.5, 0.3))


if find_spec("numba_cuda") is None:
    pytest.skip("needs the extra cuda", allow_module_level=True)
if import_module("dpbandits.engine.gpu").device_name() is None:
    pytest.skip("needs a GPU", allow_module_level=True)


def _problem_has_pauses(policy: Policy) -> bool:
    problem = example_environment(policy.problem_kind).problem(_ROUNDS)
    return has_pauses(policy.begin(problem)[0])


# As it is and with short batches, so that short runs go through several.
POLICIES = {
    f"{one.name()}-{one.privacy}{'' if one is policy else '-short'}": one
    for kind in policy_kinds().values()
    for policy in example_policies(kind)
    for one in (policy, short_form(policy))
    if not _problem_has_pauses(policy) and (one is policy or one != policy)
}


def _play(policy: Policy, world: Environment, device: Device, seed: int = 1) -> Trace:
    runs = _ON_GPU if device == "cuda" else _ON_CPU
    options: Any = {"points": 4, "threads": 2, "progress": False}
    return simulate({"it": policy}, world, _ROUNDS, runs, seed, device=device, **options)


def _differences(one: Trace, other: Trace) -> list[str]:
    """At the end and on the way: the last and the middle point of the curves."""
    found = []
    for point in (one.rounds.size // 2, one.rounds.size - 1):
        for name in ("regret", "reward"):
            a, b = (getattr(trace, name)("it")[:, point] for trace in (one, other))
            found += [f"{name} after {one.rounds[point]}: {text}" for text in disagreements(a, b)]
    return found


@pytest.mark.parametrize("name", POLICIES)
def test_a_gpu_plays_with_the_same_law(name: str) -> None:
    """Twelve tests a policy, each wrong with probability 1e-9: all together less than 1 in 100,000."""
    assert ERROR * 12 * len(POLICIES) < 1e-5
    policy = POLICIES[name]
    world = example_environment(policy.problem_kind)
    assert _differences(_play(policy, world, "cpu"), _play(policy, world, "cuda", seed=2)) == []


@pytest.mark.parametrize(
    "other",
    [NoiseAwareIMED(privacy=PureDP(1.5)), GaussianThompson()],
    ids=lambda policy: policy.name(),
)
def test_control_another_policy_is_told_apart(other: Policy) -> None:
    on_gpu = _play(NoiseAwareIMED(privacy=PureDP(1.0)), _WORLD, "cuda")
    assert _differences(_play(other, _WORLD, "cpu"), on_gpu)


def test_one_seed_gives_one_answer() -> None:
    from dpbandits.engine.gpu import Wave

    policy, grid = NoiseAwareIMED(privacy=PureDP(1.0)), np.array([10, 500])
    states = *policy.begin(_WORLD.problem(500)), _WORLD.world()

    def curves(runs: NDArray[np.int64], *stops: int, **options: int) -> NDArray[np.float64]:
        wave = Wave(*states, Ledger.on(grid), philox_key(3), runs, **options)
        for stop in stops:
            assert wave.play(stop) == stop
        return wave.curves()

    whole = curves(np.arange(1000), 500)
    assert whole.tobytes() == curves(np.arange(1000), 1, 77, 500, block=32, patience=1).tobytes()
    assert whole[100:900].tobytes() == curves(np.arange(100, 900), 250, 500, block=256).tobytes()
    assert whole.tobytes() == curves(np.arange(1000), 500, registers=64, patience=8).tobytes()
    assert len({row.tobytes() for row in whole}) > 500


def test_uniforms_on_a_gpu_are_those_of_the_processor() -> None:
    """A world that pays what it draws: the sum of uniforms, bit for bit."""
    from uniform_world import UniformArms, UniformRewards

    trace = simulate(
        {"it": UniformArms()}, UniformRewards((0.5, 0.5)), 50, 64, seed=9, device="cuda", progress=False
    )
    for run in range(64):
        chance, total = start_philox(philox_key(9), run, 2), 0.0
        for _ in range(50):
            total += chance.random()
        assert trace.reward("it")[run, -1] == total


def test_a_kernel_comes_from_the_disk_in_the_next_process(tmp_path: Path) -> None:
    program = (
        "import dpbandits as dpb\n"
        "world = dpb.worlds.BernoulliArms((0.5, 0.6))\n"
        "dpb.simulate(dpb.arms.UniformArms(), world, 10, 3, seed=1, device='cuda')\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", program]
    said = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr
        for _ in range(2)
    ]
    assert said == ["compiling uniform-arms for the GPU, once on this machine …\n", ""]


def test_policies_that_pause_are_refused() -> None:
    policy = Capri(privacy=GaussianDP(1.0))
    world = example_environment(policy.problem_kind)
    with pytest.raises(InvalidInput, match="pauses"):
        simulate(policy, world, 100, 2, device="cuda")
