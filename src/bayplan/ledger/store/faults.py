"""A driver's error, judged by the one question that a caller has: is it worth trying again?

Temporary is what a database, a network or a disk gets over: down, starting, full, locked, out of time. Everything else
would fail again. One line, the driver's own words, never the password.
"""

from __future__ import annotations

import contextlib
import sqlite3
import ssl
from collections.abc import Iterator

import asyncmy.errors
import asyncpg  # type: ignore[import-untyped]  # it ships no types
from sqlalchemy import exc

from bayplan.ledger.store.port import StoreRefusedError, StoreUnavailableError
from bayplan.ledger.store.settings import Address

# Classes of SQLSTATE: connection, rollback (deadlock), resources (disk, connections), operator (shutdown, time-out),
# system; and single states: a read-only standby, a lock not to be had, a server that is starting.
_POSTGRES = ("08", "40", "53", "57", "58", "25006", "55P03")
_MYSQL_STATES = (
    *(1020, 1021, 1040, 1041, 1053, 1077, 1078, 1079, 1114, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1205, 1213, 1290),
    *(1317, 1836, 1927, 1969, 2002, 2003, 2006, 2013, 2055, 3024, 3169, 4031, 0),
)
_SQLITE = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_FULL", "SQLITE_INTERRUPT", "SQLITE_NOMEM")

_DRIVERS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncmy.errors.MySQLError,
    sqlite3.Error,
    OverflowError,  # what SQLite's driver says to a number that fits no column
    OSError,
    exc.DBAPIError,
    exc.TimeoutError,
)


def _origin(error: BaseException) -> BaseException:
    """The driver's own error, below what SQLAlchemy wrapped around it."""
    while isinstance(error, exc.DBAPIError) and error.orig is not None:
        error = error.orig
    return error.__cause__ if isinstance(error.__cause__, _DRIVERS) else error


def is_temporary(error: BaseException) -> bool:
    """Whether the same call may succeed later."""
    match error:
        case asyncpg.PostgresError():
            return (error.sqlstate or "").startswith(_POSTGRES)
        case asyncpg.InternalClientError():
            return True  # the server died in the middle of an operation, and the driver lost its place
        case asyncpg.InterfaceError():
            return not isinstance(error, ValueError)  # a value that does not fit is an InterfaceError too
        case asyncmy.errors.MySQLError():
            return not error.args or error.args[0] in _MYSQL_STATES
        case sqlite3.Error():
            return getattr(error, "sqlite_errorname", "").startswith(_SQLITE)
        case ssl.SSLCertVerificationError():
            return False
        case OSError() | exc.TimeoutError():
            return True
    return False


def _words(error: BaseException) -> str:
    text = str(error.args[1] if isinstance(error, asyncmy.errors.MySQLError) and len(error.args) > 1 else error)
    return text.strip().partition("\n")[0] or type(error).__name__


@contextlib.contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn what drivers raise into StoreUnavailableError or StoreRefusedError."""
    try:
        yield
    except _DRIVERS as error:
        origin = _origin(error)
        message = address.without_secret(f"{address.shown}: {_words(origin)}")
        if is_temporary(origin):
            raise StoreUnavailableError(message) from error
        raise StoreRefusedError(message) from error
