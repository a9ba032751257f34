"""The cluster's state for decisions made here, read with list calls alone, and what is lost where a right is lacking.

Nodes and pods must be readable. Whatever else cannot be read is left out, and it is said what is then not considered.

The order of nodes decides ties: here they stand by creation and name, the best guess of the order in which a scheduler
heard of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from bayplan.cluster import kinds
from bayplan.cluster.kinds import Kind
from bayplan.model import objects
from bayplan.model.errors import Forbidden
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling.state import ClusterState
from bayplan.simulate.recording.file import FURTHER
from bayplan.simulate.twin.snapshot import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.cli.targets import Session
    from bayplan.cluster.objects import Object
    from bayplan.model.meta import KubernetesObject

_SPREADING = "spreading by default, which goes by a pod's services and owners"
_VOLUMES = "volumes"

# kind: what is not considered without it
_AROUND: dict[Kind, str] = {
    kinds.NAMESPACE: "namespace selectors of pod affinity",
    kinds.SERVICE: _SPREADING,
    kinds.REPLICATION_CONTROLLER: _SPREADING,
    kinds.REPLICA_SET: _SPREADING,
    kinds.STATEFUL_SET: _SPREADING,
    kinds.POD_DISRUPTION_BUDGET: "disruption budgets in preemption",
}
_STORED: dict[Kind, str] = {
    kinds.PERSISTENT_VOLUME_CLAIM: _VOLUMES,
    kinds.PERSISTENT_VOLUME: _VOLUMES,
    kinds.STORAGE_CLASS: _VOLUMES,
    **dict.fromkeys(FURTHER.values(), _VOLUMES),
}


class Seen(msgspec.Struct, frozen=True):
    """What could be read: the state, the pods whether placed or not, and what could not."""

    state: ClusterState
    pods: dict[tuple[str, str], Pod]
    lacking: tuple[str, ...] = ()
    """Resources that must not be listed."""
    unconsidered: tuple[str, ...] = ()

    @property
    def volumes(self) -> bool:
        """Whether volumes can be considered."""
        return _VOLUMES not in self.unconsidered


async def read_state(session: Session) -> Seen:
    """List all that decisions go by. Raises Forbidden where nodes or pods must not be listed."""
    nodes, pods = await _needed(session)
    wanted = {**_AROUND, **(_STORED if any(map(_claims, pods.values())) else {})}
    answers = await asyncio.gather(*(listed(session.cluster, kind) for kind in wanted))
    state = ClusterState()
    lacking = []
    for kind, found in zip(wanted, answers, strict=True):
        if found is None:
            lacking.append(kind)
        for item in found or ():
            state.put(objects.from_builtins(item.doc(), objects.KINDS[kind.name]))
    for each in (*nodes, *pods.values()):
        state.put(each)
    lost = tuple(dict.fromkeys(wanted[kind] for kind in lacking))
    return Seen(state, pods, tuple(kind.resource for kind in lacking), lost)


async def _needed(session: Session) -> tuple[list[Node], dict[tuple[str, str], Pod]]:
    found = await asyncio.gather(*(listed(session.cluster, kind) for kind in (kinds.NODE, kinds.POD)))
    nodes, pods = found
    if nodes is None or pods is None:
        missing = [name for name, items in zip(("nodes", "pods"), found, strict=True) if items is None]
        raise Forbidden(
            f"decisions need to list nodes and pods in all namespaces; lacking: {', '.join(missing)}",
            hint="ask for a ClusterRole with the verb list on nodes and pods; the built-in one named view lacks nodes",
        )
    known = [item.view(Pod) for item in _in_order(pods)]
    return (
        [item.view(Node) for item in _in_order(nodes)],
        {(pod.metadata.namespace, pod.metadata.name): pod for pod in known},
    )


def _in_order(items: Sequence[Object]) -> list[Object]:
    return sorted(items, key=lambda item: (item.meta.creation_timestamp or "", item.name))


def _claims(pod: KubernetesObject) -> bool:
    assert isinstance(pod, Pod)
    return any(each.persistent_volume_claim or each.ephemeral is not None for each in pod.spec.volumes)
