"""What the cluster makes of a node's health.

A kubelet that has been silent for 50 seconds is taken for lost: the node's conditions become Unknown and its pods not
ready. Each condition that keeps pods away is mirrored in a taint; the Ready condition also in one that evicts.

Virtual kubelets write no heartbeats: a kubelet lives unless its Node says since when it does not (`kubelet.node`); that
instant is its last heartbeat. Source of truth: pkg/controller/nodelifecycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.cluster.embedded.controllers.contract import NOTHING, Concern, Emit, Outcome, Patch, SetStatus, View, Write
from bayplan.cluster.embedded.controllers.node_zones import EVICTING, NOT_READY, UNREACHABLE, next_slot, readiness
from bayplan.cluster.embedded.kubelet.node import stopped_at
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import NODE, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, rfc3339
from bayplan.model.nodes import Node
from bayplan.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint

COMPONENT = "node-controller"
GRACE = 50 * SECOND
"""--node-monitor-grace-period; a node that never said anything has ten seconds more."""
_STARTUP_GRACE = 60 * SECOND
_PERIOD = 5 * SECOND
"""--node-monitor-period: how often a node is looked at that may not be emptied now."""

_HEARD = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that a kubelet reports."""
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_TAINT_OF = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_KEPT_BY_US = frozenset((*_TAINT_OF.values(), UNSCHEDULABLE))
_OLD_LABELS = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}


def _changed(change: Change, view: View) -> Iterable[Key]:
    """A node concerns itself; one that fails or returns may change what is done about the others that failed."""
    new, old = change.new, change.old
    if change.type is not ChangeType.DELETED:
        yield new.key
    was = "" if old is None else readiness(old.view(Node))
    if was and was != readiness(new.view(Node)):
        yield from (each.key for each in view.objects(NODE) if readiness(each.view(Node)) in ("False", "Unknown"))


class NodeLifecycle:
    """Watches over nodes."""

    name = COMPONENT
    watches: Mapping[Kind, Concern] = {NODE: _changed}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(NODE, *key)
        if item is None:
            return NOTHING
        node = item.view(Node)
        lost = _lost_at(item, node)
        if lost is not None and lost <= now:
            silenced = _silenced(item, node, view, now)
            if silenced:
                return Outcome(silenced)  # the node has changed: its taints follow at the next look
        due = Instant(0)
        if readiness(node) in ("False", "Unknown") and not _is_evicting(node):
            slot = next_slot(node, (each.view(Node) for each in view.objects(NODE)))
            due = Instant(now + _PERIOD) if slot is None else slot
        elif _is_evicting(node) and _all_is_lost(node, view):
            due = Instant(now + _PERIOD)
        taints = tainted(node, now, may_evict=due <= now)
        again = [at for at in (lost, due) if at is not None and at > now]
        return Outcome(_patches(item, node, taints), min(again, default=None))


def _lost_at(item: Object, node: Node) -> Instant | None:
    """When a node is given up whose kubelet has fallen silent. A time that cannot be read is long ago."""
    try:
        heard = stopped_at(item.meta)
    except ValueError:
        heard = Instant(0)
    return None if heard is None else Instant(heard + (GRACE if readiness(node) else _STARTUP_GRACE))


def _silenced(item: Object, node: Node, view: View, now: Instant) -> list[Write]:
    """Take a node for lost. Nothing when it is already."""
    status: dict[str, Any] = item.sections["status"].plain() if "status" in item.sections else {}
    conditions = [_unknown(one, now) if one["type"] in _HEARD else one for one in status.get("conditions") or ()]
    known = {one["type"] for one in conditions}
    conditions += [_never_heard(kind, item, now) for kind in _HEARD if kind not in known]
    if conditions == status.get("conditions"):
        return []
    writes: list[Write] = [SetStatus(item, status | {"conditions": conditions})]
    if readiness(node) == "True":
        text = f"Node {item.name} status is now: NodeNotReady"
        writes.append(Emit(item, "Normal", "NodeNotReady", text, COMPONENT))
        for pod in view.pods_on(item.name):
            writes += _not_ready(pod, now)
    return writes


