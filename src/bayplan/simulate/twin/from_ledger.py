"""A twin of the past: what the ledger knows of a cluster at a time.

The ledger keeps every version of GPU pods whole, and of nodes their GPUs at any time and their latest labels; it knows
neither cores, memory nor taints of nodes, nor pods without GPUs. So GPUs alone decide here: what does not fit did not
fit then, and what fits might still have lacked something else.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.kinds import NAMESPACE, NODE, Kind
from bayplan.cluster.objects import Object
from bayplan.ledger.differ.gpus import GpuVendors
from bayplan.ledger.questions.asking import Scope, clusters, holding, read
from bayplan.ledger.questions.present import nodes_at, pods_at
from bayplan.ledger.rows import MILLI, GpuNode, NodePeriod
from bayplan.ledger.store.reading import Readable
from bayplan.model.clock import Instant, rfc3339
from bayplan.model.errors import PermanentError
from bayplan.simulate.twin.kinds import AROUND
from bayplan.simulate.twin.snapshot import Snapshot

Doc = dict[str, Any]
_PLENTY = {"cpu": "100k", "memory": "1Pi", "ephemeral-storage": "1Pi", "pods": "100k"}
_NOTES = (
    "of the ledger: GPU pods and nodes alone; cores, memory and taints are not known, so GPUs alone decide, and what "
    "fits is the most that may fit",
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
    nodes = [_node(each.row, offers.get(each.row.uid, {}), at) for each in await nodes_at(store, at, scope)]
    pods = [each.object for each in await pods_at(store, at, scope)]
    spaces = [_object(NAMESPACE, {"metadata": {"name": name}}) for name in sorted({pod.namespace for pod in pods})]
    lacking = tuple(kind.resource for kind in AROUND if kind is not NAMESPACE)
    return Snapshot(at, source, (*spaces, *nodes, *pods), lacking, _NOTES)


def _node(row: GpuNode, gpus: dict[str, int], at: Instant) -> Object:
    labels: dict[str, str] = msgspec.json.decode(row.labels)
    vendors = GpuVendors()
    offers = {name: str(amount * vendors.pieces(name, labels) // MILLI) for name, amount in gpus.items()}
    known = row.updated_at <= at  # else its later state alone is, and it is taken to be well
    ready = "False" if known and not row.ready else "True"
    return _object(
        NODE,
        {
            "metadata": {
                "name": row.name,
                "uid": row.uid,
                "labels": labels,
                "creationTimestamp": rfc3339(row.created_at),
            },
            "spec": {"unschedulable": True} if known and not row.schedulable else {},
            "status": {
                "capacity": {**_PLENTY, **offers},
                "allocatable": {**_PLENTY, **offers},
                "conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": rfc3339(at)}],
                "nodeInfo": {"kubeletVersion": row.kubelet_version},
            },
        },
    )


def _object(kind: Kind, document: Doc) -> Object:
    return Object.from_raw(kind, msgspec.json.encode(document))
