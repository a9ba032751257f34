"""A node's own part: its conditions while its kubelet lives, and how one knows that it does not.

A kubelet is stopped by an annotation on its Node: `bayplan.dev/kubelet: stopped-at=2026-01-01T00:00:00Z`. Nothing on
the node changes then; when the annotation goes, the kubelet comes back and goes on with what has happened meanwhile.

Source of truth: pkg/kubelet/nodestatus/setters.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.controllers.contract import NOTHING, Emit, Outcome, SetStatus
from bayplan.cluster.embedded.kubelet.addresses import node_addresses
from bayplan.cluster.embedded.kubelet.run import Doc
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant, parse_rfc3339, rfc3339
from bayplan.model.meta import ObjectMeta

STOPPED = "bayplan.dev/kubelet"
_STOPPED_AT = "stopped-at="

# type, healthy status, reason, message
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def stopped(meta: ObjectMeta) -> bool:
    """Whether the node's kubelet is dead."""
    return meta.annotations.get(STOPPED, "").startswith(_STOPPED_AT)


def stopped_at(meta: ObjectMeta) -> Instant | None:
    """Since when the node's kubelet has been dead, if it is and the annotation says so. Raises ValueError."""
    return parse_rfc3339(meta.annotations[STOPPED].removeprefix(_STOPPED_AT)) if stopped(meta) else None


def reconcile_node(item: Object, now: Instant) -> Outcome:
    """Keep a living node's conditions. A pressure that a client has set stays; Ready is the kubelet's own."""
    if stopped(item.meta):
        return NOTHING
    status: Doc = item.sections["status"].plain()
    present = {each["type"]: each for each in status.get("conditions", ())}
    ready = present.get("Ready", {}).get("status")
    conditions = dict(present)
    for kind, healthy, reason, message in _CONDITIONS:
        known = present.get(kind, {}).get("status")
        if known == healthy or (known is not None and known != "Unknown" and kind != "Ready"):
            continue
        conditions[kind] = {
            "type": kind,
            "status": healthy,
            "lastHeartbeatTime": rfc3339(now),
            "lastTransitionTime": rfc3339(now),
            "reason": reason,
            "message": message,
        }
    if conditions == present and status.get("addresses"):
        return NOTHING
    changed = {**status, "conditions": [*conditions.values()]}
    changed["addresses"] = status.get("addresses") or node_addresses(item.name)
    writes: list[SetStatus | Emit] = [SetStatus(item, changed)]
    if ready is not None and ready != "True":
        message = f"Node {item.name} status is now: NodeReady"
        writes.append(Emit(item, "Normal", "NodeReady", message, "kubelet"))
    return Outcome(writes)
