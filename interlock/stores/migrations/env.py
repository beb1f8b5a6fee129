"""What Alembic runs: the revisions, in one transaction, on the connection that it was given."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="interlock_schema",
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
