"""The command line as a user types it."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
import pytest
import scipy.stats
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits import notation
from dpbandits.cli import compare as compare_command
from dpbandits.cli import worlds
from dpbandits.cli.main import app
from dpbandits.errors import InvalidInput
from dpbandits.experiments import FIGURES
from dpbandits.policies import policy_kinds
from dpbandits.simulation import replicate
from dpbandits.simulation.run import begin

pytestmark = pytest.mark.slow


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def test_list_and_show_every_policy() -> None:
    listed = {row["policy"]: row for row in run_json("list")}
    given = {
        name: listed[name]["guarantee"] for name in ("lin-ucb", "gaussian-thompson", "tree-lin-ucb")
    }
    assert given == {"lin-ucb": "none", "gaussian-thompson": "proved", "tree-lin-ucb": "proved"}
    assert set(listed) == set(policy_kinds())
    text = run("list")
    for name, kind in policy_kinds().items():
        assert name in text and kind.__name__ in run("show", name) and kind.paper in run("show", name)
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
    assert [row["total"] for row in approx] == ["(4, 3.12e-5)-DP", "(2.123, 1e-6)-DP"]
    assert [row["each"] for row in approx] == ["0.05917-GDP", "0.1183-GDP"]
    shown = run("privacy", "order=8,divergence=4", "--rounds-per-person", "4")
    assert "group privacy" in shown and "nothing follows" in shown


def test_privacy() -> None:
    found = run_json("privacy", "mu=1")
    follows = {row["definition"]: row["follows"] for row in found["implies"]}
    assert follows["(ε, δ)-DP at δ = 1e-6"] == "(4.887, 1e-6)-DP"
    assert follows["pure DP"] is None
    assert found["buys"]["attacker_success"] == pytest.approx(0.6914625)
    assert "1.233-GDP" in run("privacy", "eps=1")
    assert "nothing follows" in run("privacy", "eps=1,delta=1e-6")
    for text in ("rho=0.5", "order=8,divergence=4", "none", "eps=1e-6", "mu=1e3"):
        assert run("privacy", text) and run_json("privacy", text)


def test_compare_writes_what_it_is_asked_for(tmp_path: Path) -> None:
    names = {option: tmp_path / name for option, name in _OUTPUTS.items()}
    options = [part for option, path in names.items() for part in (f"--{option}", str(path))]
    small = ("--rounds", "2e3", "--runs", "3", "--env", "bernoulli-arms:means=.9 .5")
    named = ("modified-thompson:prepulls=50,calibration=paper", "--privacy", "mu=1")
    text = run("compare", *named, *small, *options)
    assert "prepulls=50" in text and "under replacement of one reward" in text
    page = names["report"].read_text()
    assert (
        "<svg" in page and "0.9747-GDP" in page and "http" not in page.replace("http://www.w3.org", "")
    )
    assert names["plot"].stat().st_size > 1000
    assert pl.read_parquet(names["save"])["policy"].n_unique() == 2
    assert dpb.Trace.load(names["save"]).header["rounds"] == 2000


def test_compare_shows_how_far_from_the_limit_a_policy_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a column where there is room for it, in the JSON, and as a dotted line in the page."""
    page, plot = tmp_path / "page.html", tmp_path / "plot.svg"
    means = ("--env", "bernoulli-arms:means=.6 .4")
    words = ("compare", "lazy-ucb", "--privacy", "eps=0.1", "--rounds", "1000", "--runs", "2", *means)
    rows = {row["policy"]: row for row in run_json(*words)["rows"]}
    for label, epsilon in (("lazy-ucb", 0.1), ("lazy-ucb (twin)", math.inf)):
        limit = dpb.limits.lai_robbins((0.6, 0.4), epsilon) * math.log(1000)
        assert rows[label]["times_limit"] == pytest.approx(rows[label]["mean_regret"] / limit)
    text = " ".join(run(*words, "--report", str(page), "--plot", str(plot)).split())
    said = "× limit: regret as a multiple of what no policy beats in the long run: 10.64 ln t (0.1-DP), "
    for written in (text, page.read_text()):
        assert said + "2.466 ln t (without privacy)." in written and "asymptotic" in written
    assert "Dotted: what no policy beats in the long run" in page.read_text()
    assert plot.read_text().count("stroke-dasharray") >= 2
    monkeypatch.setenv("COLUMNS", "80")
    assert all(len(line) <= 80 for line in run(*words).splitlines())
    linear = ("compare", "lin-ucb", "--env", "sphere-contexts", "--rounds", "20", "--runs", "2")
    assert "limit" not in run(*linear)  # where none is known


