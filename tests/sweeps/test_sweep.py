"""Sweeps: what is played, kept, played again and left out, and the table of it."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpbandits as dpb
from dpbandits.errors import InvalidInput, SaveFileError, UnknownName
from dpbandits.sweeps import Plan, unit
from dpbandits.sweeps.claims import Claims, claim_file
from dpbandits.sweeps.folder import Folder
from dpbandits.sweeps.status import status_rows
from dpbandits.sweeps.sweep import forecast_plan

WORLD = dpb.worlds.BernoulliArms((0.8, 0.5, 0.2))
OTHER = dpb.worlds.BernoulliArms((0.9, 0.1))
PLAN: dict[str, Any] = {
    "policies": [dpb.NoiseAwareIMED, "modified-thompson:prepulls=20", dpb.arms.UCB1],
    "environments": {"three": WORLD, "two": OTHER},
    "budgets": [dpb.PureDP(1.0), "mu=1"],
    "rounds": 300,
    "runs": 5,
    "seed": 3,
    "points": 4,
    "block": 2,
}


def sweep(folder: Path, **options: Any) -> pl.DataFrame:
    return dpb.sweep(**(PLAN | {"results": folder, "progress": False} | options))


def plan(**options: Any) -> Plan:
    return Plan.of(**(PLAN | options))


def listed(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def kept(folder: Path) -> list[Path]:
    return [Folder(folder).file(unit.name()) for _, unit in plan().units()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sweep") / "results"


@pytest.fixture(scope="module")
def table(folder: Path) -> pl.DataFrame:
    return sweep(folder)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[range]:
    """The runs of every unit that is played from now on."""
    found: list[range] = []
    original = unit.Unit.play

    def counted(self: unit.Unit, **options: Any) -> dpb.Trace:
        found.append(self.runs)
        return original(self, **options)

    monkeypatch.setattr(unit.Unit, "play", counted)
    return found


def test_every_combination_that_accepts_its_budget(table: pl.DataFrame) -> None:
    cells = table.select("policy", "budget", "world").unique()
    assert cells.height == 2 * (2 + 1 + 1)
    assert set(cells.filter(policy="noise-aware-imed")["budget"]) == {"PureDP", "GaussianDP"}
    assert set(cells.filter(policy="modified-thompson")["budget"]) == {"GaussianDP"}
    assert set(cells.filter(policy="ucb1")["budget"]) == {"NonPrivate"}


def test_rows_are_those_of_simulate_with_all_that_made_them(table: pl.DataFrame) -> None:
    trace = dpb.simulate(dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), WORLD, 300, 5, 3, points=4)
    mine = table.filter(policy="noise-aware-imed", budget="PureDP", world="three")
    whole = trace.table().drop("policy")
    assert mine.select(whole.columns).equals(whole)
    row = mine.row(0, named=True)
    assert (row["epsilon"], row["mu"], row["seed"], row["rounds"]) == (1.0, None, 3, 300)
    assert row["world_recipe"] == "bernoulli-arms:means=0.8 0.5 0.2"
    other = table.filter(policy="modified-thompson").row(0, named=True)
    assert other["policy_recipe"] == "modified-thompson:prepulls=20" and other["policy_prepulls"] == 20


def test_again_nothing_is_played(table: pl.DataFrame, folder: Path, played: list[range]) -> None:
    assert sweep(folder).equals(table) and not played
    assert listed(folder / "claims") == []


def test_whatever_is_missing_or_damaged_is_played_again_and_said(
    table: pl.DataFrame, folder: Path, played: list[range], capsys: pytest.CaptureFixture[str]
) -> None:
    gone, torn, foreign = kept(folder)[:3]
    gone.unlink()
    torn.write_bytes(torn.read_bytes()[:-100])
    pl.DataFrame({"a": [1]}).write_parquet(foreign)
    assert sweep(folder, progress=True).equals(table) and len(played) == 3
    said = capsys.readouterr().err
    assert f"{torn} was damaged and is played again" in said
    assert f"{foreign} was damaged and is played again" in said


def test_more_runs_play_only_what_is_new(
    table: pl.DataFrame, folder: Path, played: list[range], tmp_path: Path
) -> None:
    more = sweep(folder, runs=8, policies=[dpb.arms.UCB1], budgets=())
    assert sorted({runs.start for runs in played}) == [4, 6]
    assert more.filter(pl.col("run") < 5).equals(table.filter(policy="ucb1").select(more.columns))


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 7}, {"block": 3}, {"block": None}])
def test_threads_and_blocks_change_nothing(
    table: pl.DataFrame, tmp_path: Path, options: dict[str, Any]
) -> None:
    assert sweep(tmp_path / "other", **options).equals(table)


def test_whatever_changes_a_number_changes_the_name() -> None:
    one = unit.Unit(policy=dpb.arms.UCB1(), environment=WORLD, rounds=10, runs=range(3), seed=0)
    names = {one.name()}
    for change in (
        {"policy": dpb.arms.UniformArms()},
        {"environment": OTHER},
        {"rounds": 11},
        {"runs": range(1, 3)},
        {"seed": 1},
        {"points": 7},
        {"rounds_per_person": 2},
        {"code": "x"},
    ):
        names.add(unit.Unit(**(vars(one) | change)).name())
    assert len(names) == 9
    assert unit.Unit(**vars(one)).name() == one.name()


def test_the_code_of_a_policy_from_outside_is_part_of_the_name(tmp_path: Path) -> None:
    from epoch_greedy import EpochGreedy

    assert unit.code_of(dpb.arms.UCB1(), WORLD) == ""
    assert unit.code_of(EpochGreedy(privacy=dpb.GaussianDP(1.0)), WORLD)


def test_a_unit_that_another_process_holds_is_left_to_it(
    table: pl.DataFrame, folder: Path, played: list[range], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = kept(folder)[0]
    content = taken.read_bytes()
    taken.unlink()
    with Claims(folder / "claims") as others:
        assert others.take(taken.stem)
        waited = []

        def finish(seconds: float) -> None:
            waited.append(seconds)
            taken.write_bytes(content)
            others.release(taken.stem)

        monkeypatch.setattr("dpbandits.sweeps.playing.time.sleep", finish)
        missing = status_rows(plan(), Folder(folder))
        assert sum(row["missing"] for row in missing) == 1
        assert any(f"(process {os.getpid()})" in row["being_played_by"] for row in missing)
        assert sweep(folder).equals(table)
    assert waited and not played


@pytest.mark.parametrize(
    ("claim", "age"),
    [
        ('{"host": "elsewhere", "pid": 1}', 3600),  # untouched for an hour
        ('{"host": "HERE", "pid": 4194305}', 0),  # no process has such a number
        ('{"host": "HERE", "pid": OURS}', 0),  # of a former life of this process
        ("", 3600),
    ],
)
def test_claims_of_the_dead_are_taken_over(
    table: pl.DataFrame, folder: Path, played: list[range], claim: str, age: float
) -> None:
    import socket

    taken = kept(folder)[0]
    taken.unlink()
    path = claim_file(folder / "claims", taken.stem)
    path.write_text(claim.replace("HERE", socket.gethostname()).replace("OURS", str(os.getpid())))
    os.utime(path, (path.stat().st_mtime - age,) * 2)
    assert sweep(folder).equals(table) and len(played) == 1
    assert listed(folder / "claims") == []


def test_an_interrupted_sweep_keeps_its_finished_units(
    tmp_path: Path, played: list[range], monkeypatch: pytest.MonkeyPatch, table: pl.DataFrame
) -> None:
    original, written = Folder.write, []

    def interrupted(self: Folder, name: str, trace: dpb.Trace) -> None:
        original(self, name, trace)
        written.append(name)
        if len(written) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Folder, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path / "r", threads=1)
    kept = len(listed(tmp_path / "r" / "units"))
    assert 4 <= kept < 24 and listed(tmp_path / "r" / "claims") == []
    monkeypatch.setattr(Folder, "write", original)
    played.clear()
    assert sweep(tmp_path / "r").equals(table) and len(played) == 24 - kept


def test_an_error_of_a_unit_comes_through_and_the_rest_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Folder.write

    def full(self: Folder, name: str, trace: dpb.Trace) -> None:
        if len(self.names()) >= 3:
            raise SaveFileError("cannot write: no space left on device")
        original(self, name, trace)

    monkeypatch.setattr(Folder, "write", full)
    with pytest.raises(SaveFileError, match="no space left"):
        sweep(tmp_path / "r")
    assert len(listed(tmp_path / "r" / "units")) >= 3


def test_what_is_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    linear = dpb.worlds.SphereContexts(3, 5)
    found = plan(environments=[WORLD, linear], policies=[*PLAN["policies"], dpb.RandomizedLinUCB])
    assert "modified-thompson at 1-DP: it accepts mu=…" in "\n".join(found.left_out)
    assert "ucb1 on sphere-contexts: it is for another kind of problem" in found.left_out
    sweep(tmp_path / "r", runs=1, progress=True)
    assert "left out: modified-thompson at 1-DP" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policies": []}, "at least one policy"),
        ({"policies": [3]}, "expected a policy such as NoiseAwareIMED, got 3"),
        ({"policies": ["lazy-uc"]}, "did you mean 'lazy-ucb'"),
        ({"policies": ["lazy-ucb:privacy=eps=1"]}, "among the budgets"),
        ({"policies": [dpb.arms.UCB1, "ucb1"]}, "two of the policies are the same"),
        ({"policies": {"a": dpb.arms.UCB1, "b": "ucb1"}, "budgets": ()}, "the same was given twice"),
        ({"environments": []}, "at least one environment"),
        ({"environments": ["bernoulli-arms"]}, "expected environments such as"),
        ({"environments": [dpb.worlds.SphereContexts(3, 5)]}, "in no combination of this sweep"),
        ({"budgets": ["eps=1", "eps=1"]}, "given twice"),
        ({"budgets": [1.0]}, "expected a budget such as PureDP"),
        ({"budgets": ()}, "noise-aware-imed is in no combination of this sweep .it needs a budget"),
        (
            {"budgets": ["mu=1", "rho=1"], "policies": [dpb.arms.LazyUCB]},
            "no policy of this sweep is played at 1-zCDP .lazy-ucb at 1-zCDP: it accepts",
        ),
        ({"rounds": 0}, "rounds"),
        ({"rounds": [10, 10]}, "expected rounds that differ"),
        ({"runs": 0}, "runs"),
        ({"seed": -1}, "seed"),
        ({"block": 0}, "block"),
        ({"device": "tpu"}, "device"),
        ({"threads": 0}, "threads"),
        ({"on": 3}, "expected a Dask client"),
        ({"on": "tcp://127.0.0.1:9", "threads": 2}, "leave threads out"),
    ],
)
def test_bad_arguments_are_sentences(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises((InvalidInput, UnknownName), match=said):
        sweep(tmp_path / "r", **options)
    assert not (tmp_path / "r" / "units").exists() or not listed(tmp_path / "r" / "units")


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InvalidInput, match="holds other files than those of a sweep"):
        sweep(tmp_path)
    with pytest.raises(InvalidInput, match="is a file"):
        sweep(tmp_path / "thesis.tex")


def test_a_forecast_counts_what_is_missing(table: pl.DataFrame, folder: Path, tmp_path: Path) -> None:
    fresh = forecast_plan(plan(), Folder(tmp_path / "r"), threads=2)
    assert (fresh.cells, fresh.units, fresh.finished, fresh.rounds) == (8, 24, 0, 8 * 5 * 300)
    assert fresh.seconds > 0 and "8 cells in 24 units of work; 1.2e4 rounds to play" in str(fresh)
    done = forecast_plan(plan(), Folder(folder), threads=2)
    assert (done.finished, done.rounds, done.seconds) == (24, 0, 0.0)
    assert str(done) == "8 cells in 24 units of work, of which 24 are finished"


def test_lengths_and_options_have_columns(tmp_path: Path) -> None:
    worlds = [dpb.worlds.SphereContexts(dim, 5) for dim in (2, 3)]
    found = sweep(
        tmp_path / "r", policies=[dpb.LinUCB], environments=worlds, budgets=(), rounds=[50, 100], runs=2
    )
    last = found.filter(pl.col("round") == pl.col("rounds"))
    assert set(last["rounds"]) == {50, 100} and set(last["world_dim"]) == {2, 3}
    assert set(found["world"]) == {"sphere-contexts:dim=2,actions=5", "sphere-contexts:dim=3,actions=5"}
    assert np.isfinite(found["regret"].to_numpy()).all()


DOCS = Path(__file__).parents[2] / "docs" / "sweeps.md"


def _first_cells(page: str) -> set[str]:
    """The names in the first column of its tables."""
    cells = re.findall(r"(?m)^\| (`.*?) \|", page)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.slow
def test_the_page_on_sweeps_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its example runs, and its file asks for the very units that the example has played."""
    from dpbandits.cli import plans

    python, toml = (
        DOCS.read_text().split(f"```{kind}\n")[1].split("```")[0] for kind in ("python", "toml")
    )
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(python, names)
    assert (tmp_path / "regret.png").exists()
    before, _, after = DOCS.read_text().partition("## The table")
    assert _first_cells(before) == set(plans._KEYS)
    assert _first_cells(after) - {"policy_growth", "world_dim"} <= set(names["table"].columns)
    (tmp_path / "plan.toml").write_text(toml)
    written = plans.read_plan(tmp_path / "plan.toml", "cpu")
    assert written.results == tmp_path / "results"
    assert not sum(row["missing"] for row in status_rows(written.plan, Folder(written.results)))
