"""What held from one instant to another."""

from __future__ import annotations

from bayplan.ledger.rows.row import Name, Row, Sort, Word
from bayplan.model.clock import Instant


class Period(Row, frozen=True, kw_only=True):
    """Something that held from `start_at` until `end_at`; None: it still holds."""

    sort = Sort.PERIOD

    start_at: Instant
    resource_version: int
    """Of the version that said so last."""
    end_at: Instant | None = None
    end_inferred: bool = False
    end_after: Instant | None = None


class NodePeriod(Period, frozen=True, kw_only=True):
    """A node offered so many GPUs of a resource."""

    table = "node_periods"
    key = ("cluster", "node_uid", "resource", "start_at")
    indexes = (("cluster", "end_at"),)

    node_uid: Name
    node_name: Name
    resource: Name
    gpus: int
    gpu_model: Name = ""


class GpuPeriod(Period, frozen=True, kw_only=True):
    """A pod held so many GPUs of a resource: from its binding to its release."""

    table = "gpu_periods"
    key = ("cluster", "pod_uid", "resource", "start_at")
    indexes = (("cluster", "end_at"), ("cluster", "start_at"))

    pod_uid: Name
    resource: Name
    gpus: int
    gpu_model: Name = ""
    node_name: Name


class RunningPeriod(Period, frozen=True, kw_only=True):
    """A pod was Running."""

    table = "pod_running_periods"
    key = ("cluster", "pod_uid", "start_at")
    indexes = (("cluster", "end_at"),)

    pod_uid: Name
    gpus: int


class PendingPeriod(Period, frozen=True, kw_only=True):
    """A pod waited for a place, and why: Unschedulable, SchedulingGated, or not tried yet."""

    table = "pending_periods"
    key = ("cluster", "pod_uid", "start_at")
    indexes = (("cluster", "end_at"),)

    pod_uid: Name
    reason: Name = ""
    message: str = ""


class NodeRoomPeriod(Period, frozen=True, kw_only=True):
    """What a node with GPUs had for pods beside them, and what kept them away."""

    table = "node_room_periods"
    key = ("cluster", "node_uid", "start_at")
    indexes = (("cluster", "end_at"),)

    node_uid: Name
    node_name: Name
    cpu: int
    """Thousandths; like memory and pods what it has for pods in all."""
    memory: int
    """Bytes."""
    pods: int
    hurdle: Word = ""
    """Why no pod could go there: not ready, cordoned; empty: nothing of the kind."""


class PodRoomPeriod(Period, frozen=True, kw_only=True):
    """What a pod, with GPUs or without, took of the CPU and memory of a node with GPUs."""

    table = "pod_room_periods"
    key = ("cluster", "pod_uid", "start_at")
    indexes = (("cluster", "end_at"),)

    pod_uid: Name
    namespace: Name
    name: Name
    node_name: Name
    cpu: int
    memory: int
