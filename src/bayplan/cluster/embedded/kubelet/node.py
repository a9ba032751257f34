"""A node's own part: its conditions while its kubelet lives, and how one knows that it does not.

A kubelet is stopped by an annotation on its Node: `bayplan.dev/kubelet: stopped-at=2026-01-01T00:00:00Z`. Nothing on
the node changes then; when the annotation goes, the kubelet comes back and goes on with what has happened meanwhile.
A kubelet that cannot start, for what the node says of its machine (`equipment`), does nothing either, and says why.

Source of truth: pkg/kubelet/nodestatus/setters.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.controllers.contract import NOTHING, Emit, Outcome, SetStatus
from bayplan.cluster.embedded.kubelet.addresses import node_addresses
from bayplan.cluster.embedded.kubelet.run import Doc
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant, parse_rfc3339, rfc3339
from bayplan.model.meta import ObjectMeta
from bayplan.node.annotations.equipment import Equipment, Problem, equipment_of

STOPPED = "bayplan.dev/kubelet"
_STOPPED_AT = "stopped-at="

# type, healthy status, reason, message
_PRESSURES = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_READY = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")


def stopped(meta: ObjectMeta) -> bool:
    """Whether the node's kubelet is dead."""
    return meta.annotations.get(STOPPED, "").startswith(_STOPPED_AT)


def stopped_at(meta: ObjectMeta) -> Instant | None:
    """Since when the node's kubelet has been dead, if it is and the annotation says so. Raises ValueError."""
    return parse_rfc3339(meta.annotations[STOPPED].removeprefix(_STOPPED_AT)) if stopped(meta) else None


def silent(meta: ObjectMeta) -> bool:
    """Whether the node's kubelet does nothing: it is dead, or it cannot start."""
    return stopped(meta) or isinstance(equipment_of(meta.annotations), Problem)


def reconcile_node(item: Object, now: Instant) -> Outcome:
    """Keep a living node's conditions. A pressure that a client has set stays; Ready is the kubelet's own."""
    if stopped(item.meta):
        return NOTHING
    equipment = equipment_of(item.meta.annotations)
    status: Doc = item.sections["status"].plain()
    changed = dict(status)
    if isinstance(equipment, Equipment) and not status.get("capacity"):
        changed |= {"capacity": dict(equipment.capacity), "allocatable": dict(equipment.allocatable)}
    before = {each["type"]: each for each in status.get("conditions", ())}
    after = _conditions(before, equipment if isinstance(equipment, Problem) else None, now)
    if after != before:
        changed["conditions"] = [*after.values()]
    changed["addresses"] = status.get("addresses") or node_addresses(item.name)
    if changed == status:
        return NOTHING
    return Outcome([SetStatus(item, changed), *_told(item, before.get("Ready"), after["Ready"])])


def _conditions(present: dict[str, Doc], problem: Problem | None, now: Instant) -> dict[str, Doc]:
    """What the node's conditions should be; those of a kubelet that cannot start say nothing of pressures."""
    found = dict(present)
    failed = problem and ("Ready", "False", "KubeletNotReady", f"the kubelet does not start: {problem.message}")
    for kind, healthy, reason, message in (failed,) if failed else (*_PRESSURES, _READY):
        known = present.get(kind, {})
        if known.get("status") == healthy and (not failed or known.get("message") == message):
            continue
        if kind != "Ready" and known.get("status", "Unknown") != "Unknown":
            continue
        found[kind] = {
            "type": kind,
            "status": healthy,
            "lastHeartbeatTime": rfc3339(now),
            "lastTransitionTime": rfc3339(now),
            "reason": reason,
            "message": message,
        }
    return found


def _told(item: Object, before: Doc | None, after: Doc) -> list[Emit]:
    """The events of a kubelet that comes back, or that cannot start."""
    if before == after:
        return []
    if after["status"] != "True":
        return [Emit(item, "Warning", "KubeletSetupFailed", after["message"], "kubelet")]
    if before is None:
        return []
    return [Emit(item, "Normal", "NodeReady", f"Node {item.name} status is now: NodeReady", "kubelet")]
