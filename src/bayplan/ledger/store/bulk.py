"""The statement that writes many rows of a table at once, for each database.

PostgreSQL gets one array a column (`unnest`): one round trip a table, and the plan is cached; from some hundred rows on
COPY into a temporary table takes less of this process (16 microseconds a pod update in batches of 1,000, arrays 42),
though more of the server's (75 and 65). SQLite runs one
prepared statement over the rows. MySQL and MariaDB have no condition on an upsert, so each column asks for itself;
assignments go from left to right there, so the columns of the condition come last.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from bayplan.ledger.rows import Row, Sort
from bayplan.ledger.store.schema import TABLES
from bayplan.ledger.store.settings import Dialect


def _conflict(kind: type[Row]) -> str:
    """ON CONFLICT, as PostgreSQL and SQLite spell it."""
    key = ", ".join(f'"{name}"' for name in kind.key)
    if kind.sort is Sort.FACT:
        return f"ON CONFLICT ({key}) DO NOTHING"
    table = f'"{kind.table}"'
    sets = ", ".join(f'"{name}" = excluded."{name}"' for name in kind.__struct_fields__ if name not in kind.key)
    newer = f'excluded."resource_version" >= {table}."resource_version"'
    if kind.sort is Sort.PERIOD:
        newer += (
            f' AND (excluded."resource_version" > {table}."resource_version"'
            f' OR {table}."end_at" IS NULL OR excluded."end_at" IS NOT NULL)'
        )
    return f"ON CONFLICT ({key}) DO UPDATE SET {sets} WHERE {newer}"


def _duplicate(kind: type[Row]) -> str:
    """ON DUPLICATE KEY UPDATE. A fact is left as it is: IGNORE would hide other errors too."""
    if kind.sort is Sort.FACT:
        return "ON DUPLICATE KEY UPDATE `cluster` = `cluster`"
    newer = "VALUES(`resource_version`) >= `resource_version`"
    if kind.sort is Sort.PERIOD:
        newer += (
            " AND (VALUES(`resource_version`) > `resource_version` OR `end_at` IS NULL OR VALUES(`end_at`) IS NOT NULL)"
        )
    last = ("end_at", "resource_version")
    names = [name for name in kind.__struct_fields__ if name not in kind.key and name not in last]
    names += ["end_at"] if "end_at" in kind.__struct_fields__ else []
    sets = [f"`{name}` = IF({newer}, VALUES(`{name}`), `{name}`)" for name in names]
    sets.append("`resource_version` = GREATEST(`resource_version`, VALUES(`resource_version`))")
    return "ON DUPLICATE KEY UPDATE " + ", ".join(sets)


def _postgres_type(kind: sa.types.TypeEngine[object]) -> str:
    if isinstance(kind, sa.String):
        return "text[]"
    return f"{kind.compile(dialect=postgresql.dialect())}[]"  # type: ignore[no-untyped-call]  # SQLAlchemy's own gap


class Staging(NamedTuple):
    """A temporary table, how it is made, and how it is emptied into the row's own."""

    name: str
    make: str
    move: str


@functools.cache
def staging(kind: type[Row]) -> Staging:
    """For the largest batches on PostgreSQL: what to copy them to."""
    name = f"bulk_{kind.table}"
    make = f'CREATE TEMP TABLE IF NOT EXISTS {name} (LIKE "{kind.table}") ON COMMIT DELETE ROWS'
    move = f'INSERT INTO "{kind.table}" SELECT * FROM {name} {_conflict(kind)}'  # noqa: S608 - names of our own
    return Staging(name, make, move)


@functools.lru_cache(maxsize=32)
def bulk_delete(kind: type[Row], dialect: Dialect, count: int) -> str:
    """DELETE by so many keys. PostgreSQL gets one array a column of the key, MySQL a table of the keys to join (with a
    list of keys it is a hundred times slower), SQLite runs one statement over them (with a list it reads all rows).
    """
    if dialect is Dialect.MYSQL:
        rows = " UNION ALL ".join(["SELECT " + ", ".join(f"%s AS `{name}`" for name in kind.key)] * count)
        same = " AND ".join(f"`{kind.table}`.`{name}` = old.`{name}`" for name in kind.key)
        return f"DELETE `{kind.table}` FROM ({rows}) old STRAIGHT_JOIN `{kind.table}` ON {same}"
    if dialect is Dialect.SQLITE:
        return f'DELETE FROM "{kind.table}" WHERE ' + " AND ".join(f'"{name}" = ?' for name in kind.key)  # noqa: S608 - names of our own
    columns = TABLES[kind].columns
    arrays = ", ".join(f"${i}::{_postgres_type(columns[name].type)}" for i, name in enumerate(kind.key, 1))
    names = ", ".join(f'"{name}"' for name in kind.key)
    same = " AND ".join(f'"{kind.table}"."{name}" = old."{name}"' for name in kind.key)
    return f'DELETE FROM "{kind.table}" USING unnest({arrays}) AS old({names}) WHERE {same}'  # noqa: S608 - names of our own


@functools.cache
def bulk_statement(kind: type[Row], dialect: Dialect) -> str:
    """INSERT into the row's table, and what to do where its key is there already."""
    fields = kind.__struct_fields__
    if dialect is Dialect.MYSQL:
        names = ", ".join(f"`{name}`" for name in fields)
        return f"INSERT INTO `{kind.table}` ({names}) VALUES ({', '.join(['%s'] * len(fields))}) {_duplicate(kind)}"  # noqa: S608 - names of our own
    names = ", ".join(f'"{name}"' for name in fields)
    if dialect is Dialect.SQLITE:
        source = f"VALUES ({', '.join('?' * len(fields))})"
    else:
        arrays = (f"${i}::{_postgres_type(column.type)}" for i, column in enumerate(TABLES[kind].columns, 1))
        source = f"SELECT * FROM unnest({', '.join(arrays)})"  # noqa: S608 - types of our own
    return f'INSERT INTO "{kind.table}" ({names}) {source} {_conflict(kind)}'
