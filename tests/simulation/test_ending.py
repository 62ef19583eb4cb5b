"""A simulation that is ended from outside keeps its finished runs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.simulation import checkpoint
from dpbandits.simulation.ending import ended_by_sigterm

# Runs of about a tenth of a second: some are finished when the signal comes, most are not.
LONG = """
import sys
import dpbandits as dpb
from dpbandits.simulation import checkpoint
checkpoint._SECONDS = 0.2
world = dpb.worlds.BernoulliArms((0.8, 0.5, 0.2))
policy = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0))
trace = dpb.simulate(policy, world, 3_000_000, runs=400, seed=3, threads=1, checkpoint=sys.argv[1])
print(float(trace.regret(policy.name())[:, -1].sum()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_simulation_keeps_what_was_finished(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "kept.npz"
    process = subprocess.Popen([sys.executable, "-c", LONG, str(path)], stderr=subprocess.DEVNULL)
    ends = time.monotonic() + 60
    while not path.exists() and time.monotonic() < ends:
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(20) == (143 if number == signal.SIGTERM else -signal.SIGKILL)
    with np.load(path) as archive:
        assert 0 < archive["curves"].shape[0] < 400
    if number == signal.SIGTERM:
        assert list(tmp_path.iterdir()) == [path]


def test_what_killed_processes_left_is_removed_in_time(tmp_path: Path) -> None:
    old, fresh, other = (tmp_path / f".{name}.part" for name in ("x.npz.1", "x.npz.2", "y.npz.1"))
    for draft in (old, fresh, other):
        draft.touch()
    for draft in (old, other):
        os.utime(draft, (0, 0))
    assert checkpoint.Checkpoint(tmp_path / "x.npz", {}).read() == {}
    assert sorted(tmp_path.iterdir()) == [fresh, other]


def test_a_handler_is_set_only_where_there_is_none() -> None:
    found = []
    before = signal.signal(signal.SIGTERM, lambda *_: found.append("mine"))
    try:
        with ended_by_sigterm():
            os.kill(os.getpid(), signal.SIGTERM)
        assert found == ["mine"]
    finally:
        signal.signal(signal.SIGTERM, before)
    with pytest.raises(SystemExit) as ended, ended_by_sigterm():
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.code == 143 and signal.getsignal(signal.SIGTERM) is before


def test_a_disk_that_is_full_for_a_while_does_not_end_a_simulation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def full(self: checkpoint.Checkpoint, played: checkpoint.Finished) -> None:
        tried.append(len(played))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "_SECONDS", 0.01)
    monkeypatch.setattr(checkpoint.Checkpoint, "write", full)
    policy, world = dpb.arms.UCB1(), dpb.worlds.BernoulliArms((0.8, 0.5))
    dpb.simulate(policy, world, 200_000, runs=10, seed=0, checkpoint=tmp_path / "x", progress=False)
    assert tried
