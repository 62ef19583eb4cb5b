"""`dpbandits verify`."""

import json
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import typer

from dpbandits.cli.output import JSON, console, print_json
from dpbandits.errors import LedgerError


def verify(
    ledger: str = typer.Argument(
        help="The ledger of an experiment: a file, - for the standard input, or the experiment's "
        "address, http://localhost:8000/v1/experiments/NAME."
    ),
    key: str = typer.Option(
        None,
        metavar="HEX",
        help="The public key it must be signed under, as the service first printed it.",
    ),
    head: str = typer.Option(
        None, metavar="HEX", help="A hash that must be in it, as a decision's answer carried it."
    ),
    as_json: bool = JSON,
) -> None:
    """Check a service's ledger: its chain, its signatures, and the guarantee, derived anew.

    It fails with the first thing that is wrong.
    """
    from dpbandits.service.ledger import verify as verify_entries  # comes with an extra

    verdict = verify_entries(_entries(ledger), key=key, head=head)
    if as_json:
        print_json(verdict.to_dict())
        return
    entries = "1 entry" if verdict.entries == 1 else f"{verdict.entries:,} entries"
    said = console()
    said.print(f"[bold green]The ledger holds together[/] ({entries}).\n")
    for line in (verdict.experiment, verdict.guarantee, "", *verdict.lines, ""):
        said.print(line, markup=False, soft_wrap=True)
    said.print(f"key   {verdict.key}\nhead  {verdict.head}", style="dim", soft_wrap=True)


def _entries(place: str) -> list[Any]:
    """What a file or a service lists."""
    if place.startswith(("http://", "https://")):
        return _fetched(place.rstrip("/").removesuffix("/ledger"))
    text = sys.stdin.read() if place == "-" else Path(place).read_text(encoding="utf-8")
    return _listed(place, text)


def _fetched(address: str) -> list[Any]:
    """All pages of a ledger."""
    entries: list[Any] = []
    while True:
        try:
            with urlopen(f"{address}/ledger?after={len(entries) - 1}", timeout=30) as answer:
                text = answer.read().decode()
        except (OSError, ValueError) as error:
            raise LedgerError(f"{address} cannot be read: {error}") from None
        more = _listed(address, text)
        if not more:
            return entries
        entries += more


def _listed(place: str, text: str) -> list[Any]:
    """The entries of a document, by themselves or as a service answers them."""
    try:
        found = json.loads(text, object_pairs_hook=_once_each)
    except (ValueError, RecursionError):
        raise LedgerError(f"{place} is not a JSON document") from None
    entries = found.get("entries") if isinstance(found, dict) else found
    if not isinstance(entries, list):
        raise LedgerError(f"{place} is not a ledger: expected a list of entries")
    return entries


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A record; a name given twice could be read in two ways."""
    record = dict(pairs)
    if len(record) < len(pairs):
        raise LedgerError("a name is given twice in one record")
    return record
