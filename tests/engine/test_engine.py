"""Verbs, streams and the compiled loop."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from epoch_greedy import Public, epoch_greedy

from dpbandits.engine import Streams, asks_pause, loop
from dpbandits.engine.loop import Ledger, compiled_for
from dpbandits.engine.streams import run_seed
from dpbandits.simulation.run import play
from dpbandits.worlds import BernoulliArms

pytestmark = pytest.mark.slow

WORLD = BernoulliArms((0.9, 0.1))


def test_a_verb_of_another_signature_is_refused() -> None:
    class Wrong(Public):
        def release(self, secret: Any) -> None: ...  # type: ignore[override]

    with pytest.raises(TypeError, match=r"Wrong to have a method release\(self, secret, noise\)"):
        compiled_for(Wrong(*epoch_greedy().begin(WORLD.problem(None))[0]))


def test_compiled_code_refuses_an_action_below_0() -> None:
    class Backwards(Public):
        def select(self, context: None, explore: Any) -> int:
            return -1

    public, secret = epoch_greedy().begin(WORLD.problem(None))
    draw = np.random.default_rng(1)
    with pytest.raises(IndexError, match="an action below 0"):
        compiled_for(Backwards(*public)).decide(Backwards(*public), secret, None, draw, draw)


def test_an_override_is_compiled_as_it_is_run() -> None:
    class Stubborn(Public):
        def select(self, context: None, explore: Any) -> int:
            return 1

    public, secret = epoch_greedy().begin(WORLD.problem(None))
    draw = np.random.default_rng(1)
    assert compiled_for(Stubborn(*public)).decide(Stubborn(*public), secret, None, draw, draw) == 1


def _twin_states(value: int) -> Any:
    """A class called `Same`, whose release writes a value of its own."""

    class Same(NamedTuple):
        x: Any

    def release(self: Any, secret: Any, noise: Any) -> None:
        self.x[0] = value

    def select(self: Any, context: None, explore: Any) -> int:
        return 0

    def observe(self: Any, secret: Any, context: None, action: int, reward: float) -> None:
        self.x[0] += 1

    for function in (release, select, observe):
        setattr(Same, function.__name__, function)
    return Same


def test_two_states_of_one_name_and_shape_keep_their_own_verbs() -> None:
    # Numba's dispatcher alone takes them for the same type and runs the first one's release for both.
    for value in (1, 2, 1):
        state = _twin_states(value)(np.zeros(1))
        draw = np.random.default_rng(1)
        assert compiled_for(state).decide(state, state, None, draw, draw) == 0
        assert state.x[0] == value


def test_a_missing_verb_is_named_before_anything_is_compiled() -> None:
    class Empty(NamedTuple):
        x: int

    with pytest.raises(TypeError, match="Empty has no verb 'release'"):
        compiled_for(Empty(1))


def test_streams_are_distinct_reproducible_and_not_consumed_by_asking() -> None:
    seed = run_seed(5, 2)
    first = [generator.random() for generator in Streams.of(seed)]
    assert first == [generator.random() for generator in Streams.of(seed)]
    assert len({*first, *(g.random() for g in Streams.of(run_seed(5, 3)))}) == 6
    assert Streams.of(None).noise.random() != Streams.of(None).noise.random()


def test_the_loop_stops_at_the_pause_and_nowhere_else() -> None:
    public, secret = epoch_greedy().begin(WORLD.problem(None))
    world, streams, ledger = WORLD.world(), Streams.of(1), Ledger.on(np.array([1000]))
    code = compiled_for(public, world)
    code.run(public, secret, world, streams, ledger, 1000)
    assert ledger.done[0] == 12 and asks_pause(public, 12)
    public.pause(secret, streams.noise)
    code.run(public, secret, world, streams, ledger, 20)
    assert ledger.done[0] == 20 and not asks_pause(public, 20)


def test_a_pause_that_does_not_move_on_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Public, "pause", lambda self, secret, noise: None)
    with pytest.raises(RuntimeError, match="must move next_pause"):
        play(epoch_greedy(), WORLD, np.array([100]), run_seed(1, 0))


def test_chunks_change_nothing_across_pauses() -> None:
    curves = [
        play(epoch_greedy(), WORLD, np.array([7, 100, 2000]), run_seed(1, 0), chunk=chunk)
        for chunk in (1, 13, 5000, None)
    ]
    for one in curves[1:]:
        assert one is not None and curves[0] is not None
        np.testing.assert_array_equal(one.curves, curves[0].curves)


def test_the_hosts_cache_folder_is_left_alone() -> None:
    config: Any = numba.config
    before = config.CACHE_DIR
    compiled_for(epoch_greedy().begin(WORLD.problem(None))[0])
    assert before == config.CACHE_DIR


def test_threads_that_ask_at_once_get_the_same_code_and_leave_the_setting_alone() -> None:
    public = epoch_greedy().begin(WORLD.problem(None))[0]
    config: Any = numba.config
    before = config.CACHE_DIR
    for _ in range(20):
        loop._compile.cache_clear()
        gate = threading.Barrier(8)

        def ask(gate: threading.Barrier = gate) -> Any:
            gate.wait()
            return compiled_for(public)

        with ThreadPoolExecutor(8) as pool:
            found = [future.result() for future in [pool.submit(ask) for _ in range(8)]]
        assert all(one is found[0] for one in found) and before == config.CACHE_DIR
        assert "/dpbandits-" in found[0].run.stats.cache_path


SCRIPT = """
import sys; sys.path.insert(0, {folder!r})
import numpy as np, toy
from dpbandits import Arms
from dpbandits.engine.loop import compiled_for
public, secret = toy.Public(np.zeros(1)), toy.Secret(np.zeros(1))
code = compiled_for(public)
draw = np.random.default_rng(1)
code.decide(public, secret, None, draw, draw)
print(public.x[0], sum(code.decide.stats.cache_hits.values()))
"""
TOY = """
import numpy as np
from typing import Any, NamedTuple
class Secret(NamedTuple):
    y: Any
class Public(NamedTuple):
    x: Any
    def release(self, secret: Secret, noise: Any) -> None:
        self.x[0] = {value}
    def select(self, context: None, explore: Any) -> int:
        return 0
    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        self.x[0] += 1
"""


def test_the_disk_cache_hits_and_notices_an_edit_in_a_verbs_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Numba alone would answer 1 again after the edit: the verb is a callee of the cached function.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")

    def run(value: int) -> list[str]:
        (tmp_path / "toy.py").write_text(TOY.format(value=value))
        script = SCRIPT.format(folder=str(tmp_path))
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert run(1) == ["1.0", "0"]
    assert run(1) == ["1.0", "1"]
    assert run(2) == ["2.0", "0"]
