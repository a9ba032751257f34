"""What else fits, by GPU model: pods that ask for 1, 2, 4, ... of a model's devices and for nothing else.

That is the most that may fit: cores and memory are not asked for. Taints that a model's nodes have all the time are
tolerated; those that tell of a node's condition are not.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.ledger.differ.gpus import GpuVendors
from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import Container, Pod, PodSpec, ResourceRequirements
from bayplan.model.taints import Toleration
from bayplan.scheduling.state import ClusterState, NodeState
from bayplan.scheduling.whatif.needs import can_be_tolerated

Group = tuple[str, str, str]
"""Resource, label and model."""


class GpuShape(msgspec.Struct, frozen=True):
    """So many devices of a model on one node."""

    resource: str
    model: str
    devices: int
    pod: Pod


def gpu_shapes(state: ClusterState) -> Iterator[GpuShape]:
    """The usual shapes for each model there is: powers of two, and all of the largest node's."""
    vendors = GpuVendors()
    groups: dict[Group, list[NodeState]] = {}
    for node in state.nodes:
        for resource, amount in node.allocatable.items():
            vendor = vendors.of(resource)
            if amount and vendor is not None:
                label = next((key for key in vendor.models if node.labels.get(key)), "")
                groups.setdefault((resource, label, node.labels.get(label, "")), []).append(node)
    for group, nodes in sorted(groups.items()):
        largest = max(node.allocatable[group[0]] for node in nodes)
        sizes = {largest, *(1 << power for power in range(largest.bit_length()))}
        for devices in sorted(sizes):
            yield GpuShape(group[0], group[2], devices, _pod(group, nodes, devices))


def _pod(group: Group, nodes: list[NodeState], devices: int) -> Pod:
    resource, label, model = group
    taints = dict.fromkeys(taint for node in nodes for taint in node.node.spec.taints if can_be_tolerated(taint))
    tolerated = tuple(Toleration(key=each.key, value=each.value, effect=each.effect) for each in taints)
    asked = ResourceRequirements(requests={resource: str(devices)}, limits={resource: str(devices)})
    return Pod(
        metadata=ObjectMeta(name="gpus", namespace="default"),
        spec=PodSpec(
            containers=(Container(name="main", resources=asked),),
            node_selector={label: model} if label else {},
            tolerations=tolerated,
        ),
    )
