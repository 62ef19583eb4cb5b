"""Rows as tables: as plain text, for the terminal, and for Markdown."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from dpbandits.extras import extra

if TYPE_CHECKING:
    from rich.table import Table

from dpbandits.wording import number

Row = Mapping[str, Any]
# Columns up to this wide are not broken; nor is a first column up to that wide, if it can be helped.
_WORD, _NAME = 14, 36


class Ratio(float):
    """A quotient of uncertain numbers: shown with two digits, whatever stands beside it.

    >>> [str(Ratio(x)) for x in (0.784, 1.02, 17.4, 515.0)]
    ['0.78', '1.0', '17', '520']
    """

    def __str__(self) -> str:
        rounded = float(f"{self:.2g}")
        decimals = 1 - math.floor(math.log10(rounded)) if rounded > 0.0 else 0
        return f"{rounded:,.{max(0, decimals)}f}"


def cell(value: Any) -> str:
    """One value, readable: numbers to four digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, Ratio):
        return str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def column(rows: Sequence[Row], key: str) -> list[str]:
    """The cells of a column; numbers of similar size have as many decimals as each other.

    A column called ± has as many as the one before it, which it belongs to.
    """
    values = [row[key] for row in rows]
    keys = list(rows[0])
    decimals = _decimals(rows, keys[keys.index(key) - 1] if key == "±" else key)
    if decimals is None:
        return [cell(value) for value in values]
    regular = [isinstance(x, float) and math.isfinite(x) for x in values]
    return [f"{x:,.{decimals}f}" if ok else cell(x) for x, ok in zip(values, regular, strict=True)]


def _decimals(rows: Sequence[Row], key: str) -> int | None:
    """Those of all numbers in a column, unless they are of very different sizes."""
    values = [row[key] for row in rows]
    sizes = [abs(x) for x in values if isinstance(x, float) and math.isfinite(x) and abs(x) >= 1e-9]
    if any(isinstance(value, Ratio) for value in values):
        return None
    if not sizes or max(sizes) > 1e4 * min(sizes) or min(sizes) < 1e-3:
        return None
    return max(0, 2 - math.floor(math.log10(max(sizes))))


def heading(key: str) -> str:
    """A column's key as people write it."""
    return key.replace("_", " ")


def is_numeric(rows: Sequence[Row], key: str) -> bool:
    """Whether a column holds numbers; it may have gaps."""
    return all(row[key] is None or isinstance(row[key], int | float) for row in rows)


def terminal_table(rows: Sequence[Row]) -> "Table":
    """A table for `rich.print`, which comes with the extra `cli`; numbers stand right and are whole."""
    with extra("cli"):
        from rich import box
        from rich.markup import escape
        from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    columns = {key: column(rows, key) for key in rows[0]}
    whole = {
        key: is_numeric(rows, key) or max(map(len, cells)) <= _WORD for key, cells in columns.items()
    }
    first, *others = columns
    if not all(whole[key] for key in others) and max(map(len, columns[first])) <= _NAME:
        whole[first] = True  # it names the row, and another column can give way
    for key in columns:
        side: Literal["left", "right"] = "right" if is_numeric(rows, key) else "left"
        table.add_column(heading(key), justify=side, overflow="fold", no_wrap=whole[key])
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(escape, row))  # `tuple[float]` is no markup
    return table


def text_table(rows: Sequence[Row]) -> str:
    """A table of plain text, aligned; numbers stand right.

    >>> print(text_table([{"policy": "lazy-ucb", "mean_regret": 1234.5}]))
    policy    mean regret
    lazy-ucb        1,234
    """
    columns = []
    for key in rows[0]:
        cells = [heading(key), *(cell(row[key]) for row in rows)]
        side = str.rjust if is_numeric(rows, key) else str.ljust
        columns.append([side(one, max(map(len, cells))) for one in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def markdown_table(rows: Sequence[Row]) -> str:
    """A Markdown table, a line a row."""
    keys = list(rows[0])
    lines = [" | ".join(heading(key) for key in keys), " | ".join("---" for _ in keys)]
    for row in rows:
        lines.append(" | ".join(cell(row[key]).replace("|", "\\|").replace("\n", " ") for key in keys))
    return "\n".join(f"| {line} |" for line in lines) + "\n"
