"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """To this version."""
    op.create_table(
        "service",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("keyring", sa.String(64), nullable=False),
        sa.Column("beat", sa.Float, nullable=False),
    )
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False, unique=True),
        sa.Column("terms", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("head", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "log",
        sa.Column("experiment", sa.Integer, primary_key=True),
        sa.Column("entry", sa.BigInteger, primary_key=True),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "snapshots",
        sa.Column("experiment", sa.Integer, primary_key=True),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("entry", sa.BigInteger, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "request_keys",
        sa.Column("experiment", sa.Integer, primary_key=True),
        sa.Column("key", sa.LargeBinary(16), primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("request_keys_at", "request_keys", ["experiment", "at"])
    op.create_table(
        "ledger",
        sa.Column("experiment", sa.Integer, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "api_keys",
        sa.Column("digest", sa.LargeBinary(32), primary_key=True),
        sa.Column("name", sa.String(100), nullable=False, unique=True),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("experiments", sa.Text),
        sa.Column("rate", sa.Float),
    )


def downgrade() -> None:
    """Back from this version."""
    for table in ("api_keys", "ledger", "request_keys", "snapshots", "log", "experiments", "service"):
        op.drop_table(table)