def _log(folder: Path) -> Path:
    """Twenty items of which one pays, in 4,000 rows."""
    items = [f"item {number % 20:02}" for number in range(4000)]
    clicks = [int(number % 20 == 3 and number % 40 < 20) for number in range(4000)]
    path = folder / "log.parquet"
    pl.DataFrame({"item": items, "click": clicks, "hour": [0.25, 0.75] * 2000}).write_parquet(path)
    return path


def test_compare_on_a_log_at_several_budgets(tmp_path: Path) -> None:
    """The table, the answer in sentences, and the picture with both lines."""
    log, page, plot = _log(tmp_path), tmp_path / "page.html", tmp_path / "plot.svg"
    named = ("--data", str(log), "--action", "item", "--reward", "click")
    several = ("--privacy", "eps=0.1,1,none")
    words = ("compare", "noise-aware-imed", "lazy-ucb", "--rounds", "2e4", "--runs", "2", *named)
    found = run_json(*words, *several)
    rows = {(row["policy"], row["budget"]): row for row in found["rows"]}
    assert set(rows) == {
        (f"{name}{label}", budget)
        for name in ("noise-aware-imed", "lazy-ucb")
        for label, budget in ((", 0.1-DP", "eps=0.1"), (", 1-DP", "eps=1"), (" (twin)", "none"))
    }
    assert found["uniform_kept"] == pytest.approx(0.05)
    assert [row["budget"] for row in found["rows"]] == ["eps=0.1"] * 2 + ["eps=1"] * 2 + ["none"] * 2
    for row in rows.values():
        assert row["mean_regret"] == pytest.approx(20_000 * 0.5 * (1 - row["reward_kept"]))
    text = " ".join(run(*words, *several, "--report", str(page), "--plot", str(plot)).split())
    assert "20,000 rounds on 20 actions of means 0.5 to 0 in log.parquet, 2 runs" in text
    assert "no private release" in text and "Uniform play keeps 5.0 %." in text
    assert "±: half of a 95 % confidence interval of the mean over 2 runs (Student's t)" in text
    assert " is recommended, " in text and "(twin)" not in text
    written = page.read_text()
    assert "Mean over runs with its 95 % interval" in written and "no private release" in written
    assert "do not show that its actions differ" not in text
    assert plot.read_text().count("<path") > 20
    # Whatever is passed on by itself says so by itself.
    assert "no private release" in " ".join(found["about"])
    assert "None is about this page, which is made of the log itself" in written


