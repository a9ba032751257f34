"""Connections: one pool a database, set up as the settings say."""

from __future__ import annotations

import asyncio
import functools
import logging
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import aiosqlite
import asyncmy.connection
import sqlalchemy as sa
from sqlalchemy import AsyncAdaptedQueuePool
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from bayplan.ledger.store.settings import Address, Dialect, StoreSettings

PROGRAM = "bayplan-ledger"
_MILLI = 1000
_MAPPED = 1 << 31
"""Bytes: as much as SQLite takes unless it was built for more."""
_THREAD_ENDS = 5.0
"""Seconds that the thread of a connection that failed has to end."""


def sqlite_uri(address: Address, *, create: bool = False) -> str:
    """An SQLite file as a URI that does not make the file by accident."""
    return f"file:{quote(str(address.path))}?mode={'rwc' if create else 'rw'}"


def engine_for(address: Address, settings: StoreSettings, *, create: bool = False) -> AsyncEngine:
    """A pool of connections; none is made yet. `create` lets SQLite make a missing file."""
    common: dict[str, Any] = {"pool_size": settings.pool_size, "max_overflow": 0, "pool_pre_ping": True}
    common["pool_timeout"] = settings.connect_timeout
    if address.dialect is Dialect.SQLITE:
        uri = sqlite_uri(address, create=create)
        common |= {"async_creator": functools.partial(_sqlite, uri, settings), "poolclass": AsyncAdaptedQueuePool}
        return create_async_engine("sqlite+aiosqlite://", **common)
    if address.dialect is Dialect.POSTGRESQL:
        return create_async_engine(
            address.url.set(drivername="postgresql+asyncpg"),
            connect_args={
                "timeout": settings.connect_timeout,
                "ssl": settings.tls_context() or False,
                "server_settings": {
                    "application_name": PROGRAM,
                    "statement_timeout": str(round(settings.statement_timeout * _MILLI)),
                },
            },
            **common,
        )
    return _mysql(address, settings, common)


async def _sqlite(uri: str, settings: StoreSettings) -> aiosqlite.Connection:
    """A connection that reads through memory, not by a system call a page."""
    connection = aiosqlite.connect(uri, uri=True, timeout=settings.statement_timeout)
    connection._thread.daemon = True  # noqa: SLF001 - as SQLAlchemy does: a store left open must not keep the process
    try:
        await connection
        await connection.execute(f"PRAGMA mmap_size = {_MAPPED}")
    except BaseException:  # no file, or no database
        with suppress(ValueError):  # it never opened
            await connection.close()
        # its thread ends by telling this loop so, which may be gone before: wait for it
        await asyncio.to_thread(connection._thread.join, _THREAD_ENDS)  # noqa: SLF001 - it has no other name
        raise
    return connection


async def _greeted(within: float, **arguments: Any) -> Any:
    """A connection, unless the server takes longer than that to greet: the driver's own limit is for TCP alone."""
    made: Any = asyncmy.connection.Connection  # untyped
    connection = made(**arguments)
    try:
        async with asyncio.timeout(within):
            await connection.connect()
    except BaseException:  # it does not close what it had opened
        connection.close()
        raise
    return connection


def _mysql(address: Address, settings: StoreSettings, common: dict[str, Any]) -> AsyncEngine:
    logging.getLogger("asyncmy").setLevel(logging.ERROR)  # it logs the server's notes on style; errors are raised
    engine = create_async_engine(
        address.url.set(drivername="mysql+asyncmy"),
        connect_args={
            "connect_timeout": max(1, round(settings.connect_timeout)),
            "charset": "utf8mb4",
            "ssl": settings.tls_context(),
            "program_name": PROGRAM,
            "async_creator_fn": functools.partial(_greeted, settings.connect_timeout),
        },
        isolation_level="READ COMMITTED",  # no locks on the gaps between keys: two clusters' ledgers do not meet
        **common,
    )

    @sa.event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute("SELECT VERSION()")
        is_mariadb = "mariadb" in cursor.fetchone()[0].lower()
        limit = settings.statement_timeout
        words = f"max_statement_time = {limit}" if is_mariadb else f"max_execution_time = {round(limit * _MILLI)}"
        cursor.execute(
            f"SET SESSION {words}, sql_mode = 'TRADITIONAL', innodb_lock_wait_timeout = {max(1, round(limit))}"
        )
        cursor.close()

    return engine
