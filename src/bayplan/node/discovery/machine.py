"""This machine, or the one whose files stand under a root.

Sources: Documentation/admin-guide/cputopology.rst and Documentation/ABI/{stable,testing}/sysfs-devices-node of Linux.
What the kubelet sees is what cAdvisor 0.56 makes of the same files. Two differences, both where cAdvisor guesses:
an L3 that covers exactly one NUMA node keeps its own id (there it counts as the socket's), and a machine without NUMA
information is one node if it has one socket and is refused otherwise (there each socket becomes a node without memory).
"""

from __future__ import annotations

import re
from pathlib import Path

from bayplan.node.discovery.devices import gpus
from bayplan.node.discovery.files import CPUS, NODES, Files, NoNumaError
from bayplan.node.machine import Cpu, Machine, NumaNode, Topology
from bayplan.node.sets import CpuSet, format_list, ids_of, mask_of

_KIB = 1024
_LOCAL = 10  # the kernel's distance of a node to itself
_UNKNOWN_PACKAGE = -1  # what the kernel says where firmware does not


def discover(root: Path = Path("/")) -> Machine:
    """Read a machine. Raises DiscoveryError, with the file and its content, for what is missing or contradicts."""
    files = Files(root)
    online = files.ids(f"{CPUS}/online")
    if not online:
        raise files.wrong(f"{CPUS}/online", "", "at least one CPU")
    sockets = _sockets(files, online)
    cores = _cores(files, online, sockets)
    caches = _caches(files, online, sockets)
    nodes, node_of = _nodes(files, online, sockets)
    cpus = (Cpu(cpu, cores[cpu], sockets[cpu], node_of[cpu], caches[cpu]) for cpu in ids_of(online))
    return Machine(
        name=files.text_if_there("proc/sys/kernel/hostname") or "this-machine",
        topology=Topology(tuple(cpus)),
        nodes=nodes,
        devices=gpus(files, mask_of(node.id for node in nodes)),
        description=_model(files),
        offline=files.ids(f"{CPUS}/present") & ~online,
    )


def _model(files: Files) -> str:
    found = re.search(r"^model name\s*:\s*(.*)$", files.text_if_there("proc/cpuinfo") or "", re.MULTILINE)
    return found[1] if found else ""


def _sockets(files: Files, online: CpuSet) -> dict[int, int]:
    found = {cpu: files.number(f"{CPUS}/cpu{cpu}/topology/physical_package_id") for cpu in ids_of(online)}
    unknown = [cpu for cpu, socket in found.items() if socket == _UNKNOWN_PACKAGE]
    if len(unknown) == len(found):
        return dict.fromkeys(found, 0)  # as lscpu: firmware that names no package has one
    for cpu, socket in found.items():
        if socket < 0:
            raise files.wrong(f"{CPUS}/cpu{cpu}/topology/physical_package_id", socket, "the number of a socket")
    return found


def _cores(files: Files, online: CpuSet, sockets: dict[int, int]) -> dict[int, int]:
    """The lowest CPU of each CPU's core."""
    path = f"{CPUS}/cpu{{}}/topology/thread_siblings_list"
    siblings = {cpu: files.ids(path.format(cpu)) & online for cpu in ids_of(online)}
    for cpu, members in siblings.items():
        if not members >> cpu & 1:
            raise files.wrong(path.format(cpu), format_list(members), f"a list with CPU {cpu} itself in it")
        for other in ids_of(members):
            if siblings[other] != members:
                expected = f"{format_list(members)}, as CPU {cpu} says"
                raise files.wrong(path.format(other), format_list(siblings[other]), expected)
            if sockets[other] != sockets[cpu]:
                expected = f"CPUs of one socket (CPU {cpu} is in {sockets[cpu]}, CPU {other} in {sockets[other]})"
                raise files.wrong(path.format(cpu), format_list(members), expected)
    return {cpu: next(ids_of(members)) for cpu, members in siblings.items()}