def test_compare_shows_the_best_of_each_budget_unless_all_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name is broken where a line has 80 columns, and the page has all of them, folded."""
    monkeypatch.setenv("COLUMNS", "80")
    page = tmp_path / "page.html"
    words = ("compare", "--rounds", "300", "--runs", "2", "--privacy", "eps=0.1,1,none")
    every = {row["policy"]: row for row in run_json(*words)["rows"]}
    for row in every.values():
        half = scipy.stats.t.ppf(0.975, 1) * row["standard_error"]
        assert row["regret_interval"] == pytest.approx(half)
    best, text = run(*words, "--report", str(page)), run(*words, "--all")
    shown = [line.split()[0] for line in best.splitlines() if " % " in line and line.startswith(" ")]
    assert 10 <= len(shown) <= 13 and shown.count("sequential-halving") >= 2
    hidden = len(every) + 1 - len(shown)
    assert f"{hidden} of {len(every)} rows are not. --all prints them" in " ".join(best.split())
    for name in ("successive-elimination", "lazy-beta-thompson"):
        assert text.count(f" {name} ") == 3 and page.read_text().count(f"<td>{name}</td>") >= 3
    assert "rows are not" not in text and "<details><summary>All rows</summary>" in page.read_text()
    # Policies that were named are all wanted.
    assert "rows are not" not in run("compare", "lazy-ucb", "tree-ucb", *words[1:])


def test_compare_says_where_a_log_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("item,click\n" + "a,1\nb,0\na,0\nb,1\nb,0\n" * 30)
    words = ("compare", "lazy-ucb", "--data", str(path), "--action", "item", "--reward", "click")
    assert "do not show that its actions differ" in " ".join(run(*words, "--runs", "1").split())


def test_compare_says_what_propensities_tell(tmp_path: Path) -> None:
    """The item that pays was shown four times as often as the other."""
    path = tmp_path / "log.csv"
    rows = "a,1,0.8\na,0,0.8\na,1,0.8\na,0,0.8\nb,0,0.2\n" * 100
    path.write_text(f"item,click,p\n{rows}")
    words = ("compare", "lazy-ucb", "--data", str(path), "--action", "item", "--reward", "click")
    text = run(*words, "--runs", "1", "--propensity", "p")
    assert "The log itself earned 0.4 a row." in text
    assert "Uniform play on its people, by its propensities: SNIPS 0.25, 95 %" in text
    path.write_text(f"item,click,p\n{rows}".replace("0.2", "1"))
    text = run(*words, "--runs", "1", "--propensity", "p")
    assert "0.25" not in text and "The log itself" in text
    path.write_text("item,click,p\na,1,0.5\nb,0,0.5\n")
    text = run(*words, "--runs", "1", "--propensity", "p")
    assert "is not known: the log overlaps too little" in text
    assert "rest on a few rows" not in text
    # One row of b counts as much as 80 of its others, and pays.
    path.write_text("item,click,p\n" + "a,0,0.2\nb,0,0.8\n" * 300 + "b,1,0.01\n")
    text = run(*words, "--runs", "1", "--propensity", "p")
    assert "rates of 1 of 2 actions rest on a few rows of small propensity" in text
    assert "the 301 rows of 'b' tell as much as 21.6 rows that count alike" in text


def test_compare_with_features_of_a_log(tmp_path: Path) -> None:
    named = ("--data", str(_log(tmp_path)), "--action", "item", "--reward", "click")
    words = ("compare", "lin-ucb", "--rounds", "50", "--runs", "1", *named)
    for features in ("hour=0..1", "hour", "hour=0.25|0.75", "hour=#2"):
        text = run(*words, "--features", features)
        assert "50 rounds on 20 actions in 2 contexts of log.parquet, 1 run" in text


def test_compare_says_where_contexts_have_few_rows_and_ranges_are_too_narrow(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    ages = (f"{'ab'[row % 2]},{row * 7 % 5 == 0:d},{row * 11 % 97}" for row in range(2000))
    log.write_text("item,click,age\n" + "\n".join(ages))
    words = ("compare", "lin-ucb", "--rounds", "50", "--runs", "1", "--data", str(log))
    text = run(*words, "--action", "item", "--reward", "click", "--features", "age=0..48")
    assert "In log.csv an action's rate differs between contexts no more than chance" in text
    assert "column 'age' is beyond 0 to 48 in 49 % of the rows of log.csv" in text
    asked = ("--action", "item", "--reward", "click", "--features", "age=0..96", "--prior-rows")
    text = run(*words, *asked, "0")
    assert "97 contexts × 2 actions: about 10 rows of each action in the median context." in text
    assert "Rates in contexts are taken as they are" in text
    assert "drawn to its rate in all contexts by 50 rows" in run(*words, *asked, "50")


def test_compare_with_gaps_in_the_features_of_a_log(tmp_path: Path) -> None:
    """What to type where a value is missing, is not declared, or is a date."""
    log = tmp_path / "log.csv"
    people = ("30,phone", ",desktop", '54,""', "41,tablet")
    rows = (f"{'ab'[row // 4 % 2]},{row % 3 == 0:d},{people[row % 4]},2026-01-02" for row in range(400))
    log.write_text("item,click,age,device,day\n" + "\n".join(rows))
    named = ("--data", str(log), "--action", "item", "--reward", "click")
    words = ("compare", "lin-ucb", "--rounds", "50", "--runs", "1", *named, "--features")
    text = run(*words, "age=18..90?40,device=phone|desktop|*")
    assert "4 contexts of log.csv" in text and "not declared" not in text
    text = run(*words, "age=18..90?40,device=phone|desktop")
    assert "column 'device' has values that were not declared in 25 % of the rows of log.csv" in text
    assert "such as 'tablet'" in text and "('…|*')" in text
    for features, said in (
        ("age=18..90", "'age' is empty in 100 rows of log.csv, first in row 2; it may be if it is "),
        ("age", "declared, as --features 'age=low..high?value' or 'age=a|b'"),
        ("device", "'device' is empty in 100 rows of log.csv, first in row 3"),
        ("day=2026-01-01..2026-02-01", "of a date make a number or a name first"),
        ("day", "column 'day' of log.csv holds texts, such as '2026-01-02'; declare"),
    ):
        done = CliRunner().invoke(app, [*words, features])
        assert done.exit_code != 0 and said in " ".join(str(done.exception or done.output).split())
    done = CliRunner().invoke(app, [*words[:-1], "--position", "device"])
    assert "say --position device=desktop" in str(done.exception or done.output)


def test_several_kinds_of_budgets_have_a_panel_each(tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    words = ("compare", "lazy-ucb", "modified-thompson", "--rounds", "200", "--runs", "2")
    text = run(*words, "--privacy", "eps=1,2", "--privacy", "mu=1", "--plot", str(plot))
    assert "modified-thompson does not accept eps=1, and is left out there" in text
    assert text.splitlines()[0].startswith("Budgets: 1-DP, 2-DP, 1-GDP")
    assert "At 1-GDP, " in text and plot.exists()


def test_compare_says_which_policies_do_not_accept_a_budget(tmp_path: Path) -> None:
    """Where all were asked for, in the terminal, in the report and in the JSON."""
    page = tmp_path / "page.html"
    words = ("compare", "--rounds", "50", "--runs", "1", "--no-twins", "--report", str(page))
    said = "left out, because they do not accept eps=1 or eps=2: modified-thompson, thompson-ucb"
    text = run(*words, "--privacy", "eps=1,2")
    assert f"{said}; they do with delta=1e-6" in text and said in page.read_text()
    assert run_json(*words, "--privacy", "eps=1,2")["notes"] == [f"{said}; they do with delta=1e-6"]
    assert "left out" not in run(*words, "--privacy", "mu=1")


def test_files_are_written_before_anything_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the reader of a pipe is gone."""

    def broken(*_: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(compare_command, "_print", broken)
    words = ["compare", "lazy-ucb", "--rounds", "50", "--runs", "1", "--privacy", "eps=1"]
    for option, name in _OUTPUTS.items():
        words += [f"--{option}", str(tmp_path / name)]
    assert isinstance(CliRunner().invoke(app, words).exception, BrokenPipeError)
    assert {path.name for path in tmp_path.iterdir()} == set(_OUTPUTS.values())


_OUTPUTS = {"report": "r.html", "plot": "r.png", "save": "r.parquet"}


def test_compare_in_leaps_leaves_out_what_cannot(tmp_path: Path) -> None:
    words = ("compare", "--leaps", "--rounds", "300", "--runs", "3")
    text = run(*words)
    assert "left out, because they cannot be played in leaps: " in text and "lazy-ucb (twin)" in text
    assert re.search(r"(?m)^ noise-aware-imed +1-DP", text) and "adaptive-klucb (twin)" in text
    assert "In leaps: all rewards of a batch" in text and run_json(*words, "private-imed")["leaps"]
    path = tmp_path / "trace.parquet"
    run(*words, "noise-aware-imed", "--save", str(path))
    trace = dpb.Trace.load(path)
    again = dpb.simulate(
        trace.recipes(), dpb.worlds.BernoulliArms((0.75, 0.625, 0.5, 0.375, 0.25)), 300, 3, 0
    )
    assert trace.leaps and trace.policies == ["noise-aware-imed", "noise-aware-imed (twin)"]
    assert not np.array_equal(trace.regret("noise-aware-imed"), again.regret("noise-aware-imed"))
    for said, others in (
        ("lazy-ucb cannot be played in leaps", ("compare", "lazy-ucb", "--leaps")),
        (
            "truncated-exponential-arms cannot",
            ("compare", "--env", "truncated-exponential-arms:rates=1 2", "--leaps"),
        ),
    ):
        with pytest.raises(InvalidInput, match=said):
            run(*others)


@pytest.mark.parametrize(("stop", "status"), [(KeyboardInterrupt, 130), (SystemExit(143), 143)])
def test_compare_says_that_it_goes_on(
    stop: BaseException, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comparison stopped at its second policy; the same command then says so."""
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
    begun: list[Any] = []

    def interrupted(*given: Any, **options: Any) -> Any:
        if begun:
            raise stop
        begun.append(given)
        return begin(*given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(replicate, "begin", interrupted)
        done = CliRunner().invoke(app, [*words, "--threads", "1"])
        assert done.exit_code == status and done.stderr.count("stopped") == 1
        assert "stopped; finished runs are kept, and the same command resumes there" in done.stderr
    assert "\nresuming where this comparison was stopped\n" in run(*words)
    assert "resuming" not in run(*words)


def test_one_run_of_arms_that_are_equal() -> None:
    """No standard error, and no regret to compare with."""
    words = ("compare", "lazy-ucb", "--privacy", "eps=1", "--env", "bernoulli-arms:means=.5 .5")
    for row in run_json(*words, "--rounds", "100", "--runs", "1")["rows"]:
        assert (row["mean_regret"], row["standard_error"], row["times_twin"]) == (0.0, None, None)


def test_a_guarantee_shared_by_policies_is_said_once() -> None:
    words = ("compare", "lazy-ucb", "private-imed", "--privacy", "eps=1", "--rounds", "100")
    assert "\nlazy-ucb (twin), private-imed (twin): No privacy" in run(*words, "--runs", "1")


def test_compare_adds_twins_and_repeats_itself() -> None:
    small = ("compare", "--rounds", "1000", "--runs", "2", "--seed", "5", "--privacy", "mu=1")
    first = run_json(*small)["rows"]
    rows = {row["policy"]: row for row in first}
    regrets = [row["mean_regret"] for row in first]
    assert regrets == sorted(regrets)
    assert {"modified-thompson", "noise-aware-imed", "gaussian-thompson (twin)"} <= set(rows)
    assert rows["modified-thompson"]["times_twin"] > 1
    assert rows["gaussian-thompson (twin)"]["times_twin"] is None
    again = run_json(*small, "--threads", "1")["rows"]
    for row in (*first, *again):
        del row["ns_per_round"]
    assert first == again
    one = run_json(*small, "modified-thompson", "--no-twins")["rows"]
    assert [row["policy"] for row in one] == ["modified-thompson"]
    assert len(run_json(*small, "modified-thompson", "--env", "TruncatedExponentialArms")["rows"]) == 2


def test_identify() -> None:
    small = ("identify", "--env", "bernoulli-arms:means=.3 .8", "--runs", "20", "--seed", "1")
    told = run(*small, "--privacy", "eps=1,10")
    assert "best-arm-race" in told and "10-DP" in told and "2 Bernoulli arms" in told and "limit" in told
    (row,) = run_json(*small)["rows"]
    assert row["guarantee"] == "1-DP" and row["wrong"] == row["unfinished"] == 0
    assert row["samples"] > row["limit"] > 0.0
    (row,) = run_json(*small, "sequential-halving:rounds=60")["rows"]
    assert row["samples"] == 58 and row["limit"] is None  # 29 of each arm
    # Too few rounds to stop in.
    assert run_json(*small, "--max-rounds", "20")["rows"][0]["unfinished"] == 20
    for wrong, said in ((("lazy-ucb",), "recommends no arm"), (("--runs", "0"), "runs")):
        done = CliRunner().invoke(app, [*small, *wrong])
        assert done.exit_code != 0 and said in str(done.exception)


def test_recommend() -> None:
    quick = ("recommend", "--no-simulation")
    assert "NoiseAwareIMED" in run(*quick, "--arms", "5", "--privacy", "eps=1")
    found = run_json(*quick, "--arms", "50", "--privacy", "eps=0.1", "--rounds", "1e4")
    assert found["policy"]["kind"] == "SequentialHalving" and "few for 50 arms" in found["reason"]
    clicks = *quick, "--arms", "34", "--privacy", "eps=1", "--rounds", "1e5"
    assert run_json(*clicks)["policy"]["kind"] == "NoiseAwareIMED"
    assert run_json(*clicks, "--rate", ".005")["policy"]["kind"] == "SequentialHalving"
    assert run_json(*quick, "--privacy", "none")["policy"]["kind"] == "BetaThompson"
    assert ".start(dpb.Arms(5))" in run(*quick)
    often = run(*quick, "--rounds-per-person", "3", "--privacy", "eps=1")
    assert "rounds_per_person=3" in often and "the rewards of at most 3 rounds" in " ".join(
        often.split()
    )
    assert "dpb.Arms(8, horizon=50_000)" in run(*quick, "--arms", "8", "--rounds", "5e4")
    linear = run(*quick, "--features", "3", "--arms", "10")
    assert "LinearContexts(3, arms=10)" in linear and "ApproxDP(1.0, 1e-6)" in linear
    assert "LocalUCB(" in run(*quick, "--trust", "Local")


def test_audit(tmp_path: Path) -> None:
    filed = tmp_path / "filed.md"
    options = "--rounds", "12", "--privacy", "eps=1", "--report", str(filed)
    found = run_json("audit", "focused-matroid-ucb", *options)
    assert found["passed"] and len(found["checks"]) > 10
    assert len(found["controls"]) > 2 and all(one["caught"] for one in found["controls"])
    page = filed.read_text()
    assert "two people at once" in page and "What cannot be seen" in page
    for fact in (
        "- Date: 20",
        "- Command: `dpbandits",
        "- Seed: 0",
        "Python 3.",
        "NumPy",
        "- Platform: ",
    ):
        assert fact in page
    assert "7 items, people inside the range" in page and not re.search(
        r"\b0\.0*[1-9]\d{4}|[1-9]\.\d{4}", page
    )


def test_an_audit_that_is_piped_says_how_far_it_is(tmp_path: Path) -> None:
    filed = tmp_path / "filed.md"
    options = ("--rounds", "6", "--no-controls", "--report", str(filed))
    done = CliRunner().invoke(app, ["audit", "lazy-ucb", *options])
    assert done.exit_code == 0 and done.stdout.startswith("Budget: 1-DP (--privacy eps=1)\n")
    assert done.stdout.endswith(f"nothing found against the claim\nwritten: {filed}\n")
    steps = [line for line in done.stderr.splitlines() if re.match(r"\d+/\d+ ", line)]
    assert len(steps) > 10 and steps[-1].startswith(f"{len(steps)}/{len(steps)} as configured")


def test_an_interrupted_audit_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpbandits.audit import battery

    def stop() -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(battery, "battery", lambda policy, rounds: [("a check", stop)])
    done = CliRunner().invoke(app, ["audit", "lazy-ucb"])
    assert done.exit_code == 130 and "stopped; nothing is kept\n" in done.stderr


def test_a_policy_that_accepts_only_one_kind_of_budget_has_that_by_default() -> None:
    class Gaussian(dpb.NoiseAwareIMED):
        abstract = True
        accepts = (dpb.GaussianDP,)

    assert notation.default_budget(dpb.Arms, [Gaussian]) == dpb.GaussianDP(1.0)


def test_the_budget_is_one_for_all_commands_and_said_first() -> None:
    small = ("--rounds", "50", "--runs", "1", "--no-twins")
    for words, privacy in (
        (("compare", "lazy-ucb", *small), "eps=1"),
        (("compare", "modified-thompson", *small), "eps=1,delta=1e-6"),
        (("compare", "lin-ucb", "--env", "sphere-contexts", *small), "eps=1,delta=1e-6"),
        (("recommend", "--no-simulation"), "eps=1"),
        (("recommend", "--no-simulation", "--kernel", "matern"), "eps=1,delta=1e-6"),
    ):
        assert f"(--privacy {privacy})" in run(*words).splitlines()[0]


def test_compare_says_where_whose_twin_and_what_uniform_play_loses(tmp_path: Path) -> None:
    """On arms of means .9 and .5, that is 0.2 a round."""
    page = tmp_path / "page.html"
    words = ("compare", "modified-thompson", "--rounds", "1000", "--runs", "2", "--report", str(page))
    text = run(*words, "--env", "bernoulli-arms:means=.5 .9")
    for said in (text, page.read_text()):
        assert "1,000 rounds on 2 Bernoulli arms of means 0.9 to 0.5, 2 runs" in said
        assert "half of a 95 % confidence interval of the mean over 2 runs" in said
        assert "uniform play" in said
        assert "gaussian-thompson (twin) is the twin of modified-thompson." in said
    table = [line.split() for line in text.splitlines() if line.startswith(" ")]
    assert [row for row in table if row][-1] == ["uniform", "play", "77.8", "%", "200"]


def test_an_audit_that_fails_ends_with_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpbandits.audit import broken
    from dpbandits.cli import audit

    wrong = broken.HalfNoise(privacy=dpb.GaussianDP(1.0))
    monkeypatch.setattr(audit, "_subject", lambda name, privacy: wrong)
    done = CliRunner().invoke(app, ["audit", "anything", "--no-controls"])
    assert done.exit_code == 1 and "FAILED" in done.output


def test_every_command_has_help_and_json() -> None:
    commands = [command.name for command in app.registered_commands]
    assert commands == [
        "list",
        "show",
        "compare",
        "sweep",
        "identify",
        "figures",
        "reproduce",
        "privacy",
        "recommend",
        "audit",
        "warm",
        "serve",
        "verify",
    ]
    for command in commands:
        assert command is not None
        assert ("--json" in run(command, "--help")) == (command != "serve")  # which goes on and on
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
    assert notation.budget(text) == budget


@pytest.mark.parametrize(
    "text",
    ["epsilon=1,delta=1e-6", "ε=1, δ=1e-6", "delta=1e-6,eps=1", "eps 1 delta 1e-6", "EPS=1,DELTA=1e-6"],
)
def test_budgets_as_they_are_often_typed(text: str) -> None:
    assert notation.budget(text) == dpb.ApproxDP(1.0, 1e-6)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["eps=0.1,1,none"], [dpb.PureDP(0.1), dpb.PureDP(1.0), dpb.privacy.NonPrivate()]),
        (["ε=1 4 δ=1e-6"], [dpb.ApproxDP(1.0, 1e-6), dpb.ApproxDP(4.0, 1e-6)]),
        (["delta=1e-6,1e-5,eps=1,2"], [dpb.ApproxDP(1.0, 1e-6), dpb.ApproxDP(2.0, 1e-5)]),
        (["eps=1,mu=1,2"], [dpb.PureDP(1.0), dpb.GaussianDP(1.0), dpb.GaussianDP(2.0)]),
        (["mu=1,mu=2"], [dpb.GaussianDP(1.0), dpb.GaussianDP(2.0)]),
        (["eps=1,delta=1e-6", "eps=1"], [dpb.ApproxDP(1.0, 1e-6), dpb.PureDP(1.0)]),
        (["none,rho=.5"], [dpb.privacy.NonPrivate(), dpb.ZeroConcentratedDP(0.5)]),
        (["order=8,divergence=1,4"], [dpb.RenyiDP(8.0, 1.0), dpb.RenyiDP(8.0, 4.0)]),
    ],
)
def test_several_budgets_as_typed(texts: list[str], found: list[dpb.Budget]) -> None:
    assert notation.budgets(texts) == found


@pytest.mark.parametrize("text", ["", "eps", "delta=1", "mu=1,mu=1", "mu=1,eps=1", "eps=1,delta"])
def test_budgets_mistyped(text: str) -> None:
    with pytest.raises(InvalidInput, match="cannot read the privacy"):
        notation.budget(text)


@pytest.mark.parametrize("text", ["\u00b5=1", "\u03bc=1", "mu: 1", "MU = 1"])
def test_both_letters_mu_are_mu(text: str) -> None:
    assert notation.budget(text) == dpb.GaussianDP(1.0)


@pytest.mark.parametrize(
    ("text", "world"),
    [
        ("bernoulli-arms:means=.9 .1", dpb.worlds.BernoulliArms((0.9, 0.1))),
        ("BernoulliArms:means=.9,.1", dpb.worlds.BernoulliArms((0.9, 0.1))),
        ("truncated_exponential_arms:rates=1 2 3", dpb.worlds.TruncatedExponentialArms((1.0, 2.0, 3.0))),
        ("sphere-contexts:dim=1e1,gap=0", dpb.worlds.SphereContexts(10, gap=0.0)),
        ("fixed-actions:public=true,seed=3", dpb.worlds.FixedActions(public=True, seed=3)),
        ("kernel-world:kernel=matern,seed=2", dpb.worlds.KernelWorld.standard("matern", seed=2)),
        ("sphere-contexts:rewards=gaussian", dpb.worlds.SphereContexts(rewards="gaussian")),
    ],
)
def test_worlds_as_typed(text: str, world: dpb.worlds.Environment) -> None:
    assert worlds.environment(text) == world


def test_options_of_policies_as_typed() -> None:
    wanted = dpb.GaussianDP(1.0)
    found = notation.policy("BatchedLinUCB:blocks=4 8", wanted)
    assert found == dpb.linear.BatchedLinUCB(privacy=wanted, blocks=(4, 8))
    assert notation.policy("batched_lin_ucb:blocks=none", wanted) == dpb.linear.BatchedLinUCB(
        privacy=wanted
    )


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("local", dpb.Trust, dpb.Trust.LOCAL),
        ("auto", float | Literal["auto"], "auto"),
        ("1e3", float | Literal["auto"], 1000.0),
        ("1e3", Annotated[int, "How many."] | None, 1000),
        (".9 .1", Annotated[Sequence[float], "Of each arm."], (0.9, 0.1)),
        ("TRUE", bool, True),
    ],
)
def test_options_are_read_by_their_types(text: str, hint: Any, value: object) -> None:
    @dataclass
    class Recipe:
        option: hint

    assert notation.options("recipe", Recipe, f"option={text}") == {"option": value}


def test_every_world_is_listed_and_shown() -> None:
    text = run("list")
    for name in worlds.environment_kinds():
        assert name in text and run_json("show", name)["world"] == name


def test_tables_fit_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    small = ("compare", "noise-aware-imed", "gaussian-thompson", "--rounds", "100", "--runs", "2")
    for words in (("list",), small, ("privacy", "mu=1", "--rounds-per-person", "4")):
        assert max(map(len, run(*words).splitlines())) <= 80
    rows = [line for line in run("list", "--problem", "arms").splitlines() if "thompson" in line]
    assert len(rows) == 8 and all(row.split()[1] in ("central", "local") for row in rows)


def test_recommend_says_what_to_expect() -> None:
    words = ("recommend", "--arms", "4", "--rounds", "1e4", "--privacy")
    plenty, little = run_json(*words, "eps=1")["expected"], run_json(*words, "eps=1e-4")["expected"]
    assert plenty["regret"] < 0.2 * plenty["uniform"] and plenty["without_privacy"] < plenty["regret"]
    assert little["regret"] > 0.75 * little["uniform"] == 0.75 * plenty["uniform"]
    text = " ".join(run(*words, "eps=1e-4").split())
    assert "expect little better than uniform play" in text.lower() and "uniform play 2,500" in text
    assert "Simulated on 4 Bernoulli arms" in text


def test_a_closed_pipe_and_a_full_disk_are_no_traceback() -> None:
    """`dpbandits figures | head -1`, and a device on which nothing fits."""
    command = [sys.executable, "-m", "dpbandits", "figures"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert done.stderr == ""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: cannot read or write the output: No space left on device\n"


def test_a_trace_that_does_not_fit_on_the_disk_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = dpb.simulate(
        dpb.arms.UniformArms(), dpb.worlds.BernoulliArms([0.2, 0.5]), 10, 2, 0, progress=False
    )
    whole = tmp_path / "trace.parquet"
    monkeypatch.setattr("dpbandits.simulation.whole_file.secrets.token_hex", lambda _: "x")
    whole.with_name(".trace.parquet.x.part").symlink_to("/dev/full")
    with pytest.raises(dpb.errors.SaveFileError, match=r"cannot write .*No space left on device"):
        trace.save(whole)
    assert list(tmp_path.iterdir()) == []


_INTERRUPTED_IMPORT = """
import signal, sys

class Dying:
    def __del__(self):
        raise KeyboardInterrupt

def stop():
    raise KeyboardInterrupt

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "numba":
            INTERRUPT()

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from dpbandits_command import main
main()
"""


@pytest.mark.parametrize("interrupt", ["stop", "Dying"])  # `Dying` in a destructor, where it is dropped
def test_ctrl_c_while_importing_is_one_sentence(interrupt: str) -> None:
    command = [sys.executable, "-c", _INTERRUPTED_IMPORT.replace("INTERRUPT", interrupt), "list"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


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
    units = tmp_path / "broken" / "sweep" / "units"
    while len(list(units.glob("*.parquet"))) < 3 and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "stopped" in errors and "Traceback" not in errors
    assert not (tmp_path / "broken" / "ou-fig2-quick" / "claims.json").exists()
    made = {path: path.stat().st_mtime_ns for path in units.glob("*.parquet")}
    resumed = start(tmp_path / "broken").communicate()[0]
    assert json.loads(resumed) == json.loads(whole)
    assert {
        path: path.stat().st_mtime_ns for path in made
    } == made  # what was finished was not simulated again
    for name in ("eta-1", "eta-2", "eta-5"):
        one, other = (
            dpb.Trace.load(tmp_path / kind / "ou-fig2-quick" / f"{name}.parquet")
            for kind in ("whole", "broken")
        )
        assert one.header == other.header and one.table().equals(other.table())
