"""Sweeps on a GPU, in numba's simulator; and what is said where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpbandits as dpb
from dpbandits.errors import DPBanditsError, InvalidInput
from dpbandits.sweeps import Plan

SIMULATED = """
import sys
import dpbandits as dpb
from dpbandits.engine import loop, steps_of

policy, world = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), dpb.worlds.BernoulliArms((0.9, 0.5))
loop.decide, loop.learn = steps_of(policy.begin(world.problem(60))[0])
options = dict(rounds=60, runs=3, seed=1, points=3, progress=False, device="cuda")
trace = dpb.simulate(policy, world, **options)
table = dpb.sweep(policies=policy, environments=world, results=sys.argv[1], block=2, **options)
assert table.select("run", "round", "regret", "reward").equals(
    trace.table().select("run", "round", "regret", "reward"))
print("equal")
"""


@pytest.mark.slow
def test_a_sweep_on_a_gpu_has_the_numbers_of_simulate(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-c", SIMULATED, str(tmp_path / "r")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "equal\n", done.stderr


def test_what_a_gpu_cannot_play_is_left_out_and_said(tmp_path: Path) -> None:
    kernels = dpb.worlds.KernelWorld.standard()
    with pytest.raises(InvalidInput, match="capri pauses between rounds for plain Python"):
        Plan.of(
            policies=["capri"],
            environments=kernels,
            budgets="eps=1,delta=1e-5",
            rounds=100,
            device="cuda",
        )
    arms = {
        "policies": dpb.arms.UCB1,
        "environments": dpb.worlds.BernoulliArms((0.9, 0.5)),
        "rounds": 10,
    }
    for options, said in (
        ({"on": "tcp://127.0.0.1:9"}, "leave out the scheduler"),
        ({"threads": 2}, "leave threads out"),
        ({}, "GPU|numba_cuda"),
    ):
        with pytest.raises(DPBanditsError, match=said):
            dpb.sweep(**arms, **options, results=tmp_path / "r", device="cuda")  # type: ignore[arg-type]
