"""The ledger in SQL: schema, migrations, bulk writing, reading, retention. `port.py` says what the rest relies on."""
