"""How the schema came to be, step by step; Alembic runs them (`bayplan.ledger.store.migrating`)."""
