"""The page for people: one document, made on the server, without a script.

It is made of `View`s and ledgers only, so all of it is public. Names and labels may be anything: the
templates escape every text.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpbandits.extras import extra
from dpbandits.service.cards import card_of
from dpbandits.service.views import View

with extra("serve"):
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

_FOLDER = Path(__file__).parent / "templates"
_STYLE = (_FOLDER / "style.css").read_text(encoding="utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
# Nothing is fetched, framed or run: the page's own style is known by its hash.
CSP = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TEMPLATES = Environment(
    loader=FileSystemLoader(_FOLDER),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(
    views: Sequence[View],
    *,
    entries: Mapping[str, Sequence[Mapping[str, Any]]],
    standby: bool,
    version: str,
) -> bytes:
    """The whole page. Of each experiment's ledger the newest entries are enough."""
    cards = [card_of(view, entries.get(view.name, ())) for view in views]
    template = _TEMPLATES.get_template("page.html")
    page: str = template.render(cards=cards, standby=standby, version=version, style=_STYLE)
    return page.encode("utf-8", "replace")
