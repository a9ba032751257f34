"""Pods go only where the kubelet will take them: its CPU, memory, topology and device managers are asked beforehand.

kube-scheduler counts amounts. Whether they lie on the right NUMA nodes it learns when the kubelet refuses the pod, and
by then the pod is Failed. This plugin runs the managers (`bayplan.node`) on what nodes and pods say of themselves: a
node its machine and its kubelet's configuration, a pod what it holds. Pods that are on their way to the node, bound and
not taken yet, are admitted first, in the order in which they came to it. Nodes that say nothing of a machine pass.

Named for what of a node decides. It is not NodeResourceTopologyMatch of scheduler-plugins, which reckons with what is
left in each NUMA zone, as an agent reports it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import Pod
from bayplan.model.qos import QosClass
from bayplan.node.admission import NodeManagers
from bayplan.node.annotations.equipment import CONFIGURATION, MACHINE, Equipment, equipment_of
from bayplan.node.annotations.managers import asks, expected, seen_of
from bayplan.node.needs import PodNeed, needs_of
from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from bayplan.scheduling.pods import PodInfo, Wants
    from bayplan.scheduling.state import ClusterState, NodeState

_MOST_STANDS = 8192
"""Nodes as they stood that are remembered; then it begins anew."""

_NEXT = "next"
"""Stands for the pod that is asked about; those alike share the answer."""


class NodeTopology(Plugin):
    """Foretells TopologyAffinityError, SMTAlignmentError and UnexpectedAdmissionError."""

    name = "NodeTopology"

    def __init__(self) -> None:
        self._stands: dict[Hashable, _Stand] = {}

    def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter | None:
        """For pods that may get something of their own: Guaranteed ones, and those that ask for devices."""
        need = _need(pod.wants)
        return None if need is None else _Admitted(self, pod, need)

    def stand(self, node: NodeState, equipment: Equipment, pods: Sequence[PodInfo]) -> _Stand:
        """How a node stands with these pods. Nodes alike, and the same node unchanged, share it and its answers."""
        said = node.node.metadata.annotations
        seen = tuple(
            (each.key, each.pod.metadata.uid, each.wants, each.terminating, seen_of(each.pod)) for each in pods
        )
        key = (said.get(MACHINE), said.get(CONFIGURATION), seen)
        known = self._stands.get(key)
        if known is None:
            if len(self._stands) >= _MOST_STANDS:
                self._stands.clear()
            known = self._stands[key] = _Stand(equipment, pods)
        return known


class _Admitted(NodeFilter):
    def __init__(self, plugin: NodeTopology, pod: PodInfo, need: PodNeed) -> None:
        self._plugin = plugin
        self._pod = pod
        self._need = need

    def check(self, node: NodeState) -> Refusal | None:
        equipment = equipment_of(node.node.metadata.annotations)
        if not isinstance(equipment, Equipment) or not asks(self._need, equipment):
            return None
        others = [each for each in node.pods.values() if each.key != self._pod.key and _counts(each)]
        reason = _answer(self._plugin.stand(node, equipment, others), self._pod.wants)
        if not reason:
            return None
        alone = _answer(self._plugin.stand(node, equipment, ()), self._pod.wants)
        return Refusal(NodeTopology.name, (f"node(s) would refuse the pod: {reason}",), hopeless=bool(alone))


class _Stand:
    """A machine and what is handed out of it."""

    __slots__ = ("_found",)

    def __init__(self, equipment: Equipment, pods: Sequence[PodInfo]) -> None:
        self._found = expected(equipment, (each.pod for each in pods))

    def reason(self, need: PodNeed) -> str:
        """Why a pod would be refused; empty where it would not."""
        found = self._found
        refusal = found.fork().admit(need).refusal if isinstance(found, NodeManagers) else found
        return refusal.reason if refusal else ""


@lru_cache(maxsize=1 << 15)
def _answer(stand: _Stand, wants: Wants) -> str:
    need = _need(wants)
    assert need is not None, "others are not asked about"
    return stand.reason(need)


@lru_cache(maxsize=1 << 13)
def _need(wants: Wants) -> PodNeed | None:
    """What pods alike ask of managers; None where that is nothing, whatever the node."""
    need = needs_of(Pod(metadata=ObjectMeta(uid=_NEXT), spec=wants.spec))
    whole = need.qos is QosClass.GUARANTEED and not need.pod_level
    return need if whole or any(each.devices for each in need.containers) else None


def _counts(pod: PodInfo) -> bool:
    """Whether a pod on a node may hold something: it asks for that, or says so."""
    return _need(pod.wants) is not None or seen_of(pod.pod)[0] is not None
