"""A change of the cluster, as finely as plugins ask for it: a node's taints are one thing, its labels another.

Source of truth: kube-scheduler 1.36 framework/events.go and kube-scheduler/framework/types.go.
"""

from __future__ import annotations

from enum import IntFlag
from typing import TYPE_CHECKING

import msgspec

from bayplan.model.nodes import Node
from bayplan.scheduling.pods import PodInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayplan.model.meta import KubernetesObject

    Subject = PodInfo | KubernetesObject
    """What changed. A pod comes with what has been worked out about it."""


class Action(IntFlag):
    """What was done to an object."""

    ADD = 1 << 0
    DELETE = 1 << 1
    NODE_ALLOCATABLE = 1 << 2
    NODE_LABEL = 1 << 3
    NODE_TAINT = 1 << 4
    """Also the end of a cordon."""
    NODE_CONDITION = 1 << 5
    NODE_ANNOTATION = 1 << 6
    NODE_DECLARED_FEATURE = 1 << 7
    POD_LABEL = 1 << 8
    POD_SCALE_DOWN = 1 << 9
    POD_TOLERATION = 1 << 10
    POD_GATES_ELIMINATED = 1 << 11
    UPDATE = 0b1111_1111_1100
    """Any update. As an event: one that is nothing more precise."""


POD = "Pod"
"""What plugins ask for: assigned and unscheduled pods alike."""
ASSIGNED_POD = "AssignedPod"
UNSCHEDULED_POD = "UnschedulablePod"
NODE = "Node"


class ClusterEvent(msgspec.Struct, frozen=True):
    """One kind of change of one kind of object. Others than pods go by the name of their kind."""

    resource: str
    action: Action


ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, Action.DELETE)


def object_events(old: KubernetesObject | None, new: KubernetesObject | None) -> tuple[ClusterEvent, ...]:
    """What the change of an object that is no pod amounts to. Updates of a node may amount to nothing."""
    item = new if new is not None else old
    assert item is not None, "a change has an object before or after it"
    if old is None or new is None:
        return (ClusterEvent(item.KIND, Action.ADD if old is None else Action.DELETE),)
    if isinstance(old, Node) and isinstance(new, Node):
        return tuple(ClusterEvent(NODE, action) for action, changed in _NODE_CHANGES if changed(old, new))
    return (ClusterEvent(item.KIND, Action.UPDATE),)


def pod_events(old: PodInfo, new: PodInfo) -> tuple[ClusterEvent, ...]:
    """What the update of a pod amounts to."""
    resource = ASSIGNED_POD if new.pod.spec.node_name else UNSCHEDULED_POD
    actions = [action for action, changed in _POD_CHANGES if changed(old, new)]
    return tuple(ClusterEvent(resource, action) for action in actions or (Action.UPDATE,))


def _conditions(node: Node) -> dict[str, str]:
    return {each.type: each.status for each in node.status.conditions}


def _scaled_down(old: PodInfo, new: PodInfo) -> bool:
    return any(amount > new.requests.get(name, -1) for name, amount in old.requests.items())


_NODE_CHANGES: tuple[tuple[Action, Callable[[Node, Node], bool]], ...] = (
    (Action.NODE_TAINT, lambda old, new: old.spec.unschedulable and not new.spec.unschedulable),
    (Action.NODE_ALLOCATABLE, lambda old, new: old.status.allocatable != new.status.allocatable),
    (Action.NODE_LABEL, lambda old, new: old.metadata.labels != new.metadata.labels),
    (Action.NODE_TAINT, lambda old, new: old.spec.taints != new.spec.taints),
    (Action.NODE_CONDITION, lambda old, new: _conditions(old) != _conditions(new)),
    (Action.NODE_ANNOTATION, lambda old, new: old.metadata.annotations != new.metadata.annotations),
    (Action.NODE_DECLARED_FEATURE, lambda old, new: old.status.declared_features != new.status.declared_features),
)
_POD_CHANGES: tuple[tuple[Action, Callable[[PodInfo, PodInfo], bool]], ...] = (
    (Action.POD_LABEL, lambda old, new: old.labels != new.labels),
    (Action.POD_SCALE_DOWN, _scaled_down),
    (
        Action.POD_GATES_ELIMINATED,
        lambda old, new: bool(old.pod.spec.scheduling_gates) and not new.pod.spec.scheduling_gates,
    ),
    # Validation lets tolerations be added, never changed or taken away.
    (Action.POD_TOLERATION, lambda old, new: len(old.pod.spec.tolerations) != len(new.pod.spec.tolerations)),
)
