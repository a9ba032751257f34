"""What Alembic runs: the steps, on the connection that migrating.py holds."""

from __future__ import annotations

from alembic import context

from bayplan.ledger.store.schema import METADATA, VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
context.run_migrations()
