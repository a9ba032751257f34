"""Objects as they were last seen, their versions, and what happened to them."""

from __future__ import annotations

from typing import Self

import msgspec

from bayplan.ledger.rows.row import Hash, Name, Row, Sort, Word
from bayplan.model.clock import Instant

_NOT_READY, _CORDONED = "not ready", "cordoned"


class GpuWorkload(Row, frozen=True, kw_only=True):
    """An owner of GPU pods, of any kind and depth."""

    table = "gpu_workloads"
    key = ("cluster", "uid")
    sort = Sort.STATE
    indexes = (("cluster", "namespace", "name"), ("cluster", "parent_uid"), ("cluster", "end_at"))

    uid: Name
    resource_version: int
    group_version: Name
    kind: Name
    namespace: Name
    name: Name
    parent_uid: Name = ""
    """The controller's; empty for a root."""
    gpu_request: int = 0
    """Thousandths: the sum over its own pods."""
    status: Word = ""
    status_reason: str = ""
    labels: str = "{}"
    annotations: str = "{}"
    user: Name = "unknown"
    created_at: Instant
    updated_at: Instant
    end_at: Instant | None = None
    end_inferred: bool = False
    """Nobody saw it end: it ended after `end_after`, at the latest at `end_at`."""
    end_after: Instant | None = None


class GpuPod(Row, frozen=True, kw_only=True):
    """A pod that asks for GPUs, as it was last seen."""

    table = "gpu_pods"
    key = ("cluster", "uid")
    sort = Sort.STATE
    indexes = (
        ("cluster", "namespace", "name"),
        ("cluster", "node_name"),
        ("cluster", "end_at"),
        ("cluster", "owner_uid"),
        ("cluster", "gone_at", "created_at", "uid"),
    )

    uid: Name
    resource_version: int
    namespace: Name
    name: Name
    node_name: Name = ""
    gpu_allocated: int = 0
    """Thousandths, over all GPU resources, counted as the scheduler counts."""
    phase: Word = ""
    reason: str = ""
    running: bool = False
    deleted: bool = False
    """Whether its deletion was asked for, or it is gone."""
    owner_uid: Name = ""
    """Its controller."""
    root_uid: Name = ""
    """The workload at the top of its chain of controllers, as far as it is known."""
    user: Name = "unknown"
    labels: str = "{}"
    ip: Name = ""
    container_image: str = ""
    priority: int = 0
    restarts: int = 0
    created_at: Instant
    updated_at: Instant
    bound_at: Instant | None = None
    started_at: Instant | None = None
    end_at: Instant | None = None
    """When it let its GPUs go: its end by phase, or its disappearance if that was earlier."""
    end_inferred: bool = False
    end_after: Instant | None = None
    gone_at: Instant | None = None
    """When its object disappeared."""


class PodResource(Row, frozen=True, kw_only=True):
    """One GPU resource of one pod."""

    table = "pod_resources"
    key = ("cluster", "uid", "resource")
    sort = Sort.STATE

    uid: Name
    resource: Name
    resource_version: int
    gpu_model: Name = ""
    """Of the node it is bound to; empty before."""
    gpu_allocated: int
    created_at: Instant
    end_at: Instant | None = None


class SpecBlob(Row, frozen=True, kw_only=True):
    """A pod's or workload's spec, kept once however many versions share it."""

    table = "spec_blobs"
    key = ("cluster", "hash")
    sort = Sort.FACT

    hash: Hash
    data: bytes
    first_seen: Instant


class PodSnapshot(Row, frozen=True, kw_only=True):
    """One version of one pod, whole. `state` is its metadata and status, compressed; the spec is a blob."""

    table = "pod_snapshots"
    key = ("cluster", "pod_uid", "resource_version")
    sort = Sort.FACT
    indexes = (("cluster", "pod_uid", "observed_at", "resource_version"), ("cluster", "observed_at"))

    pod_uid: Name
    resource_version: int
    namespace: Name
    name: Name
    observed_at: Instant
    spec_hash: Hash
    state: bytes
    dictionary: int = 0
    gone: bool = False
    """The last one: its object disappeared with it."""


class WorkloadSnapshot(Row, frozen=True, kw_only=True):
    """One version of one workload, whole."""

    table = "workload_snapshots"
    key = ("cluster", "workload_uid", "resource_version")
    sort = Sort.FACT
    indexes = (("cluster", "observed_at"),)

    workload_uid: Name
    resource_version: int
    observed_at: Instant
    spec_hash: Hash
    state: bytes
    dictionary: int = 0
    gone: bool = False


