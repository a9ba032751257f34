"""Objects and references for tests of owners."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.kinds import Kind
from bayplan.cluster.objects import Object
from bayplan.ledger.owners import Owners, PodLink, Told
from bayplan.ledger.owners.owners import GRACE
from bayplan.ledger.rows import GpuWorkload, WorkloadPodReference
from bayplan.model.clock import SECOND, Instant
from bayplan.model.meta import ObjectMeta, OwnerReference

T0 = Instant(1_780_000_000 * SECOND)


def at(seconds: int) -> Instant:
    return Instant(T0 + seconds * SECOND)


def kind(api_version: str, name: str) -> Kind:
    group, _, version = api_version.rpartition("/")
    return Kind(group, version, name, name.lower() + "s", True)


API = {
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
    "Node": "v1",
    "Pod": "v1",
}


def reference(name: str, of_kind: str, *, uid: str = "", controller: bool | None = True) -> dict[str, Any]:
    api_version = API.get(of_kind, "example.com/v1")
    return {
        "apiVersion": api_version,
        "kind": of_kind,
        "name": name,
        "uid": uid or f"{name}-uid",
        "controller": controller,
    }


def owner(name: str, of_kind: str, *, uid: str = "") -> OwnerReference:
    return msgspec.convert(reference(name, of_kind, uid=uid), OwnerReference)


def workload(
    name: str,
    of_kind: str,
    *,
    uid: str = "",
    version: int = 1,
    owners: list[dict[str, Any]] | None = None,
    namespace: str = "ml",
    meta: dict[str, Any] | None = None,
    **sections: Any,
) -> Object:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"{name}-uid",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-05-01T00:00:00Z",
        "ownerReferences": owners or [],
        **(meta or {}),
    }
    of = kind(API.get(of_kind, "example.com/v1"), of_kind)
    return Object.from_raw(of, msgspec.json.encode({"metadata": metadata, **sections}))


def pod(name: str, controller: OwnerReference | None = None, *, gpus: int = 1, phase: str = "Running") -> PodLink:
    return PodLink(f"{name}-uid", "ml", controller, gpus * 1000, phase)


def workloads(told: Told) -> dict[str, GpuWorkload]:
    rows = told.rows.by_type.get(GpuWorkload, [])
    return {row.uid.removesuffix("-uid"): row for row in rows if isinstance(row, GpuWorkload)}


def references(told: Told) -> set[tuple[str, str, int]]:
    rows = told.rows.by_type.get(WorkloadPodReference, [])
    return {(row.pod_uid, row.workload_uid, row.depth) for row in rows if isinstance(row, WorkloadPodReference)}


def new() -> Owners:
    return Owners("here")


def synthetic(obj: Object) -> Object:
    """As a reflector tells of one that it inferred to be gone."""
    meta = ObjectMeta(namespace=obj.namespace, name=obj.name, uid=obj.uid)
    return Object(obj.kind, meta, {}, 0)


DEPLOYMENT = workload("web", "Deployment", spec={"replicas": 1}, status={"readyReplicas": 1})
REPLICA_SET = workload("web-1", "ReplicaSet", owners=[reference("web", "Deployment")])
POD = pod("web-1-a", owner("web-1", "ReplicaSet"))
LATER = Instant(at(0) + GRACE + SECOND)
