"""Asking the ledger: tables for SQLAlchemy Core, rows back as their structs, and the last version of each pod."""

from __future__ import annotations

from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from bayplan.ledger.rows import PodSnapshot, Row, SpecBlob
from bayplan.ledger.store.faults import translated
from bayplan.ledger.store.schema import KINDS, TABLES
from bayplan.ledger.store.settings import Address, Dialect

__all__ = ["TABLES", "Readable", "fetch", "select_rows"]

_SNAPSHOT = TABLES[PodSnapshot].c
_BLOB = TABLES[SpecBlob].c


class Readable(Protocol):
    """What can be asked: a store, for one."""

    @property
    def engine(self) -> AsyncEngine:
        """Its pool."""
        ...

    @property
    def address(self) -> Address:
        """Where it is."""
        ...


def select_rows(kind: type[Row]) -> sa.Select[Any]:
    """All columns of a table, to be narrowed with `where` and the like."""
    return sa.select(TABLES[kind])


async def fetch(store: Readable, statement: sa.Select[Any]) -> list[Any]:
    """The rows of a statement as structs of the table that it selects; one that selects less than a whole table's
    columns gives tuples. Raises StoreUnavailableError, StoreRefusedError.
    """
    with translated(store.address):
        async with store.engine.connect() as connection:
            return await rows_on(connection, statement)


async def rows_on(connection: AsyncConnection, statement: sa.Select[Any]) -> list[Any]:
    """As `fetch`, within the caller's transaction."""
    found = await connection.execute(statement)
    names = tuple(found.keys())
    table = getattr(statement.selected_columns[0], "table", None)
    kind = KINDS.get(getattr(table, "name", ""))
    if kind is None or names != kind.__struct_fields__:
        return [tuple(row) for row in found]
    return [kind(**dict(zip(names, row, strict=True))) for row in found]


def last_versions(dialect: Dialect, cluster: str, pods: sa.Select[Any]) -> sa.Select[Any]:
    """The last stored version of each pod whose uid is selected, unless the pod was gone with it.

    PostgreSQL goes from the index to the row at once (LATERAL), the others by the version's key: SQLite and MariaDB
    know no LATERAL, and with MariaDB rows lie by their key anyway.
    """
    wanted = pods.subquery("wanted").c.uid
    inner = TABLES[PodSnapshot].alias("newest").c
    newest = sa.select(inner.resource_version).where(inner.cluster == cluster, inner.pod_uid == wanted)
    newest = newest.order_by(inner.resource_version.desc()).limit(1)
    if dialect is Dialect.POSTGRESQL:
        version = newest.with_only_columns(*inner).lateral("version").c
        found = wanted.table.join(version.resource_version.table, sa.true())
    else:
        version, key = _SNAPSHOT, newest.scalar_subquery()
        of_pod = sa.and_(version.cluster == cluster, version.pod_uid == wanted, version.resource_version == key)
        found = wanted.table.join(TABLES[PodSnapshot], of_pod)
    of_spec = sa.and_(_BLOB.cluster == cluster, _BLOB.hash == version.spec_hash)
    return (
        sa.select(version.pod_uid, version.state, _BLOB.data)
        .select_from(found.outerjoin(TABLES[SpecBlob], of_spec))
        .where(version.gone.is_(False))
    )
