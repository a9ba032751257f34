"""Nodes: what they offer, who may come, how they are."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from bayplan.model.meta import Condition, KubernetesObject, ResourceList, Wire
from bayplan.model.taints import Taint


class NodeSpec(Wire, frozen=True):
    """What is decided about a node."""

    pod_cidr: str = msgspec.field(name="podCIDR", default="")
    provider_id: str = msgspec.field(name="providerID", default="")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeAddress(Wire, frozen=True):
    """A way to reach a node: InternalIP, ExternalIP, Hostname..."""

    type: str = ""
    address: str = ""


class NodeSystemInfo(Wire, frozen=True):
    """What runs the node."""

    machine_id: str = msgspec.field(name="machineID", default="")
    system_uuid: str = msgspec.field(name="systemUUID", default="")
    boot_id: str = msgspec.field(name="bootID", default="")
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class ContainerImage(Wire, frozen=True):
    """An image that lies on the node already."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeStatus(Wire, frozen=True):
    """What a node is found to be."""

    capacity: ResourceList = msgspec.field(default_factory=dict)
    allocatable: ResourceList = msgspec.field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubernetesObject, frozen=True):
    """A node."""

    KIND: ClassVar[str] = "Node"

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
