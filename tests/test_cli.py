"""The command line as a user types it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits.cli import parsing
from dpbandits.cli.main import app, main
from dpbandits.errors import InvalidInput
from dpbandits.experiments import FIGURES
from dpbandits.policies import policy_kinds
from dpbandits.simulation import replicate
from dpbandits.simulation.run import play


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def test_list_and_show_every_policy() -> None:
    assert {row["policy"] for row in run_json("list")} == set(policy_kinds())
    listed = {row["policy"]: row for row in run_json("list")}
    given = {
        name: listed[name]["guarantee"] for name in ("lin-ucb", "gaussian-thompson", "tree-lin-ucb")
    }
    assert given == {"lin-ucb": "none", "gaussian-thompson": "proved", "tree-lin-ucb": "proved"}
    for name, kind in policy_kinds().items():
        assert kind.paper in run("list") and kind.__name__ in run("show", name)
        assert {"privacy"} <= {option["option"] for option in run_json("show", name)["options"]}


def test_figures() -> None:
    assert [row["figure"] for row in run_json("figures")] == list(FIGURES)
    assert "ou-fig2" in run("figures")


def test_privacy_of_people_who_return() -> None:
    assert "people" not in run_json("privacy", "mu=1")
    for text, totals in (("mu=1", ["4-GDP", "2-GDP"]), ("eps=1", ["4-DP", "4-DP"])):
        rows = run_json("privacy", text, "--rounds-per-person", "4")["people"]
        assert [row["total"] for row in rows] == totals
    approx = run_json("privacy", "eps=1,delta=1e-6", "--rounds-per-person", "4")["people"]
    assert [row["total"] for row in approx] == ["(4, 3.12e-05)-DP", "(2.123, 1e-06)-DP"]
    assert [row["each"] for row in approx] == ["0.05918-GDP", "0.1184-GDP"]
    shown = run("privacy", "order=8,divergence=4", "--rounds-per-person", "4")
    assert "group privacy" in shown and "nothing follows" in shown


def test_privacy() -> None:
    found = run_json("privacy", "mu=1")
    follows = {row["definition"]: row["follows"] for row in found["implies"]}
    assert follows["(ε, δ)-DP at δ = 1e-06"] == "(4.887, 1e-06)-DP"
    assert follows["pure DP"] is None
    assert found["buys"]["attacker_success"] == pytest.approx(0.6914625)
    assert "1.233-GDP" in run("privacy", "eps=1")
    assert "nothing follows" in run("privacy", "eps=1,delta=1e-6")
    for text in ("rho=0.5", "order=8,divergence=4", "none", "eps=1e-6", "mu=1e3"):
        assert run("privacy", text) and run_json("privacy", text)


def test_compare_writes_what_it_is_asked_for(tmp_path: Path) -> None:
    names = {option: tmp_path / name for option, name in _OUTPUTS.items()}
    options = [part for option, path in names.items() for part in (f"--{option}", str(path))]
    small = ("--rounds", "2e3", "--runs", "3", "--means", ".9,.5")
    text = run("compare", "modified-thompson:prepulls=50,calibration=paper", *small, *options)
    assert "prepulls=50" in text and "under replacement of one reward" in text
    page = names["report"].read_text()
    assert (
        "<svg" in page and "0.9747-GDP" in page and "http" not in page.replace("http://www.w3.org", "")
    )
    assert names["plot"].stat().st_size > 1000
    assert pl.read_parquet(names["save"])["policy"].n_unique() == 2
    assert dpb.Trace.load(names["save"]).header["rounds"] == 2000


_OUTPUTS = {"report": "r.html", "plot": "r.png", "save": "r.parquet"}


def test_compare_says_that_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison stopped in its second run; the same command then says so."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = (
        "compare",
        "lazy-ucb",
        "private-imed",
        "--privacy",
        "eps=1",
        "--rounds",
        "500",
        "--runs",
        "2",
    )
    played: list[Any] = []

    def interrupted(*given: Any, **options: Any) -> Any:
        if played:
            raise KeyboardInterrupt
        played.append(given)
        return play(*given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(replicate, "play", interrupted)
        done = CliRunner().invoke(app, [*words, "--threads", "1"])
        assert done.exit_code == 130 and "the same command goes on" in done.stderr
    assert run(*words).startswith("going on from where this comparison was stopped")
    assert "going on" not in run(*words)


def test_a_guarantee_shared_by_policies_is_said_once() -> None:
    words = ("compare", "lazy-ucb", "private-imed", "--privacy", "eps=1", "--rounds", "100")
    assert "\nlazy-ucb (twin), private-imed (twin): No privacy" in run(*words, "--runs", "1")


def test_compare_adds_twins_and_repeats_itself() -> None:
    small = ("compare", "--rounds", "1000", "--runs", "2", "--seed", "5")
    first = run_json(*small)["rows"]
    rows = {row["policy"]: row for row in first}
    assert {"modified-thompson", "noise-aware-imed", "gaussian-thompson (twin)"} <= set(rows)
    assert rows["modified-thompson"]["times_twin"] > 1
    assert rows["gaussian-thompson (twin)"]["times_twin"] is None
    again = run_json(*small, "--threads", "1")["rows"]
    for row in (*first, *again):
        del row["ns_per_round"]
    assert first == again
    one = run_json(*small, "modified-thompson", "--no-twins")["rows"]
    assert [row["policy"] for row in one] == ["modified-thompson"]
    assert len(run_json(*small, "modified-thompson", "--env", "exponential")["rows"]) == 2


def test_recommend() -> None:
    assert "NoiseAwareIMED" in run("recommend", "--arms", "5", "--privacy", "eps=1")
    found = run_json("recommend", "--arms", "50", "--privacy", "eps=0.1", "--horizon", "1e4")
    assert found["policy"]["kind"] == "NoiseAwareIMED" and "uniform play" in found["reason"]
    assert run_json("recommend", "--privacy", "none")["policy"]["kind"] == "BetaThompson"
    assert ".start(dpb.Arms(arms=5))" in run("recommend")
    assert "LinearContexts(dim=3, arms=10)" in run("recommend", "--features", "3", "--arms", "10")


def test_audit(tmp_path: Path) -> None:
    filed = tmp_path / "filed.md"
    options = "--rounds", "12", "--privacy", "eps=1", "--report", str(filed)
    found = run_json("audit", "focused-matroid-ucb", *options)
    assert found["passed"] and len(found["checks"]) > 10
    assert len(found["controls"]) > 2 and all(one["caught"] for one in found["controls"])
    page = filed.read_text()
    assert "two people at once" in page and "What cannot be seen" in page


def test_an_audit_that_fails_ends_with_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpbandits.audit import broken
    from dpbandits.cli import audit

    monkeypatch.setattr(audit, "policy", lambda name, budget: broken.HalfNoise(privacy=budget))
    done = CliRunner().invoke(app, ["audit", "anything", "--no-controls"])
    assert done.exit_code == 1 and "FAILED" in done.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "modified-tompson"], "did you mean 'modified-thompson'?"),
        (["reproduce", "ou-fig22"], "did you mean 'ou-fig2'?"),
        (["compare", "--env", "bernouli"], "did you mean 'bernoulli'?"),
        (["compare", "modified-thompson:prepull=3"], "did you mean 'prepulls'?"),
        (["compare", "modified-thompson", "--privacy", "eps=1"], "accepts GaussianDP"),
        (["compare", "--report", "/nowhere/x.html"], "cannot write --report"),
        (["compare", "--save", "x.csv"], "expected --save to end in .parquet"),
        (["compare", "--env", "exponential", "--means", ".1,.2"], "have --rates, not --means"),
        (["compare", "--rounds", "-5"], "expected rounds"),
        (["recommend", "--arms", "3", "--items", "4"], "--arms does not go with"),
        (["recommend", "--features", "3", "--privacy", "eps=1"], "give a horizon"),
        (["compare", "--threads", "0"], "expected threads"),
        (["compare", "--privacy", "epsilon=1"], "cannot read the privacy 'epsilon=1'"),
        (["privacy", "eps=0"], "expected epsilon > 0"),
        (["privacy", "eps=nan"], "expected epsilon"),
        (["privacy", "eps=1,delta=1"], "expected delta"),
        (["privacy", "eps=x"], "expected eps to be a number"),
        (["compare", "--rounds", "1.5"], "expected rounds to be a whole number"),
        (["compare", "--means", ".5"], "at least 2 arms"),
        (["audit", "gaussian-thompson:x=1"], "no option of gaussian-thompson"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["dpbandits", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    told = " ".join(capsys.readouterr().err.split())
    assert stop.value.code == 2
    assert told.startswith("error: ") and says in told and "Traceback" not in told


def test_every_command_has_help_and_json() -> None:
    commands = [command.name for command in app.registered_commands]
    assert commands == [
        "list",
        "show",
        "compare",
        "figures",
        "reproduce",
        "privacy",
        "recommend",
        "audit",
        "warm",
    ]
    for command in commands:
        assert command is not None
        assert "--json" in run(command, "--help")
    assert f"dpbandits {dpb.__version__}" in run("--version")


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("eps=1", dpb.PureDP(1.0)),
        ("eps=1,delta=1e-6", dpb.ApproxDP(1.0, 1e-6)),
        ("mu=2", dpb.GaussianDP(2.0)),
        ("rho=.5", dpb.ZeroConcentratedDP(0.5)),
        ("order=8,divergence=4", dpb.RenyiDP(8.0, 4.0)),
        ("none", dpb.NonPrivate()),
    ],
)
def test_budgets_as_typed(text: str, budget: dpb.Budget) -> None:
    assert parsing.budget(text) == budget


@pytest.mark.parametrize("text", ["", "eps", "delta=1", "delta=1e-6,eps=1", "mu=1,mu=1", "1"])
def test_budgets_mistyped(text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot read the privacy"):
        parsing.budget(text)


def test_ctrl_c_keeps_finished_runs_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """A real interrupt of a real process; then the resumed figure equals one made in one go."""
    script = (
        "import sys; from dpbandits.cli.main import main\n"
        "from dpbandits.experiments.ou_2024 import regret_grid as o\n"
        "o._RegretGrid._ROUNDS = 100_000; o._RegretGrid._RUNS = {s: 60 for s in o._RegretGrid._RUNS};"
        "sys.argv = ['dpbandits', 'reproduce', 'ou-fig2', '--out', sys.argv[1], '--json']; main()"
    )

    def start(folder: Path) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", script, str(folder)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    whole = start(tmp_path / "whole").communicate()[0]
    process = start(tmp_path / "broken")
    trace = tmp_path / "broken" / "ou-fig2-quick" / "eta-1.parquet"
    while not trace.exists() and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "stopped" in errors and "Traceback" not in errors
    assert not (tmp_path / "broken" / "ou-fig2-quick" / "claims.json").exists()
    made = trace.stat().st_mtime_ns
    resumed = start(tmp_path / "broken").communicate()[0]
    assert json.loads(resumed) == json.loads(whole)
    assert trace.stat().st_mtime_ns == made  # what was finished was not simulated again
    for name in ("eta-1", "eta-2", "eta-5"):
        one, other = (
            dpb.Trace.load(tmp_path / kind / "ou-fig2-quick" / f"{name}.parquet")
            for kind in ("whole", "broken")
        )
        assert one.header == other.header and one.table().equals(other.table())
