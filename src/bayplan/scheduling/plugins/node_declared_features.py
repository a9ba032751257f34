"""A pod that needs a young feature of the kubelet goes to nodes that declare it.

Of the features that upstream has on its list, two are asked for by a pod's spec; the others matter to updates only.
Source of truth: kube-scheduler 1.36 NodeDeclaredFeatures and component-helpers 0.36 nodedeclaredfeatures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal

if TYPE_CHECKING:
    from bayplan.model.pods import PodSpec
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState


class NodeDeclaredFeatures(Plugin):
    """Keeps pods off nodes that cannot do what they need."""

    name = "NodeDeclaredFeatures"

    def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter | None:
        """None for a pod that needs nothing special."""
        needed = needed_features(pod.wants.spec)
        return _Declared(needed) if needed else None


def needed_features(spec: PodSpec) -> frozenset[str]:
    """The features without which the pod cannot run as it is meant to."""
    rules = (rule for each in (*spec.containers, *spec.init_containers) for rule in each.restart_policy_rules)
    needs = {
        "RestartAllContainersOnContainerExits": any(rule.action == "RestartAllContainers" for rule in rules),
        "UserNamespacesHostNetworkSupport": spec.host_network and spec.host_users is False,
    }
    return frozenset(name for name, needed in needs.items() if needed)


class _Declared(NodeFilter):
    refusal = Refusal(NodeDeclaredFeatures.name, ("node(s) didn't match Pod's required features",), hopeless=True)

    def __init__(self, needed: frozenset[str]) -> None:
        self._needed = needed

    def check(self, node: NodeState) -> Refusal | None:
        return None if self._needed.issubset(node.node.status.declared_features) else self.refusal
