"""The rare bad runs of arms: what is measured, and what the page says of it."""

import json
from pathlib import Path

import numpy as np
import pytest

from dpbandits.experiments.arms_leaderboard import BUDGETS, INSTANCES
from dpbandits.experiments.arms_tails import FILE, _summary, measure_tails, tails_section
from dpbandits.experiments.documentation import sections, write_reproduction


def test_a_summary_is_of_all_runs() -> None:
    regret = np.arange(100_001.0)
    row = _summary(np.random.default_rng(0).permutation(regret))
    assert row["runs"] == 100_001
    assert row["mean regret"] == 50_000.0
    assert row["standard error"] == pytest.approx(regret.std() / np.sqrt(regret.size), rel=1e-4)
    found = [row[name] for name in ("99 %", "99.9 %", "99.99 %", "worst run")]
    assert found == pytest.approx([99_000.0, 99_900.0, 99_990.0, 100_000.0])


@pytest.mark.slow
def test_every_instance_and_budget_is_measured_and_shown(tmp_path: Path) -> None:
    measure_tails(tmp_path / FILE, runs=3, more=5, device="cpu", rounds=40)
    rows = json.loads((tmp_path / FILE).read_text())["rows"]
    cells = [(row["instance"], row["guarantee"], row["runs"]) for row in rows]
    budgets = [str(budget) for budget in BUDGETS]
    assert cells[: len(INSTANCES) * len(BUDGETS)] == [(i, b, 3) for i in INSTANCES for b in budgets]
    assert cells[len(INSTANCES) * len(BUDGETS) :] == [(next(iter(INSTANCES)), b, 5) for b in budgets]
    page = tmp_path / "reproduction.md"
    page.write_text("head\n\n## arms-leaderboard: old\n\ntable\n\n## shariff-fig1: next\n\ntable\n")
    write_reproduction(tmp_path, {})
    write_reproduction(tmp_path, {})  # it stays there once
    assert list(sections(page.read_text())) == ["arms-leaderboard", "arms-tails", "shariff-fig1"]
    assert page.read_text().count("| 99.99 % |") == 1


def test_without_the_file_the_page_has_no_such_section(tmp_path: Path) -> None:
    assert tails_section(tmp_path / FILE) == ""


def test_the_page_shows_what_was_measured() -> None:
    docs = Path(__file__).parents[2] / "docs"
    shown = sections((docs / "reproduction.md").read_text(encoding="utf-8"))["arms-tails"]
    assert shown == tails_section(docs / FILE)
