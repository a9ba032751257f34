"""Asking the ledger: tables for SQLAlchemy Core, rows back as their structs, and whole pods as they were at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from bayplan.ledger.rows import GpuPod, PodSnapshot, Row, SpecBlob
from bayplan.ledger.snapshots import unpack
from bayplan.ledger.store.faults import translated
from bayplan.ledger.store.schema import KINDS, TABLES
from bayplan.ledger.store.settings import Address, Dialect
from bayplan.model.clock import Instant

__all__ = ["TABLES", "PodThen", "Readable", "fetch", "select_rows", "state_at"]

_POD = TABLES[GpuPod].c
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


class PodThen(msgspec.Struct, frozen=True):
    """A pod as it was; unpacked when its JSON is asked for."""

    uid: str
    namespace: str
    name: str
    resource_version: int
    observed_at: Instant
    state: bytes
    spec: bytes | None

    def raw(self) -> bytes:
        """The whole pod, as JSON. Raises SnapshotError."""
        return unpack(self.state, self.spec)


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


def _newest(of: Any, columns: Sequence[Any], pod: sa.ColumnElement[str], cluster: str, at: Instant | None) -> Any:
    """Columns of a pod's newest version that was observed at or before a time."""
    query = sa.select(*columns).where(of.cluster == cluster, of.pod_uid == pod).limit(1)
    if at is None:
        return query.order_by(of.resource_version.desc())
    return query.where(of.observed_at <= at).order_by(of.observed_at.desc(), of.resource_version.desc())


def versions_of(
    dialect: Dialect, cluster: str, pods: sa.Select[Any] | sa.CompoundSelect[Any], at: Instant | None
) -> sa.Select[Any]:
    """The stored version, at a time or the last, of each pod whose uid is selected, unless the pod was gone with it.

    PostgreSQL goes from the index to the row at once (LATERAL), the others by the version's key: SQLite and MariaDB
    know no LATERAL, and with MariaDB rows lie by their key anyway.
    """
    wanted = pods.subquery("wanted").c.uid
    if dialect is Dialect.POSTGRESQL:
        version = _newest(_SNAPSHOT, list(_SNAPSHOT), wanted, cluster, at).lateral("version").c
        found = wanted.table.join(version.resource_version.table, sa.true())
    else:
        version, inner = _SNAPSHOT, TABLES[PodSnapshot].alias("newest").c
        newest = _newest(inner, [inner.resource_version], wanted, cluster, at).scalar_subquery()
        of_pod = sa.and_(version.cluster == cluster, version.pod_uid == wanted, version.resource_version == newest)
        found = wanted.table.join(TABLES[PodSnapshot], of_pod)
    of_spec = sa.and_(_BLOB.cluster == cluster, _BLOB.hash == version.spec_hash)
    columns = (version.pod_uid, version.namespace, version.name, version.resource_version, version.observed_at)
    return (
        sa.select(*columns, version.state, _BLOB.data)
        .select_from(found.outerjoin(TABLES[SpecBlob], of_spec))
        .where(version.gone.is_(False))
    )


async def state_at(store: Readable, cluster: str, at: Instant, uid: str | None = None) -> list[PodThen]:
    """The pods that there were at a time, as they had last been seen; of one uid, or all, by namespace and name.

    Raises StoreUnavailableError, StoreRefusedError.
    """
    pods = sa.select(_POD.uid).where(_POD.cluster == cluster, _POD.created_at <= at)
    if uid is not None:
        pods = pods.where(_POD.uid == uid)
    # Two ranges of an index: no database makes that of an OR.
    alive = sa.union_all(pods.where(_POD.gone_at.is_(None)), pods.where(_POD.gone_at > at))
    statement = versions_of(store.address.dialect, cluster, alive, at)
    with translated(store.address):
        async with store.engine.connect() as connection:
            found = [PodThen(*row) for row in await connection.execute(statement)]
    return sorted(found, key=lambda pod: (pod.namespace, pod.name, pod.uid))
