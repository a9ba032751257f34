"""Rows for tests of the questions, built by hand, and a small ledger of a day that is known by heart.

clock  00:00 .. 24:00 of 2026-01-01
a100-1 16 GPUs and 64 CPUs all day; h100-1 8 GPUs from 06:00, not ready until 07:00, cordoned from then on
vision/trainer (Job of alice): trainer-0 waits 1 h, holds 8 of a100-1 02:00-10:00, runs from 02:30, succeeds
prod/serve-1 (of bob): holds 4 of a100-1 and 55 CPUs from 12:00 on; prod/serve-0 held 2 until 12:00, and was preempted
lab/notebook (of nobody known): holds 2 of h100-1 from 08:00 on; and uses none of it
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.ledger.questions.spans import DeviceSpan, RoomSpan, S, Story, TakenSpan
from bayplan.ledger.rows import (
    Disruption,
    GpuNode,
    GpuPeriod,
    GpuPod,
    GpuPodsEvent,
    GpuUse,
    GpuWorkload,
    NodePeriod,
    NodeRoomPeriod,
    PendingPeriod,
    PodRoomPeriod,
    PodSnapshot,
    Row,
    Rows,
    RunningPeriod,
    StreamPosition,
    WorkloadPodReference,
)
from bayplan.ledger.snapshots import pack
from bayplan.ledger.store.sql import SqlStore, open_store
from bayplan.model.clock import SECOND, Instant, rfc3339
from tests.ledger.databases import prepared

MIDNIGHT = Instant(1_767_225_600 * SECOND)  # 2026-01-01T00:00:00Z
HOUR = 3600 * SECOND
GPU = "nvidia.com/gpu"
CLUSTER = "east"


def hour(number: float) -> Instant:
    """So many hours into the day."""
    return Instant(MIDNIGHT + round(number * HOUR))


def pod(name: str, namespace: str = "vision", cluster: str = CLUSTER, **more: Any) -> GpuPod:
    """A pod's row; its uid is its name."""
    fields: dict[str, Any] = {
        "uid": name,
        "resource_version": 1,
        "gpu_allocated": 8000,
        "phase": "Running",
        "created_at": hour(0),
        "updated_at": hour(0),
    }
    return GpuPod(cluster=cluster, namespace=namespace, name=name, **{**fields, **more})


def workload(name: str, namespace: str = "vision", cluster: str = CLUSTER, **more: Any) -> GpuWorkload:
    """A Job's row."""
    fields: dict[str, Any] = {
        "uid": f"{name}-job",
        "resource_version": 1,
        "group_version": "batch/v1",
        "kind": "Job",
        "status": "Running",
        "created_at": hour(0),
        "updated_at": hour(0),
    }
    return GpuWorkload(cluster=cluster, namespace=namespace, name=name, **{**fields, **more})


def node(name: str, model: str, gpus: int = 8000, cluster: str = CLUSTER, **more: Any) -> GpuNode:
    """A node's row."""
    fields: dict[str, Any] = {"ready": True, "created_at": hour(0), "updated_at": hour(0), "kubelet_version": "v1.36.0"}
    return GpuNode(
        cluster=cluster,
        uid=f"{name}-uid",
        resource_version=1,
        name=name,
        gpu_model=model,
        gpu_capacity=gpus,
        **{**fields, **more},
    )


def offered(
    name: str, start: Instant, end: Instant | None = None, gpus: int = 8000, model: str = "A100", cluster: str = CLUSTER
) -> NodePeriod:
    """A node's devices for a while."""
    return NodePeriod(
        cluster=cluster,
        node_uid=f"{name}-uid",
        node_name=name,
        resource=GPU,
        gpus=gpus,
        gpu_model=model,
        start_at=start,
        end_at=end,
        resource_version=1,
    )


def held(
    uid: str, start: Instant, end: Instant | None = None, gpus: int = 8000, node: str = "a100-1", **more: Any
) -> GpuPeriod:
    """A pod's GPUs for a while."""
    fields: dict[str, Any] = {"cluster": CLUSTER, "gpu_model": "A100", "resource": GPU}
    return GpuPeriod(
        pod_uid=uid, start_at=start, end_at=end, gpus=gpus, node_name=node, resource_version=1, **{**fields, **more}
    )


