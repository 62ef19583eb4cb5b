"""One self-contained page: pictures, tables and sentences, nothing fetched from anywhere."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpbandits.reports.figures import DARK_INK, DARK_PAGE, INK, svg_text
from dpbandits.reports.tables import Row, column, heading, is_numeric
from dpbandits.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZES = 0.75, 1.5  # pixels a point of a picture: between, its letters are neither tiny nor huge
_COLOURS = f"""
:root {{ color-scheme: light dark; --ink: {INK}; --page: #fff; --soft: #4a5568; --line: #e2e8f0;
        --rule: #cbd5e0; --code: #f1f5f9; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: {DARK_INK}; --page: {DARK_PAGE}; --soft: #a3afbf; --line: #2a3340; --rule: #465365;
          --code: #1f2733; }}
}}
"""
_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; max-width: 58rem; margin: 2.5rem auto; padding: 0 1rem;
       color: var(--ink); background: var(--page); }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p.lead { color: var(--soft); margin-top: 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .4rem .7rem; border-bottom: 1px solid var(--line);
         vertical-align: top; }
th { font-weight: 600; border-bottom: 2px solid var(--rule); }
td.number, th.number { text-align: right; }
td:first-child { white-space: nowrap; }
div.wide { overflow-x: auto; } code { background: var(--code); padding: .1rem .3rem; }
figure { margin: 1.2rem 0; overflow-x: auto; } svg { width: 100%; height: auto; }
summary { cursor: pointer; margin: 1rem 0; } p code { overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { margin: 1.2rem auto; } table { font-size: .85rem; } th, td { padding: .35rem .45rem; }
  th:first-child, td:first-child { position: sticky; left: 0; background: var(--page); }
  td:first-child { white-space: normal; }
}
footer { color: var(--soft); font-size: .85rem; margin-top: 2.5rem; }
"""


class Page:
    """A page that is filled from top to bottom, then written."""

    def __init__(self, title: str, lead: str = "") -> None:
        self.title = title
        self._parts = [f"<h1>{html.escape(title)}</h1>"]
        if lead:
            self._parts.append(f'<p class="lead">{html.escape(lead)}</p>')

    def section(self, title: str) -> "Page":
        """A heading."""
        self._parts.append(f"<h2>{html.escape(title)}</h2>")
        return self

    def text(self, *sentences: str) -> "Page":
        """A paragraph for each."""
        self._parts += [f"<p>{html.escape(sentence)}</p>" for sentence in sentences]
        return self

    def command(self, line: str) -> "Page":
        """Something to paste into a terminal."""
        self._parts.append(f"<p><code>{html.escape(line)}</code></p>")
        return self

    def table(self, rows: Sequence[Row]) -> "Page":
        """Rows of the same keys."""
        self._parts.append(_table(rows))
        return self

    def folded(self, title: str, rows: Sequence[Row]) -> "Page":
        """A table that opens when its title is clicked."""
        self._parts.append(f"<details><summary>{html.escape(title)}</summary>{_table(rows)}</details>")
        return self

    def picture(self, figure: "Figure", caption: str = "") -> "Page":
        """A figure, drawn into the page itself."""
        drawing = svg_text(figure)
        least, most = (round(size * 72 * figure.get_figwidth()) for size in _SIZES)
        size = f"min-width: {least}px; max-width: {most}px"
        drawing = f'<svg style="{size}"{drawing[drawing.index("<svg") + 4 :]}'
        label = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
        self._parts.append(f"<figure>{drawing}{label}</figure>")
        return self

    def write(self, path: Path) -> Path:
        """The finished page."""
        body = "\n".join(self._parts)
        path.write_text(
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(self.title)}</title><style>{_COLOURS}{_STYLE}</style></head><body>\n{body}\n"
            f"<footer>Made by dpbandits {__version__}.</footer></body></html>\n",
            encoding="utf-8",
        )
        return path


def _table(rows: Sequence[Row]) -> str:
    """Rows of the same keys; where it is wider than the page, it moves within it."""
    kinds = {key: ' class="number"' if is_numeric(rows, key) else "" for key in rows[0]}
    head = "".join(f"<th{kind}>{html.escape(heading(key))}</th>" for key, kind in kinds.items())
    cells = zip(*(column(rows, key) for key in kinds), strict=True)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kind}>{html.escape(text)}</td>" for kind, text in zip(kinds.values(), row, strict=True)
        )
        + "</tr>"
        for row in cells
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
