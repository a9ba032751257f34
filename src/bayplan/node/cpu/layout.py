"""The tables that selection walks: which groups lie in which, computed once for a topology and kept on it.

Groups that still hold free CPUs sort by (free CPUs, id): the most used first, so that what is whole stays whole. Where
there are at least as many sockets as NUMA nodes, nodes are the outer groups and sockets the inner ones; otherwise the
other way round. Every order is that of the outer groups, then of the inner ones within each, then of the cores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bayplan.node.machine import Groups, Topology
    from bayplan.node.sets import CpuSet

Ordered = tuple[int, int, "CpuSet"]
"""A group in an order: its free CPUs, its id, all of its CPUs."""

Member = tuple[int, "CpuSet"]
Part = tuple[int, "CpuSet", "CpuSet"]
"""A group that meets another one: its id, all of its CPUs, those of them in the other one."""

_KEPT_AS = "cpu_layout"


class Layout:
    """The groups of a topology, and their orders for a set of free CPUs."""

    def __init__(self, topology: Topology) -> None:
        self.nodes_first = len(topology.sockets) >= len(topology.nodes)
        outer, inner = topology.sockets, topology.nodes
        if self.nodes_first:
            outer, inner = inner, outer
        self.per_core = topology.per_core
        self.per_socket = topology.per_socket
        self.per_cache = topology.per_cache
        self.outer: tuple[Member, ...] = tuple(outer.items())
        self.inner_of = {id_: _parts(inner, mask) for id_, mask in self.outer}
        self.caches_of = {id_: _parts(topology.caches, mask) for id_, mask in topology.nodes.items()}
        self.cores_of = {id_: _members(topology.cores, mask) for id_, mask in inner.items()}
        """The cores of an inner group by id."""
        self.cores_by_size = {
            id_: tuple(sorted(cores, key=lambda core: core[1].bit_count())) for id_, cores in self.cores_of.items()
        }
        self.cores_of_cache = {id_: _parts(topology.cores, mask) for id_, mask in topology.caches.items()}
        self.smallest_node = _smallest(topology.nodes)
        self.smallest_socket = _smallest(topology.sockets)
        self.smallest_core = _smallest(topology.cores)

    def nodes(self, free: CpuSet) -> Iterator[Ordered]:
        """NUMA nodes with free CPUs."""
        return self._outer(free) if self.nodes_first else self.inner(free)

    def sockets(self, free: CpuSet) -> Iterator[Ordered]:
        """Sockets with free CPUs."""
        return self.inner(free) if self.nodes_first else self._outer(free)

    def inner(self, free: CpuSet) -> Iterator[Ordered]:
        """Inner groups with free CPUs. One that lies in two outer groups comes twice."""
        for _, id_, _ in self._outer(free):
            yield from _sorted_parts(self.inner_of[id_], free)

    def caches(self, free: CpuSet) -> Iterator[Ordered]:
        """L3 groups with free CPUs, node by node. One that lies in two nodes comes twice."""
        for _, id_, _ in self.nodes(free):
            yield from _sorted_parts(self.caches_of[id_], free)

    def _outer(self, free: CpuSet) -> Iterator[Ordered]:
        return iter(sorted((count, id_, mask) for id_, mask in self.outer if (count := (free & mask).bit_count())))


def layout_of(topology: Topology) -> Layout:
    """The tables of a topology. They are kept on it, beside its own derived tables."""
    kept = topology.__dict__
    found: Layout | None = kept.get(_KEPT_AS)
    if found is None:
        found = kept[_KEPT_AS] = Layout(topology)
    return found


def _members(groups: Groups, within: CpuSet) -> tuple[Member, ...]:
    return tuple((id_, mask) for id_, mask in groups.items() if mask & within)


def _parts(groups: Groups, within: CpuSet) -> tuple[Part, ...]:
    return tuple((id_, mask, mask & within) for id_, mask in groups.items() if mask & within)


def _sorted_parts(parts: tuple[Part, ...], free: CpuSet) -> list[Ordered]:
    return sorted(((free & mask).bit_count(), id_, mask) for id_, mask, here in parts if free & here)


def _smallest(groups: Groups) -> int:
    return min((mask.bit_count() for mask in groups.values()), default=0)
