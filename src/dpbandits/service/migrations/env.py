"""What Alembic runs: the migrations, within the transaction that it was given."""

from alembic import context

from dpbandits.service.tables import tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables,
    transactional_ddl=True,
    render_as_batch=True,
)
context.run_migrations()
