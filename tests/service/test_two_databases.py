"""Several services on one PostgreSQL cluster keep out of each other's way, and lose nothing."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from writers import ARMS, decide, writing

from dpbandits.errors import ServiceError
from dpbandits.service.store import Store

if TYPE_CHECKING:
    from postgres import Postgres

    from dpbandits.service.writer import Writer

pytestmark = pytest.mark.slow


def test_a_silent_writer_of_one_database_does_not_end_that_of_another(
    postgres: "Postgres", tmp_path: Path
) -> None:
    ours, theirs = postgres.new_database(), postgres.new_database()
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
    with writing(tmp_path / "ours", ARMS, database=ours) as writer:
        decide(writer)
        with writing(tmp_path / "theirs", ARMS, database=theirs):
            pass
        store = Store(theirs)
        with store._reading.begin() as db:
            db.execute(sa.text("update service set beat = 0"))
        assert not store.end_silent_writer(8.0)
        store.close()
        assert decide(writer).opened.number == 1
        assert [one.kind for one in ledger(writer)] == ["opened"]


def ledger(writer: "Writer") -> list[sa.Row[tuple[str]]]:
    """What kinds of entries there are: a writer that was ended would have resumed."""
    with writer.store.reading() as db:
        return list(db.execute(sa.text("select kind from ledger")))


def test_commits_are_durable_where_a_cluster_is_in_a_hurry(postgres: "Postgres") -> None:
    address = postgres.new_database()
    store = Store(address)
    with store._reading.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        name = sa.engine.make_url(address).database
        db.execute(sa.text(f'alter database "{name}" set synchronous_commit = off'))
    store.close()
    store = Store(address)
    assert store.acquire()
    with store.writing() as db:
        assert db.execute(sa.text("show synchronous_commit")).scalar() == "on"
    store.close()


def test_a_cluster_that_syncs_nothing_is_refused(postgres: "Postgres") -> None:
    store = Store(postgres.new_database())
    with syncing(store, "off"), pytest.raises(ServiceError, match="fsync = off"):
        store.acquire()
    assert store.acquire()
    store.close()


@contextmanager
def syncing(store: Store, setting: str) -> Iterator[None]:
    """With the whole cluster's `fsync` set to this."""
    with store._reading.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        set_fsync(db, setting)
        try:
            yield
        finally:
            set_fsync(db, "on")


def set_fsync(db: sa.Connection, setting: str) -> None:
    db.execute(sa.text(f"alter system set fsync = {setting}"))
    db.execute(sa.text("select pg_reload_conf()"))
    while db.execute(sa.text("show fsync")).scalar() != setting:
        time.sleep(0.02)
