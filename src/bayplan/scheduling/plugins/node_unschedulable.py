"""Cordoned nodes take no new pods, unless a pod tolerates the taint that goes with it.

Source of truth: kube-scheduler 1.36 NodeUnschedulable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.model.taints import NO_SCHEDULE, Taint
from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal

if TYPE_CHECKING:
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

CORDON = Taint("node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class NodeUnschedulable(Plugin):
    """Keeps pods off cordoned nodes."""

    name = "NodeUnschedulable"

    def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter | None:
        """None for a pod that does not mind."""
        tolerated = any(one.tolerates(CORDON) for one in pod.wants.spec.tolerations)
        return None if tolerated else _UNCORDONED


class _Uncordoned(NodeFilter):
    refusal = Refusal(NodeUnschedulable.name, ("node(s) were unschedulable",), hopeless=True)

    def check(self, node: NodeState) -> Refusal | None:
        return self.refusal if node.node.spec.unschedulable else None


_UNCORDONED = _Uncordoned()
