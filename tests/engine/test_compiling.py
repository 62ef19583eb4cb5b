"""What is compiled when, who is told, and that it is linked before it is optimised."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from epoch_greedy import Public, epoch_greedy
from numba.core.caching import IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary

import dpbandits as dpb
from dpbandits.cli.output import compiling
from dpbandits.engine import loop
from dpbandits.engine.cache import named_by_key
from dpbandits.engine.compiler import noticing
from dpbandits.engine.loop import compiled_for
from dpbandits.simulation.progress import RoundsBar
from dpbandits.worlds import BernoulliArms

pytestmark = pytest.mark.slow

NOTICE = "compiling uniform-arms, once on this machine …\n"


def dpbandits(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "dpbandits", *arguments, "--json"]
    environment = os.environ | {"XDG_CACHE_HOME": str(home)}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment)


def test_a_comparison_says_what_it_compiles_and_nothing_the_second_time(tmp_path: Path) -> None:
    compare = "compare", "uniform-arms", "--rounds", "100", "--runs", "2"
    cold, warm = dpbandits(tmp_path, *compare), dpbandits(tmp_path, *compare)
    assert (cold.stderr, warm.stderr) == (NOTICE, "")
    one, other = (json.loads(done.stdout)["rows"][0]["mean_regret"] for done in (cold, warm))
    assert one == other


def test_rounds_in_flight_are_compiled_by_themselves_and_said_to_be(tmp_path: Path) -> None:
    compare = "compare", "uniform-arms", "--rounds", "100", "--runs", "2"
    dpbandits(tmp_path, *compare)
    cold, warm = (dpbandits(tmp_path, *compare, "--in-flight", "3") for _ in range(2))
    said = NOTICE.replace("machine", "machine for rounds in flight")
    assert (cold.stderr, warm.stderr) == (said, "")


def test_code_for_a_number_of_features_says_for_which() -> None:
    for kind, dim, said in (
        (dpb.linear.TreeLinUCB, 3, " for 3 features"),
        (dpb.linear.TreeLinUCB, 2, " for 2 features"),
        (dpb.linear.TreeLinUCB, 9, ""),  # one code for all from here on
        (dpb.RandomizedLinUCB, 3, ""),
    ):
        public, _ = kind(privacy=dpb.ApproxDP(1.0, 1e-5)).begin(dpb.LinearContexts(dim, horizon=100))
        assert compiled_for(public).notice("it", public) == f"compiling it{said}, once on this machine …"


LEARNER = """
import dpbandits as dpb
from numba.core import event
found = event.RecordingListener()
event.register("numba:compile", found)
learner = dpb.arms.UniformArms().start(dpb.Arms(7), compiled=True)
learner.update(learner.select(), 1.0)
dpb.simulate(dpb.arms.UniformArms(), dpb.worlds.BernoulliArms((0.5, 0.6)), 10, 1, progress=False)
print(len(found.buffer))
"""


def test_warm_leaves_nothing_to_compile(tmp_path: Path) -> None:
    before = dpbandits(tmp_path, "warm", "uniform-arms")
    assert before.stderr == NOTICE and json.loads(before.stdout)[0]["compiled"]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", LEARNER]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "0\n"


def test_only_a_bar_that_is_wanted_says_anything(capsys: pytest.CaptureFixture[str]) -> None:
    RoundsBar(10, show=False).say("quiet")
    RoundsBar(10, show=True).say("[aloud]")
    assert capsys.readouterr().err == "[aloud]\n"


jit: Any = numba.njit
library_kind: Any = JITCodeLibrary


@jit  # type: ignore[untyped-decorator]
def doubled(x: float) -> float:
    return 2.0 * x


class Doubling(Public):
    """A verb that calls a function of somebody else's."""

    def select(self, context: None, explore: Any) -> int:
        return int(doubled(explore.normal(0.5, 0.0)))


