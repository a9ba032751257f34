"""Asking the ledger: tables for SQLAlchemy Core, rows back as their structs, and whole pods as they were at a time."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from bayplan.ledger.rows import GpuPod, PodSnapshot, Row, SpecBlob
from bayplan.ledger.snapshots import unpack
from bayplan.ledger.store.faults import translated
from bayplan.ledger.store.schema import KINDS, TABLES
from bayplan.ledger.store.settings import Address
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


def _newest(pod: sa.ColumnElement[str], cluster: str, at: Instant | None) -> sa.ScalarSelect[Any]:
    """The resourceVersion of a pod's newest version that was observed at or before a time."""
    inner = TABLES[PodSnapshot].alias("newest").c
    query = sa.select(inner.resource_version).where(inner.cluster == cluster, inner.pod_uid == pod)
    if at is None:
        query = query.order_by(inner.resource_version.desc())
    else:
        query = query.where(inner.observed_at <= at).order_by(inner.observed_at.desc(), inner.resource_version.desc())
    return query.limit(1).scalar_subquery()


def versions_of(cluster: str, pods: sa.Select[Any] | sa.CompoundSelect[Any], at: Instant | None) -> sa.Select[Any]:
    """The stored version, at a time or the last, of each pod whose uid is selected."""
    wanted = pods.subquery("wanted").c.uid
    columns = (_SNAPSHOT.pod_uid, _SNAPSHOT.namespace, _SNAPSHOT.name, _SNAPSHOT.resource_version)
    of_pod = sa.and_(
        _SNAPSHOT.cluster == cluster,
        _SNAPSHOT.pod_uid == wanted,
        _SNAPSHOT.resource_version == _newest(wanted, cluster, at),
    )
    of_spec = sa.and_(_BLOB.cluster == cluster, _BLOB.hash == _SNAPSHOT.spec_hash)
    return (
        sa.select(*columns, _SNAPSHOT.observed_at, _SNAPSHOT.state, _BLOB.data)
        .select_from(wanted.table)
        .join(TABLES[PodSnapshot], of_pod)
        .outerjoin(TABLES[SpecBlob], of_spec)
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
    statement = versions_of(cluster, alive, at).where(_SNAPSHOT.gone.is_(False))
    with translated(store.address):
        async with store.engine.connect() as connection:
            found = [PodThen(*row) for row in await connection.execute(statement)]
    return sorted(found, key=lambda pod: (pod.namespace, pod.name, pod.uid))
