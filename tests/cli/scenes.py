"""A small cluster by hand, with something of everything that can be seen."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.kinds import EVENT, NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import parse_rfc3339

NOW = parse_rfc3339("2026-01-01T10:00:00Z")


def _object(kind: Kind, meta: dict[str, Any], **sections: Any) -> Object:
    return Object.from_raw(kind, msgspec.json.encode({"metadata": meta, **sections}))


def node(name: str, gpus: int, *, ready: bool = True, shares: int = 0, cordoned: bool = False) -> Object:
    labels = {"topology.kubernetes.io/zone": "zone-a", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    resources = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    if shares:
        labels["nvidia.com/gpu.replicas"] = str(shares)
        resources = {**resources, "nvidia.com/gpu": "0", "nvidia.com/gpu.shared": str(gpus * shares)}
    conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
    status = {"allocatable": resources, "conditions": conditions}
    return _object(NODE, {"name": name, "labels": labels}, spec={"unschedulable": cordoned}, status=status)


def pod(
    name: str,
    on: str = "",
    *,
    gpus: int = 0,
    shares: int = 0,
    phase: str = "Running",
    state: dict[str, Any] | None = None,
    said: str = "",
    going: bool = False,
) -> Object:
    namespace, _, short = name.partition("/")
    meta = {"name": short, "namespace": namespace, "uid": name, "creationTimestamp": "2026-01-01T09:15:00Z"}
    if going:
        meta["deletionTimestamp"] = "2026-01-01T10:00:00Z"
    requests = {"cpu": "16", "memory": "64Gi"}
    requests |= {"nvidia.com/gpu": str(gpus)} if gpus else {}
    requests |= {"nvidia.com/gpu.shared": str(shares)} if shares else {}
    status: dict[str, Any] = {"phase": phase, "containerStatuses": [{"name": "c", "state": state or {"running": {}}}]}
    if said:
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "message": said}]
        status.pop("containerStatuses")
    spec = {"containers": [{"name": "c", "resources": {"requests": requests}}], "nodeName": on}
    return _object(POD, meta, spec=spec, status=status)


def event(about: str, reason: str, message: str, *, kind: str = "Pod", warning: bool = False, count: int = 1) -> Object:
    namespace, _, name = about.rpartition("/")
    involved = {"kind": kind, "namespace": namespace, "name": name, "uid": about}
    return _object(
        EVENT,
        {"name": f"{name}.{reason}.{count}", "namespace": namespace or "default"},
        involvedObject=involved,
        type="Warning" if warning else "Normal",
        reason=reason,
        message=message,
        count=count,
        lastTimestamp="2026-01-01T09:58:00Z",
    )


NODES = [
    node("gpu-1", 8),
    node("gpu-2", 8, ready=False),
    node("gpu-3", 4, cordoned=True),
    node("shared-1", 2, shares=4),
]
NO_ROOM = (
    "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient nvidia.com/gpu. "
    "no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
)
PODS = [
    pod("nlp/pretrain-1-0-x", "gpu-1", gpus=4),
    pod("nlp/tune-3-y", "gpu-2", gpus=2, going=True),
    pod("vision/train-7-z", "gpu-1", gpus=2),
    pod("vision/train-8-z", "gpu-1", gpus=1, phase="Failed", state={"terminated": {"reason": "OOMKilled"}}),
    pod("vision/train-9-z", "gpu-3", gpus=1, phase="Pending", state={"waiting": {"reason": "ImagePullBackOff"}}),
    pod("vision/detect-1", "gpu-1", state={"waiting": {"reason": "CrashLoopBackOff"}}),
    pod("research/notebook-1-0", "shared-1", shares=3),
    pod("research/notebook-2-0", "shared-1", shares=2),
    pod("nlp/pretrain-2-0-x", gpus=8, phase="Pending", said=NO_ROOM),
    pod("nlp/done-1", "gpu-1", gpus=1, phase="Succeeded", state={"terminated": {"reason": "Completed"}}),
]
EVENTS = [
    event("nlp/tune-3-y", "Scheduled", "not worth telling"),
    event("nlp/pretrain-2-0-x", "FailedScheduling", NO_ROOM, warning=True),
    event("vision/detect-1", "BackOff", "Back-off restarting failed container c", warning=True, count=3),
    event("nlp/done", "Completed", "Job completed", kind="Job"),
    event("gpu-2", "NodeNotReady", "Node gpu-2 status is now: NodeNotReady", kind="Node"),
    event("vision/detect-1", "BackOff", "Back-off restarting failed container c", warning=True, count=4),
]