@pytest.fixture
def decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Its compiled decision, on a machine where nothing is compiled yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    loop._compile.cache_clear()
    public, secret = epoch_greedy().begin(BernoulliArms((0.9, 0.1)).problem(None))
    state, draw = Doubling(*public), np.random.default_rng(1)
    return lambda: compiled_for(state).decide(state, secret, None, draw, draw)


def test_verbs_are_not_optimised_one_by_one(decide: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    optimised: list[str] = []
    notices: list[str] = []
    optimise = library_kind._optimize_final_module

    def count(library: Any) -> None:
        optimised.append(library.name)
        optimise(library)

    monkeypatch.setattr(library_kind, "_optimize_final_module", count)
    with noticing(lambda: notices.append("compiling")):
        assert decide() == decide() == 1
    assert notices == ["compiling"]
    # Only numba's own runtime, and what Python may call by itself.
    assert set(optimised) <= {"nrt", "doubled"}


def test_what_was_compiled_on_the_way_serves_others(
    decide: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with compiling("doubling"):
        assert decide() == decide() == 1
    assert capsys.readouterr().err == "compiling doubling …\n"
    assert doubled(0.5) == 1.0
    drawn = jit(lambda generator: generator.normal(3.0, 0.0))
    assert drawn(np.random.default_rng(1)) == 3.0


@pytest.mark.parametrize("ours", [True, False])
def test_processes_that_compile_at_once_do_not_take_each_others_code(ours: bool, tmp_path: Path) -> None:
    """Both have read the empty list of what is kept; without our names one finds the other's code."""
    kind: Any = IndexDataCacheFile  # it has no types
    one, other = (kind(str(tmp_path), "run", "stamp") for _ in range(2))
    if ours:
        for kept in (one, other):
            named_by_key(SimpleNamespace(_cache=SimpleNamespace(_cache_file=kept)))
    other._load_index = dict
    one.save("klucb", "code of klucb")
    other.save("imed", "code of imed")
    del other._load_index
    # What was lost from the list is compiled again; what is found is what it was kept for.
    found = {key: one.load(key) for key in ("klucb", "imed")}
    assert found == {"klucb": None, "imed": "code of imed"}
    one.save("klucb", "code of klucb")
    assert one.load("klucb") == "code of klucb" and one.load("imed") == "code of imed"
    other._save_data(one._data_name(1), "code of klucb")  # as the slower of two would, a moment later
    assert (other.load("imed") == "code of imed") == ours


def test_what_is_compiled_is_kept_under_its_own_name() -> None:
    public, _ = dpb.arms.UCB1().begin(dpb.Arms(3))
    run: Any = compiled_for(public).run
    assert run._cache._cache_file.save.func.__module__ == named_by_key.__module__


# Two policies whose states have one class name and the same fields: numba names their code alike.
ALIKE = """
import sys
import dpbandits as dpb
from dpbandits.engine import compiler
if "numba" in sys.argv:  # as it counts by itself; what was made before has other names
    import itertools
    compiler._Function._unique_ids = itertools.count(10**6)
world = dpb.worlds.BernoulliArms((0.7, 0.5, 0.3))
for name in sys.argv[2:]:
    policy = getattr(dpb.arms, name)(privacy=dpb.PureDP(1.0))
    trace = dpb.simulate(policy, world, 2000, 3, seed=0, progress=False)
    print(name, *trace.regret(policy.name())[:, -1])
"""


@pytest.mark.parametrize("counting", ["ours", "numba"])
def test_code_from_two_processes_is_told_apart_in_a_third(counting: str, tmp_path: Path) -> None:
    """With numba's own numbers the second policy is played by the code of the first: the control."""

    def play(*names: str) -> list[str]:
        command = [sys.executable, "-c", ALIKE, counting, *names]
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return done.stdout.splitlines()

    names = "PrivateKLUCB", "PrivateIMED"
    alone = [line for name in names for line in play(name)]
    assert len({line.partition(" ")[2] for line in alone}) == 2
    assert (play(*names) == alone) == (counting == "ours")