class GpuPodsEvent(Row, frozen=True, kw_only=True):
    """A transition of a pod, once."""

    table = "gpu_pods_events"
    key = ("cluster", "pod_uid", "resource_version", "event_type", "subject")
    sort = Sort.FACT
    indexes = (("cluster", "at"),)

    pod_uid: Name
    resource_version: int
    event_type: Word
    """Phase, Condition, Restart, Exit, Bound, Resized, Deleting, Gone."""
    subject: Name = ""
    """Which condition, which container."""
    pod_phase: Word = ""
    value: Name = ""
    """The phase, the condition's status, the exit's reason."""
    before: Name = ""
    reason: str = ""
    message: str = ""
    restart_count: int = 0
    exit_code: int | None = None
    at: Instant
    """When it happened, as far as the object says."""
    observed_at: Instant


class WorkloadPodReference(Row, frozen=True, kw_only=True):
    """A pod belongs to a workload, at so many steps."""

    table = "workload_pod_references"
    key = ("cluster", "workload_uid", "pod_uid")
    sort = Sort.FACT
    indexes = (("cluster", "pod_uid"),)

    workload_uid: Name
    pod_uid: Name
    depth: int
    created_at: Instant


class GpuNode(Row, frozen=True, kw_only=True):
    """A node, as it was last seen; it survives the node."""

    table = "gpu_nodes"
    key = ("cluster", "uid")
    sort = Sort.STATE
    indexes = (("cluster", "name"),)

    uid: Name
    resource_version: int
    name: Name
    gpu_model: Name = ""
    gpu_capacity: int = 0
    ready: bool = False
    schedulable: bool = True
    labels: str = "{}"
    kubelet_version: Name = ""
    created_at: Instant
    updated_at: Instant
    end_at: Instant | None = None
    end_inferred: bool = False
    end_after: Instant | None = None

    @property
    def hurdle(self) -> str:
        """Why no pod can go there; empty: nothing that it says itself."""
        return ", ".join([*([] if self.ready else [_NOT_READY]), *([] if self.schedulable else [_CORDONED])])

    def with_hurdle(self, hurdle: str) -> Self:
        """As it was when this was its hurdle."""
        hurdles = hurdle.split(", ")
        ready, schedulable = _NOT_READY not in hurdles, _CORDONED not in hurdles
        return msgspec.structs.replace(self, ready=ready, schedulable=schedulable)


class Disruption(Row, frozen=True, kw_only=True):
    """A pod was made to go: preempted, evicted, drained; who did it, for whom, by which rule."""

    table = "pod_disruptions"
    key = ("cluster", "pod_uid", "rule", "at")
    sort = Sort.FACT

    pod_uid: Name
    rule: Name
    """The condition's reason: PreemptionByScheduler, EvictionByEvictionAPI, DeletionByTaintManager, ..."""
    at: Instant
    by: Name = ""
    for_pod: Name = ""
    """namespace/name of the pod that got its place."""
    message: str = ""


class GpuUse(Row, frozen=True, kw_only=True):
    """How a pod used a device, as a monitor measured."""

    table = "gpu_use"
    key = ("cluster", "pod_uid", "device", "at")
    sort = Sort.FACT
    indexes = (("cluster", "at"),)

    pod_uid: Name
    device: Name
    at: Instant
    utilisation: float
    """0 to 1."""
    memory_used: int | None = None
    """Bytes; NULL: not told."""


class Gap(Row, frozen=True, kw_only=True):
    """States that nobody can tell any more: between two revisions, between two instants."""

    table = "ledger_gaps"
    key = ("cluster", "kind", "from_at")
    sort = Sort.FACT

    kind: Name
    from_at: Instant
    to_at: Instant
    after_revision: Name = ""
    up_to_revision: Name = ""
    dropped: int = 0
    """States known to have been dropped (a full spool); 0 where nobody could count."""
    why: str = ""


class StreamPosition(Row, frozen=True, kw_only=True):
    """How far a kind's story is told: committed with the rows that it brought."""

    table = "ledger_streams"
    key = ("cluster", "kind")
    sort = Sort.STATE

    kind: Name
    resource_version: int
    """Of the stream; also in `revision`, as the server writes it."""
    revision: Name
    at: Instant
