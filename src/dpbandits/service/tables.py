"""The tables of a service, the same in SQLite and in PostgreSQL.

| table | holds |
|---|---|
| experiments | name, terms, state; **epoch** and **head**, the fence |
| log | one sealed row for each commit since the last fold |
| snapshots | the newest snapshot of each experiment, sealed |
| request_keys | hashes of the request keys of the last hour |
| ledger | what is public, entry by entry |
| api_keys | SHA-256 of each key; 256 random bits need no slow hash |
| service | one row: which keyring belongs here, and the writer's sign of life |
"""

import sqlalchemy as sa

tables = sa.MetaData()

service = sa.Table(
    "service",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("keyring", sa.String(64), nullable=False),
    sa.Column("beat", sa.Float, nullable=False),
)
experiments = sa.Table(
    "experiments",
    tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("terms", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("head", sa.BigInteger, nullable=False),
)
log = sa.Table(
    "log",
    tables,
    sa.Column("experiment", sa.Integer, primary_key=True),
    sa.Column("entry", sa.BigInteger, primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
)
snapshots = sa.Table(
    "snapshots",
    tables,
    sa.Column("experiment", sa.Integer, primary_key=True),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("entry", sa.BigInteger, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
)
request_keys = sa.Table(
    "request_keys",
    tables,
    sa.Column("experiment", sa.Integer, primary_key=True),
    sa.Column("key", sa.LargeBinary(16), primary_key=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Index("request_keys_at", "experiment", "at"),
    sqlite_with_rowid=False,  # keys are random: one tree of them is enough to write to
)
ledger = sa.Table(
    "ledger",
    tables,
    sa.Column("experiment", sa.Integer, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)
api_keys = sa.Table(
    "api_keys",
    tables,
    sa.Column("digest", sa.LargeBinary(32), primary_key=True),
    sa.Column("name", sa.String(100), nullable=False, unique=True),
    sa.Column("scopes", sa.Text, nullable=False),
    sa.Column("experiments", sa.Text),
    sa.Column("rate", sa.Float),
)
