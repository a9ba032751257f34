"""A machine as the resource managers see it: CPUs in cores, sockets, NUMA nodes and L3 groups; memory; devices.

A group of CPUs (core, socket, node, cache) is a set, so "the free CPUs of node 2" is one `&`. Ids may have holes and
groups may be uneven; the three `per_*` constants are upstream's rounded-down averages, which upstream's rules use.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import msgspec

from bayplan.node.sets import CpuSet, NodeSet, ids_of

Groups = dict[int, CpuSet]
"""Members by the group's id, in ascending order of ids."""


class Cpu(NamedTuple):
    """One logical CPU: ids of its core (its lowest CPU), socket, NUMA node and L3 group (its socket where unknown)."""

    id: int
    core: int
    socket: int
    node: int
    cache: int


class Topology(msgspec.Struct, frozen=True, dict=True):
    """The CPUs that are online."""

    cpus: tuple[Cpu, ...]

    @functools.cached_property
    def all(self) -> CpuSet:
        """Every CPU."""
        return functools.reduce(lambda mask, cpu: mask | 1 << cpu.id, self.cpus, 0)

    @functools.cached_property
    def cores(self) -> Groups:
        """CPUs by core."""
        return self._groups(1)

    @functools.cached_property
    def sockets(self) -> Groups:
        """CPUs by socket."""
        return self._groups(2)

    @functools.cached_property
    def nodes(self) -> Groups:
        """CPUs by NUMA node."""
        return self._groups(3)

    @functools.cached_property
    def caches(self) -> Groups:
        """CPUs by L3 group."""
        return self._groups(4)

    @functools.cached_property
    def by_id(self) -> dict[int, Cpu]:
        """A CPU by its id."""
        return {cpu.id: cpu for cpu in self.cpus}

    @property
    def per_core(self) -> int:
        """CPUs in a core, as upstream counts: the average, rounded down."""
        return len(self.cpus) // len(self.cores) if self.cpus else 0

    @property
    def per_socket(self) -> int:
        """CPUs in a socket, as upstream counts."""
        return len(self.cpus) // len(self.sockets) if self.cpus else 0

    @property
    def per_cache(self) -> int:
        """CPUs in an L3 group, as upstream counts."""
        return len(self.cpus) // len(self.caches) if self.cpus else 0

    def siblings(self, cpus: CpuSet) -> CpuSet:
        """All CPUs of the cores that these CPUs are in."""
        found = 0
        for each in ids_of(cpus):
            found |= self.cores[self.by_id[each].core]
        return found

    def nodes_of(self, cpus: CpuSet) -> NodeSet:
        """The NUMA nodes that these CPUs are in."""
        found = 0
        for node, members in self.nodes.items():
            if members & cpus:
                found |= 1 << node
        return found

    def in_nodes(self, nodes: NodeSet) -> CpuSet:
        """The CPUs of these NUMA nodes."""
        found = 0
        for node, members in self.nodes.items():
            if nodes >> node & 1:
                found |= members
        return found

    def _groups(self, column: int) -> Groups:
        found: Groups = {}
        for cpu in self.cpus:
            found[cpu[column]] = found.get(cpu[column], 0) | 1 << cpu.id
        return dict(sorted(found.items()))


class NumaNode(msgspec.Struct, frozen=True):
    """A NUMA node's memory; it may have no CPUs at all."""

    id: int
    memory: int
    hugepages: dict[int, int] = msgspec.field(default_factory=dict)
    """Pages by page size in KiB."""
    distances: dict[int, int] = msgspec.field(default_factory=dict)
    """To every node by id; the kernel's 10 means here. Empty where unknown."""


class Device(msgspec.Struct, frozen=True):
    """A device of an extended resource, and the NUMA nodes it hangs on (0 where unknown)."""

    resource: str
    id: str
    nodes: NodeSet = 0
    healthy: bool = True


class Machine(msgspec.Struct, frozen=True):
    """Everything that placement on a node depends on."""

    name: str
    topology: Topology
    nodes: tuple[NumaNode, ...]
    """Ascending by id."""
    devices: tuple[Device, ...] = ()
    description: str = ""
    offline: CpuSet = 0
    """CPUs that are there and switched off."""
