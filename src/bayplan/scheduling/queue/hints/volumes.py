"""Hints of the plugins that look at volumes and claims.

Source of truth: kube-scheduler 1.36 volumerestrictions, nodevolumelimits, volumebinding and volumezone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.model.resources import amounts
from bayplan.scheduling.queue.hints.contract import ALWAYS, NEVER
from bayplan.scheduling.queue.hints.own import holds_place
from bayplan.scheduling.volumes import STORAGE, WAIT_FOR_FIRST_CONSUMER, claims_of, named_claims

if TYPE_CHECKING:
    from bayplan.model.policies import PersistentVolume, PersistentVolumeClaim
    from bayplan.model.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.queue.hints.contract import Judge

_PLACES = tuple(
    f"{prefix}/{level}"
    for prefix in ("failure-domain.beta.kubernetes.io", "topology.kubernetes.io")
    for level in ("zone", "region")
)
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


# --- claims


def own_claim(_old: object, new: PersistentVolumeClaim) -> Judge:
    """A claim that the pod uses, be it made for it, came or changed."""
    meta = new.metadata
    return lambda pod: pod.namespace == meta.namespace and any(use.name == meta.name for use in claims_of(pod))


def named_claim(_old: object, new: PersistentVolumeClaim) -> Judge:
    """A claim that the pod names came or changed."""
    meta = new.metadata
    return lambda pod: pod.namespace == meta.namespace and meta.name in named_claims(pod)


def uses_claims(_old: object, _new: object) -> Judge:
    """It may help whoever names a claim."""
    return lambda pod: any(named_claims(pod))


# --- pods that go


def freed_volume(old: PodInfo, _new: None) -> Judge:
    """VolumeRestrictions: a pod went from the namespace that used the same claim, or a disk where the pod has one, too.

    Upstream looks whether it is the same disk.
    """
    claims, disks = {*named_claims(old)}, _has_disks(old)
    if not claims and not disks:
        return NEVER
    return lambda pod: (
        pod.namespace == old.namespace
        and (any(name in claims for name in named_claims(pod)) or (disks and _has_disks(pod)))
    )


def _has_disks(pod: PodInfo) -> bool:
    """Whether it has volumes of the kinds that must not be attached twice."""
    return any(
        each.gce_persistent_disk or each.aws_elastic_block_store or each.iscsi or each.rbd
        for each in pod.pod.spec.volumes
    )


def freed_attachment(old: PodInfo, _new: None) -> Judge:
    """NodeVolumeLimits: a pod with claims went from a node."""
    return ALWAYS if holds_place(old) and any(claims_of(old)) else NEVER


# --- volumes and classes


def relocated(old: PersistentVolume | None, new: PersistentVolume) -> Judge:
    """VolumeZone: a volume came, or is somewhere else."""
    if old is None:
        return ALWAYS
    before, after = old.metadata.labels, new.metadata.labels
    return ALWAYS if any(before.get(label) != after.get(label) for label in _PLACES) else NEVER


def late_binding(_old: None, new: StorageClass) -> Judge:
    """VolumeZone: a class came whose volumes go where the pod goes."""
    return ALWAYS if new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else NEVER


def other_topologies(old: StorageClass | None, new: StorageClass) -> Judge:
    """VolumeBinding: a class came, or is to be had elsewhere."""
    return ALWAYS if old is None or old.allowed_topologies != new.allowed_topologies else NEVER


# --- drivers


def more_attachments(old: CSINode, new: CSINode) -> Judge:
    """NodeVolumeLimits: a node can hold more volumes of some driver."""
    before = {each.name: each.allocatable.count or 0 for each in old.spec.drivers}
    raised = any((each.allocatable.count or 0) > before.get(each.name, 0) for each in new.spec.drivers)
    return ALWAYS if raised else NEVER


def migrated(old: CSINode | None, new: CSINode) -> Judge:
    """VolumeBinding: drivers came to a node, or took over other volumes there."""
    before = None if old is None else old.metadata.annotations.get(_MIGRATED)
    return ALWAYS if old is None or before != new.metadata.annotations.get(_MIGRATED) else NEVER


def capacity_ignored(old: CSIDriver, new: CSIDriver) -> Judge:
    """VolumeBinding: a driver's capacity no longer counts. Upstream looks whose driver it is."""
    return ALWAYS if old.spec.storage_capacity and not new.spec.storage_capacity else NEVER


def more_space(old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> Judge:
    """VolumeBinding: there is room for larger volumes."""
    limit, before = _largest(new), None if old is None else _largest(old)
    return ALWAYS if old is None or (limit is not None and (before is None or limit > before)) else NEVER


def _largest(capacity: CSIStorageCapacity) -> int | None:
    text = capacity.maximum_volume_size or capacity.capacity
    return None if text is None else amounts({STORAGE: text})[STORAGE]