def _unknown(condition: dict[str, Any], now: Instant) -> dict[str, Any]:
    if condition["status"] == "Unknown":
        return condition
    return condition | {
        "status": "Unknown",
        "lastTransitionTime": rfc3339(now),
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
    }


def _never_heard(kind: str, item: Object, now: Instant) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "Unknown",
        "lastHeartbeatTime": item.meta.creation_timestamp,
        "lastTransitionTime": rfc3339(now),
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
    }


def _not_ready(pod: Object, now: Instant) -> list[Write]:
    """A pod of which nothing is heard any more is not ready."""
    status: dict[str, Any] = pod.sections["status"].plain()
    ready = next((one for one in status.get("conditions") or () if one["type"] == "Ready"), None)
    if ready is None or ready["status"] == "False":
        return []
    ready |= {"status": "False", "lastTransitionTime": rfc3339(now)}
    return [SetStatus(pod, status), Emit(pod, "Warning", "NodeNotReady", "Node is not ready", COMPONENT)]


def _is_evicting(node: Node) -> bool:
    return any(each.effect == NO_EXECUTE and each.key in EVICTING for each in node.spec.taints)


def _all_is_lost(node: Node, view: View) -> bool:
    return readiness(node) != "True" and all(readiness(each.view(Node)) != "True" for each in view.objects(NODE))


def tainted(node: Node, now: Instant, *, may_evict: bool) -> tuple[Taint, ...]:
    """The taints that a node should have. Those that are there already keep their place and time."""
    wanted = _wanted(node, may_evict=may_evict)
    kept = [each for each in node.spec.taints if not _is_ours(each, node) or (each.key, each.effect) in wanted]
    present = {(each.key, each.effect) for each in kept}
    added = [Taint(key, "", effect) for key, effect in wanted if (key, effect) not in present]
    # what evicts must say since when: that is where the patience of the pods begins
    unsaid = [each for each in kept if each.effect == NO_EXECUTE and each.time_added is None] + added
    return tuple(
        msgspec.structs.replace(each, time_added=rfc3339(now)) if each in unsaid else each for each in (*kept, *added)
    )


def _wanted(node: Node, *, may_evict: bool) -> dict[tuple[str, str], None]:
    found = [_TAINT_OF.get((one.type, one.status), "") for one in node.status.conditions]
    keys = [key for key in found if key] + ([UNSCHEDULABLE] if node.spec.unschedulable else [])
    wanted = dict.fromkeys((key, NO_SCHEDULE) for key in keys)
    evicting = _TAINT_OF.get(("Ready", readiness(node)))
    if evicting is not None and may_evict:
        wanted[(evicting, NO_EXECUTE)] = None
    return wanted


def _is_ours(taint: Taint, node: Node) -> bool:
    """Whether the controller decides on a taint. Before the first word of a kubelet it leaves readiness alone."""
    if taint.key in EVICTING and not readiness(node):
        return False
    if taint.effect == NO_EXECUTE:
        return taint.key in EVICTING
    return taint.effect == NO_SCHEDULE and taint.key in _KEPT_BY_US


def _patches(item: Object, node: Node, taints: tuple[Taint, ...]) -> Sequence[Write]:
    patch: dict[str, Any] = {}
    labels = {
        old: item.meta.labels[new]
        for new, old in _OLD_LABELS.items()
        if new in item.meta.labels and item.meta.labels.get(old) != item.meta.labels[new]
    }
    if labels:
        patch["metadata"] = {"labels": labels}
    if taints != node.spec.taints:
        patch["spec"] = {"taints": msgspec.to_builtins(taints) or None}
    return [Patch(item, patch)] if patch else ()
