"""Pods, workloads, nodes and events as they were at a time.

Pods come back whole, from their snapshots, and workloads as their last version by then has them (`rebuilt`). Of nodes
with GPUs it is kept when they were ready and took pods; of others only the latest state is: where that is younger than
the time asked about, theirs is not known.

Each cluster is told as of its own present where that is earlier than the time asked about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

import msgspec
import sqlalchemy as sa

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.ledger.owners.workload import PodLink
from bayplan.ledger.questions.asking import EVERYTHING, Clause, Scope, clusters, holding, read
from bayplan.ledger.questions.rebuilt import UNSEEN, Version, as_of, not_yet_ended, versions_at
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
from bayplan.ledger.store.past import state_at
from bayplan.ledger.store.reading import TABLES, Readable, fetch, select_rows
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
    """As it was; where its `updated_at` is later than that, no version had been seen, and what is not told by its pods
    is the latest."""
    status: str
    pods: int
    """Those that existed then, at any depth below it."""
    gpus: int
    """Thousandths that they held."""


class NodeAt(msgspec.Struct, frozen=True):
    """A node as it was."""

    row: GpuNode
    """Ready and schedulable as it was, where that is known; where its `updated_at` is later, the rest is the latest."""
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
        for part, when in scope.parts(at)
        for cluster in await clusters(store, part)
        for pod in await state_at(store, cluster, when, namespace=scope.namespace)
    ]


def _existed(kind: type[GpuPod] | type[GpuWorkload] | type[GpuNode], at: Instant, end: str = "end_at") -> list[Clause]:
    columns = TABLES[kind].c
    return [columns.created_at <= at, sa.or_(columns[end].is_(None), columns[end] > at)]


async def workloads_at(store: Readable, at: Instant, scope: Scope = EVERYTHING) -> list[WorkloadAt]:
    """The workloads of GPU pods that had not ended, as they were; one that nobody ever saw is there while its pods are.

    Raises StoreUnavailableError, StoreRefusedError, SnapshotError.
    """
    found = [each for part, when in scope.parts(at) for each in await _workloads_at(store, when, part)]
    return sorted(found, key=lambda each: (each.row.cluster, each.row.namespace, each.row.kind, each.row.name))


async def _workloads_at(store: Readable, at: Instant, scope: Scope) -> list[WorkloadAt]:
    rows: list[GpuWorkload] = await read(store, GpuWorkload, scope, *_existed(GpuWorkload, at))
    versions = await versions_at(store, at, scope, _existed(GpuWorkload, at))
    cluster = scope.whole
    pods: list[GpuPod] = await read(store, GpuPod, cluster, *_existed(GpuPod, at, "gone_at"))
    held = await _held(store, cluster, at)
    running = {(each.cluster, each.pod_uid) for each in await _holding(store, RunningPeriod, cluster, at)}
    below: dict[Key, list[GpuPod]] = {}
    known = {(pod.cluster, pod.uid): pod for pod in pods}
    for link in await _links(store, cluster, at):
        if (pod := known.get((link.cluster, link.pod_uid))) is not None:
            below.setdefault((link.cluster, link.workload_uid), []).append(pod)
    found = []
    for row in rows:
        key = (row.cluster, row.uid)
        links = [_link(pod, running, at) for pod in below.get(key, ())]
        if not row.resource_version and not links:
            continue
        gpus = sum(held.get((row.cluster, link.uid), 0) for link in links)
        found.append(_workload(row, versions.get(key, UNSEEN), links, gpus, at))
    return found


async def _links(store: Readable, scope: Scope, at: Instant) -> list[WorkloadPodReference]:
    """Whose the pods were that existed then: a ledger has millions of those that there ever were."""
    link, pod = TABLES[WorkloadPodReference].c, TABLES[GpuPod].c
    existed = sa.select(pod.cluster, pod.uid).where(*scope.of(GpuPod), *_existed(GpuPod, at, "gone_at"))
    # Neither joined nor in order: SQLite would begin with the links, and read them all.
    theirs = sa.tuple_(link.cluster, link.pod_uid).in_(existed)
    return await fetch(store, select_rows(WorkloadPodReference).where(theirs))


def _link(pod: GpuPod, running: Container[Key], at: Instant) -> PodLink:
    """A pod in the phase in which it was."""
    over = pod.end_at is not None and pod.end_at <= at
    phase = "Running" if (pod.cluster, pod.uid) in running else pod.phase if over else "Pending"
    return PodLink(pod.uid, pod.namespace, None, pod.gpu_allocated, phase)


def _workload(row: GpuWorkload, version: Version, pods: Sequence[PodLink], gpus: int, at: Instant) -> WorkloadAt:
    then = not_yet_ended(row, at) if row.updated_at <= at else as_of(row, version, pods, at)
    return WorkloadAt(then, then.status, len(pods), gpus)


async def _holding(store: Readable, kind: type[Row], scope: Scope, at: Instant) -> list[RunningPeriod | GpuPeriod]:
    return await read(store, kind, scope, *holding(kind, at, at))


async def _held(store: Readable, scope: Scope, at: Instant) -> Mapping[Key, int]:
    held: Counter[Key] = Counter()
    for period in await _holding(store, GpuPeriod, scope, at):
        held[period.cluster, period.pod_uid] += period.gpus
    return held


async def nodes_at(store: Readable, at: Instant, scope: Scope = EVERYTHING) -> list[NodeAt]:
    """The nodes that there were, with GPUs or without. Raises StoreUnavailableError, StoreRefusedError."""
    found = [each for part, when in scope.parts(at) for each in await _nodes_at(store, when, part.whole)]
    return sorted(found, key=lambda each: (each.row.cluster, each.row.name))


async def _nodes_at(store: Readable, at: Instant, cluster: Scope) -> list[NodeAt]:
    rows: list[GpuNode] = await read(store, GpuNode, cluster, *_existed(GpuNode, at))
    capacity: Counter[Key] = Counter()
    for offer in await read(store, NodePeriod, cluster, *holding(NodePeriod, at, at)):
        capacity[offer.cluster, offer.node_uid] += offer.gpus
    held: Counter[Key] = Counter()
    for period in await read(store, GpuPeriod, cluster, *holding(GpuPeriod, at, at)):
        held[period.cluster, period.node_name] += period.gpus
    hurdles = await _hurdles(store, cluster, at)
    return [
        _node(
            row,
            hurdles.get((row.cluster, row.uid), _latest_hurdle(row, at)),
            capacity[row.cluster, row.uid],
            held[row.cluster, row.name],
            at,
        )
        for row in rows
    ]


def _node(row: GpuNode, hurdle: str | None, capacity: int, held: int, at: Instant) -> NodeAt:
    """It had not ended then, whatever its row says; and was as its hurdle says, where there is a word of it."""
    then = msgspec.structs.replace(row, end_at=None, end_inferred=False, end_after=None)
    if hurdle is not None:
        then = then.with_hurdle(hurdle)
    if row.updated_at > at:
        then = msgspec.structs.replace(then, gpu_capacity=capacity)
    return NodeAt(then, hurdle, capacity, held)


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
