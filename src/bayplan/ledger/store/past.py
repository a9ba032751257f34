"""Whole pods as they were at a time: of each pod that there was, the newest version that had been seen by then.

A version takes a search in an index and a page of its own, wherever that is, and there are as many as pods. So pods are
shared out among the pool's connections, each database is asked in the form that it searches by, and the drivers are
spoken to directly: SQLAlchemy's rows cost as much as the search.

    PostgreSQL    from the index to the row at once (LATERAL)
    SQLite        the same by the row's number
    MariaDB       has no LATERAL, and a subquery that depends on the pod reads all its versions from the newest on;
                  a maximum by group jumps from pod to pod (loose index scan), and the index must be named
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bayplan.ledger.rows import GpuPod, PodSnapshot
from bayplan.ledger.snapshots import unpack
from bayplan.ledger.store.faults import translated
from bayplan.ledger.store.merging import Values
from bayplan.ledger.store.reading import Readable
from bayplan.ledger.store.schema import TABLES, index_name
from bayplan.ledger.store.settings import Dialect
from bayplan.model.clock import Instant

_PART = 500
"""Pods from which on a connection more is worth it."""
_POD = TABLES[GpuPod].c
_INDEX = index_name(PodSnapshot, ("cluster", "pod_uid", "observed_at", "resource_version"))
_COLUMNS = "v.pod_uid, v.namespace, v.name, v.resource_version, v.observed_at, v.state, b.data, v.gone"
_NEWEST = "s.observed_at <= {at} ORDER BY s.observed_at DESC, s.resource_version DESC LIMIT 1"
# 1: cluster, 2: time, 3: uids
_POSTGRES = (
    f"SELECT {_COLUMNS} FROM unnest($3::text[]) AS wanted(uid) JOIN LATERAL (SELECT * FROM pod_snapshots s"  # noqa: S608 - names of our own
    f" WHERE s.cluster = $1 AND s.pod_uid = wanted.uid AND {_NEWEST.format(at='$2')}) v ON true"
    " LEFT JOIN spec_blobs b ON b.cluster = $1 AND b.hash = v.spec_hash"
)
_SQLITE = (
    f"SELECT {_COLUMNS} FROM json_each(?3) wanted CROSS JOIN pod_snapshots v ON v.rowid = (SELECT s.rowid"  # noqa: S608 - names of our own
    f" FROM pod_snapshots s WHERE s.cluster = ?1 AND s.pod_uid = wanted.value AND {_NEWEST.format(at='?2')})"
    " LEFT JOIN spec_blobs b ON b.cluster = ?1 AND b.hash = v.spec_hash"
)
_MYSQL = (
    f"SELECT {_COLUMNS} FROM (SELECT pod_uid, MAX(observed_at) AS seen FROM pod_snapshots FORCE INDEX ({_INDEX})"  # noqa: S608 - names of our own
    " WHERE cluster = %(cluster)s AND observed_at <= %(at)s AND pod_uid IN %(uids)s GROUP BY cluster, pod_uid) newest"
    f" JOIN pod_snapshots v FORCE INDEX ({_INDEX})"
    " ON v.cluster = %(cluster)s AND v.pod_uid = newest.pod_uid AND v.observed_at = newest.seen"
    " LEFT JOIN spec_blobs b ON b.cluster = %(cluster)s AND b.hash = v.spec_hash"
)
_VERSION, _GONE = 3, -1
"""Where they stand in a row."""


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


async def state_at(
    store: Readable, cluster: str, at: Instant, uid: str | None = None, *, namespace: str | None = None
) -> list[PodThen]:
    """The pods that there were at a time, as they had last been seen, by namespace and name: of one uid, of one
    namespace, or all.

    Raises StoreUnavailableError, StoreRefusedError.
    """
    with translated(store.address):
        wanted = [
            column == value for column, value in ((_POD.uid, uid), (_POD.namespace, namespace)) if value is not None
        ]
        uids = await _alive(store, cluster, at, *wanted)
        try:
            async with asyncio.TaskGroup() as group:
                parts = [group.create_task(_versions(store, cluster, at, part)) for part in _shared_out(store, uids)]
        except ExceptionGroup as several:
            raise several.exceptions[0] from None
    newest: dict[str, Values] = {}
    for row in (row for part in parts for row in part.result()):
        known = newest.get(row[0])
        if known is None or known[_VERSION] < row[_VERSION]:  # MariaDB gives all of the newest instant
            newest[row[0]] = row
    found = [PodThen(*row[:_GONE]) for row in newest.values() if not row[_GONE]]
    return sorted(found, key=lambda pod: (pod.namespace, pod.name, pod.uid))


async def _alive(store: Readable, cluster: str, at: Instant, *wanted: sa.ColumnElement[bool]) -> list[str]:
    pods = sa.select(_POD.uid).where(_POD.cluster == cluster, _POD.created_at <= at, *wanted)
    # Two ranges of an index: no database makes that of an OR.
    alive = sa.union_all(pods.where(_POD.gone_at.is_(None)), pods.where(_POD.gone_at > at))
    async with store.engine.connect() as connection:
        return list((await connection.execute(alive)).scalars())


def _shared_out(store: Readable, uids: Sequence[str]) -> list[Sequence[str]]:
    """Neighbours in the index together. No more parts than connections: one that had to wait for its turn might run out
    of time. SQLite's threads would wait for each other.
    """
    pool = store.engine.pool
    most = pool.size() if isinstance(pool, sa.QueuePool) and store.address.dialect is not Dialect.SQLITE else 1
    size = max(_PART, -(-len(uids) // most))
    ordered = sorted(uids)
    return [ordered[first : first + size] for first in range(0, len(uids), size)]


async def _versions(store: Readable, cluster: str, at: Instant, uids: Sequence[str]) -> Sequence[Values]:
    async with store.engine.connect() as connection:
        try:
            return await _asked(connection, store.address.dialect, cluster, at, uids)
        except BaseException:
            await connection.invalidate()  # a cancelled statement may leave its answer behind
            raise


async def _asked(
    connection: AsyncConnection, dialect: Dialect, cluster: str, at: Instant, uids: Sequence[str]
) -> Sequence[Values]:
    driver: Any = (await connection.get_raw_connection()).driver_connection
    rows: Sequence[Values]
    if dialect is Dialect.POSTGRESQL:
        rows = await driver.fetch(_POSTGRES, cluster, at, uids)
    elif dialect is Dialect.SQLITE:
        rows = await driver.execute_fetchall(_SQLITE, (cluster, at, msgspec.json.encode(uids).decode()))
    else:
        async with driver.cursor() as cursor:
            await cursor.execute(_MYSQL, {"cluster": cluster, "at": at, "uids": tuple(uids)})
            rows = await cursor.fetchall()
    return rows
