"""A twin brought to life: a snapshot's objects in the store of an embedded engine, whose controllers find them at rest.

Objects keep uid, times and status, and go past admission: they were admitted once. Three things are set right, so that
nothing moves that does not move in the cluster itself:

    owners that were not read are taken off, or what they own would be collected as garbage
    workloads that rest on what was not read are left out, or they would make it anew
    the kubelet of a node that is not ready is stopped, or it would say that all is well
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.kubelet.behaviour import USUAL
from bayplan.cluster.embedded.kubelet.node import STOPPED
from bayplan.cluster.kinds import KINDS, NODE, POD, Kind
from bayplan.cluster.objects import Object, Section
from bayplan.model.clock import SECOND, Instant, VirtualClock, rfc3339
from bayplan.model.meta import ObjectMeta, condition
from bayplan.model.nodes import Node
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.simulate.twin.kinds import ALL, RESTS_ON
from bayplan.simulate.twin.snapshot import Snapshot

_ENDLESS = 10 * 365 * 86_400 * SECOND
RUNS_ON = msgspec.structs.replace(USUAL, run=_ENDLESS)
"""How long a Job's pods still have is not known: they run until somebody ends them."""
_ORDER = {kind: place for place, kind in enumerate((*(kind for kind in ALL if kind not in (NODE, POD)), NODE, POD))}
"""Owners before what they own, pods after their nodes: as they came."""


def twin_of(snapshot: Snapshot, *, seed: int = 0, scheduler: SchedulerConfiguration | None = None) -> EmbeddedCluster:
    """An engine with a snapshot's objects, at its time, which stands still until it is advanced or run."""
    cluster = embedded_cluster(clock=VirtualClock(snapshot.at), seed=seed, scheduler=scheduler, behaviour=RUNS_ON)
    fill(cluster, snapshot)
    return cluster


def fill(cluster: EmbeddedCluster, snapshot: Snapshot) -> None:
    """Put a snapshot's objects into an engine; those of kinds that it does not have are left out."""
    left_out = {kind for kind, base in RESTS_ON.items() if base.resource in snapshot.lacking}
    kept = [item for item in snapshot.objects if item.kind in _ORDER and item.kind not in left_out]
    kept = [item for item in kept if KINDS.get(item.kind.name) is item.kind]
    kept.sort(key=lambda item: (_ORDER[item.kind], item.meta.creation_timestamp or "", item.key))
    present = {item.uid for item in kept}
    put = cluster.world.store.put
    for item in kept:
        meta = _own(item.meta, present)
        if item.kind is NODE:
            meta = _as_alive(item, meta, snapshot.at)
        put(item.kind, meta, _sections(item))


def _own(meta: ObjectMeta, present: Iterable[str]) -> ObjectMeta:
    owners = tuple(each for each in meta.owner_references if each.uid in present)
    return meta if owners == meta.owner_references else msgspec.structs.replace(meta, owner_references=owners)


def _as_alive(item: Object, meta: ObjectMeta, at: Instant) -> ObjectMeta:
    """A node that is not ready has a kubelet that says nothing, since it was last heard of."""
    ready = condition(item.view(Node).status.conditions, "Ready")
    if ready is None or ready.status == "True" or STOPPED in meta.annotations:
        return meta
    since = ready.last_heartbeat_time or ready.last_transition_time or rfc3339(at)
    return msgspec.structs.replace(meta, annotations={**meta.annotations, STOPPED: f"stopped-at={since}"})


def _sections(item: Object) -> dict[str, Section]:
    """With a status, which every stored object of these kinds has; a pod's names images as its spec does."""
    sections = {"spec": Section(b"{}"), "status": Section(b"{}"), **item.sections} if _has_status(item.kind) else {}
    if item.kind is not POD:
        return sections or dict(item.sections)
    status, spec = sections["status"].plain(), sections["spec"].plain()
    images = {each["name"]: each.get("image", "") for each in _containers(spec)}
    told = [each for group in ("initContainerStatuses", "containerStatuses") for each in status.get(group) or ()]
    if all(each.get("image") == images.get(each["name"]) for each in told):
        return sections
    for each in told:
        each["image"] = images.get(each["name"], "")
    return {**sections, "status": Section(msgspec.json.encode(status))}


def _has_status(kind: Kind) -> bool:
    return kind in (NODE, POD)


def _containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