def _caches(files: Files, online: CpuSet, sockets: dict[int, int]) -> dict[int, int]:
    """The L3 id of each CPU. Without any L3 the socket's; an L3 that has no id is named after its lowest CPU.

    Where only some CPUs have an L3 (the low-power island of a hybrid), the others of a socket are a group of their own.
    """
    found: dict[int, int] = {}
    members: dict[int, CpuSet] = {}
    for cpu in ids_of(online):
        folder = _l3(files, cpu)
        if folder is None:
            continue
        shared = files.ids(f"{folder}/shared_cpu_list") & online
        named = files.text_if_there(f"{folder}/id")
        found[cpu] = next(ids_of(shared | 1 << cpu)) if named is None else files.as_number(named, f"{folder}/id")
        if members.setdefault(found[cpu], shared) != shared or not shared >> cpu & 1:
            expected = f"the CPUs that share L3 {found[cpu]}, {format_list(members[found[cpu]] | 1 << cpu)}"
            raise files.wrong(f"{folder}/shared_cpu_list", format_list(shared), expected)
    first = max(found.values(), default=-1) + 1
    return {cpu: found.get(cpu, first + sockets[cpu]) for cpu in ids_of(online)}


def _l3(files: Files, cpu: int) -> str | None:
    folder = f"{CPUS}/cpu{cpu}/cache"
    for index in files.numbered(folder, "index"):
        if files.number(f"{folder}/index{index}/level") == 3:
            return f"{folder}/index{index}"
    return None


def _nodes(files: Files, online: CpuSet, sockets: dict[int, int]) -> tuple[tuple[NumaNode, ...], dict[int, int]]:
    """The NUMA nodes, and the node of each CPU."""
    ids = files.numbered(NODES, "node")
    if not ids:
        return _without_numa(files, sockets)
    node_of: dict[int, int] = {}
    for node in ids:
        for cpu in ids_of(files.ids(f"{NODES}/node{node}/cpulist") & online):
            if cpu in node_of:
                raise files.wrong(f"{NODES}/node{node}/cpulist", cpu, f"CPUs that node {node_of[cpu]} has not")
            node_of[cpu] = node
    if lost := online & ~mask_of(node_of):
        raise files.wrong(f"{NODES}/node*/cpulist", format_list(mask_of(node_of)), f"CPUs {format_list(lost)} as well")
    return tuple(_node(files, node, ids) for node in ids), node_of


def _without_numa(files: Files, sockets: dict[int, int]) -> tuple[tuple[NumaNode, ...], dict[int, int]]:
    only = set(sockets.values())
    if len(only) > 1:
        raise NoNumaError(
            f"{files.place(NODES)}: no NUMA nodes, and {len(only)} sockets whose memory cannot be told apart",
            hint="boot a kernel with CONFIG_NUMA, or describe the machine in a file: docs/machines.md",
        )
    (node,) = only
    pages = _hugepages(files, "sys/kernel/mm/hugepages")
    return (NumaNode(node, _memory(files, "proc/meminfo"), pages, {node: _LOCAL}),), dict.fromkeys(sockets, node)


def _node(files: Files, node: int, ids: list[int]) -> NumaNode:
    folder = f"{NODES}/node{node}"
    written = files.text(f"{folder}/distance")
    distances = [files.as_number(each, f"{folder}/distance") for each in written.split()]
    if len(distances) != len(ids):  # the kernel writes one for each node that is online
        nodes = format_list(mask_of(ids))
        raise files.wrong(f"{folder}/distance", written, f"{len(ids)} distances, to nodes {nodes}")
    pages = _hugepages(files, f"{folder}/hugepages")
    return NumaNode(node, _memory(files, f"{folder}/meminfo"), pages, dict(zip(ids, distances, strict=True)))


def _memory(files: Files, path: str) -> int:
    text = files.text(path)
    found = re.search(r"MemTotal:\s*([0-9]+) kB", text)
    if found is None:
        raise files.wrong(path, text.split("\n")[0], "a line MemTotal: ... kB")
    return int(found[1]) * _KIB


def _hugepages(files: Files, folder: str) -> dict[int, int]:
    sizes = sorted(
        int(found[1]) for name in files.names(folder) if (found := re.fullmatch(r"hugepages-([0-9]+)kB", name))
    )
    return {size: files.number(f"{folder}/hugepages-{size}kB/nr_hugepages") for size in sizes}
