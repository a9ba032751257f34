"""A machine file read: the document's words become a Machine, or its faults are told.

First the shape is looked at, then what the entries say; each look tells all its faults at once.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from bayplan.model.faults import Fault, Faults
from bayplan.model.fitting import fit
from bayplan.node.machine import Cpu, Device, Machine, NumaNode, Topology
from bayplan.node.machines.document import CpuEntry, DeviceEntry, Document, Layout
from bayplan.node.machines.faults import MachineError, id_set
from bayplan.node.machines.layout import laid_out, layout_faults
from bayplan.node.machines.nodes import laid_out_nodes, listed_nodes
from bayplan.node.sets import CpuSet, NodeSet, format_list, ids_of, mask_of

__all__ = ["Fault", "MachineError", "read_machine"]


def read_machine(document: Any, source: str) -> Machine:
    """Read a document, as YAML or JSON gives it; `source` is the file's name. Raises MachineError."""
    faults = Faults()
    read, _ = fit(document, Document, "", faults)
    machine = None if faults.found else _machine(read, PurePath(source).stem, faults)
    if machine is None:
        raise MachineError(faults.found.values(), source)
    return machine


def _machine(read: Document, name: str, faults: Faults) -> Machine | None:
    if (read.layout is None) == (not read.cpus):
        faults.add("", "expected either layout or cpus")
        return None
    offline = id_set(read.offline, "offline", faults)
    nodes = listed_nodes(read, faults)
    if read.layout is not None:
        layout_faults(read.layout, faults)
        if not faults.found:
            nodes = nodes or laid_out_nodes(read.layout, faults)
            cpus = _of_layout(read.layout, nodes, offline, faults)
    else:
        cpus = _listed(read.cpus, mask_of(node.id for node in nodes), offline, faults)
    devices = _devices(read.devices, mask_of(node.id for node in nodes), faults)
    if faults.found:
        return None
    return Machine(read.name or name, Topology(cpus), nodes, devices, read.description, offline)


def _of_layout(layout: Layout, nodes: tuple[NumaNode, ...], offline: CpuSet, faults: Faults) -> tuple[Cpu, ...]:
    with_cpus = layout.sockets * layout.nodes_per_socket
    if len(nodes) < with_cpus:
        faults.add("nodes", f"expected {with_cpus} or more, as the layout has them, not {len(nodes)}")
        return ()
    cpus = list(laid_out(layout, [node.id for node in nodes]))
    if beyond := offline & ~mask_of(cpu.id for cpu in cpus):
        faults.add("offline", f"the layout has no CPU {format_list(beyond)}")
    online = [cpu for cpu in cpus if not offline >> cpu.id & 1]
    if not online:
        faults.add("offline", "expected a CPU that is not")
    return _with_lowest(online)


def _listed(entries: tuple[CpuEntry, ...], nodes: NodeSet, offline: CpuSet, faults: Faults) -> tuple[Cpu, ...]:
    cpus: dict[int, Cpu] = {}
    cores: dict[int, Cpu] = {}
    for index, entry in enumerate(entries):
        path = f"cpus[{index}]"
        ids = id_set(entry.ids, f"{path}.ids", faults)
        if not ids:
            faults.add(f"{path}.ids", "expected a CPU")
            continue
        if twice := ids & mask_of(cpus):
            faults.add(f"{path}.ids", f"CPU {format_list(twice)} is listed already")
            continue
        if both := ids & offline:
            faults.add(f"{path}.ids", f"CPU {format_list(both)} is offline")
        if not nodes >> entry.node & 1:
            faults.add(f"{path}.node", f"there is no node {entry.node} under nodes")
        core = next(ids_of(ids)) if entry.core is None else entry.core
        cache = entry.socket if entry.cache is None else entry.cache
        first = cores.setdefault(core, Cpu(core, core, entry.socket, entry.node, cache))
        for here, there, what in ((entry.socket, first.socket, "socket"), (entry.node, first.node, "node")):
            if here != there:
                faults.add(f"{path}.{what}", f"core {core} is in {what} {there} already, not in {here}")
        cpus |= {cpu: Cpu(cpu, core, entry.socket, entry.node, cache) for cpu in ids_of(ids)}
    return _with_lowest([cpus[cpu] for cpu in sorted(cpus)])


def _with_lowest(cpus: list[Cpu]) -> tuple[Cpu, ...]:
    """The core of each CPU named after the lowest CPU that is online."""
    lowest: dict[int, int] = {}
    for cpu in cpus:
        lowest.setdefault(cpu.core, cpu.id)
    return tuple(cpu._replace(core=lowest[cpu.core]) for cpu in cpus)


def _devices(entries: tuple[DeviceEntry, ...], nodes: NodeSet, faults: Faults) -> tuple[Device, ...]:
    found: dict[tuple[str, str], Device] = {}
    for index, entry in enumerate(entries):
        path = f"devices[{index}]"
        on = id_set(entry.nodes, f"{path}.nodes", faults)
        if unknown := on & ~nodes:
            faults.add(f"{path}.nodes", f"there is no node {format_list(unknown)}")
        if (entry.resource, entry.id) in found:
            faults.add(f"{path}.id", f"{entry.resource} {entry.id} is listed already")
        found[entry.resource, entry.id] = Device(entry.resource, entry.id, on, entry.healthy)
    return tuple(found.values())
