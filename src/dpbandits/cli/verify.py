"""`dpbandits verify`."""

import json
import sys
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError

import typer

from dpbandits.cli.output import JSON, console, print_json
from dpbandits.errors import LedgerError

_WAIT = 30.0  # seconds, for each part


def verify(
    ledger: str = typer.Argument(
        help="The ledger of an experiment: a file, - for the standard input, or its address, as "
        "http://localhost:8000/v1/experiments/headline/ledger."
    ),
    key: str = typer.Option(
        None, metavar="HEX", help="The public key it must be signed under, noted when it was opened."
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

    found = _fetched(ledger) if ledger.startswith(("http://", "https://")) else _filed(ledger)
    verdict = verify_entries(found, key=key, head=head)
    if as_json:
        print_json(verdict.to_dict())
        return
    entries = "1 entry" if verdict.entries == 1 else f"{verdict.entries:,} entries"
    said = console()
    said.print(f"[bold green]The ledger holds together[/] ({entries}).\n")
    for line in (verdict.experiment, verdict.guarantee, "", *verdict.lines, ""):
        said.print(line, markup=False, soft_wrap=True)
    said.print(f"key   {verdict.key}\nhead  {verdict.head}", style="dim", soft_wrap=True)


def _filed(name: str) -> list[Any]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise LedgerError(f"{name} is not a JSON document") from None
    return _entries(text, name)


def _fetched(address: str) -> list[Any]:
    """All of it: a service gives long ones in parts."""
    address = address.rstrip("/")
    address = address if address.endswith("/ledger") else f"{address}/ledger"
    entries: list[Any] = []
    while True:
        try:
            with urllib.request.urlopen(f"{address}?after={len(entries) - 1}", timeout=_WAIT) as answer:
                part = _entries(answer.read(), address)
        except (URLError, HTTPException, ValueError) as error:
            raise LedgerError(f"{address} does not answer with a ledger: {error}") from None
        if not part:
            return entries
        entries += part


def _entries(text: str | bytes, source: str) -> list[Any]:
    """What is listed, by itself or as the answer of a service."""
    try:
        found = json.loads(text, object_pairs_hook=_once_each)
    except (ValueError, RecursionError):
        raise LedgerError(f"{source} is not a JSON document") from None
    entries = found.get("entries") if isinstance(found, dict) else found
    if not isinstance(entries, list):
        raise LedgerError(f"{source} is not a ledger: expected a list of entries")
    return entries


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A record; a name given twice could be read in two ways."""
    record = dict(pairs)
    if len(record) < len(pairs):
        raise LedgerError("a name is given twice in one record")
    return record
