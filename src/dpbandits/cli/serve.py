"""`dpbandits serve`."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dpbandits.cli.output import console
from dpbandits.extras import check_installed

if TYPE_CHECKING:
    from dpbandits.service.service import Service

DATABASE = typer.Option(
    "dpbandits.db", "--db", help="The service's database: an SQLite file, or postgresql://…"
)
KEYRING = typer.Option(
    None,
    help="The file of keys that opens the database. Unless given, beside an SQLite "
    "file: dpbandits.db.keyring; with PostgreSQL dpbandits.keyring in the working folder.",
)


def serve(
    experiments: Path = typer.Argument(None, help="A TOML file that declares experiments."),
    database: str = DATABASE,
    keyring: Path = KEYRING,
    host: str = typer.Option("127.0.0.1", help="The address to listen on; 0.0.0.0 for all."),
    port: int = typer.Option(8000, min=1, max=65535, help="The port to listen on."),
    operator_metrics: bool = typer.Option(
        False, help="Also count requests and times, for whoever has a key with the scope metrics."
    ),
) -> None:
    """Serve private decisions over HTTP; survives being killed at any moment.

    It prints its address, an administrator's key the first time, and each experiment's guarantee. Stop
    it with Ctrl-C. docs/service.md says how to run it for others.
    """
    check_installed("serve")
    from dpbandits.service.run import Settings, keyring_beside, read_experiments
    from dpbandits.service.run import serve as run

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    settings = Settings(
        database=database,
        keyring=keyring or keyring_beside(database),
        host=host,
        port=port,
        declared=[] if experiments is None else read_experiments(experiments),
        operator_metrics=operator_metrics,
    )
    run(settings, show_keys=_show_keys, say=lambda service: _tell(service, host, port))


def _show_keys(admin: str, ledger: str) -> None:
    console().print(f"administrator's key, shown this once: [bold]{admin}[/]", soft_wrap=True)
    console().print(f"ledgers are signed under {ledger} (note it for `dpbandits verify --key`)")


def _tell(service: "Service", host: str, port: int) -> None:
    shown = "localhost" if host in ("127.0.0.1", "0.0.0.0") else host
    out = console()
    state = "standing by" if service.writer.state == "standby" else "serving"
    out.print(f"{state} at http://{shown}:{port}", soft_wrap=True)
    for one in service.writer.running.values():
        if one.is_running:
            out.print(f"[bold]{one.terms.name}[/]: {one.desk.guarantee}", soft_wrap=True)
    if service.is_ready and not service.writer.running:
        out.print("no experiment yet: give a TOML file, or POST /v1/experiments")
