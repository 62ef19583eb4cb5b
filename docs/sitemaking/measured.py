"""What the leaderboards of docs/reproduction.md say about one policy at ε = 1."""

import re
from typing import NamedTuple

from dpbandits.experiments.documentation import sections
from dpbandits.reports.tables import markdown_table

# Where no leaderboard has ε = 1, what it has for pure DP is shown.
_EPSILON_1 = re.compile(r"1-DP|\(1, .*\)-DP")


class Row(NamedTuple):
    """A line of a leaderboard: whose, under which guarantee, and the cell of each instance."""

    board: str
    label: str
    guarantee: str
    cells: dict[str, str]


def leaderboard_rows(whole: str) -> list[Row]:
    """All lines of all tables that compare policies."""
    found = []
    for board, text in sections(whole).items():
        if not board.endswith("-leaderboard"):
            continue
        title = re.findall(r"## [\w-]+: (.*)", text)[0]
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            head, _, *lines = [_cells(line) for line in table.splitlines()]
            if "policy" not in head:
                continue
            for line in lines:
                named = dict(zip(head, line, strict=True))
                label = named.pop("policy")
                # A board of one guarantee has it in its title.
                guarantee = named.pop("guarantee", "") or re.findall(r"ε = .*", title)[0]
                cells = {name: cell for name, cell in named.items() if cell}
                found.append(
                    Row(board, label, "not private" if "not private" in label else guarantee, cells)
                )
    return found


def measured(policy: str, rows: list[Row]) -> tuple[str, list[Row]]:
    """A sentence and the rows about a policy, by its command-line name; none where no board has it."""
    mine = [row for row in rows if _policy_of(row.label) == policy]
    for what, chosen in (
        ("at ε = 1", [r for r in mine if _EPSILON_1.fullmatch(r.guarantee) or "ε = 1" in r.guarantee]),
        ("at other ε", [r for r in mine if r.guarantee.endswith("-DP")]),
        ("without privacy", mine),
    ):
        if chosen:
            return what, chosen
    return "", []


def measured_table(rows: list[Row]) -> str:
    """A line for each instance, a column for each row of the board."""
    columns = [f"{row.label}, {row.guarantee}".replace(", not private", "") for row in rows]
    instances = dict.fromkeys(name for row in rows for name in row.cells)
    return markdown_table(
        [
            {"instance": name}
            | {column: row.cells.get(name, "") for column, row in zip(columns, rows, strict=True)}
            for name in instances
        ]
    )


def _policy_of(label: str) -> str:
    """`local Capri, as recommended` and `matroid-thompson:prior=beta` as command-line names."""
    short = re.split(r"[,:(]", label)[0].strip().replace("local ", "local-")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", short).lower()


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
