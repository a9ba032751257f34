"""What is old is let go, a chunk at a time and beside the commits, so that nobody waits for it.

    versions    all of a pod or workload that was gone before the limit, or of a workload that had ended by then and
                all of whose pods were gone: nobody may have seen it go. Of others those between the first and the
                newest one before the limit, so that the state at every later time is exact
    events      of pods that were gone before the limit
    use         every measurement before the limit
    specs       those that no version is left of

Pods, workloads, nodes, periods and disruptions stay: they are few, and sums over any time rest on them. So what grows
for ever is a row or two for each pod there ever was on a node with GPUs, some hundred bytes.

Before every chunk it is asked whether this process may write at all, as ledger/outlet.py does; one that lost its lease
leaves the rest to whoever has it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa

from bayplan.ledger.rows import (
    GpuPod,
    GpuPodsEvent,
    GpuUse,
    GpuWorkload,
    PodSnapshot,
    Row,
    SpecBlob,
    WorkloadPodReference,
    WorkloadSnapshot,
)
from bayplan.ledger.store.bulk import bulk_delete
from bayplan.ledger.store.faults import translated
from bayplan.ledger.store.merging import Values
from bayplan.ledger.store.schema import TABLES
from bayplan.ledger.store.settings import Dialect
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.clock import Instant, monotonic

CHUNK = 500
_REST = 3
"""For a second of work so many of rest: ingest has the rest of the machine. Some thousand rows a second still go."""

MayWrite = Callable[[], bool]


def always() -> bool:
    """Nobody else could write."""
    return True


class Pruned(msgspec.Struct, frozen=True):
    """How many rows were let go."""

    pod_versions: int = 0
    workload_versions: int = 0
    events: int = 0
    use: int = 0
    specs: int = 0


def _old_versions(kind: type[Row], owner: str, cluster: str, before: Instant) -> sa.Select[Any]:
    """Versions of what was gone before the limit, and those that have an older one beside them and a newer one that is
    itself before the limit.
    """
    table, other = TABLES[kind], TABLES[kind].alias("other")
    same = sa.and_(other.c.cluster == cluster, other.c[owner] == table.c[owner])
    # The first one: whether there is an older one, MariaDB finds out by reading all.
    first = sa.select(other.c.resource_version).where(same).order_by(other.c.resource_version).limit(1)
    older = table.c.resource_version > first.scalar_subquery()
    newer = sa.exists().where(same, other.c.resource_version > table.c.resource_version, other.c.observed_at < before)
    if kind is PodSnapshot:
        pod = TABLES[GpuPod].c
        gone: list[sa.ColumnElement[bool]] = [
            sa.exists().where(pod.cluster == cluster, pod.uid == table.c[owner], pod.gone_at < before)
        ]
    else:
        seen = sa.exists().where(same, other.c.gone.is_(True), other.c.observed_at < before)
        gone = [seen, _over(table.c[owner], cluster, before)]
    return _keys(kind).where(
        table.c.cluster == cluster, table.c.observed_at < before, sa.or_(sa.and_(older, newer), *gone)
    )


def _over(uid: sa.ColumnElement[str], cluster: str, before: Instant) -> sa.ColumnElement[bool]:
    """Whether a workload had ended before the limit, and none of its pods was there any more."""
    workload, reference, pod = TABLES[GpuWorkload].c, TABLES[WorkloadPodReference].c, TABLES[GpuPod].c
    ended = sa.exists().where(workload.cluster == cluster, workload.uid == uid, workload.end_at < before)
    living = sa.exists().where(
        reference.cluster == cluster,
        reference.workload_uid == uid,
        pod.cluster == cluster,
        pod.uid == reference.pod_uid,
        sa.or_(pod.gone_at.is_(None), pod.gone_at >= before),
    )
    return sa.and_(ended, sa.not_(living))


def _keys(kind: type[Row]) -> sa.Select[Any]:
    """The time of a row, and its key."""
    return sa.select(_time(kind), *(TABLES[kind].c[name] for name in kind.key))


def _time(kind: type[Row]) -> sa.Column[Any]:
    columns = TABLES[kind].c
    return columns["observed_at" if "resource_version" in kind.key and "at" not in columns else "at"]


def _old_events(cluster: str, before: Instant) -> sa.Select[Any]:
    event, pod = TABLES[GpuPodsEvent].c, TABLES[GpuPod].c
    gone = sa.exists().where(pod.cluster == cluster, pod.uid == event.pod_uid, pod.gone_at < before)
    return _keys(GpuPodsEvent).where(event.cluster == cluster, event.at < before, gone)


def _old_use(cluster: str, before: Instant) -> sa.Select[Any]:
    use = TABLES[GpuUse].c
    return _keys(GpuUse).where(use.cluster == cluster, use.at < before)


async def prune(
    store: SqlStore, cluster: str, before: Instant, *, chunk: int = CHUNK, may_write: MayWrite = always
) -> Pruned:
    """Let go of what a cluster's ledger need not keep of the time before `before`.

    Raises StoreUnavailableError, StoreRefusedError; what was deleted until then stays deleted.
    """

    async def delete(kind: type[Row], old: sa.Select[Any]) -> int:
        return await _delete(store, kind, old, chunk, may_write)

    return Pruned(
        pod_versions=await delete(PodSnapshot, _old_versions(PodSnapshot, "pod_uid", cluster, before)),
        workload_versions=await delete(
            WorkloadSnapshot, _old_versions(WorkloadSnapshot, "workload_uid", cluster, before)
        ),
        events=await delete(GpuPodsEvent, _old_events(cluster, before)),
        use=await delete(GpuUse, _old_use(cluster, before)),
        specs=await _delete_specs(store, cluster, before, chunk, may_write),
    )


async def prune_use(
    store: SqlStore, cluster: str, before: Instant, *, chunk: int = CHUNK, may_write: MayWrite = always
) -> int:
    """Let go of measurements alone: they are many, and may be kept for a shorter time. Raises as `prune` does."""
    return await _delete(store, GpuUse, _old_use(cluster, before), chunk, may_write)


async def _delete(store: SqlStore, kind: type[Row], old: sa.Select[Any], chunk: int, may_write: MayWrite) -> int:
    """Rows by their keys, oldest first, a chunk a transaction; each goes on where the one before it ended, so that rows
    that stay are looked at once.
    """
    time = _time(kind)
    deleted, since = 0, 0
    while True:
        start = monotonic()
        with translated(store.address):
            async with store.engine.connect() as connection:
                page = old.where(time >= since).order_by(time).limit(chunk)
                found = [tuple(row) for row in await connection.execute(page)]
            if not found or not may_write():
                return deleted
            deleted += await _let_go(store, kind, [row[1:] for row in found])
        since = found[-1][0]
        await asyncio.sleep(_REST * (monotonic() - start))


async def _let_go(store: SqlStore, kind: type[Row], keys: list[Values]) -> int:
    """Delete rows by their keys. Commits go on beside it, but for two: SQLite has one writer at a time, and of a
    specification it must be certain that no commit brings it back meanwhile.
    """
    if kind is not SpecBlob and store.address.dialect is not Dialect.SQLITE:
        return await _deleted(store, kind, keys)
    async with store.writing:
        used = store.used or () if kind is SpecBlob else ()
        return await _deleted(store, kind, [key for key in keys if key[1] not in used])


async def _deleted(store: SqlStore, kind: type[Row], keys: list[Values]) -> int:
    if not keys:
        return 0
    dialect = store.address.dialect
    statement = bulk_delete(kind, dialect, len(keys) if dialect is Dialect.MYSQL else 1)
    async with store.engine.begin() as connection:
        if dialect is Dialect.POSTGRESQL:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            await driver.execute(statement, *zip(*keys, strict=True))
        elif dialect is Dialect.SQLITE:
            await connection.exec_driver_sql(statement, keys)
        else:
            await connection.exec_driver_sql(statement, tuple(itertools.chain.from_iterable(keys)))
    return len(keys)


def _unused_specs(cluster: str, before: Instant) -> sa.Select[Any]:
    blob = TABLES[SpecBlob].c
    versions = (TABLES[kind].c for kind in (PodSnapshot, WorkloadSnapshot))
    # A union takes each hash once; joined, every database reads the versions once, and none for each specification.
    used = sa.union(*(sa.select(each.spec_hash).where(each.cluster == cluster) for each in versions)).subquery("used")
    return (
        sa.select(blob.hash)
        .select_from(TABLES[SpecBlob].outerjoin(used, used.c.spec_hash == blob.hash))
        .where(blob.cluster == cluster, blob.first_seen < before, used.c.spec_hash.is_(None))
    )


async def _delete_specs(store: SqlStore, cluster: str, before: Instant, chunk: int, may_write: MayWrite) -> int:
    """Specifications without versions. While they are looked for, a new pod may come that has one of them: the store
    says which are in use again. Only the cluster's own ledger calls this, and it is the only one to write.
    """
    async with store.writing:  # what is under way has been written before anybody looks
        store.used = set()
    try:
        with translated(store.address):
            async with store.engine.connect() as connection:
                unused = [(cluster, row.hash) for row in await connection.execute(_unused_specs(cluster, before))]
            chunks = (unused[at : at + chunk] for at in range(0, len(unused), chunk))
            return sum([await _let_go(store, SpecBlob, each) for each in chunks if may_write()])
    finally:
        store.used = None
