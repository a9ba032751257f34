"""Pods that no kubelet will end: their node is gone or given up, or they were deleted before they had one.

A node that is missing may be coming back, so its pods stay for 40 seconds; since when it is missing stands on the pod.
Source of truth: pkg/controller/podgc. The limit on finished pods (12,500 upstream) is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Delete,
    Outcome,
    Patch,
    SetStatus,
    View,
    Write,
)
from bayplan.cluster.embedded.controllers.node_zones import readiness
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, parse_rfc3339, rfc3339
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod

QUARANTINE = 40 * SECOND
SINCE = "bayplan.dev/node-missing-since"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def _node(change: Change, view: View) -> Iterable[Key]:
    if change.type is ChangeType.DELETED or _is_given_up(change.new):
        return [pod.key for pod in view.pods_on(change.new.name)]
    return ()


def _pod(change: Change, view: View) -> Iterable[Key]:
    if change.type is ChangeType.DELETED:
        return ()
    node = change.new.view(Pod).spec.node_name
    if not node:
        return (change.new.key,) if change.new.meta.deletion_timestamp is not None else ()
    if change.old is not None and change.old.view(Pod).spec.node_name == node and not _was_deleted(change):
        return ()
    found = view.get(NODE, "", node)
    return (change.new.key,) if found is None or _is_given_up(found) else ()


def _was_deleted(change: Change) -> bool:
    return change.old is not None and change.new.meta.deletion_timestamp != change.old.meta.deletion_timestamp


def _is_given_up(node: Object) -> bool:
    """Whether someone has said that a dead node will not come back."""
    view = node.view(Node)
    return any(each.key == _OUT_OF_SERVICE for each in view.spec.taints) and readiness(view) != "True"


class PodCollector:
    """Ends pods that nobody else can end."""

    name = "pod-garbage-collector"
    watches: Mapping[Kind, Concern] = {NODE: _node, POD: _pod}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(POD, *key)
        if item is None:
            return NOTHING
        name, deleted = item.view(Pod).spec.node_name, item.meta.deletion_timestamp is not None
        node = view.get(NODE, "", name) if name else None
        if name and node is None:
            return _quarantined(item, now)
        if deleted and (node is None or _is_given_up(node)):
            return Outcome(_ended(item))
        return Outcome([_marked(item, None)]) if SINCE in item.meta.annotations else NOTHING


def _quarantined(item: Object, now: Instant) -> Outcome:
    """A pod whose node is missing."""
    since = item.meta.annotations.get(SINCE)
    if since is None:
        return Outcome([_marked(item, rfc3339(now))], Instant(now + QUARANTINE))
    due = Instant(parse_rfc3339(since) + QUARANTINE)
    if due > now:
        return Outcome(again=due)
    told = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(now),
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
    }
    return Outcome(_ended(item, told))


def _marked(item: Object, since: str | None) -> Patch:
    return Patch(item, {"metadata": {"uid": item.uid, "annotations": {SINCE: since}}})


def _ended(item: Object, told: dict[str, Any] | None = None) -> list[Write]:
    """The pod has failed, unless it was over before, and goes at once, but for what finalizers hold."""
    writes: list[Write] = []
    if not item.view(Pod).is_terminal:
        status: dict[str, Any] = item.sections["status"].plain() | {"phase": "Failed"}
        if told is not None:
            others = [one for one in status.get("conditions") or () if one["type"] != told["type"]]
            status["conditions"] = [*others, told]
        writes.append(SetStatus(item, status))
    if item.meta.deletion_timestamp is None or item.meta.deletion_grace_period_seconds:
        writes.append(Delete(item, grace=0))
    return writes
