"""What is old is let go, a chunk at a time, between commits, so that nobody waits for it.

    versions    those between a pod's first and its last; of each pod the newest one before the limit stays too, so that
                the state at every later time is exact; the same for workloads
    events      of pods that were gone before the limit
    use         every measurement before the limit

Pods, workloads, nodes, periods and disruptions stay: they are few, and sums over any time rest on them. Specifications
stay as well: nearly all of them belong to a first or a last version.
"""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa

from bayplan.ledger.rows import GpuPod, GpuPodsEvent, GpuUse, PodSnapshot, Row, WorkloadSnapshot
from bayplan.ledger.store.faults import translated
from bayplan.ledger.store.schema import TABLES
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.clock import Instant

CHUNK = 1000


class Pruned(msgspec.Struct, frozen=True):
    """How many rows were let go."""

    pod_versions: int = 0
    workload_versions: int = 0
    events: int = 0
    use: int = 0


def _between(kind: type[Row], owner: str, cluster: str, before: Instant) -> sa.Select[Any]:
    """Versions that have an older one beside them, and a newer one that is itself before the limit."""
    table, other = TABLES[kind], TABLES[kind].alias("other")
    same = sa.and_(other.c.cluster == cluster, other.c[owner] == table.c[owner])
    older = sa.exists().where(same, other.c.resource_version < table.c.resource_version)
    newer = sa.exists().where(same, other.c.resource_version > table.c.resource_version, other.c.observed_at < before)
    return _keys(kind).where(table.c.cluster == cluster, table.c.observed_at < before, older, newer)


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


async def prune(store: SqlStore, cluster: str, before: Instant, *, chunk: int = CHUNK) -> Pruned:
    """Let go of what a cluster's ledger need not keep of the time before `before`.

    Raises StoreUnavailableError, StoreRefusedError; what was deleted until then stays deleted.
    """

    async def delete(kind: type[Row], old: sa.Select[Any]) -> int:
        return await _delete(store, kind, old, chunk)

    return Pruned(
        pod_versions=await delete(PodSnapshot, _between(PodSnapshot, "pod_uid", cluster, before)),
        workload_versions=await delete(WorkloadSnapshot, _between(WorkloadSnapshot, "workload_uid", cluster, before)),
        events=await delete(GpuPodsEvent, _old_events(cluster, before)),
        use=await delete(GpuUse, _old_use(cluster, before)),
    )


async def _delete(store: SqlStore, kind: type[Row], old: sa.Select[Any], chunk: int) -> int:
    """Rows by their keys, oldest first, a chunk a transaction; each goes on where the one before it ended, so that rows
    that stay are looked at once.
    """
    table, time = TABLES[kind], _time(kind)
    # One key a statement: SQLite reads the whole table for a list of them.
    statement = sa.delete(table).where(*(table.c[name] == sa.bindparam(f"key_{name}") for name in kind.key))
    deleted, since = 0, 0
    while True:
        with translated(store.address):
            async with store.engine.connect() as connection:
                page = old.where(time >= since).order_by(time).limit(chunk)
                found = [tuple(row) for row in await connection.execute(page)]
            if not found:
                return deleted
            async with store.writing, store.engine.begin() as connection:
                keys = [{f"key_{name}": value for name, value in zip(kind.key, row[1:], strict=True)} for row in found]
                await connection.execute(statement, keys)
        deleted += len(found)
        since = found[-1][0]
