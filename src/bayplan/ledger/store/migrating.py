"""The schema's version: brought up to date by `migrate`, and only looked at by everything else.

A database is judged before anything is written to it: not migrated yet, older, newer than this program, or somebody
else's (it has a table of our name and no version of ours). Only `migrate` writes, and only to the first two.
"""

from __future__ import annotations

import asyncio
import functools
import os
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import AsyncConnection

from bayplan.ledger.store.engines import engine_for
from bayplan.ledger.store.faults import translated
from bayplan.ledger.store.port import SchemaError, StoreUnavailableError
from bayplan.ledger.store.schema import METADATA, VERSION_TABLE
from bayplan.ledger.store.settings import Address, Dialect, StoreSettings, parse_url
from bayplan.model.clock import monotonic

_LOCK = 0x6261_7970_6C61_6E  # "bayplan", for PostgreSQL's and MySQL's locks by number and name
_LOCK_WITHIN = 60
"""Seconds that MySQL waits for a migration that is under way; PostgreSQL and SQLite have their own limits."""
_AGAIN = 0.05
_CURE = "bring it up to date: bayplan ledger migrate --database URL"


def _config(connection: sa.Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


@functools.cache
def versions() -> tuple[str, ...]:
    """Every version of the schema, oldest first."""
    steps = ScriptDirectory.from_config(_config()).walk_revisions()
    return tuple(reversed([step.revision for step in steps]))


def _version(connection: sa.Connection, shown: str) -> str:
    """The version of a database; empty: not migrated yet. Raises SchemaError unless it is one of ours."""
    tables = set(sa.inspect(connection).get_table_names())
    found = None
    if VERSION_TABLE in tables:
        found = connection.scalar(sa.select(sa.column("version_num")).select_from(sa.table(VERSION_TABLE)))
    if found is None:
        same = sorted(tables & set(METADATA.tables))
        if same and VERSION_TABLE in tables:  # MySQL cannot take a half-made table back
            raise SchemaError(
                f"{shown}: a migration ended half-way", hint="drop its tables, if they are empty, and migrate again"
            )
        if same:
            raise SchemaError(
                f"{shown}: its table {same[0]} is not bayplan's", hint="give the ledger a database of its own"
            )
        return ""
    if found not in versions():
        raise SchemaError(
            f"{shown}: its schema is {found}, newer than this program's {versions()[-1]}",
            hint="use the bayplan that migrated it, or a later one",
        )
    return str(found)


async def check(connection: AsyncConnection, address: Address) -> None:
    """Whether a database has the schema of this program. Raises SchemaError; writes nothing."""
    found = await connection.run_sync(_version, address.shown)
    if found != versions()[-1]:
        state = f"its schema is {found}, this program's is {versions()[-1]}" if found else "it has no ledger yet"
        raise SchemaError(f"{address.shown}: {state}", hint=_CURE)


async def migrate(url: str, settings: StoreSettings | None = None) -> tuple[str, ...]:
    """Bring a database's schema up to date, making an SQLite file that is missing, for us alone; the steps taken.

    Calling it again, or twice at once, is safe. Raises SchemaError, StoreUnavailableError, StoreRefusedError,
    DatabaseUrlError.
    """
    address, settings = parse_url(url), settings or StoreSettings()
    if address.dialect is Dialect.SQLITE:
        _make_private(address.path)
    engine = engine_for(address, settings, create=True)
    try:
        with translated(address):
            async with engine.connect() as connection:
                # MySQL commits each table as it is made: who looks without the lock may see half a ledger
                if address.dialect is not Dialect.MYSQL:
                    if await connection.run_sync(_version, address.shown) == versions()[-1]:
                        return ()
                    await connection.rollback()  # the lock comes before the transaction that sees what others did
                if address.dialect is Dialect.SQLITE:
                    await _write_ahead(connection, settings.statement_timeout)
                return await connection.run_sync(_migrate, address)
    finally:
        await engine.dispose()


def _make_private(path: Path) -> None:
    """Make a file that is missing: SQLite would make it for everybody to read, and it holds whole pods with their
    environments. Those that SQLite puts beside it have its mode. One that is there is not opened: closing it would undo
    the locks that SQLite has on it. What else goes wrong SQLite says itself.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


async def _write_ahead(connection: AsyncConnection, within: float) -> None:
    """Have an SQLite file write ahead, as it does from then on. This statement does not wait its turn by itself."""
    begin = monotonic()
    while True:
        try:
            await connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        except sa.exc.OperationalError as error:
            if "locked" not in str(error) or monotonic() - begin > within:
                raise
            await asyncio.sleep(_AGAIN)
        else:
            await connection.rollback()
            return


def _migrate(connection: sa.Connection, address: Address) -> tuple[str, ...]:
    _lock(connection, address)
    found = _version(connection, address.shown)
    if found != versions()[-1]:
        command.upgrade(_config(connection), "head")
    connection.commit()
    return versions()[versions().index(found) + 1 if found else 0 :]


def _lock(connection: sa.Connection, address: Address) -> None:
    """One migration at a time: held until the connection closes, or the transaction ends.

    Raises StoreUnavailableError where MySQL, which does not count that as an error, could not give it.
    """
    if address.dialect is Dialect.SQLITE:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    elif address.dialect is Dialect.POSTGRESQL:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    elif connection.exec_driver_sql(f"SELECT GET_LOCK('bayplan-{_LOCK}', {_LOCK_WITHIN})").scalar() != 1:
        raise StoreUnavailableError(f"{address.shown}: another migration is under way", hint="wait for its end")
