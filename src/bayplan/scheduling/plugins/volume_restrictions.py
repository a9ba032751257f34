"""Some storage is for one pod at a time: ReadWriteOncePod claims in the cluster, certain disks on a node.

Source of truth: kube-scheduler 1.36, VolumeRestrictions. As there, pods that are supposed to come or go are matched by
the claim's name alone, not by its namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal
from bayplan.scheduling.volumes import find_claim, named_claims, not_found

if TYPE_CHECKING:
    from bayplan.model.pods import Volume
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

NAME = "VolumeRestrictions"
_DISK = Refusal(NAME, ("node(s) had no available disk",))
_CLAIM = Refusal(
    NAME,
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod",
    ),
)


class VolumeRestrictions(Plugin):
    """Keeps a pod from storage that is taken."""

    name = NAME

    def filter(self, pod: PodInfo, state: ClusterState) -> RestrictionsFilter | Refusal | None:
        """Who else uses what the pod must have for itself."""
        if not pod.pod.spec.volumes:
            return None
        exclusive: set[str] = set()
        for name in named_claims(pod):
            claim = find_claim(state, pod, name)
            if claim is None:
                return Refusal(NAME, (not_found("persistentvolumeclaim", name),), hopeless=True)
            if "ReadWriteOncePod" in claim.spec.access_modes:
                exclusive.add(name)
        disks = tuple(each for each in pod.pod.spec.volumes if _is_restricted(each))
        taken = len(exclusive & _claims_in_use(pod.namespace, state)) if exclusive else 0
        return RestrictionsFilter(disks, frozenset(exclusive), taken) if disks or taken else None


class RestrictionsFilter(NodeFilter):
    """The disks of a pod, its exclusive claims, and how many uses of those there are."""

    __slots__ = ("_disks", "_exclusive", "_taken")

    def __init__(self, disks: tuple[Volume, ...], exclusive: frozenset[str], taken: int) -> None:
        self._disks = disks
        self._exclusive = exclusive
        self._taken = taken

    def check(self, node: NodeState) -> Refusal | None:
        """Disks of this node, then claims anywhere."""
        if self._disks and any(
            _conflict(disk, other)
            for each in node.pods.values()
            for other in each.pod.spec.volumes
            for disk in self._disks
        ):
            return _DISK
        return _CLAIM if self._taken > 0 else None

    def copy(self) -> Self:
        """With a count of its own."""
        return type(self)(self._disks, self._exclusive, self._taken)

    def add(self, pod: PodInfo, node: NodeState) -> None:
        """Count its uses in."""
        self._taken += self._uses(pod)

    def remove(self, pod: PodInfo, node: NodeState) -> None:
        """Count its uses out."""
        self._taken -= self._uses(pod)

    def _uses(self, pod: PodInfo) -> int:
        return sum(name in self._exclusive for name in named_claims(pod))


def _claims_in_use(namespace: str, state: ClusterState) -> set[str]:
    return {
        name
        for node in state.nodes
        for each in node.pods.values()
        if each.namespace == namespace and each.pod.spec.volumes
        for name in named_claims(each)
    }


def _is_restricted(volume: Volume) -> bool:
    return bool(volume.gce_persistent_disk or volume.aws_elastic_block_store or volume.iscsi or volume.rbd)


def _conflict(volume: Volume, other: Volume) -> bool:
    """Whether two volumes are the same disk; all but Amazon's may be shared by readers."""
    gce, other_gce = volume.gce_persistent_disk, other.gce_persistent_disk
    if gce and other_gce and gce.pd_name == other_gce.pd_name:
        return not (gce.read_only and other_gce.read_only)
    aws, other_aws = volume.aws_elastic_block_store, other.aws_elastic_block_store
    if aws and other_aws:
        return aws.volume_id == other_aws.volume_id
    iscsi, other_iscsi = volume.iscsi, other.iscsi
    if iscsi and other_iscsi and iscsi.iqn == other_iscsi.iqn:
        return not (iscsi.read_only and other_iscsi.read_only)
    return _same_image(volume, other)


def _same_image(volume: Volume, other: Volume) -> bool:
    rbd, other_rbd = volume.rbd, other.rbd
    if not rbd or not other_rbd or (rbd.pool, rbd.image) != (other_rbd.pool, other_rbd.image):
        return False
    return bool(set(rbd.monitors) & set(other_rbd.monitors)) and not (rbd.read_only and other_rbd.read_only)
