"""Pods, workloads, nodes and events as they were at a time.

Pods come back whole, from their snapshots. Of nodes with GPUs it is kept when they were ready and took pods. Of
workloads and other nodes only the latest state is: where that is younger than the time asked about, a workload's state
is what its pods say, and a node's is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
import sqlalchemy as sa

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.ledger.questions.asking import EVERYTHING, Clause, Scope, clusters, holding, read
from bayplan.ledger.rows import (
    GpuNode,
    GpuPeriod,
    GpuPod,
    GpuPodsEvent,
    GpuWorkload,
    NodePeriod,
    NodeRoomPeriod,
    Row,
    RunningPeriod,
    WorkloadPodReference,
)
from bayplan.ledger.status.judge import of_pods
from bayplan.ledger.status.verdict import PodCounts
from bayplan.ledger.store.past import state_at
from bayplan.ledger.store.reading import TABLES, Readable, fetch
from bayplan.model.clock import Instant

Key = tuple[str, str]
"""Cluster and uid."""


class PodAt(msgspec.Struct, frozen=True):
    """A pod as it was."""

    cluster: str
    object: Object
    observed_at: Instant


class WorkloadAt(msgspec.Struct, frozen=True):
    """A workload as it was."""

    row: GpuWorkload
    status: str
    pods: int
    """Those that existed then, at any depth below it."""
    gpus: int
    """Thousandths that they held."""


class NodeAt(msgspec.Struct, frozen=True):
    """A node as it was."""

    row: GpuNode
    hurdle: str | None
    """Why no pod could go there; empty: nothing; None: not known of that time."""
    capacity: int
    allocated: int


class EventAt(msgspec.Struct, frozen=True):
    """A transition, and of which pod."""

    event: GpuPodsEvent
    namespace: str
    pod: str


async def pods_at(store: Readable, at: Instant, scope: Scope = EVERYTHING) -> list[PodAt]:
    """The GPU pods that there were, whole, by cluster, namespace and name.

    Raises StoreUnavailableError, StoreRefusedError, SnapshotError.
    """
    return [
        PodAt(cluster, Object.from_raw(POD, pod.raw()), pod.observed_at)
        for cluster in await clusters(store, scope)
        for pod in await state_at(store, cluster, at, namespace=scope.namespace)
    ]


def _existed(kind: type[GpuPod] | type[GpuWorkload] | type[GpuNode], at: Instant, end: str = "end_at") -> list[Clause]:
    columns = TABLES[kind].c
    return [columns.created_at <= at, sa.or_(columns[end].is_(None), columns[end] > at)]


async def workloads_at(store: Readable, at: Instant, scope: Scope = EVERYTHING) -> list[WorkloadAt]:
    """The workloads of GPU pods that had not ended. Raises StoreUnavailableError, StoreRefusedError."""
    rows: list[GpuWorkload] = await read(store, GpuWorkload, scope, *_existed(GpuWorkload, at))
    cluster = Scope(scope.cluster)
    pods: list[GpuPod] = await read(store, GpuPod, cluster, *_existed(GpuPod, at, "gone_at"))
    held = await _held(store, cluster, at)
    running = {(each.cluster, each.pod_uid) for each in await _holding(store, RunningPeriod, cluster, at)}
    below: dict[Key, list[GpuPod]] = {}
    known = {(pod.cluster, pod.uid): pod for pod in pods}
    for link in await read(store, WorkloadPodReference, cluster):
        if (pod := known.get((link.cluster, link.pod_uid))) is not None:
            below.setdefault((link.cluster, link.workload_uid), []).append(pod)
    found = [_workload(row, below.get((row.cluster, row.uid), []), held, running, at) for row in rows]
    return sorted(found, key=lambda each: (each.row.cluster, each.row.namespace, each.row.kind, each.row.name))


def _workload(
    row: GpuWorkload, pods: Iterable[GpuPod], held: Mapping[Key, int], running: set[Key], at: Instant
) -> WorkloadAt:
    counts = PodCounts()
    for pod in pods:
        over = pod.end_at is not None and pod.end_at <= at
        counts.count("Running" if (pod.cluster, pod.uid) in running else pod.phase if over else "Pending", 1)
    status = row.status if row.updated_at <= at else of_pods(counts).state.value
    return WorkloadAt(row, status, len(counts), sum(held.get((pod.cluster, pod.uid), 0) for pod in pods))


async def _holding(store: Readable, kind: type[Row], scope: Scope, at: Instant) -> list[RunningPeriod | GpuPeriod]:
    return await read(store, kind, scope, *holding(kind, at, at))


async def _held(store: Readable, scope: Scope, at: Instant) -> Mapping[Key, int]:
    held: Counter[Key] = Counter()
    for period in await _holding(store, GpuPeriod, scope, at):
        held[period.cluster, period.pod_uid] += period.gpus
    return held


async def nodes_at(store: Readable, at: Instant, scope: Scope = EVERYTHING) -> list[NodeAt]:
    """The nodes with GPUs that there were. Raises StoreUnavailableError, StoreRefusedError."""
    cluster = Scope(scope.cluster)
    rows: list[GpuNode] = await read(store, GpuNode, cluster, *_existed(GpuNode, at))
    capacity: Counter[Key] = Counter()
    for offer in await read(store, NodePeriod, cluster, *holding(NodePeriod, at, at)):
        capacity[offer.cluster, offer.node_uid] += offer.gpus
    held: Counter[Key] = Counter()
    for period in await read(store, GpuPeriod, cluster, *holding(GpuPeriod, at, at)):
        held[period.cluster, period.node_name] += period.gpus
    hurdles = await _hurdles(store, cluster, at)
    found = [
        NodeAt(
            row,
            hurdles.get((row.cluster, row.uid), _latest_hurdle(row, at)),
            capacity[row.cluster, row.uid],
            held[row.cluster, row.name],
        )
        for row in rows
    ]
    return sorted(found, key=lambda each: (each.row.cluster, each.row.name))


async def _hurdles(store: Readable, scope: Scope, at: Instant) -> Mapping[Key, str]:
    columns = TABLES[NodeRoomPeriod].c
    query = sa.select(columns.cluster, columns.node_uid, columns.hurdle)
    rows = await fetch(store, query.where(*scope.of(NodeRoomPeriod), *holding(NodeRoomPeriod, at, at)))
    return {(cluster, uid): hurdle for cluster, uid, hurdle in rows}


def _latest_hurdle(row: GpuNode, at: Instant) -> str | None:
    """Of a node whose room is not kept; None where only its later state is known."""
    return None if row.updated_at > at else row.hurdle


async def events_between(
    store: Readable, since: Instant, until: Instant, scope: Scope = EVERYTHING, *where: Clause
) -> list[EventAt]:
    """What happened to GPU pods after `since`, up to and with `until`, in order.

    Raises StoreUnavailableError, StoreRefusedError.
    """
    event, pod = TABLES[GpuPodsEvent], TABLES[GpuPod]
    same = sa.and_(pod.c.cluster == event.c.cluster, pod.c.uid == event.c.pod_uid)
    query = (
        sa.select(*event.c, pod.c.namespace.label("pod_namespace"), pod.c.name.label("pod_name"))
        .select_from(event.join(pod, same))
        .where(event.c.at > since, event.c.at <= until, *scope.of(GpuPod), *where)
        .order_by(event.c.at, event.c.resource_version, event.c.event_type, event.c.subject)
    )
    names = GpuPodsEvent.__struct_fields__
    rows = await fetch(store, query)
    return [EventAt(GpuPodsEvent(**dict(zip(names, row, strict=False))), row[-2], row[-1]) for row in rows]
