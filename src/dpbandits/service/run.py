"""The service as a process: what `dpbandits serve` starts."""

import asyncio
import gc
import socket
import sys
import tomllib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import sqlalchemy as sa
import uvicorn

from dpbandits.errors import InvalidInput, ServiceError
from dpbandits.service.access import ApiKey, digest, new_key
from dpbandits.service.app import make_app
from dpbandits.service.ledger import Signer
from dpbandits.service.protocol import guarded
from dpbandits.service.recovery import directory
from dpbandits.service.sealing import Keyring
from dpbandits.service.service import Service
from dpbandits.service.store import Store, first_line, is_sqlite
from dpbandits.service.terms import InvalidTerms, Terms


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to run it."""

    database: str
    keyring: Path
    host: str = "127.0.0.1"
    port: int = 8000
    declared: Sequence[Terms] = ()
    operator_metrics: bool = False


def keyring_beside(database: str) -> Path:
    """Where the keyring is unless said otherwise: beside an SQLite file, or here."""
    return Path(f"{database}.keyring") if is_sqlite(database) else Path("dpbandits.keyring")


def read_experiments(path: Path) -> list[Terms]:
    """Those that a TOML file declares."""
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ServiceError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not TOML: {error}") from None
    listed = record.pop("experiment", None)
    if record or not isinstance(listed, list):
        raise InvalidInput(f"expected {path} to hold tables called [[experiment]] and nothing else")
    found: list[Terms] = []
    for place, one in enumerate(listed, 1):
        try:
            found.append(Terms.read(one))
        except InvalidTerms as error:
            raise InvalidInput(f"experiment {place} of {path}, {error.field}: {error}") from None
    names = [terms.name for terms in found]
    if len(set(names)) < len(names):
        raise InvalidInput(f"two experiments of {path} have the same name")
    return found


def open_store(database: str, *, create: bool = True) -> Store:
    """A database with the tables of this version; with `create`, an SQLite file may be new."""
    if not create and is_sqlite(database) and not Path(database).exists():
        raise InvalidInput(
            f"there is no database at {database}: say which with --db; `dpbandits serve` makes one"
        )
    store = Store(database)
    try:
        store.migrate()
    except sa.exc.SQLAlchemyError as error:
        store.close()
        # An address may hold a password.
        named = database if store.is_sqlite else "that database"
        raise ServiceError(f"cannot use {named}: {first_line(error)}") from None
    return store


def open_keyring(store: Store, path: Path) -> Keyring:
    """The keyring of a database; made with the database, and never again."""
    keyring = Keyring(path, create=store.keyring_name() is None)
    # In this order: another process may be making the two at this moment.
    if keyring.begun and store.keyring_name() is None:
        raise ServiceError(
            f"the keyring {path} belongs to another database, and this one is new: if that database is "
            "lost, so is what it learned; start anew with another keyring"
        )
    return keyring


def _refuse_other_terms(store: Store, keyring: Keyring, declared: Sequence[Terms]) -> None:
    """At once: a standby would find out when it is needed."""
    if store.keyring_name() not in (None, keyring.name):
        raise ServiceError("the keyring belongs to another database: it cannot open this one")
    known = {one.terms.name: one.terms for one in directory(store)}
    for terms in declared:
        if terms.name in known:
            terms.refuse_other_than(known[terms.name])


def first_key(store: Store) -> str | None:
    """An administrator's key, where there is no key yet."""
    if store.keys():
        return None
    text = new_key()
    store.add_key(ApiKey(name="admin", digest=digest(text), scopes=frozenset({"admin"})))
    return text


def serve(
    settings: Settings, *, show_keys: Callable[[str, str], None], say: Callable[[Service], None]
) -> None:
    """Run until a signal; `say` is called once it is ready or stands by.

    `show_keys` is called at the first start, with the administrator's key and the ledger's public one.
    """
    with ExitStack() as held:
        listening = held.enter_context(_listen(settings.host, settings.port))
        store = open_store(settings.database)
        held.callback(store.close)
        keyring = open_keyring(store, settings.keyring)
        _refuse_other_terms(store, keyring, settings.declared)
        if (admin := first_key(store)) is not None:
            show_keys(admin, Signer(keyring.secret_for("ledger")).public_key)
        _serve(settings, listening, store, keyring, say)


def _serve(
    settings: Settings,
    listening: socket.socket,
    store: Store,
    keyring: Keyring,
    say: Callable[[Service], None],
) -> None:
    failed = list[str]()

    def fail(sentence: str) -> None:
        failed.append(sentence)
        server.should_exit = True

    service = Service(
        store,
        keyring,
        declared=settings.declared,
        fail=fail,
        operator_metrics=settings.operator_metrics,
    )
    config = uvicorn.Config(
        make_app(service),
        host=settings.host,
        port=settings.port,
        http=guarded(),
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # nobody may pass for this machine
        timeout_graceful_shutdown=10,
    )
    server = _Announced(config, service, lambda: say(service))
    sys.setswitchinterval(0.001)  # the writer and the event loop share the interpreter
    server.run(sockets=[listening])
    if failed:
        raise ServiceError(failed[0])


def _listen(host: str, port: int) -> socket.socket:
    """Before anything else is done: a port that is taken is the commonest mistake."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ServiceError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listening


class _Announced(uvicorn.Server):
    """A server that says when it can be used."""

    def __init__(self, config: uvicorn.Config, service: Service, say: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._say = service, say

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; uvicorn would raise the signal again afterwards, as if it had not been heeded."""
        super().handle_exit(sig, frame)
        self._captured_signals.clear()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        while self._service.writer.state not in ("ready", "standby", "failed", "stopped"):
            await asyncio.sleep(0.02)
        # What is there now stays: looking through it again and again would hold everybody up for 0.15 s.
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)  # and requests leave hardly any cycles behind
        if self._service.writer.state in ("ready", "standby"):
            self._say()
