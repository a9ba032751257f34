"""A pod goes where its volumes can be reached, found or made.

Bound claims: the volume's node affinity must allow the node. Claims that wait for their first consumer: an available
volume must match there, or the class must be able to make one. All other claims must be bound before the pod comes.

Source of truth: kube-scheduler 1.36, VolumeBinding (PreFilter and Filter), and component-helpers storage/volume.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.model.policies import PersistentVolume, PersistentVolumeClaim
from bayplan.model.quantity import Quantity, parse
from bayplan.model.selectors import Operator, Requirement, Selector
from bayplan.model.storage import CSIDriver, CSIStorageCapacity, StorageClass
from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal
from bayplan.scheduling.pods import selector_of
from bayplan.scheduling.volumes import (
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    ClaimUse,
    claims_of,
    class_of,
    find_claim,
    is_reachable,
    not_found,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

NAME = "VolumeBinding"
_UNBOUND = Refusal(NAME, ("pod has unbound immediate PersistentVolumeClaims",), hopeless=True)
_OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
_NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"
_NO_SPACE = "node(s) did not have enough free storage"
_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
_NOTHING = Quantity.whole(0)


class VolumeBinding(Plugin):
    """Keeps a pod to nodes where it can have its volumes."""

    name = NAME

    def filter(self, pod: PodInfo, state: ClusterState) -> BindingFilter | Refusal | None:
        """Sort the pod's claims: bound, to be bound with the pod, or not ready."""
        if not pod.pod.spec.volumes:
            return None
        claims: list[PersistentVolumeClaim] = []
        for use in claims_of(pod):
            found = _usable(use, pod, state)
            if isinstance(found, str):
                return Refusal(NAME, (found,), hopeless=True)
            claims.append(found)
        if not claims:
            return None
        bound = [each for each in claims if _is_bound(each)]
        waiting = [each for each in claims if not _is_bound(each)]
        if any(each.spec.volume_name or not _binds_late(each, state) for each in waiting):
            return _UNBOUND
        return BindingFilter(bound, waiting, state)


class Demand(msgspec.Struct, frozen=True):
    """A claim that waits for its first consumer, and what it asks for."""

    claim: PersistentVolumeClaim
    storage_class: StorageClass
    size: Quantity
    selector: Selector | None
    chosen_node: str | None
    """The node for which a volume is being made already."""


class BindingFilter(NodeFilter):
    """A pod's claims against each node: bound ones, those whose volume is being made, and those to match."""

    __slots__ = ("_bound", "_in_making", "_state", "_to_match", "_volumes")

    def __init__(
        self, bound: Iterable[PersistentVolumeClaim], waiting: Iterable[PersistentVolumeClaim], state: ClusterState
    ) -> None:
        self._state = state
        self._bound = [state.find(PersistentVolume, "", each.spec.volume_name) for each in bound]
        demands = [_demand(each, state) for each in waiting]
        self._in_making = [each for each in demands if each.chosen_node is not None]
        self._to_match = sorted((each for each in demands if each.chosen_node is None), key=lambda one: one.size)
        self._volumes: dict[str, list[PersistentVolume]] = {}
        for volume in state.all(PersistentVolume) if self._to_match else ():
            self._volumes.setdefault(class_of(volume), []).append(volume)

    def check(self, node: NodeState) -> Refusal | None:
        """Bound claims first, then those to bind; all reasons are told."""
        reached, there = self._bound_reach(node.labels)
        reason = self._cannot_bind(node)
        reasons = (
            *(() if reached else (_OUT_OF_REACH,)),
            *((reason,) if reason else ()),
            *(() if there else (_GONE,)),
        )
        return Refusal(NAME, reasons, hopeless=True) if reasons else None

    def _bound_reach(self, labels: Mapping[str, str]) -> tuple[bool, bool]:
        """Whether bound volumes can be reached, and are there; the first that fails decides."""
        for volume in self._bound:
            if volume is None:
                return True, False
            if not is_reachable(volume, labels):
                return False, True
        return True, True

    def _cannot_bind(self, node: NodeState) -> str | None:
        """Why the waiting claims cannot all get a volume on a node; the smallest claims choose first."""
        if any(each.chosen_node != node.name for each in self._in_making):
            return _NONE_TO_BIND
        to_make = self._in_making.copy()
        taken: set[str] = set()
        for demand in self._to_match:
            volumes = self._volumes.get(demand.storage_class.metadata.name, ())
            volume = _match(demand, volumes, node.labels, taken)
            if volume is None:
                to_make.append(demand)
            else:
                taken.add(volume.metadata.name)
        return next((reason for each in to_make if (reason := self._cannot_make(each, node.labels))), None)

    def _cannot_make(self, demand: Demand, labels: Mapping[str, str]) -> str | None:
        storage_class = demand.storage_class
        if storage_class.provisioner in _NO_PROVISIONER or not _allows(storage_class, labels):
            return _NONE_TO_BIND
        return None if self._has_space(demand, labels) else _NO_SPACE

    def _has_space(self, demand: Demand, labels: Mapping[str, str]) -> bool:
        """Whether there is space for a new volume, as far as the driver tells."""
        driver = self._state.find(CSIDriver, "", demand.storage_class.provisioner)
        if driver is None or not driver.spec.storage_capacity or STORAGE not in demand.claim.spec.resources.requests:
            return True
        return any(
            each.storage_class_name == demand.storage_class.metadata.name
            and _largest(each) >= demand.size.value()
            and selector_of(each.node_topology).matches(labels)
            for each in self._state.all(CSIStorageCapacity)
        )


