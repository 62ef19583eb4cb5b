"""A database, SQLite or PostgreSQL, and who may write to it: nearly the same statements for both.

**The fence.** Whoever becomes the writer adds one to each experiment's epoch. Every transaction moves
the head of the experiments it touches, `where epoch = mine and head = what I read`, and must meet a row:
an earlier writer that wakes up, or a second one that should not be there, meets none and changes
nothing. Locks only decide who tries: a file lock beside SQLite, an advisory lock in PostgreSQL.

Nothing private is in a statement but sealed bytes and keyed hashes; errors never show parameters.
"""

import fcntl
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url

from dpbandits.errors import ServiceError
from dpbandits.extras import check_installed
from dpbandits.service.access import ApiKey
from dpbandits.service.tables import api_keys, experiments, ledger, log, request_keys, service, snapshots

_LOCK = 0x6470_6261_6E64  # of PostgreSQL: any number that is ours
_NOW = "extract(epoch from clock_timestamp())"  # by PostgreSQL's clock
# The last one is for speed: a statement that writes several rows keeps what undoes it in memory.
_PRAGMAS = {"journal_mode": "wal", "synchronous": "2", "secure_delete": "1", "temp_store": "2"}


class Fenced(Exception):
    """Another writer has taken over."""


class Snapshot(NamedTuple):
    """The newest one of an experiment, as it is stored."""

    generation: int
    entry: int
    fingerprint: str
    sealed: bytes


class Row(NamedTuple):
    """An experiment, as it is stored."""

    id: int
    name: str
    terms: str
    state: str
    epoch: int
    head: int


def is_sqlite(database: str) -> bool:
    """Whether this names a file, and not a PostgreSQL."""
    return not database.startswith(("postgresql://", "postgresql+psycopg://", "postgres://"))


