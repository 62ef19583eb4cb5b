"""What works without the packages that come with extras, and what is said where they are missing."""

import json
import subprocess
import sys

import pytest

import dpbandits as dpb
from dpbandits.errors import MissingExtra
from dpbandits.extras import PACKAGES, check_installed

pytestmark = pytest.mark.slow

# A process in which nothing of an extra can be found, as after `pip install dpbandits`.
BARE = """
import sys
from importlib.abc import MetaPathFinder

EXTRAS = {"typer", "rich", "matplotlib", "polars", "river", "gymnasium", "mabwiser"}

class Nothing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
"""
TRACE = """
import dpbandits as dpb
world = dpb.worlds.BernoulliArms([0.9, 0.1])
trace = dpb.simulate(dpb.arms.UCB1(), world, rounds=50, runs=2, seed=0)
"""


def run_bare(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BARE + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_bare_installation_simulates_and_prints() -> None:
    done = run_bare(TRACE + "print(trace.summary())")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("ucb1")


@pytest.mark.parametrize(
    ("call", "extra"),
    [
        ("trace.plot()", "plot"),
        ("trace.table()", "tables"),
        ("trace.summary().frame()", "tables"),
        ("trace.save('trace.parquet')", "tables"),
        ("dpb.Trace.load('trace.parquet')", "tables"),
        ("dpb.sweep(policies=dpb.arms.UCB1, environments=world, rounds=5, results='r')", "tables"),
        ("dpb.adapters.RiverPolicy", "river"),
        ("dpb.adapters.GymnasiumWorld", "gymnasium"),
        ("dpb.adapters.for_simulator(None)", "mabwiser"),
        ("dpb.adapters.feedback_frame({'action': [0], 'reward': [1]})", "tables"),
    ],
)
def test_what_needs_an_extra_says_so(call: str, extra: str) -> None:
    done = run_bare(TRACE + call)
    said = done.stderr.strip().splitlines()[-1]
    name = PACKAGES[extra]
    assert said == f"dpbandits.errors.MissingExtra: this needs {name}: pip install 'dpbandits[{extra}]'"


def test_the_command_says_so() -> None:
    done = run_bare("from dpbandits.__main__ import main; main()")
    assert done.returncode == 1
    assert done.stderr == "error: this needs typer: pip install 'dpbandits[cli]'\n"


def test_outputs_are_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpbandits.extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"this needs matplotlib: pip install 'dpbandits\[plot\]'"):
        check_installed("plot", "tables")


def test_the_command_line_shows_the_extra_in_its_brackets() -> None:
    """Square brackets mean styles to rich, which would swallow them."""
    code = """
sys.meta_path.pop(0)
from dpbandits import extras
extras.find_spec = lambda name: None
sys.argv = ["dpbandits", "compare", "ucb1", "--save", "trace.parquet"]
from dpbandits.__main__ import main
main()
"""
    done = run_bare(code)
    assert done.returncode == 2
    assert done.stderr == "error: this needs polars: pip install 'dpbandits[tables]'\n"


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        (
            "dpbandits",
            ["scipy.special", "scipy.optimize", "matplotlib", "polars", "rich", "typer", "randomgen"],
        ),
        ("dpbandits.cli.main", ["scipy.stats", "matplotlib", "polars", "fastapi", "sqlalchemy"]),
    ],
)
def test_slow_packages_are_imported_where_they_are_used(module: str, slow: list[str]) -> None:
    """Seconds of a new user's first line; measured in `make bench`, kept by these names."""
    code = (
        f"import json, sys, {module}; print(json.dumps([one for one in {slow} if one in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_a_gpu_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpbandits.extras.find_spec", lambda name: None)
    world = dpb.worlds.BernoulliArms([0.9, 0.1])
    with pytest.raises(MissingExtra, match=r"numba_cuda: pip install 'dpbandits\[cuda\]'"):
        dpb.simulate(dpb.arms.UCB1(), world, 10, 2, device="cuda")
