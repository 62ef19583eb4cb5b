"""`dpbandits experiment`: what to do with one that cannot go on."""

from pathlib import Path

import typer

from dpbandits.cli.command import Command
from dpbandits.cli.output import console
from dpbandits.cli.serve import DATABASE, KEYRING
from dpbandits.extras import check_installed

experiment = typer.Typer(
    name="experiment",
    help="End an experiment of a service that cannot go on. The service must be stopped.",
    no_args_is_help=True,
)
NAME = typer.Argument(help="Its name.")
REASON = typer.Option("it could not go on", help="What the public ledger says.")


@experiment.command("abandon", cls=Command)
def abandon(
    name: str = NAME, reason: str = REASON, database: str = DATABASE, keyring: Path = KEYRING
) -> None:
    """End it as it is: what it published stays, all else is erased."""
    check_installed("serve")
    from dpbandits.service.run import keyring_beside, open_keyring, open_store
    from dpbandits.service.succession import abandon as end

    store = open_store(database, create=False)
    try:
        end(store, open_keyring(store, keyring or keyring_beside(database)), name, reason)
    finally:
        store.close()
    console().print(f"abandoned {name}", highlight=False)


@experiment.command("successor", cls=Command)
def successor(
    name: str = NAME,
    new: str = typer.Argument(help="The name of the experiment in its place."),
    reason: str = REASON,
    database: str = DATABASE,
    keyring: Path = KEYRING,
) -> None:
    """End it as it is, and begin another with the same terms: budgets of both add up."""
    check_installed("serve")
    from dpbandits.service.run import keyring_beside, open_keyring, open_store
    from dpbandits.service.succession import succeed

    store = open_store(database, create=False)
    try:
        ring = open_keyring(store, keyring or keyring_beside(database))
        succeed(store, ring, name, new, reason)
    finally:
        store.close()
    console().print(f"abandoned {name}; {new} begins with the next start", highlight=False)
