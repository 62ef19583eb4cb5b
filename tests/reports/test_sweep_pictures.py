"""Pictures of a sweep, from its table."""

from pathlib import Path

import polars as pl
import pytest

import dpbandits as dpb
from dpbandits.errors import InvalidInput


def table() -> pl.DataFrame:
    """Two policies, one of them not private, at three budgets on two worlds."""
    rows = []
    for world in ("one", "two"):
        for policy, epsilons in (("a", (0.1, 1.0, 4.0)), ("open", (None,))):
            for epsilon in epsilons:
                rows += [
                    {
                        "policy": policy,
                        "budget": "NonPrivate" if epsilon is None else "PureDP",
                        "epsilon": epsilon,
                        "world": world,
                        "rounds": 100,
                        "run": run,
                        "round": round_,
                        "regret": round_ / (epsilon or 8.0) + run,
                    }
                    for run in range(3)
                    for round_ in (10, 100)
                ]
    none = [pl.lit(None, pl.Float64).alias(x) for x in ("delta", "mu", "rho", "order", "divergence")]
    words = pl.col("policy", "budget", "world").cast(pl.Categorical)
    return pl.DataFrame(rows).with_columns(words, *none)


def test_a_panel_for_each_world_and_a_line_for_each_policy(tmp_path: Path) -> None:
    figure = dpb.plot_sweep(table(), tmp_path / "x.svg")
    assert [axes.get_title() for axes in figure.axes] == ["one", "two"]
    first = figure.axes[0]
    assert first.get_xlabel() == "ε" and [t.get_text() for t in first.get_xticklabels()] == [
        "0.1",
        "1",
        "4",
    ]
    assert first.get_ylabel() == "mean regret (bars: ± 2 standard errors)"
    line = first.containers[0].lines[0]  # type: ignore[attr-defined]
    assert list(line.get_ydata()) == pytest.approx([1001.0, 101.0, 26.0])
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {"a", "open"}
    assert (tmp_path / "x.svg").exists()


def test_against_rounds_lines_are_told_apart_by_budget() -> None:
    figure = dpb.plot_sweep(table(), against="round", panels="policy")
    assert [axes.get_title() for axes in figure.axes] == ["a", "open"]
    assert "ε = 0.1, one" in {line.get_label() for line in figure.axes[0].lines}


def test_what_cannot_be_drawn_is_a_sentence() -> None:
    for options, said in (
        ({"against": "eps"}, "expected against to be a column of the table, got 'eps'"),
        ({"panels": "place"}, "expected panels to be a column"),
        (
            {"against": "rounds"},
            "rounds is .* in all cells that have one, so there is",
        ),
        ({"against": "policy"}, "policy is not a number, so"),
    ):
        with pytest.raises(InvalidInput, match=said):
            dpb.plot_sweep(table(), **options)
    many = pl.concat(table().with_columns(pl.lit(float(d)).alias("delta")) for d in range(20))
    with pytest.raises(InvalidInput, match="lines cannot be told apart"):
        dpb.plot_sweep(many)
