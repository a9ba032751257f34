"""A volume that is labelled with zones or regions can be had there only. Nodes without such labels take any volume.

Source of truth: kube-scheduler 1.36, VolumeZone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.model.policies import PersistentVolume
from bayplan.model.storage import StorageClass
from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal
from bayplan.scheduling.volumes import WAIT_FOR_FIRST_CONSUMER, class_of, find_claim, named_claims, not_found

if TYPE_CHECKING:
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

    Places = list[tuple[str, frozenset[str]]]
    """Node labels and the values that will do."""

NAME = "VolumeZone"
_CONFLICT = Refusal(NAME, ("node(s) had no available volume zone",), hopeless=True)
_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The labels looked at, and the name to try on a node that lacks one."""


class VolumeZone(Plugin):
    """Keeps a pod near its volumes."""

    name = NAME

    def filter(self, pod: PodInfo, state: ClusterState) -> ZoneFilter | Refusal | None:
        """Where the bound volumes are."""
        if not pod.pod.spec.volumes:
            return None
        places: Places = []
        for name in named_claims(pod):
            found = _volume(name, pod, state)
            if isinstance(found, str):
                return Refusal(NAME, (found,), hopeless=True)
            if found is not None:
                places += _places(found)
        return ZoneFilter(places) if places else None


class ZoneFilter(NodeFilter):
    """The places where all of a pod's volumes can be had."""

    __slots__ = ("_places",)

    def __init__(self, places: Places) -> None:
        self._places = places

    def check(self, node: NodeState) -> Refusal | None:
        """Whether the node is in all of them."""
        labels = node.labels
        if not any(label in labels for label in _LABELS):
            return None
        for label, values in self._places:
            if labels.get(label, labels.get(_LABELS[label])) not in values:
                return _CONFLICT
        return None


def _volume(name: str, pod: PodInfo, state: ClusterState) -> PersistentVolume | str | None:
    """The volume behind a claim, None where it is yet to be chosen, or what is wrong."""
    if not name:
        return "PersistentVolumeClaim had no name"
    claim = find_claim(state, pod, name)
    if claim is None:
        return not_found("persistentvolumeclaim", name)
    if claim.spec.volume_name:
        volume = state.find(PersistentVolume, "", claim.spec.volume_name)
        return volume or not_found("persistentvolume", claim.spec.volume_name)
    if not class_of(claim):
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = state.find(StorageClass, "", class_of(claim))
    if storage_class is None:
        return not_found("storageclass.storage.k8s.io", class_of(claim))
    return None if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"


def _places(volume: PersistentVolume) -> Places:
    """What its labels say; several values are joined by `__`, and a label with an empty one is passed over."""
    labels = volume.metadata.labels
    found = [(label, [part.strip() for part in labels[label].split("__")]) for label in _LABELS if label in labels]
    return [(label, frozenset(values)) for label, values in found if all(values)]
