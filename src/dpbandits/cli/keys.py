"""`dpbandits keys`: API keys of a service."""

import typer

from dpbandits.cli.command import Command
from dpbandits.cli.output import JSON, console, print_json, print_rows
from dpbandits.cli.serve import DATABASE
from dpbandits.errors import InvalidInput
from dpbandits.extras import check_installed

keys = typer.Typer(
    name="keys",
    help="API keys of a service: who may decide, reward, administer.",
    no_args_is_help=True,
)


@keys.command("new", cls=Command)
def new(
    name: str = typer.Argument(help="What to call it; you revoke it by this name."),
    scopes: list[str] = typer.Option(..., "--scope", help="decide, reward, metrics or admin."),
    experiments: list[str] = typer.Option(None, "--experiment", help="Only for these; else for all."),
    rate: float = typer.Option(None, help="Requests a second at most."),
    database: str = DATABASE,
) -> None:
    """Make a key. It is shown this once; the database keeps a hash."""
    check_installed("serve")
    from dpbandits.service.access import ApiKey, digest, new_key
    from dpbandits.service.run import open_store

    text = new_key()
    some = frozenset(experiments) if experiments else None
    key = ApiKey(name=name, digest=digest(text), scopes=frozenset(scopes), experiments=some, rate=rate)
    store = open_store(database, create=False)
    try:
        if not store.add_key(key):
            raise InvalidInput(
                f"there is a key called {name!r}; revoke it first, or choose another name"
            )
    finally:
        store.close()
    console().print(text, soft_wrap=True, highlight=False)


@keys.command("list", cls=Command)
def list_keys(database: str = DATABASE, as_json: bool = JSON) -> None:
    """All keys, without the keys themselves."""
    check_installed("serve")
    from dpbandits.service.run import open_store

    store = open_store(database, create=False)
    held = store.keys()
    rows = [
        {
            "name": key.name,
            "scopes": ", ".join(sorted(key.scopes)),
            "experiments": "all" if key.experiments is None else ", ".join(sorted(key.experiments)),
            "rate": "no limit" if key.rate is None else f"{key.rate:g} a second",
        }
        for key in held
    ]
    store.close()
    if as_json:
        print_json(rows)
    else:
        print_rows(rows, f"Keys of {database}")


@keys.command("revoke", cls=Command)
def revoke(
    name: str = typer.Argument(help="As `dpbandits keys list` shows it."), database: str = DATABASE
) -> None:
    """Revoke a key; a service that runs knows within some seconds."""
    check_installed("serve")
    from dpbandits.service.run import open_store

    store = open_store(database, create=False)
    try:
        if not store.revoke_key(name):
            raise InvalidInput(f"no key is called {name!r}")
    finally:
        store.close()
    console().print(f"revoked {name}", highlight=False)