def _usable(use: ClaimUse, pod: PodInfo, state: ClusterState) -> PersistentVolumeClaim | str:
    """The claim, or why the pod cannot have it."""
    claim = find_claim(state, pod, use.name)
    if claim is None and use.ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
    if claim is None:
        return not_found("persistentvolumeclaim", use.name)
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{use.name}" is being deleted'
    owner = claim.metadata.controller
    if use.ephemeral and (owner is None or owner.uid != pod.pod.metadata.uid):
        return f"PVC {pod.namespace}/{use.name} was not created for pod {'/'.join(pod.key)} (pod is not owner)"
    return claim


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and _BIND_COMPLETED in claim.metadata.annotations


def _binds_late(claim: PersistentVolumeClaim, state: ClusterState) -> bool:
    found = state.find(StorageClass, "", class_of(claim))
    return found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _demand(claim: PersistentVolumeClaim, state: ClusterState) -> Demand:
    storage_class = state.find(StorageClass, "", class_of(claim))
    assert storage_class is not None  # _binds_late has seen it
    return Demand(
        claim,
        storage_class,
        _size(claim.spec.resources.requests),
        selector_of(claim.spec.selector) if claim.spec.selector is not None else None,
        claim.metadata.annotations.get(_SELECTED_NODE),
    )


def _size(amounts: Mapping[str, str]) -> Quantity:
    return parse(amounts[STORAGE]) if STORAGE in amounts else _NOTHING


def _largest(capacity: CSIStorageCapacity) -> int:
    """How big a volume may be; -1 where nothing is told."""
    told = capacity.maximum_volume_size or capacity.capacity
    return -1 if told is None else parse(told).value()


def _match(
    demand: Demand, volumes: Iterable[PersistentVolume], labels: Mapping[str, str], taken: set[str]
) -> PersistentVolume | None:
    """Of volumes of the right class, the one meant for the claim, else the smallest that will do on the node."""
    best: tuple[Quantity, PersistentVolume] | None = None
    for volume in volumes:
        meant = _is_meant_for(volume, demand.claim)
        size = _size(volume.spec.capacity)
        if volume.metadata.name in taken or not _could_serve(volume, demand, size, meant=meant):
            continue
        reachable = is_reachable(volume, labels)
        if meant:
            return volume if reachable else None
        if reachable and _is_free_for(volume, demand) and (best is None or size < best[0]):
            best = size, volume
    return best[1] if best else None


def _is_meant_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference, meta = volume.spec.claim_ref, claim.metadata
    if reference is None or (reference.namespace, reference.name) != (meta.namespace, meta.name):
        return False
    return reference.uid in ("", meta.uid)


def _could_serve(volume: PersistentVolume, demand: Demand, size: Quantity, *, meant: bool) -> bool:
    """What is asked of every volume, even one that is meant for the claim."""
    have, want = volume.spec, demand.claim.spec
    return (
        (have.claim_ref is None or meant)
        and size >= demand.size
        and have.volume_mode == want.volume_mode
        and (have.volume_attributes_class_name or "") == (want.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _is_free_for(volume: PersistentVolume, demand: Demand) -> bool:
    return (
        volume.status.phase == "Available"
        and (demand.selector is None or demand.selector.matches(volume.metadata.labels))
        and set(demand.claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _allows(storage_class: StorageClass, labels: Mapping[str, str]) -> bool:
    """Whether volumes of the class may be made for a node with these labels."""
    terms = storage_class.allowed_topologies
    return not terms or any(
        Selector(Requirement(each.key, Operator.IN, each.values) for each in wanted).matches(labels)
        for wanted in (term.match_label_expressions for term in terms)
        if wanted
    )
