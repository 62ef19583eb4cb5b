"""Numbers and tables as people read them."""

import io
import math

import pytest
from rich.console import Console

import dpbandits as dpb
from dpbandits.reports.tables import cell, column, terminal_table
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
