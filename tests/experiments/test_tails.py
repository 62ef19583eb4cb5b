"""The rare bad runs: what is measured, and what the page says of it."""

import json
from pathlib import Path

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.experiments.documentation import sections, write_reproduction
from dpbandits.experiments.tails import (
    ALL,
    Tails,
    _lost,
    _summary,
    measure_tails,
    tail_rows,
    tails_section,
)


def test_a_summary_is_of_all_runs() -> None:
    regret = np.arange(100_001.0)
    row = _summary(np.random.default_rng(0).permutation(regret))
    assert row["runs"] == 100_001
    assert row["mean regret"] == 50_000.0
    assert row["standard error"] == pytest.approx(regret.std() / np.sqrt(regret.size), rel=1e-4)
    found = [row[name] for name in ("99 %", "99.9 %", "99.99 %", "worst run")]
    assert found == pytest.approx([99_000.0, 99_900.0, 99_990.0, 100_000.0])
    assert row["over 10 × mean"] == 0
    assert _summary(np.array([1.0] * 99 + [1000.0]))["over 10 × mean"] == 1


def test_lost_runs_are_those_of_another_arm_for_most_of_the_rounds() -> None:
    world = dpb.worlds.BernoulliArms((0.5, 0.4, 0.1))
    regret = np.array([30.0] * 97 + [499.0, 501.0, 1000.0])  # 1,000 for the second best throughout
    assert _lost(regret, world, 10_000) == {"lost the best arm": 2}
    assert _lost(regret + 300.0, world, 10_000) == {"lost the best arm": ""}  # learning costs as much
    assert _lost(regret, ALL[-1].instances["3 of 7"].environment, 10_000) == {}


@pytest.mark.slow
@pytest.mark.parametrize("tails", ALL, ids=lambda tails: tails.name)
def test_every_instance_and_budget_is_measured_and_shown(tails: Tails, tmp_path: Path) -> None:
    path = measure_tails(tmp_path, tails, device="cpu", runs=3, rounds=40)
    rows = json.loads(path.read_text())["rows"]
    cells = [(row["instance"], row["guarantee"], row["runs"]) for row in rows]
    assert cells == [(i, str(b), 3) for i in tails.instances for b in tails.budgets]
    assert len({i for i, one in tails.instances.items() if one.held_out}) >= 3
    page = tmp_path / "reproduction.md"
    page.write_text(f"head\n\n## {tails.after}: old\n\ntable\n\n## capri-fig1: next\n\ntable\n")
    write_reproduction(tmp_path, {})
    write_reproduction(tmp_path, {})  # it stays there once
    assert list(sections(page.read_text()))[:2] == [tails.after, tails.name]
    assert "Not played yet" not in page.read_text()
    assert page.read_text().count("| 99.99 % |") == 1


@pytest.mark.slow
def test_families_of_arms_are_measured_in_leaps_but_where_rewards_are_no_coins(tmp_path: Path) -> None:
    tails = ALL[0]
    some = {name: tails.instances[name] for name in ("5 arms", "exponential")}
    tails = tails._replace(instances=some, budgets=tails.budgets[:1])
    path = measure_tails(tmp_path, tails, device="cpu", leaps=True, runs=20, rounds=3000)
    record = json.loads(path.read_text())
    assert record["device"] == "cpu, in leaps where the policy and the rewards allow it"
    rows = {row["instance"]: row for row in record["rows"]}
    usual = {row["instance"]: row for row in tail_rows(tails, runs=20, rounds=3000)}
    assert rows["exponential"] == usual["exponential"]
    assert rows["5 arms"]["mean regret"] != usual["5 arms"]["mean regret"]
    assert "(cpu, in leaps where the policy and the rewards allow it)" in tails_section(tmp_path, tails)
    assert "--device cpu --leaps --runs 20 --out docs`" in tails_section(tmp_path, tails)


def test_what_was_measured_with_other_code_is_told(tmp_path: Path) -> None:
    tails = ALL[0]
    few = tails._replace(instances={"5 arms": tails.instances["5 arms"]}, budgets=tails.budgets[:1])
    path = measure_tails(tmp_path, few, device="cpu", runs=2, rounds=40)
    assert "older than its code" not in tails_section(tmp_path, few)
    record = json.loads(path.read_text())
    for code in ({"code": "another"}, {}):
        path.write_text(json.dumps({x: y for x, y in record.items() if x != "code"} | code))
        assert "older than its code" in tails_section(tmp_path, few)


def test_what_was_not_played_is_told(tmp_path: Path) -> None:
    tails = ALL[0]
    path = measure_tails(tmp_path, tails, device="cpu", runs=2, rounds=40)
    record = json.loads(path.read_text())
    first, second = list(tails.instances)[:2]
    others = [row for row in record["rows"] if row["instance"] not in (first, second)]
    record["rows"] = record["rows"][:1] + others
    told = [str(one) for one in tails.budgets][1:]
    path.write_text(json.dumps(record))
    assert f"Not played yet: {first} at {', '.join(told)}; {second}." in tails_section(tmp_path, tails)


@pytest.mark.parametrize("tails", ALL, ids=lambda tails: tails.name)
def test_without_the_file_the_page_has_no_such_section(tails: Tails, tmp_path: Path) -> None:
    assert tails_section(tmp_path, tails) == ""


@pytest.mark.parametrize("tails", ALL, ids=lambda tails: tails.name)
def test_the_page_shows_what_was_measured(tails: Tails) -> None:
    docs = Path(__file__).parents[2] / "docs"
    shown = sections((docs / "reproduction.md").read_text(encoding="utf-8"))[tails.name]
    assert shown == tails_section(docs, tails)
