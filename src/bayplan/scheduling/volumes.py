"""Claims and volumes as the volume plugins see them: what a pod claims, what class that is of, who can reach it.

Source of truth: k8s.io/component-helpers 0.36 storage/volume and storage/ephemeral.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.model.node_selectors import NodeMatcher, node_terms
from bayplan.model.policies import PersistentVolume, PersistentVolumeClaim
from bayplan.model.selectors import SelectorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
STORAGE = "storage"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class ClaimUse(msgspec.Struct, frozen=True):
    """A claim by its name, as a pod's volume uses it. `ephemeral`: it is made for the pod and must belong to it."""

    name: str
    ephemeral: bool = False


def claims_of(pod: PodInfo) -> Iterator[ClaimUse]:
    """The claims that a pod uses, in the order of its volumes."""
    for volume in pod.pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield ClaimUse(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            yield ClaimUse(f"{pod.pod.metadata.name}-{volume.name}", ephemeral=True)


def named_claims(pod: PodInfo) -> Iterator[str]:
    """Those of them that the pod names itself."""
    return (use.name for use in claims_of(pod) if not use.ephemeral)


def find_claim(state: ClusterState, pod: PodInfo, name: str) -> PersistentVolumeClaim | None:
    """A claim of the pod's namespace."""
    return state.find(PersistentVolumeClaim, pod.namespace, name)


def class_of(item: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class that a claim asks for, or a volume is of; empty for none."""
    annotated = item.metadata.annotations.get(_CLASS_ANNOTATION)
    return annotated if annotated is not None else item.spec.storage_class_name or ""


def is_reachable(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    """Whether a volume can be had on a node with these labels. Terms that make no sense match no node."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    try:
        return NodeMatcher(terms=node_terms(affinity.required.node_selector_terms)).matches(labels, "")
    except SelectorError:
        return False


def not_found(resource: str, name: str) -> str:
    """What the API server says about an object that is not there."""
    return f'{resource} "{name}" not found'
