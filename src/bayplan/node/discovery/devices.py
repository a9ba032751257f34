"""GPUs on the PCI bus and the NUMA node each hangs on, by the names of the resources that device plugins register.

The id is the PCI address; a device plugin may give the same device another (NVIDIA's: the GPU's UUID).
"""

from __future__ import annotations

from bayplan.node.discovery.files import PCI, Files
from bayplan.node.machine import Device
from bayplan.node.sets import NodeSet

_DISPLAY = 0x03  # the PCI class of GPUs, and of the small display chips of service processors, which are of others
RESOURCES = {0x10DE: "nvidia.com/gpu", 0x1002: "amd.com/gpu"}
"""By PCI vendor."""


def gpus(files: Files, nodes: NodeSet) -> tuple[Device, ...]:
    """The GPUs, by address. Raises DiscoveryError for one on a node that is not there."""
    found = []
    for address in files.names(PCI):
        folder = f"{PCI}/{address}"
        if files.number(f"{folder}/class") >> 16 != _DISPLAY:
            continue
        resource = RESOURCES.get(files.number(f"{folder}/vendor"))
        if resource is not None:
            found.append(Device(resource, address, _node(files, folder, nodes)))
    return tuple(found)


def _node(files: Files, folder: str, nodes: NodeSet) -> NodeSet:
    path = f"{folder}/numa_node"
    written = files.text_if_there(path)  # a kernel without NUMA has no such file; -1 is "unknown"
    node = -1 if written is None else files.as_number(written, path)
    if node >= 0 and not nodes >> node & 1:
        raise files.wrong(path, node, "a NUMA node of this machine")
    return 0 if node < 0 else 1 << node
