"""Rows as tables: as plain text, for the terminal, and for Markdown."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from dpbandits.extras import extra

if TYPE_CHECKING:
    from rich.table import Table

Row = Mapping[str, Any]


def cell(value: Any) -> str:
    """One value, readable: numbers to four digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if math.isnan(value):
            return "–"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def heading(key: str) -> str:
    """A column's key as people write it."""
    return key.replace("_", " ")


def is_numeric(rows: Sequence[Row], key: str) -> bool:
    """Whether a column holds numbers; it may have gaps."""
    return all(row[key] is None or isinstance(row[key], int | float) for row in rows)


def terminal_table(rows: Sequence[Row], title: str | None = None) -> "Table":
    """A table for `rich.print`, which comes with the extra `cli`; numbers stand right."""
    with extra("cli"):
        from rich import box
        from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for position, key in enumerate(rows[0]):
        # The first column names the row and is never broken; the others give way.
        side: Literal["left", "right"] = "right" if is_numeric(rows, key) else "left"
        table.add_column(heading(key), justify=side, overflow="fold", no_wrap=position == 0)
    for row in rows:
        table.add_row(*(cell(value) for value in row.values()))
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