def roomy(name: str, start: Instant, end: Instant | None = None, hurdle: str = "", **more: Any) -> NodeRoomPeriod:
    """What a node has for pods for a while."""
    fields: dict[str, Any] = {"cpu": 64_000, "memory": 512 << 30, "pods": 110, "cluster": CLUSTER}
    return NodeRoomPeriod(
        node_uid=f"{name}-uid",
        node_name=name,
        start_at=start,
        end_at=end,
        hurdle=hurdle,
        resource_version=1,
        **{**fields, **more},
    )


def took(
    uid: str, start: Instant, end: Instant | None = None, cpu: int = 1000, memory: int = 1 << 30, node: str = "a100-1"
) -> PodRoomPeriod:
    """What a pod takes of it."""
    return PodRoomPeriod(
        cluster=CLUSTER,
        pod_uid=uid,
        namespace="vision",
        name=uid,
        node_name=node,
        start_at=start,
        end_at=end,
        cpu=cpu,
        memory=memory,
        resource_version=1,
    )


def story(*rows: Row) -> Story:
    """What is read of these rows for answers about idle GPUs."""

    def spans(kind: type[Row], span: type[S]) -> list[S]:
        chosen = (row for row in rows if isinstance(row, kind))
        return [span(*(getattr(row, name) for name in span.__struct_fields__)) for row in chosen]

    return Story(
        spans(NodePeriod, DeviceSpan),
        spans(GpuPeriod, DeviceSpan),
        spans(NodeRoomPeriod, RoomSpan),
        spans(PodRoomPeriod, TakenSpan),
    )


def ran(uid: str, start: Instant, end: Instant | None = None) -> RunningPeriod:
    """A pod was Running."""
    return RunningPeriod(cluster=CLUSTER, pod_uid=uid, start_at=start, end_at=end, gpus=8000, resource_version=1)


def waited(uid: str, start: Instant, end: Instant | None, reason: str = "", message: str = "") -> PendingPeriod:
    """A pod waited."""
    return PendingPeriod(
        cluster=CLUSTER, pod_uid=uid, start_at=start, end_at=end, reason=reason, message=message, resource_version=1
    )


def event(uid: str, kind: str, at: Instant, version: int = 1, **more: Any) -> GpuPodsEvent:
    """A transition."""
    return GpuPodsEvent(
        cluster=CLUSTER, pod_uid=uid, resource_version=version, event_type=kind, at=at, observed_at=at, **more
    )


def used(uid: str, at: Instant, utilisation: float, device: str = "gpu-0") -> GpuUse:
    """A measurement."""
    return GpuUse(cluster=CLUSTER, pod_uid=uid, device=device, at=at, utilisation=utilisation)


def stream(kind: str, at: Instant, cluster: str = CLUSTER) -> StreamPosition:
    """How far a kind is told."""
    return StreamPosition(cluster=cluster, kind=kind, resource_version=1, revision="1", at=at)


def version(row: GpuPod, at: Instant, number: int, phase: str, node_name: str = "") -> list[Row]:
    """A pod's snapshot, with its specification."""
    limits = {GPU: str(row.gpu_allocated // 1000)}
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "train:1", "resources": {"limits": limits, "requests": limits}}]
    }
    running = {"running": {"startedAt": rfc3339(at)}} if phase == "Running" else {"waiting": {"reason": "Waiting"}}
    status: dict[str, Any] = {"phase": phase}
    if node_name:
        spec["nodeName"] = node_name
        ready = phase == "Running"
        status["containerStatuses"] = [{"name": "main", "ready": ready, "restartCount": 0, "state": running}]
    metadata = {
        "name": row.name,
        "namespace": row.namespace,
        "uid": row.uid,
        "resourceVersion": str(number),
        "creationTimestamp": rfc3339(row.created_at),
    }
    packed = pack(Object.from_raw(POD, json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode()))
    return [
        packed.blob(row.cluster, at),
        PodSnapshot(
            cluster=row.cluster,
            pod_uid=row.uid,
            resource_version=number,
            namespace=row.namespace,
            name=row.name,
            observed_at=at,
            spec_hash=packed.spec_hash,
            state=packed.state,
            dictionary=packed.dictionary,
        ),
    ]


_NO_ROOM = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def a_day() -> list[Row]:
    """The small ledger."""
    return [*_machines(), *_trainer(), *_serving(), *_notebook()]


def _machines() -> list[Row]:
    return [
        node("a100-1", "A100", 16_000),
        node("h100-1", "H100", schedulable=False, created_at=hour(6), updated_at=hour(7)),
        offered("a100-1", hour(0), gpus=16_000),
        offered("h100-1", hour(6), model="H100"),
        roomy("a100-1", hour(0)),
        roomy("h100-1", hour(6), hour(7), "not ready"),
        roomy("h100-1", hour(7), None, "cordoned"),
        stream("pods", hour(24)),
        stream("nodes", hour(24)),
        stream("events", hour(24)),
    ]


