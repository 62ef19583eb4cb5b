"""The tables in SQLite and in PostgreSQL: migrations, the fence, and who may write."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from postgres import Postgres

from dpbandits.errors import ServiceError
from dpbandits.service.access import ApiKey
from dpbandits.service.store import Fenced, Snapshot, Store, is_sqlite
from dpbandits.service.tables import log, tables

POSTGRES = pytest.param("PostgreSQL", marks=pytest.mark.slow)


@pytest.fixture(params=["SQLite", POSTGRES])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "SQLite":
        return str(tmp_path / "served.db")
    cluster: Postgres = request.getfixturevalue("postgres")
    return cluster.new_database()


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    found = Store(database)
    found.migrate()
    assert found.acquire()
    yield found
    found.close()


def added(store: Store, name: str = "one") -> int:
    with store.writing() as db:
        return store.add_experiment(db, name, {"name": name})


def test_the_migrations_lead_to_the_tables_and_nothing_is_left_to_do(store: Store) -> None:
    with store.reading() as db:
        assert compare_metadata(MigrationContext.configure(db), tables) == []
    store.migrate()  # again, with nothing to do
    with store.reading() as db:
        assert db.execute(sa.text("select version_num from alembic_version")).scalars().all() == ["0001"]


def test_a_table_that_no_migration_knows_is_noticed(store: Store) -> None:
    """The control: the comparison above can fail."""
    changed = sa.MetaData()
    for table in tables.tables.values():
        table.to_metadata(changed)
    changed.tables["log"].append_column(sa.Column("extra", sa.Integer))
    sa.Table("more", changed, sa.Column("id", sa.Integer, primary_key=True))
    with store.reading() as db:
        found = compare_metadata(MigrationContext.configure(db), changed)
    assert {one[0] for one in found} == {"add_column", "add_table"}


def test_the_fence_lets_one_writer_through(store: Store) -> None:
    one = added(store)
    with store.writing() as db:
        store.move_head(db, one, epoch=1, before=0, after=1)
    for epoch, before in ((2, 1), (0, 1), (1, 0), (1, 2)):
        with pytest.raises(Fenced), store.writing() as db:
            store.move_head(db, one, epoch, before, before + 1)
    with pytest.raises(Fenced), store.writing() as db:
        store.move_head(db, one + 1, 1, 0, 1)


def test_a_batch_is_written_as_a_whole_or_not_at_all(store: Store) -> None:
    one, other, keys = added(store), added(store, "two"), [bytes([index]) * 16 for index in range(40)]
    with store.writing() as db:
        assert store.extend(db, one, 1, 0, b"sealed", keys[:30], 5) == 1
        assert store.extend(db, one, 1, 1, b"rewards", (), 6) == 2
    for experiment, epoch, before in ((one, 7, 2), (one, 1, 1), (other, 1, 2), (other + 1, 1, 0)):
        with pytest.raises(Fenced), store.writing() as db:
            store.extend(db, experiment, epoch, before, b"more", keys[30:], 7)
    with pytest.raises(sa.exc.IntegrityError), store.writing() as db:
        store.extend(db, one, 1, 2, b"more", keys[29:], 7)  # one of them was decided
    with store.writing() as db:
        assert [row.head for row in store.experiments(db)] == [2, 0]
        assert list(store.log_after(db, one, 0)) == [(1, b"sealed"), (2, b"rewards")]
        assert list(store.log_after(db, other, 0)) == []
        assert store.known_keys(db, one, keys) == set(keys[:30])
        assert store.known_keys(db, other, keys) == set()


def test_what_a_fenced_writer_wrote_is_undone(store: Store) -> None:
    one, other = added(store), added(store, "two")

    def write() -> None:
        with store.writing() as db:
            store.extend(db, other, 1, 0, b"sealed", [b"k" * 16], 5)
            store.extend(db, one, 7, 0, b"sealed", [b"k" * 16], 5)

    with pytest.raises(Fenced):
        write()
    with store.writing() as db:
        assert list(store.log_after(db, other, 0)) == []
        assert store.known_keys(db, other, [b"k" * 16]) == set()


def test_a_claim_fences_the_writer_before_and_leaves_ended_ones_alone(store: Store) -> None:
    one, ended = added(store), added(store, "two")
    with store.writing() as db:
        store.end(db, ended, "stopped")
    with store.writing() as db:
        rows = store.claim(db)
    assert [(row.id, row.name, row.state, row.epoch) for row in rows] == [
        (one, "one", "running", 2),
        (ended, "two", "stopped", 1),
    ]
    for experiment, epoch in ((one, 1), (ended, 1)):  # nor does one that has ended take anything
        with pytest.raises(Fenced), store.writing() as db:
            store.move_head(db, experiment, epoch, 0, 1)


def test_one_entry_of_the_log_is_written_once(store: Store) -> None:
    one = added(store)
    with store.writing() as db:
        store.append(db, one, 1, b"sealed")
    with pytest.raises(sa.exc.IntegrityError) as error, store.writing() as db:
        store.append(db, one, 1, b"other sealed")
    assert "other" not in str(error.value)  # no parameters in errors


def test_a_fold_replaces_the_snapshot_and_the_log_up_to_it(store: Store) -> None:
    one, other = added(store), added(store, "two")
    with store.writing() as db:
        assert store.snapshot(db, one) is None
        for entry in (1, 2, 3):
            store.append(db, one, entry, bytes([entry]))
        store.append(db, other, 1, b"other")
        store.fold(db, one, Snapshot(0, 0, "{}", b"first"))
        store.fold(db, one, Snapshot(1, 2, "{}", b"second"))
    with store.writing() as db:
        assert store.snapshot(db, one) == Snapshot(1, 2, "{}", b"second")
        assert list(store.log_after(db, one, 0)) == [(3, b"\x03")]
        assert list(store.log_after(db, other, 0)) == [(1, b"other")]
        assert store.snapshot(db, other) is None


def test_an_experiment_that_ended_leaves_what_is_public_and_nothing_else(store: Store) -> None:
    one = added(store)
    with store.writing() as db:
        store.append(db, one, 1, b"sealed")
        store.fold(db, one, Snapshot(0, 0, "{}", b"first"))
        store.remember_keys(db, one, [b"k" * 16], 5)
        store.write_ledger(db, one, {"number": 0, "kind": "opened", "text": "größe"})
        store.end(db, one, "stopped")
    with store.reading() as db:
        assert store.snapshot(db, one) is None and list(store.log_after(db, one, -1)) == []
        assert store.known_keys(db, one, [b"k" * 16]) == set()
        assert [row.state for row in store.experiments(db)] == ["stopped"]
        assert store.last_ledger_entry(db, one) == {"number": 0, "kind": "opened", "text": "größe"}


def test_request_keys_are_of_one_experiment_and_forgotten_by_age(store: Store) -> None:
    one, other = added(store), added(store, "two")
    keys = [bytes([index]) * 16 for index in range(5)]
    with store.writing() as db:
        for at, key in enumerate(keys):
            store.remember_keys(db, one, [key], at)
        store.remember_keys(db, other, keys[:1], 0)
    with store.writing() as db:
        assert store.known_keys(db, one, [*keys, b"x" * 16]) == set(keys)
        assert store.known_keys(db, one, []) == set()
        store.forget_keys(db, one, before=3)
        assert store.known_keys(db, one, keys) == set(keys[3:])
        assert store.known_keys(db, other, keys) == set(keys[:1])
    with pytest.raises(sa.exc.IntegrityError), store.writing() as db:
        store.remember_keys(db, one, keys[4:], 9)


@pytest.mark.slow
def test_keys_are_looked_up_and_not_read_through(postgres: Postgres) -> None:
    """PostgreSQL keeps the plans of a session; one made for a short table reads all of a long one."""
    store = Store(postgres.new_database())
    store.migrate()
    assert store.acquire()
    keys = [index.to_bytes(16, "big") for index in range(30_000)]
    with store.writing() as db:
        store.remember_keys(db, 1, keys[:5], 5)
        db.execute(sa.text("analyze request_keys"))
    for _ in range(20):
        with store.writing() as db:
            assert store.known_keys(db, 1, keys[:20]) == set(keys[:5])
    with store.writing() as db:
        store.remember_keys(db, 1, keys[5:], 5)
    read = "select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = :name"
    with store.writing() as db:
        assert store.known_keys(db, 1, keys[:20]) == set(keys[:20])
        rows = db.execute(sa.text(read), {"name": "request_keys"}).scalar_one()
    store.close()
    assert rows < 1_000


def test_a_database_belongs_to_one_keyring(store: Store) -> None:
    assert store.keyring_name() is None
    with store.writing() as db:
        store.belongs_to(db, "mine")
    with store.writing() as db:
        store.belongs_to(db, "mine")
    assert store.keyring_name() == "mine"
    with pytest.raises(ServiceError, match="belongs to another"), store.writing() as db:
        store.belongs_to(db, "yours")


def test_the_ledger_is_read_from_a_number_on_and_by_kind(store: Store) -> None:
    one = added(store)
    kinds = ["opened", "page", "changed", "page", "page", "resumed"]
    with store.writing() as db:
        for number, kind in enumerate(kinds):
            store.write_ledger(db, one, {"number": number, "kind": kind})
    with store.reading() as db:
        numbers = [entry["number"] for entry in store.ledger_entries(db, one, after=1, limit=3)]
        assert numbers == [2, 3, 4]
        last = store.last_ledger_entry(db, one, "page")
        assert last is not None and last["number"] == 4
        assert store.last_ledger_entry(db, one + 1) is None
        assert [page["number"] for page in store.pages(db, one, most=100)] == [1, 3, 4]
        assert [page["number"] for page in store.pages(db, one, most=2)] == [4]  # the last one always
    with pytest.raises(sa.exc.IntegrityError), store.writing() as db:
        store.write_ledger(db, one, {"number": 5, "kind": "page"})


def test_api_keys_are_kept_and_revoked(store: Store) -> None:
    some = ApiKey(name="a", digest=b"1" * 32, scopes=frozenset({"decide"}), experiments=frozenset({"x"}))
    every = ApiKey(name="b", digest=b"2" * 32, scopes=frozenset({"admin"}), rate=2.5)
    store.drop()  # any process may do this, the writer's transaction aside
    assert store.add_key(some) and store.add_key(every)
    assert not store.add_key(ApiKey(name="a", digest=b"3" * 32, scopes=frozenset({"reward"})))
    assert store.keys() == [some, every]
    assert store.revoke_key("a") and not store.revoke_key("a")
    assert store.keys() == [every]


def test_one_process_writes_at_a_time(store: Store, database: str) -> None:
    other = Store(database)
    try:
        assert not other.acquire()
        with pytest.raises(Fenced), other.writing():
            pass
        store.close()
        assert other.acquire()
    finally:
        other.close()


def test_names_are_unique(store: Store) -> None:
    added(store)
    with pytest.raises(sa.exc.IntegrityError):
        added(store)
    assert json.loads(_first_terms(store)) == {"name": "one"}


def _first_terms(store: Store) -> str:
    with store.reading() as db:
        return store.experiments(db)[0].terms


@pytest.mark.parametrize("name", ["served.db", "with space.db", "a?b#c%20.db", "größe.db"])
def test_the_file_is_where_it_was_named_durable_and_for_its_owner_only(
    tmp_path: Path, name: str
) -> None:
    store = Store(tmp_path / name)
    store.migrate()
    assert store.acquire()
    with store.writing() as db:
        found = {
            pragma: db.exec_driver_sql(f"pragma {pragma}").scalar()
            for pragma in ("journal_mode", "synchronous", "secure_delete")
        }
        store.add_experiment(db, "one", {})
    assert found == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}
    for path in tmp_path.iterdir():
        assert path.name.startswith(name)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    store.close()


def test_a_place_where_sqlite_cannot_be_durable_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store(":memory:")  # which has no write-ahead log
    with pytest.raises(ServiceError, match="SQLite does not keep journal_mode"):
        store.migrate()
    store.close()


def test_what_names_a_server_and_what_a_file() -> None:
    for url in ("postgresql://x/y", "postgresql+psycopg://x/y", "postgres://x/y"):
        assert not is_sqlite(url)
    for path in ("served.db", "/data/served.db", "postgresql.db"):
        assert is_sqlite(path)


@pytest.mark.slow
def test_a_writer_loses_its_connection_where_it_gives_no_signs(postgres: Postgres) -> None:
    database = postgres.new_database()
    store, other = Store(database), Store(database)
    try:
        store.migrate()
        assert store.acquire()
        with store.writing() as db:
            store.belongs_to(db, "mine")
        store.beat()
        assert not other.end_silent_writer(after=5.0)
        assert other.end_silent_writer(after=-1.0)
        with pytest.raises(sa.exc.OperationalError), store.writing() as db:
            db.execute(sa.select(log))
        assert other.acquire()
    finally:
        store.close()
        other.close()
