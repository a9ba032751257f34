"""An answer rehearsed on a living copy: the pods are created there, through its API, and its scheduler places them.

So quotas, limits and priorities have their say too. The copy stands still otherwise: workloads stay behind, and pods
that are pending keep pending, since the question is what fits beside what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import NAMESPACE, NODE, POD
from bayplan.cluster.objects import Object, Section
from bayplan.model.errors import ApiError
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.scheduling.framework import Profile
from bayplan.simulate.twin.filling import twin_of
from bayplan.simulate.twin.snapshot import Snapshot

Doc = dict[str, Any]
_NOBODY = "bayplan-waits"
"""A scheduler that is not there."""


class Rerun(msgspec.Struct, frozen=True):
    """What came of it."""

    asked: int
    created: int
    refusal: str
    """Why no more could be created; empty where all could."""
    placed: int


async def as_stored(snapshot: Snapshot, body: Doc, namespace: str) -> Pod:
    """A pod with the defaults that the cluster's API would give it, its quotas left aside. Raises ApiError."""
    without = tuple(item for item in snapshot.objects if item.kind.name not in ("ResourceQuota", "Pod", "Node"))
    cluster = twin_of(msgspec.structs.replace(snapshot, objects=without))
    await _have_namespace(cluster, namespace)
    return (await cluster.create(POD, body, namespace, dry_run=True)).view(Pod)


async def rerun(
    snapshot: Snapshot, profile: Profile, body: Doc, namespace: str, asked: int, nodes: Sequence[Node] = ()
) -> Rerun:
    """Create so many pods, beside the nodes that are added, and see how many are placed."""
    cluster = twin_of(_standing(snapshot), scheduler=SchedulerConfiguration((profile,)))
    await _have_namespace(cluster, namespace)
    for node in nodes:
        await cluster.create(NODE, msgspec.json.encode(node))
    await cluster.advance(0)
    names, refusal = [], ""
    for number in range(asked):
        try:
            names.append((await cluster.create(POD, _numbered(body, number), namespace)).name)
        except ApiError as error:
            refusal = error.message
            break
    await cluster.advance(0)
    placed = [(await cluster.get(POD, name, namespace)).view(Pod).spec.node_name for name in names]
    return Rerun(asked, len(names), refusal, sum(map(bool, placed)))


async def _have_namespace(cluster: EmbeddedCluster, name: str) -> None:
    if cluster.world.store.get(NAMESPACE, "", name) is None:
        await cluster.create(NAMESPACE, {"metadata": {"name": name}})


def _numbered(body: Doc, number: int) -> Doc:
    meta = body.get("metadata") or {}
    kept = {key: meta[key] for key in ("labels", "annotations") if key in meta}
    name = meta.get("name") or "pod"
    spec = {key: value for key, value in body["spec"].items() if key not in ("nodeName", "schedulingGates")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-more-{number}", **kept}, "spec": spec}


def _standing(snapshot: Snapshot) -> Snapshot:
    moving = ("apps", "batch")
    kept = [item for item in snapshot.objects if item.kind.group not in moving]
    kept = [item for item in kept if item.kind.name != "ReplicationController"]
    return msgspec.structs.replace(snapshot, objects=tuple(map(_waiting, kept)))


def _waiting(item: Object) -> Object:
    if item.kind is not POD or item.view(Pod).spec.node_name:
        return item
    spec = {**item.sections["spec"].plain(), "schedulerName": _NOBODY}
    return Object(item.kind, item.meta, {**item.sections, "spec": Section(msgspec.json.encode(spec))}, item.version)
