"""Pods leave a node with a NoExecute taint that they do not tolerate, or no longer.

Patience begins when the first such taint was added, or when the pod came if that was later. Looked at node by node: one
timer a tainted node, for the pod whose patience ends next. Source of truth: pkg/controller/tainteviction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Delete,
    Emit,
    Outcome,
    SetStatus,
    View,
    Write,
)
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, parse_rfc3339, rfc3339
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.taints import NO_EXECUTE, Taint, seconds_until_eviction

COMPONENT = "taint-eviction-controller"
_CANCELLED = "cancelled"


def _evicting(item: Object) -> tuple[Taint, ...]:
    return tuple(each for each in item.view(Node).spec.taints if each.effect == NO_EXECUTE)


def _node(change: Change, _view: View) -> Iterable[Key]:
    if change.type is ChangeType.DELETED:
        return
    new, old = _evicting(change.new), _evicting(change.old) if change.old is not None else ()
    if new and new != old:
        yield change.new.key
    if old and not new:  # the look cannot see the taints that are gone: the key tells of them
        yield (f"{_CANCELLED} {' '.join(map(str, old))}", change.new.name)


def _pod(change: Change, view: View) -> Iterable[Key]:
    """A pod that comes to a node concerns it, if the node is tainted."""
    new, old = change.new, change.old
    name = new.view(Pod).spec.node_name
    if not name or change.type is ChangeType.DELETED or (old is not None and _is_same(new.view(Pod), old.view(Pod))):
        return ()
    node = view.get(NODE, "", name)
    return (node.key,) if node is not None and _evicting(node) else ()


def _is_same(new: Pod, old: Pod) -> bool:
    return new.spec.node_name == old.spec.node_name and new.spec.tolerations == old.spec.tolerations


class TaintEviction:
    """Deletes pods whose node has turned against them."""

    name = COMPONENT
    watches: Mapping[Kind, Concern] = {NODE: _node, POD: _pod}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(NODE, "", key[1])
        if item is None:
            return NOTHING
        staying = [pod for pod in view.pods_on(item.name) if pod.meta.deletion_timestamp is None]
        if key[0].startswith(_CANCELLED):
            return Outcome(_cancelled(staying, [_taint(text) for text in key[0].split(" ")[1:]]))
        taints = _evicting(item)
        ends = {pod.key: patience_ends(pod.view(Pod), taints) for pod in staying} if taints else {}
        writes: list[Write] = []
        for pod in staying:
            end = ends.get(pod.key)
            if end is not None and end <= now:
                writes += evicted(pod, now)
        return Outcome(writes, min((at for at in ends.values() if at is not None and at > now), default=None))


def patience_ends(pod: Pod, taints: Sequence[Taint]) -> Instant | None:
    """When a pod must leave a node with these taints; None while it may stay."""
    patience = seconds_until_eviction(taints, pod.spec.tolerations)
    if not patience:
        return None if patience is None else Instant(0)
    times = [parse_rfc3339(each.time_added) for each in taints if each.effect == NO_EXECUTE and each.time_added]
    if not times:
        return None  # the node's controller says since when at its next look
    bound = condition(pod.status.conditions, "PodScheduled")
    came = pod.metadata.creation_timestamp if bound is None else bound.last_transition_time
    since = max(min(times), parse_rfc3339(came)) if came else min(times)
    return Instant(since + patience * SECOND)


def evicted(pod: Object, now: Instant) -> list[Write]:
    """Say it, mark the pod as disrupted, delete it."""
    status: dict[str, Any] = pod.sections["status"].plain()
    told = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(now),
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
    }
    others = [one for one in status.get("conditions") or () if one["type"] != told["type"]]
    text = f"Marking for deletion Pod {pod.namespace}/{pod.name}"
    return [
        Emit(pod, "Normal", "TaintManagerEviction", text, COMPONENT),
        SetStatus(pod, status | {"conditions": [*others, told]}),
        Delete(pod),
    ]


def _cancelled(pods: Iterable[Object], taints: Sequence[Taint]) -> list[Write]:
    """The pods that would have had to leave may stay."""
    return [
        Emit(pod, "Normal", "TaintManagerEviction", f"Cancelling deletion of Pod {pod.namespace}/{pod.name}", COMPONENT)
        for pod in pods
        if seconds_until_eviction(taints, pod.view(Pod).spec.tolerations)
    ]


def _taint(text: str) -> Taint:
    """A taint from its text, `key=value:effect`."""
    mark, _, effect = text.rpartition(":")
    key, _, value = mark.partition("=")
    return Taint(key, value, effect)