def _trainer() -> list[Row]:
    job = workload(
        "trainer", status="Succeeded", created_at=hour(1), updated_at=hour(10), end_at=hour(10), user="alice"
    )
    row = pod(
        "trainer-0",
        resource_version=5,
        phase="Succeeded",
        user="alice",
        labels='{"team":"vision"}',
        owner_uid=job.uid,
        root_uid=job.uid,
        node_name="a100-1",
        created_at=hour(1),
        updated_at=hour(11),
        bound_at=hour(2),
        started_at=hour(2.5),
        end_at=hour(10),
        gone_at=hour(11),
    )
    return [
        job,
        row,
        WorkloadPodReference(cluster=CLUSTER, workload_uid=job.uid, pod_uid=row.uid, depth=1, created_at=hour(1)),
        *version(row, hour(1), 1, "Pending"),
        *version(row, hour(2), 2, "Pending", "a100-1"),
        *version(row, hour(2.5), 3, "Running", "a100-1"),
        waited(row.uid, hour(1), hour(1.25)),
        waited(row.uid, hour(1.25), hour(2), "Unschedulable", _NO_ROOM),
        held(row.uid, hour(2), hour(10)),
        took(row.uid, hour(2), hour(10), 32_000, 256 << 30),
        ran(row.uid, hour(2.5), hour(10)),
        event(row.uid, "Phase", hour(1), 1, value="Pending"),
        event(row.uid, "Condition", hour(1.25), 2, subject="PodScheduled", value="False", reason="Unschedulable"),
        event(row.uid, "Bound", hour(2), 3, value="a100-1"),
        event(row.uid, "Phase", hour(2.5), 4, value="Running", before="Pending"),
        event(row.uid, "Exit", hour(10), 5, subject="main", exit_code=0, value="Completed", reason="Completed"),
        event(row.uid, "Phase", hour(10), 5, value="Succeeded", before="Running"),
        event(row.uid, "Gone", hour(11), 6),
    ]


def _serving() -> list[Row]:
    first = pod(
        "serve-0",
        "prod",
        user="bob",
        gpu_allocated=2000,
        node_name="a100-1",
        bound_at=hour(4),
        end_at=hour(12),
        gone_at=hour(12),
        updated_at=hour(12),
    )
    second = pod(
        "serve-1", "prod", user="bob", gpu_allocated=4000, node_name="a100-1", created_at=hour(11.9), bound_at=hour(12)
    )
    return [
        first,
        second,
        *version(first, hour(4), 1, "Running", "a100-1"),
        *version(second, hour(12), 2, "Running", "a100-1"),
        held(first.uid, hour(4), hour(12), 2000),
        held(second.uid, hour(12), None, 4000),
        took(first.uid, hour(4), hour(12), 8000),
        took(second.uid, hour(12), None, 55_000),
        ran(second.uid, hour(12)),
        Disruption(
            cluster=CLUSTER,
            pod_uid=first.uid,
            rule="PreemptionByScheduler",
            at=hour(11.95),
            by="default-scheduler",
            message="default-scheduler: preempting to accommodate a higher priority pod",
        ),
        Disruption(
            cluster=CLUSTER,
            pod_uid=first.uid,
            rule="Preempted",
            at=hour(11.96),
            by="default-scheduler",
            for_pod="prod/serve-1",
        ),
    ]


def _notebook() -> list[Row]:
    row = pod("notebook", "lab", gpu_allocated=2000, node_name="h100-1", created_at=hour(8), bound_at=hour(8))
    minutes = [hour(20 + minute / 60) for minute in range(0, 241, 5)]
    return [
        row,
        *version(row, hour(8), 1, "Running", "h100-1"),
        held(row.uid, hour(8), None, 2000, "h100-1", gpu_model="H100"),
        took(row.uid, hour(8), None, node="h100-1"),
        *(used(row.uid, at, 0.01) for at in minutes),
    ]


def elsewhere(rows: list[Row], cluster: str) -> list[Row]:
    """The same in another cluster."""
    return [msgspec.structs.replace(row, cluster=cluster) for row in rows]


async def written(path: str, rows: list[Row]) -> SqlStore:
    """A ledger in a file, with these rows."""
    store = await open_store(await prepared(f"sqlite:///{path}"))
    batch = Rows()
    batch.add(*rows)
    await store.commit(batch)
    return store
