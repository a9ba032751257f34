"""Who is below a workload: its pods, at any depth, and the workloads that make them.

Those who make pods are not found by their pods alone: one whose every pod a quota refuses has none. It is known by who
is above it, and a Deployment waits where its ReplicaSet does.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from bayplan.ledger.questions.asking import Scope, read, read_each
from bayplan.ledger.rows import GpuPod, GpuWorkload, WorkloadPodReference
from bayplan.ledger.store.reading import TABLES, Readable
from bayplan.model.clock import Instant


async def pods_below(store: Readable, workload: GpuWorkload, at: Instant) -> list[GpuPod]:
    """The pods of a workload that had been made by then. Raises StoreUnavailableError, StoreRefusedError."""
    link, pod = TABLES[WorkloadPodReference].c, TABLES[GpuPod].c
    below = sa.select(link.pod_uid).where(link.cluster == workload.cluster, link.workload_uid == workload.uid)
    return await read(store, GpuPod, Scope(workload.cluster), pod.uid.in_(below), pod.created_at <= at)


async def makers(store: Readable, workload: GpuWorkload, pods: Iterable[GpuPod]) -> dict[str, Instant | None]:
    """A workload, all that are below it, and whoever else owns one of its pods: by uid, with their ends.

    An owner whose own owner nobody ever saw is known by its pods alone. Raises StoreUnavailableError,
    StoreRefusedError.
    """
    scope = Scope(workload.cluster)
    found, level = {workload.uid: workload.end_at}, [workload.uid]
    while level:
        rows: list[GpuWorkload] = await read_each(store, GpuWorkload, "parent_uid", level, scope)
        level = [row.uid for row in rows if row.uid not in found]
        found.update((row.uid, row.end_at) for row in rows if row.uid not in found)
    others = dict.fromkeys(sorted({pod.owner_uid for pod in pods} - found.keys() - {""}))
    rows = await read_each(store, GpuWorkload, "uid", others, scope)
    return {**found, **others, **{row.uid: row.end_at for row in rows}}
