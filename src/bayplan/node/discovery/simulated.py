"""A machine as a tree of the kernel's files: the fake beside `discover`, for tests and for other tools to look at.

`discover(root)` of what `write_tree` wrote is the same machine, as long as each device has an address and at most one
NUMA node, and the description is one line: the files have no room for more.
"""

from __future__ import annotations

from pathlib import Path

from bayplan.node.discovery.devices import RESOURCES
from bayplan.node.discovery.files import CPUS, NODES, PCI
from bayplan.node.machine import Device, Machine, NumaNode
from bayplan.node.sets import format_list, ids_of


def write_tree(machine: Machine, root: Path) -> None:
    """Write the machine's files under a folder."""
    topology = machine.topology
    _write(root, "proc/sys/kernel/hostname", machine.name)
    _write(root, "proc/cpuinfo", f"processor\t: 0\nmodel name\t: {machine.description}")
    _write(root, f"{CPUS}/online", format_list(topology.all))
    _write(root, f"{CPUS}/present", format_list(topology.all | machine.offline))
    for cpu in topology.cpus:
        folder = f"{CPUS}/cpu{cpu.id}"
        _write(root, f"{folder}/topology/physical_package_id", cpu.socket)
        _write(root, f"{folder}/topology/core_id", cpu.core)
        _write(root, f"{folder}/topology/thread_siblings_list", format_list(topology.cores[cpu.core]))
        _write(root, f"{folder}/cache/index3/level", 3)
        _write(root, f"{folder}/cache/index3/id", cpu.cache)
        _write(root, f"{folder}/cache/index3/shared_cpu_list", format_list(topology.caches[cpu.cache]))
    for each in ids_of(machine.offline):
        _write(root, f"{CPUS}/cpu{each}/online", 0)
    for node in machine.nodes:
        _write_node(root, node, format_list(topology.nodes.get(node.id, 0)))
    for device in machine.devices:
        _write_device(root, device)


def _write_node(root: Path, node: NumaNode, cpus: str) -> None:
    folder = f"{NODES}/node{node.id}"
    _write(root, f"{folder}/cpulist", cpus)
    _write(root, f"{folder}/meminfo", f"Node {node.id} MemTotal:       {node.memory // 1024} kB")
    _write(root, f"{folder}/distance", " ".join(str(far) for _, far in sorted(node.distances.items())))
    for size, count in node.hugepages.items():
        _write(root, f"{folder}/hugepages/hugepages-{size}kB/nr_hugepages", count)


def _write_device(root: Path, device: Device) -> None:
    vendor = next(number for number, resource in RESOURCES.items() if resource == device.resource)
    _write(root, f"{PCI}/{device.id}/class", "0x030200")
    _write(root, f"{PCI}/{device.id}/vendor", f"{vendor:#06x}")
    _write(root, f"{PCI}/{device.id}/numa_node", next(ids_of(device.nodes), -1))


def _write(root: Path, path: str, value: object) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{value}\n")