class Store:
    """A database, and who may write to it."""

    def __init__(self, database: str | Path) -> None:
        self.database = str(database)
        self.is_sqlite = is_sqlite(self.database)
        self._lock_file: int | None = None
        self._writing = self._engine(writing=True)
        self._reading = self._engine(writing=False)
        self._held: Connection | None = None  # the writer's, which holds PostgreSQL's lock

    def _engine(self, *, writing: bool) -> Engine:
        # Parameters are sealed or hashed; still, none of them belongs into an error or a log.
        options: dict[str, Any] = {"hide_parameters": True}
        if self.is_sqlite:
            path = Path(self.database)
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            engine = sa.create_engine(
                sa.URL.create("sqlite+pysqlite", database=str(path)),  # whatever characters it has
                connect_args={"timeout": 5.0, "check_same_thread": False},
                poolclass=sa.pool.QueuePool,
                **options,
            )
            sa.event.listen(engine, "connect", _set_pragmas)
            begin = "BEGIN IMMEDIATE" if writing else "BEGIN"
            sa.event.listen(engine, "begin", lambda db: db.exec_driver_sql(begin))
            return engine
        check_installed("postgres")
        url = make_url(self.database).set(drivername="postgresql+psycopg")
        alive = {"keepalives": 1, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
        arguments = {"connect_timeout": 5, "application_name": "dpbandits", **alive}
        return sa.create_engine(url, connect_args=arguments, pool_pre_ping=not writing, **options)

    def migrate(self) -> None:
        """Bring the tables up to this version; nothing happens where they are."""
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
        with self._writing.begin() as db:
            if not self.is_sqlite:  # two processes that start at once
                db.execute(sa.text("select pg_advisory_xact_lock(:key)"), {"key": _LOCK + 1})
            config.attributes["connection"] = db
            command.upgrade(config, "head")

    def close(self) -> None:
        """Give back all connections and locks."""
        self.drop()
        self._writing.dispose()
        self._reading.dispose()
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    # Who writes

    def acquire(self) -> bool:
        """Become the one who tries to write; False while another process is."""
        if self.is_sqlite:
            return self._lock_beside()
        self.drop()
        held = self._writing.connect()
        try:
            if held.execute(sa.text("show fsync")).scalar() == "off":
                raise ServiceError("PostgreSQL runs with fsync = off and would lose answers: turn it on")
            # Stated as for SQLite: what was answered must not be lost because a cluster is in a hurry.
            if held.execute(sa.text("show synchronous_commit")).scalar() in ("off", "local"):
                held.execute(sa.text("set synchronous_commit = on"))
            # A plan that is kept was made for a table as it was: while it is short, all of it is read.
            held.execute(sa.text("set plan_cache_mode = force_custom_plan"))
            won = held.execute(sa.text("select pg_try_advisory_lock(:key)"), {"key": _LOCK}).scalar()
            held.commit()
        except BaseException:
            held.invalidate()
            held.close()
            raise
        if won:
            self._held = held
        else:
            held.close()
        return bool(won)

    def _lock_beside(self) -> bool:
        if self._lock_file is None:
            handle = os.open(f"{self.database}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                return False
            self._lock_file = handle
        self.drop()
        self._held = self._writing.connect()
        return True

    def drop(self) -> None:
        """Give up the writer's connection, in whatever state it is."""
        held, self._held = self._held, None
        if held is not None:
            with suppress(sa.exc.SQLAlchemyError):
                held.invalidate()
                held.close()

    def end_silent_writer(self, after: float) -> bool:
        """Where the writer has given no sign of life for so many seconds: end its connection.

        A process that was stopped still holds its lock. Should it wake up, the fence stops it.
        """
        silent = (
            "select pg_terminate_backend(l.pid) from pg_locks l, service s "
            "where l.locktype = 'advisory' and l.pid <> pg_backend_pid() "
            "and l.database = (select oid from pg_database where datname = current_database()) "
            "and (l.classid::bigint << 32 | l.objid::bigint) = :key "
            f"and {_NOW} - s.beat > :after"
        )
        with self._reading.begin() as db:
            return bool(db.execute(sa.text(silent), {"key": _LOCK, "after": after}).fetchall())

    def beat(self) -> None:
        """Give a sign of life, on a connection of its own: the writer's may be busy for long."""
        if not self.is_sqlite:
            with self._reading.begin() as db:
                db.execute(sa.text(f"update service set beat = {_NOW}"))

    def check_connection(self) -> None:
        """Fail if somebody else has ended the writer's."""
        if not self.is_sqlite:
            with self.writing() as db:
                db.execute(sa.text("select 1"))

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction of the writer."""
        if self._held is None:
            raise Fenced
        with self._held.begin():
            yield self._held

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One transaction of anybody else."""
        with self._reading.begin() as db:
            yield db

    # What the writer writes, within its transaction

    def belongs_to(self, db: Connection, keyring: str) -> None:
        """Note which keyring belongs to this database, or refuse another one."""
        known = db.execute(sa.select(service.c.keyring)).scalar()
        if known is None:
            beat = 0.0 if self.is_sqlite else sa.text(_NOW)
            db.execute(service.insert().values(id=1, keyring=keyring, beat=beat))
        elif known != keyring:
            raise ServiceError(
                "the keyring belongs to another database, or this database to another keyring: "
                "what is in it cannot be opened"
            )

    def claim(self, db: Connection) -> list[Row]:
        """All experiments, with a new epoch for each that runs: earlier writers are fenced from here."""
        running = experiments.c.state == "running"
        db.execute(experiments.update().where(running).values(epoch=experiments.c.epoch + 1))
        found = db.execute(sa.select(experiments).order_by(experiments.c.id))
        return [Row(*row) for row in found]

    def add_experiment(
        self, db: Connection, name: str, terms: Mapping[str, Any], *, after: int = 0
    ) -> int:
        """A new one; its number, of which there are fewer than 2²⁴ and which is above `after`."""
        last = db.execute(sa.select(sa.func.max(experiments.c.id))).scalar() or 0
        added = max(int(last), after) + 1
        if added >= 2**24:
            raise ServiceError("there is no room for more experiments in this database")
        values = {"name": name, "terms": json.dumps(terms), "state": "running", "epoch": 1, "head": 0}
        db.execute(experiments.insert().values(id=added, **values))
        return added

    def move_head(self, db: Connection, experiment: int, epoch: int, before: int, after: int) -> None:
        """The fence."""
        values = {"of": experiment, "mine": epoch, "was": before, "is": after}
        if db.execute(_FENCE, values).rowcount != 1:
            raise Fenced

    def suspend(self, db: Connection, experiment: int, epoch: int) -> None:
        """Decide no more, also after a restart; only a newer copy of the database may go on."""
        mine = experiments.c.id == experiment, experiments.c.epoch == epoch
        if db.execute(experiments.update().where(*mine).values(state="suspended")).rowcount != 1:
            raise Fenced

    def extend(
        self,
        db: Connection,
        experiment: int,
        epoch: int,
        before: int,
        sealed: bytes,
        keys: Collection[bytes],
        at: int,
    ) -> int:
        """What a batch writes of an experiment: the fence, a row of the log, keys. Its new head."""
        head = before + 1
        if self.is_sqlite:
            self.move_head(db, experiment, epoch, before, head)
            self.append(db, experiment, head, sealed)
            if keys:
                self.remember_keys(db, experiment, keys, at)
        else:  # in one go, since each statement is a wait for the server
            place = {"of": experiment, "mine": epoch, "was": before, "is": head}
            if not db.execute(_EXTEND, {**place, "sealed": sealed, "at": at, **_joined(keys)}).scalar():
                raise Fenced
        return head

    def append(self, db: Connection, experiment: int, entry: int, sealed: bytes) -> None:
        """One row of the log."""
        db.execute(_APPEND, {"experiment": experiment, "entry": entry, "sealed": sealed})

    def known_keys(self, db: Connection, experiment: int, keys: Collection[bytes]) -> set[bytes]:
        """Which of these requests were decided within the last hour."""
        known = _KNOWN_SQLITE if self.is_sqlite else _KNOWN_POSTGRES
        return {bytes(row[0]) for row in db.execute(known, {"of": experiment, **_joined(keys)})}

    def remember_keys(self, db: Connection, experiment: int, keys: Collection[bytes], at: int) -> None:
        """That these requests are decided, one or more."""
        db.execute(_REMEMBER, {"of": experiment, "at": at, **_joined(keys)})

    def forget_keys(self, db: Connection, experiment: int, before: int) -> None:
        """Those of requests so long ago."""
        of_it = request_keys.c.experiment == experiment
        db.execute(request_keys.delete().where(of_it, request_keys.c.at < before))

    def fold(self, db: Connection, experiment: int, snapshot: Snapshot) -> None:
        """A snapshot in place of the log up to it."""
        db.execute(snapshots.delete().where(snapshots.c.experiment == experiment))
        db.execute(snapshots.insert().values(experiment=experiment, **snapshot._asdict()))
        db.execute(log.delete().where(log.c.experiment == experiment, log.c.entry <= snapshot.entry))

    def end(self, db: Connection, experiment: int, state: str) -> None:
        """Mark an experiment as over, and erase all but what is public."""
        db.execute(experiments.update().where(experiments.c.id == experiment).values(state=state))
        for table in (log, snapshots, request_keys):
            db.execute(table.delete().where(table.c.experiment == experiment))

    def write_ledger(self, db: Connection, experiment: int, entry: Mapping[str, Any]) -> None:
        """One entry."""
        body = json.dumps(entry, ensure_ascii=False)
        place = {"experiment": experiment, "number": entry["number"], "kind": entry["kind"]}
        db.execute(ledger.insert().values(**place, body=body))

    # What recovery and everybody else reads

    def snapshot(self, db: Connection, experiment: int) -> Snapshot | None:
        """The newest."""
        found = db.execute(sa.select(snapshots).where(snapshots.c.experiment == experiment)).first()
        if found is None:
            return None
        return Snapshot(found.generation, found.entry, found.fingerprint, bytes(found.sealed))

    def log_after(self, db: Connection, experiment: int, entry: int) -> Iterator[tuple[int, bytes]]:
        """The rows after this one, in their order."""
        wanted = sa.select(log.c.entry, log.c.sealed).where(
            log.c.experiment == experiment, log.c.entry > entry
        )
        found = db.execute(wanted.order_by(log.c.entry), execution_options={"yield_per": 500})
        return ((number, bytes(sealed)) for number, sealed in found)

    def experiments(self, db: Connection) -> list[Row]:
        """All of them."""
        return [Row(*row) for row in db.execute(sa.select(experiments).order_by(experiments.c.id))]

    def last_ledger_entry(
        self, db: Connection, experiment: int, kind: str | None = None
    ) -> dict[str, Any] | None:
        """The newest, or the newest of a kind."""
        wanted = sa.select(ledger.c.body).where(ledger.c.experiment == experiment)
        if kind is not None:
            wanted = wanted.where(ledger.c.kind == kind)
        body = db.execute(wanted.order_by(ledger.c.number.desc()).limit(1)).scalar()
        return None if body is None else json.loads(body)

    def ledger_entries(
        self,
        db: Connection,
        experiment: int,
        after: int = -1,
        limit: int = 1000,
        kinds: Sequence[str] = (),
    ) -> list[dict[str, Any]]:
        """Those after a number, the first of many; all, or those of some kinds."""
        wanted = sa.select(ledger.c.body).where(
            ledger.c.experiment == experiment, ledger.c.number > after
        )
        if kinds:
            wanted = wanted.where(ledger.c.kind.in_(kinds))
        found = db.execute(wanted.order_by(ledger.c.number).limit(limit)).scalars()
        return [json.loads(body) for body in found]

    def pages(self, db: Connection, experiment: int, most: int) -> list[dict[str, Any]]:
        """The pages of a ledger; of many only some, the last among them."""
        count = sa.select(sa.func.max(ledger.c.number)).where(ledger.c.experiment == experiment)
        last = db.execute(count).scalar() or 0
        page = sa.select(sa.func.max(ledger.c.number)).where(
            ledger.c.experiment == experiment, ledger.c.kind == "page"
        )
        thinned = (ledger.c.number % max(1, last // most) == 0) | (
            ledger.c.number == page.scalar_subquery()
        )
        wanted = sa.select(ledger.c.body).where(
            ledger.c.experiment == experiment, ledger.c.kind == "page", thinned
        )
        return [json.loads(body) for body in db.execute(wanted.order_by(ledger.c.number)).scalars()]

    def keyring_name(self) -> str | None:
        """Which keyring belongs to this database; None before the first start."""
        with self.reading() as db:
            return db.execute(sa.select(service.c.keyring)).scalar()

    # API keys, which any process may change

    def keys(self) -> list[ApiKey]:
        """All of them."""
        with self.reading() as db:
            return [_api_key(row) for row in db.execute(sa.select(api_keys).order_by(api_keys.c.name))]

    def add_key(self, key: ApiKey) -> bool:
        """A new one; False if there is one of that name."""
        listed = None if key.experiments is None else json.dumps(sorted(key.experiments))
        values = {"scopes": json.dumps(sorted(key.scopes)), "experiments": listed, "rate": key.rate}
        try:
            with self._writing.begin() as db:
                db.execute(api_keys.insert().values(name=key.name, digest=key.digest, **values))
        except sa.exc.IntegrityError:
            return False
        return True

    def revoke_key(self, name: str) -> bool:
        """Remove one; False if there is none of that name."""
        with self._writing.begin() as db:
            return db.execute(api_keys.delete().where(api_keys.c.name == name)).rowcount == 1


def _api_key(row: Any) -> ApiKey:
    return ApiKey(
        name=row.name,
        digest=bytes(row.digest),
        scopes=frozenset(json.loads(row.scopes)),
        experiments=None if row.experiments is None else frozenset(json.loads(row.experiments)),
        rate=row.rate,
    )


_FENCE = (
    experiments.update()
    .where(
        experiments.c.id == sa.bindparam("of"),
        experiments.c.epoch == sa.bindparam("mine"),
        experiments.c.head == sa.bindparam("was"),
        experiments.c.state == "running",
    )
    .values(head=sa.bindparam("is"))
)
_APPEND = log.insert()
# Keys of 16 bytes as one parameter of one statement: for each further row that is written, or each
# answer of the server, this thread would have to get back the interpreter from the event loop.
_EACH = (
    "with recursive place(i) as "
    "(select 0 where :count > 0 union all select i + 1 from place where i + 1 < :count) "
    "select substr(:keys, 16 * i + 1, 16) as key from place"
)
_REMEMBER = sa.text(
    f"insert into request_keys (experiment, key, at) select :of, key, :at from ({_EACH}) as one"
)
_EXTEND = sa.text(
    "with fence as (update experiments set head = :is "
    "where id = :of and epoch = :mine and head = :was and state = 'running' returning id), "
    "entry as (insert into log (experiment, entry, sealed) select id, :is, :sealed from fence), "
    "remembered as (insert into request_keys (experiment, key, at) "
    f"select id, key, :at from fence cross join ({_EACH}) as one) "
    "select count(*) from fence"
)
_KNOWN = "select key from request_keys where experiment = :of and key"
_KNOWN_SQLITE = sa.text(f"{_KNOWN} in ({_EACH})")
# As an array, which is looked up in the index; to join it, the whole table might be read.
_KNOWN_POSTGRES = sa.text(f"{_KNOWN} = any(array({_EACH}))")


def _joined(keys: Collection[bytes]) -> dict[str, Any]:
    return {"keys": b"".join(keys), "count": len(keys)}


def _set_pragmas(connection: Any, _: object) -> None:
    """Durable before it is answered, and nothing left of what was deleted."""
    connection.isolation_level = None  # transactions are begun by us
    for name, value in _PRAGMAS.items():
        connection.execute(f"pragma {name} = {value}")
        found = connection.execute(f"pragma {name}").fetchone()[0]
        if str(found) != value:
            raise ServiceError(f"SQLite does not keep {name} = {value} here, but {found}")


def first_line(error: BaseException) -> str:
    """The first line of a database's error; never its parameters."""
    return (str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__])[0]
