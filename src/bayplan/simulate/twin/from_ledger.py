"""A twin of the past: what the ledger knows of a cluster at a time.

The ledger keeps every version of GPU pods whole. Of nodes with GPUs it keeps these at any time, what they had for pods
beside them, what kept pods away, and their latest labels; of the pods without GPUs there, where they were and what they
took. It knows neither taints nor what other nodes had and held, and a ledger of an earlier release no more of any node
than its GPUs. Where it does not know, there is plenty, so what does not fit did not fit then, and what fits might still
have lacked something else.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import Any

import msgspec

from bayplan.cluster.embedded.bootstrap import SYSTEM_PRIORITIES
from bayplan.cluster.kinds import NAMESPACE, NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.ledger.differ.gpus import GpuVendors
from bayplan.ledger.questions.asking import Scope, clusters, holding, read
from bayplan.ledger.questions.present import NodeAt, nodes_at, pods_at
from bayplan.ledger.rows import MILLI, NodePeriod, NodeRoomPeriod, PodRoomPeriod
from bayplan.ledger.store.reading import Readable
from bayplan.model.clock import Instant, rfc3339
from bayplan.model.errors import PermanentError
from bayplan.simulate.twin.kinds import AROUND
from bayplan.simulate.twin.snapshot import Snapshot

Doc = dict[str, Any]
_IMAGE = "unknown"
_HIGHEST = SYSTEM_PRIORITIES["system-node-critical"]
"""What the ledger does not know whole has no priority there: nobody shall be placed by evicting it."""
_PLENTY = {"cpu": "100k", "memory": "1Pi", "ephemeral-storage": "1Pi", "pods": "100k"}
_NOTES = (
    "of the ledger: taints are not known, and of pods without GPUs those on nodes with GPUs alone, by their place and "
    "size; what fits is the most that may fit",
)


class ClusterNotNamedError(PermanentError):
    """A ledger has several clusters, and a twin is of one."""

    code = "BP-X051"


async def read_ledger(store: Readable, at: Instant, cluster: str | None, source: str) -> Snapshot:
    """A cluster as it was. Raises ClusterNotNamedError, StoreUnavailableError, StoreRefusedError, SnapshotError."""
    named = await clusters(store, Scope(cluster))
    if len(named) != 1:
        hint = f"--cluster with one of {', '.join(named)}" if named else "record one with `bayplan ledger run`"
        raise ClusterNotNamedError(f"the ledger has {len(named)} clusters; a twin is of one", hint=hint)
    scope = Scope(named[0])
    offers: dict[str, dict[str, int]] = {}
    for period in await read(store, NodePeriod, scope, *holding(NodePeriod, at, at)):
        offers.setdefault(period.node_uid, {})[period.resource] = period.gpus
    rooms: dict[str, NodeRoomPeriod] = {
        each.node_uid: each for each in await read(store, NodeRoomPeriod, scope, *holding(NodeRoomPeriod, at, at))
    }
    there = await nodes_at(store, at, scope)
    nodes = [_node(each, offers.get(each.row.uid, {}), rooms.get(each.row.uid), at) for each in there]
    pods = [each.object for each in await pods_at(store, at, scope)]
    pods += await _without_gpus(store, at, scope, pods, {each.row.name for each in there})
    spaces = [_object(NAMESPACE, {"metadata": {"name": name}}) for name in sorted({pod.namespace for pod in pods})]
    lacking = tuple(kind.resource for kind in AROUND if kind is not NAMESPACE)
    return Snapshot(at, source, (*spaces, *nodes, *pods), lacking, (*_NOTES, *_lacks(there, rooms)))


def _lacks(nodes: Sequence[NodeAt], rooms: Container[str]) -> tuple[str, ...]:
    without = sum(each.row.uid not in rooms for each in nodes)
    told = f"of {without} of {len(nodes)} nodes cores and memory are not known, so GPUs alone decide there"
    return (told,) if without else ()


async def _without_gpus(
    store: Readable, at: Instant, scope: Scope, known: Sequence[Object], nodes: Collection[str]
) -> list[Object]:
    """The pods without GPUs, as far as they took room beside those that are known whole.

    Of two of one name, of which one's end was noticed late, the later was there.
    """
    taken: list[PodRoomPeriod] = await read(store, PodRoomPeriod, scope, *holding(PodRoomPeriod, at, at))
    whole = {pod.uid for pod in known} | {pod.key for pod in known}
    found: dict[tuple[str, str], PodRoomPeriod] = {}
    for period in sorted(taken, key=lambda each: (each.start_at, each.pod_uid)):
        key = (period.namespace, period.name)
        if period.node_name in nodes and whole.isdisjoint((period.pod_uid, key)):
            found[key] = period
    return [_pod(found[key]) for key in sorted(found)]


def _pod(period: PodRoomPeriod) -> Object:
    """A pod of which nothing is known but its place and size: it stays there, whatever comes."""
    since = rfc3339(period.start_at)
    asked = {"cpu": f"{period.cpu}m", "memory": str(period.memory)}
    ready = [{"type": kind, "status": "True", "lastTransitionTime": since} for kind in ("PodScheduled", "Ready")]
    runs = {"name": "main", "image": _IMAGE, "ready": True, "started": True, "state": {"running": {"startedAt": since}}}
    return _object(
        POD,
        {
            "metadata": {
                "name": period.name,
                "namespace": period.namespace,
                "uid": period.pod_uid,
                "creationTimestamp": since,
            },
            "spec": {
                "containers": [{"name": "main", "image": _IMAGE, "resources": {"requests": asked}}],
                "nodeName": period.node_name,
                "schedulerName": "default-scheduler",
                "restartPolicy": "Always",
                "priority": _HIGHEST,
                "tolerations": [{"operator": "Exists"}],
            },
            "status": {"phase": "Running", "startTime": since, "conditions": ready, "containerStatuses": [runs]},
        },
    )


def _node(seen: NodeAt, gpus: dict[str, int], room: NodeRoomPeriod | None, at: Instant) -> Object:
    row = seen.row
    labels: dict[str, str] = msgspec.json.decode(row.labels)
    vendors = GpuVendors()
    offers = {name: str(amount * vendors.pieces(name, labels) // MILLI) for name, amount in gpus.items()}
    beside = {} if room is None else {"cpu": f"{room.cpu}m", "memory": str(room.memory), "pods": str(room.pods)}
    offers = {**_PLENTY, **beside, **offers}
    unknown = seen.hurdle is None  # then it is taken to be well
    return _object(
        NODE,
        {
            "metadata": {
                "name": row.name,
                "uid": row.uid,
                "labels": labels,
                "creationTimestamp": rfc3339(row.created_at),
            },
            "spec": {} if unknown or row.schedulable else {"unschedulable": True},
            "status": {
                "capacity": offers,
                "allocatable": offers,
                "conditions": [
                    {"type": "Ready", "status": str(unknown or row.ready), "lastHeartbeatTime": rfc3339(at)}
                ],
                "nodeInfo": {"kubeletVersion": row.kubelet_version},
            },
        },
    )


def _object(kind: Kind, document: Doc) -> Object:
    return Object.from_raw(kind, msgspec.json.encode(document))
