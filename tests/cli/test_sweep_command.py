"""`dpbandits sweep`: plans in TOML, and what is said about them."""

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from dpbandits.cli.main import app
from dpbandits.errors import InvalidInput
from dpbandits.sweeps import status

PLAN = """
policies = ["noise-aware-imed", "lazy-thompson:growth=0.5", "ucb1"]
budgets = ["eps=0.5", "eps=1"]
environments = ["bernoulli-arms:means=.9 .5"]
rounds = 1e3
runs = 4
points = 3
block = 2
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def run(*words: object) -> str:
    done = CliRunner().invoke(app, ["sweep", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_dry_run_sweep_status(plan: Path) -> None:
    said = run(plan, "--dry-run")
    assert "5 cells in 10 units of work; 2e4 rounds to play, about 1 second" in said
    assert "0 of 10 units are finished" in run(plan, "--status")
    table, picture = plan.with_name("t.parquet"), plan.with_name("p.svg")
    said = run(plan, "--save", table, "--plot", picture)
    assert "Regret, 4 runs each" in said and "eps=0.5" in said and f"written: {picture}" in said
    assert pl.read_parquet(table).height == 5 * 4 * 4 and picture.exists()
    assert "10 of 10 units are finished" in run(plan, "--status")
    next((plan.parent / "plan-results" / "units").iterdir()).unlink()
    rows = json.loads(run(plan, "--status", "--json"))
    assert sum(row["missing"] for row in rows) == 1
    assert json.loads(run(plan, "--dry-run", "--json"))["finished"] == 9
    rows = json.loads(run(plan, "--json"))
    assert len(rows) == 5 and rows[0]["epsilon"] == 0.5 and rows[0]["runs"] == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("runs = 4", "run = 4"), "no key of a sweep .* is called 'run'; did you mean 'runs'"),
        (("rounds = 1e3", ""), "does not say its rounds"),
        (("rounds = 1e3", "rounds = 1.5"), "expected rounds"),
        (('"eps=0.5", "eps=1"', "0.5"), "expected budgets as a list of texts"),
        (('"eps=0.5", "eps=1"', '"0.5"'), "cannot read the privacy '0.5'"),
        (("bernoulli-arms:", "bernouli-arms:"), "did you mean 'bernoulli-arms'"),
        (
            ("bernoulli-arms:means=.9 .5", "logged-arms"),
            "a plan cannot name one; in Python, use dpb.sweep",
        ),
        (("points = 3", "results = 3"), "expected results to be a folder"),
        (("points = 3", "points = ["), "is not TOML"),
    ],
)
def test_mistakes_in_a_plan_are_sentences(plan: Path, change: tuple[str, str], said: str) -> None:
    plan.write_text(PLAN.replace(*change))
    with pytest.raises(InvalidInput, match=said):
        run(plan, "--status")


def test_options_that_make_no_sense_are_sentences(plan: Path, tmp_path: Path) -> None:
    for words, said in (
        (("--status", "--dry-run"), "not both"),
        (("--device", "tpu"), "expected device"),
        (("--scheduler", "tcp://127.0.0.1:9", "--threads", "2"), "leave threads out"),
        (("--results", plan), "is a file, not a folder"),
    ):
        with pytest.raises(InvalidInput, match=said):
            run(plan, *words)
    with pytest.raises(InvalidInput, match=r"cannot read .*nothing.toml: no such file"):
        run(tmp_path / "nothing.toml")


def test_an_axis_that_cannot_be_drawn_is_refused_before_anything_is_played(plan: Path) -> None:
    for against, said in (
        (
            "rounds",
            "rounds is 1,000 in all cells that have one, so .*; try against round",
        ),
        ("mu", "no cell has a number for mu"),
        ("world", "world is not a number"),
        ("epsilo", "did you mean 'epsilon'"),
    ):
        with pytest.raises(InvalidInput, match=said):
            run(plan, "--plot", plan.with_name("p.svg"), "--against", against)
    assert not plan.with_name("plan-results").exists()
    run(plan, "--plot", plan.with_name("p.svg"), "--against", "epsilon")


def test_the_table_says_what_its_errors_are(plan: Path) -> None:
    assert "±: standard error of the mean over runs" in run(plan)


def test_the_status_names_players_only_where_there_are_some(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "being" not in run(plan, "--status")
    monkeypatch.setattr(status, "holder", lambda *_: "somebody")
    assert "somebody" in run(plan, "--status")


def test_leaps_are_units_of_their_own_and_what_cannot_is_refused(plan: Path) -> None:
    with pytest.raises(InvalidInput, match=r"lazy-thompson is in no .*cannot be played in leaps"):
        run(plan, "--leaps")
    plan.write_text(PLAN.replace(', "lazy-thompson:growth=0.5", "ucb1"', ""))
    run(plan)
    assert "0 of 4 units are finished" in run(plan, "--status", "--leaps")
    assert "2 cells in 4 units of work" in run(plan, "--dry-run", "--leaps")
    assert len(json.loads(run(plan, "--leaps", "--json"))) == 2
    assert "4 of 4 units are finished" in run(plan, "--status", "--leaps")
    with pytest.raises(InvalidInput, match='not with device="cuda"'):
        run(plan, "--leaps", "--device", "cuda")
