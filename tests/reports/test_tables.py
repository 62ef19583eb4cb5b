"""Numbers and tables as people read them."""

import io
import math

import pytest
from rich.console import Console

import dpbandits as dpb
from dpbandits.reports.tables import Ratio, cell, column, terminal_table
from dpbandits.wording import counted


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.466e-11, "0"),
        (2.5e-5, "2.5e-5"),
        (0.123456, "0.1235"),
        (123456.7, "123,457"),
        (math.nan, "–"),
        (None, ""),
        (True, "yes"),
        (1234, "1,234"),
    ],
)
def test_a_value_is_readable(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_numbers_of_a_column_have_as_many_decimals_as_each_other() -> None:
    assert column([{"x": 51.163}, {"x": 86.0}, {"x": None}, {"x": math.nan}], "x") == [
        "51.2",
        "86.0",
        "",
        "–",
    ]
    assert column([{"x": 1.5331}, {"x": 0.0}], "x") == ["1.53", "0.00"]
    # Numbers of very different sizes keep their own digits.
    assert column([{"x": 12345.6}, {"x": 0.0123}], "x") == ["12,346", "0.0123"]


def test_what_looks_like_markup_is_printed() -> None:
    screen = Console(file=io.StringIO(), width=80)
    screen.print(terminal_table([{"option": "means", "type": "tuple[float, ...]"}]))
    assert "tuple[float, ...]" in screen.file.getvalue()  # type: ignore[attr-defined]


def test_budgets_are_written_as_they_are_typed() -> None:
    assert str(dpb.ApproxDP(1.0, 1e-6)) == "(1, 1e-6)-DP"
    assert str(dpb.PureDP(1e-7)) == "1e-7-DP"
    assert counted(1, "run") == "1 run" and counted(0, "run") == "0 runs"


def test_a_large_ratio_does_not_round_the_others() -> None:
    rows = [{"times": Ratio(value)} for value in (1.04, 1.26, 515.0)] + [{"times": None}]
    assert column(rows, "times") == ["1.0", "1.3", "520", ""]


@pytest.mark.parametrize(
    "name", ["modified-thompson:prepulls=50", "modified-thompson:prepulls=5,caution=2"]
)
def test_words_of_a_header_are_never_broken(name: str) -> None:
    row = {"policy": name, "guarantee": "(1, 1e-6)-DP", "regret": 123456.0, "±": 1234.0}
    screen = Console(file=io.StringIO(), width=80)
    screen.print(terminal_table([row | {"worst run": 234567.0, "× twin": Ratio(515)}]))
    header = screen.file.getvalue().splitlines()[1]  # type: ignore[attr-defined]
    assert header.split() == ["policy", "guarantee", "regret", "±", "worst", "run", "×", "twin"]
