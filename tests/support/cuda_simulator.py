"""Runs on a GPU in numba's simulator, against the plain loop with the same draws.

A program of its own: numba is told to simulate before it is imported.
"""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpbandits import NoiseAwareIMED, Policy, PureDP, simulate
from dpbandits.engine import gpu, has_pauses, loop, steps_of
from dpbandits.engine.gpu import Wave, device_name
from dpbandits.engine.philox import philox_key, start_philox
from dpbandits.policies import policy_kinds
from dpbandits.policies.testing import short_form
from dpbandits.simulation.gpu import play_on_gpu
from dpbandits.simulation.progress import RoundsBar
from dpbandits.testing import example_environment, example_policies
from dpbandits.worlds import BernoulliArms, Environment

_SEED, _RUNS, _GRID = 7, (0, 5), np.array([1, 12, 40])


def main() -> None:
    """Every policy without a pause; then what waves and blocks may not change."""
    assert device_name() is not None
    count = 0
    for kind in policy_kinds().values():
        policy = short_form(example_policies(kind)[0])
        environment = example_environment(policy.problem_kind)
        if not has_pauses(policy.begin(environment.problem(int(_GRID[-1])))[0]):
            _check(policy, environment)
            count += 1
    _check_blocks_and_waves()
    _check_small_memory()
    _check_trace()
    _check_interruptions()
    print(f"{count} policies agree")


def _check(policy: Policy, environment: Environment) -> None:
    public, _ = policy.begin(environment.problem(int(_GRID[-1])))
    module: Any = loop
    module.decide, module.learn = steps_of(public)  # plain Python has a pair for each model
    played = play_on_gpu(policy, environment, _GRID, _SEED, _RUNS)
    for run, result in played:
        expected = _plain(policy, environment, run)
        assert result.curves.tobytes() == expected.tobytes(), policy


def _plain(policy: Policy, environment: Environment, run: int) -> Any:
    """The plain loop, fed with the run's generators."""
    ledger = loop.Ledger.on(_GRID)
    streams = [start_philox(philox_key(_SEED), run, stream) for stream in range(3)]
    states = *policy.begin(environment.problem(int(_GRID[-1]))), environment.small_world()
    loop.run_rounds(*states, streams, ledger, int(_GRID[-1]))
    return ledger.curves


def _check_blocks_and_waves() -> None:
    """A run is the same beside others and alone, in one piece and in chunks, whatever the block."""
    policy, environment = NoiseAwareIMED(privacy=PureDP(1.0)), BernoulliArms([0.8, 0.5, 0.2])
    states = *policy.begin(environment.problem(40)), environment.small_world()
    found = []
    for runs, block, stops in (((3, 4, 5), 2, (40,)), ((4, 9), 1, (7, 8, 40)), ((4,), 32, (40,))):
        wave = Wave(*states, loop.Ledger.on(_GRID), philox_key(_SEED), np.array(runs), block=block)
        for stop in stops:
            assert wave.play(stop) == stop
        found.append(wave.curves()[runs.index(4)].tobytes())
    assert found[0] == found[1] == found[2]
    other = Wave(*states, loop.Ledger.on(_GRID), philox_key(_SEED + 1), np.array([4]))
    other.play(40)
    assert other.curves()[0].tobytes() != found[0]  # the control


def _check_small_memory() -> None:
    """Five runs in waves of two."""
    policy, environment = NoiseAwareIMED(privacy=PureDP(1.0)), BernoulliArms([0.8, 0.5, 0.2])
    states = *policy.begin(environment.problem(40)), environment.small_world(), loop.Ledger.on(_GRID)
    each = sum(map(gpu.bytes_of_run, states)) + 80
    found = []
    for memory, sizes in ((float("inf"), [5]), (2.7 * each, [2, 2, 1]), (0.0, [1] * 5)):
        _set_memory(memory)
        assert [wave.size for wave in gpu.waves(np.arange(5), *states)] == sizes
        played = play_on_gpu(policy, environment, _GRID, _SEED, range(5))
        found.append([(run, result.curves.tobytes()) for run, result in played])
    assert found[0] == found[1] == found[2]


def _set_memory(free: float) -> None:
    context = SimpleNamespace(get_memory_info=lambda: SimpleNamespace(free=free))
    gpu.cuda.current_context = lambda: context


def _check_trace() -> None:
    policy, environment = NoiseAwareIMED(privacy=PureDP(1.0)), BernoulliArms([0.8, 0.5, 0.2])
    options: Any = {"rounds": 30, "seed": 3, "device": "cuda", "progress": False}
    one, two = (simulate(policy, environment, runs=runs, **options) for runs in (1, 2))
    assert one.device.startswith("cuda ")
    assert one.generator == "Philox4x32-10"
    assert one.reward(policy.name())[0].tobytes() == two.reward(policy.name())[0].tobytes()
    assert two.reward(policy.name())[0].tobytes() != two.reward(policy.name())[1].tobytes()


class _Bar(RoundsBar):
    """Counts rounds, and does something at the end of the second wave."""

    def __init__(self, act: Callable[[], None] = lambda: None) -> None:
        super().__init__(0, show=False)
        self.act, self.waves, self.played = act, 0, 0

    def advance(self, rounds: int) -> None:
        """Each wave is one chunk."""
        self.waves, self.played = self.waves + 1, self.played + rounds
        if self.waves == 2:
            self.act()


def _raise_interrupt() -> None:
    raise KeyboardInterrupt


def _terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10.0)  # until the handler runs


def _check_interruptions() -> None:
    """Ctrl-C and SIGTERM cost the wave that is being played; the same call plays that and the rest."""
    _set_memory(0.0)  # one run a wave
    policy, environment = NoiseAwareIMED(privacy=PureDP(1.0)), BernoulliArms([0.8, 0.5, 0.2])
    options: Any = {"rounds": 30, "runs": 4, "seed": 3, "device": "cuda"}
    whole = simulate(policy, environment, **options, progress=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for act, error in ((_raise_interrupt, KeyboardInterrupt), (_terminate, SystemExit)):
        with tempfile.TemporaryDirectory() as folder:
            options["checkpoint"] = Path(folder) / "kept"
            try:
                simulate(policy, environment, **options, progress=_Bar(act))
            except error:
                assert options["checkpoint"].exists()
            else:
                raise AssertionError("it was not interrupted")
            bar = _Bar()
            again = simulate(policy, environment, **options, progress=bar)
            assert bar.played == 3 * 30  # one of four runs was kept
            assert again.curves[policy.name()].tobytes() == whole.curves[policy.name()].tobytes()
            assert not options["checkpoint"].exists()


if __name__ == "__main__":
    main()
