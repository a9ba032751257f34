"""Nodes that might be added: the shapes of those that are there, empty, well and uncordoned, the smallest first.

Two nodes are of one shape if they offer the same, have the same taints, and agree on the labels that matter to the pod:
those it selects by, and the topology keys of any rule about pods. DaemonSets' pods are not counted in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.model.meta import ObjectMeta
from bayplan.model.nodes import Node, NodeSpec, NodeStatus
from bayplan.model.resources import CPU, MEMORY, amounts
from bayplan.scheduling.whatif.cluster_changes import AddNode
from bayplan.scheduling.whatif.needs import can_be_tolerated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState

_HOSTNAME = "kubernetes.io/hostname"
_SHOWN = (CPU, MEMORY)


def shapes(state: ClusterState, pod: PodInfo) -> list[AddNode]:
    """One node of each shape, the smallest first: by cores, then memory, then all else it offers."""
    keys = sorted(_keys_that_matter(state, pod))
    found: dict[tuple[object, ...], AddNode] = {}
    for each in state.nodes:
        node = each.node
        labels = tuple(each.labels.get(key) for key in keys)
        taints = frozenset(map(str, filter(can_be_tolerated, node.spec.taints)))
        shape = (tuple(sorted(node.status.allocatable.items())), taints, labels)
        if shape not in found:
            found[shape] = shape_of(node)
    return sorted(found.values(), key=lambda change: change.size)


def shape_of(node: Node) -> AddNode:
    """One more node like this one, empty and well."""
    meta = node.metadata
    name = f"another-{meta.name}"
    labels = {key: name if key == _HOSTNAME else value for key, value in meta.labels.items()}
    offers = amounts(node.status.allocatable)
    rest = sum(amount for resource, amount in offers.items() if resource not in _SHOWN)
    made = Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(taints=tuple(each for each in node.spec.taints if can_be_tolerated(each))),
        status=NodeStatus(
            capacity=node.status.capacity,
            allocatable=node.status.allocatable,
            declared_features=node.status.declared_features,
        ),
    )
    shown = {
        resource: amount
        for resource, amount in node.status.allocatable.items()
        if resource in _SHOWN or ("/" in resource and offers[resource])
    }
    return AddNode(meta.name, (offers.get(CPU, 0), offers.get(MEMORY, 0), rest), shown, made)


def _keys_that_matter(state: ClusterState, pod: PodInfo) -> Iterator[str]:
    spec = pod.wants.spec
    keys = {*spec.node_selector, *(each.topology_key for each in spec.topology_spread_constraints)}
    affinity = spec.affinity
    if affinity and affinity.node_affinity and affinity.node_affinity.required:
        for term in affinity.node_affinity.required.node_selector_terms:
            keys.update(each.key for each in term.match_expressions)
    others = {id(info.wants): info.wants for info, _ in state.with_anti_affinity.values()}
    for wants in (pod.wants, *others.values()):
        keys.update(term.topology_key for term in (*wants.affinity, *wants.anti_affinity))
    return iter(keys - {_HOSTNAME})
