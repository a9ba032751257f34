"""A node can hold so many volumes of a CSI driver; a volume that several pods share counts once.

A claim that has no volume yet counts as one of its class's provisioner.

Source of truth: kube-scheduler 1.36, NodeVolumeLimits. In-tree volumes that a node has migrated to CSI are not counted.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bayplan.model.policies import PersistentVolume
from bayplan.model.storage import CSINode, StorageClass, VolumeAttachment
from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal
from bayplan.scheduling.volumes import claims_of, class_of, find_claim, not_found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bayplan.model.policies import PersistentVolumeClaim
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

    Handle = tuple[str, str]
    """A driver, and its name for a volume."""

NAME = "NodeVolumeLimits"
_TOO_MANY = Refusal(NAME, ("node(s) exceed max volume count",))


class NodeVolumeLimits(Plugin):
    """Keeps nodes from having more volumes than they can hold."""

    name = NAME

    def filter(self, pod: PodInfo, state: ClusterState) -> LimitsFilter | None:
        """What the pod brings, and what is attached where already."""
        if not any(True for _ in claims_of(pod)):
            return None
        return LimitsFilter(pod, state)


class LimitsFilter(NodeFilter):
    """A pod's volumes. What the other pods of a node use is looked up when the node is checked."""

    __slots__ = ("_attached", "_missing", "_new", "_state")

    def __init__(self, pod: PodInfo, state: ClusterState) -> None:
        self._state = state
        self._missing = _missing(pod, state)
        self._new = frozenset(_handles(pod, state))
        self._attached = _attachments(state)

    def check(self, node: NodeState) -> Refusal | None:
        """Whether there is room for all of them."""
        if self._missing:
            return self._missing
        limits = self._limits(node.name) if self._new else {}
        if not limits:
            return None
        used = {handle for each in node.pods.values() for handle in _handles(each, self._state)}
        counts = Counter(driver for driver, _ in used | self._attached.get(node.name, set()))
        coming = Counter(driver for driver, _ in self._new - used)
        if any(driver in limits and counts[driver] + more > limits[driver] for driver, more in coming.items()):
            return _TOO_MANY
        return None

    def _limits(self, node: str) -> dict[str, int]:
        found = self._state.find(CSINode, "", node)
        drivers = found.spec.drivers if found else ()
        return {each.name: each.allocatable.count for each in drivers if each.allocatable.count is not None}


def _missing(pod: PodInfo, state: ClusterState) -> Refusal | None:
    for use in claims_of(pod):
        if find_claim(state, pod, use.name) is None:
            reason = f"looking up PVC {pod.namespace}/{use.name}: {not_found('persistentvolumeclaim', use.name)}"
            return Refusal(NAME, (reason,), hopeless=True)
    return None


def _handles(pod: PodInfo, state: ClusterState) -> Iterator[Handle]:
    """The CSI volumes that a pod uses. Claims that are not there are passed over."""
    for use in claims_of(pod):
        claim = find_claim(state, pod, use.name)
        handle = _handle(claim, state) if claim else None
        if handle and all(handle):
            yield handle


def _handle(claim: PersistentVolumeClaim, state: ClusterState) -> Handle | None:
    volume = state.find(PersistentVolume, "", claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is not None:
        return (volume.spec.csi.driver, volume.spec.csi.volume_handle) if volume.spec.csi else None
    storage_class = state.find(StorageClass, "", class_of(claim))
    if storage_class is None:
        return None
    # A name that no volume has: the claim itself stands for the volume to come.
    return storage_class.provisioner, f"claim {claim.metadata.namespace}/{claim.metadata.name}"


def _attachments(state: ClusterState) -> dict[str, set[Handle]]:
    """What is attached to each node, whether or not a pod there uses it."""
    found: dict[str, set[Handle]] = {}
    for each in state.all(VolumeAttachment):
        name = each.spec.source.persistent_volume_name
        volume = state.find(PersistentVolume, "", name) if name and each.spec.attacher else None
        if volume is not None and volume.spec.csi:
            found.setdefault(each.spec.node_name, set()).add((each.spec.attacher, volume.spec.csi.volume_handle))
    return found
