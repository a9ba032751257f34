"""A pod that names its node goes there or nowhere.

Such pods are bound already, as a rule, and never asked about; the rule is there for those who ask all the same.
Source of truth: kube-scheduler 1.36 NodeName.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal

if TYPE_CHECKING:
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState


class NodeName(Plugin):
    """Keeps a pod on the node that it names."""

    name = "NodeName"

    def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter | None:
        """None for a pod that names none."""
        wanted = pod.pod.spec.node_name
        return _Named(wanted) if wanted else None


class _Named(NodeFilter):
    refusal = Refusal(NodeName.name, ("node(s) didn't match the requested node name",), hopeless=True)

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted

    def check(self, node: NodeState) -> Refusal | None:
        return None if node.name == self._wanted else self.refusal
