"""Which CPUs a request gets, packed: whole NUMA nodes and sockets, then whole caches and cores, then single CPUs.

A selection goes down the levels. A level's list is drawn up once, at its start, in the order of `layout`; what is
wholly free and no larger than what is still needed is taken. Each step is recorded, so that a plan can say why.

Source of truth: kubelet 1.36, cpumanager/cpu_assignment.go. `as_upstream` keeps its defects: there a socket or a core
is whole when its free CPUs are as many as the machine's average group has, so that on uneven machines busy CPUs are
handed out, and a group listed twice is counted twice. The right answer, and ours, is that whole means every CPU of it.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bayplan.node.cpu.layout import layout_of
from bayplan.node.errors import AllocationError
from bayplan.node.sets import CpuSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.node.cpu.layout import Layout, Ordered
    from bayplan.node.machine import Topology


class Level(enum.StrEnum):
    """What was taken at a time."""

    NODE = "node"
    SOCKET = "socket"
    CACHE = "cache"
    """An L3 group, or a part of one that the rest of the request fits into."""
    CORE = "core"
    CPU = "cpu"


class Taken(NamedTuple):
    """One step of a selection: which group of which level, and its CPUs."""

    level: Level
    group: int
    cpus: CpuSet


class Assignment(msgspec.Struct, frozen=True):
    """The CPUs that were selected, and how, in the order in which they were taken."""

    cpus: CpuSet
    taken: tuple[Taken, ...] = ()


NOTHING = Assignment(0)


def take_packed(
    topology: Topology,
    available: CpuSet,
    count: int,
    *,
    spread: bool = False,
    prefer_cache: bool = False,
    as_upstream: bool = False,
) -> Assignment:
    """Select `count` of the available CPUs, as close together as they come.

    `spread`: no whole cores, so that siblings come late. `prefer_cache`: within as few L3 groups as possible.
    Raises AllocationError where there are too few.
    """
    if count < 1:
        return NOTHING
    free = available & topology.all
    if count > free.bit_count():
        raise too_few(available, count)
    selection = Selection(layout_of(topology), free, count, as_upstream)
    selection.pack(spread, prefer_cache)
    return selection.result()


def too_few(available: CpuSet, count: int) -> AllocationError:
    """The refusal of a request that is larger than what is free."""
    return AllocationError(
        f"not enough cpus available to satisfy request: requested={count}, available={available.bit_count()}"
    )


class Selection:
    """A selection under way: what is free, what is still needed, what has been taken."""

    __slots__ = ("as_upstream", "cpus", "free", "layout", "need", "taken")

    def __init__(self, layout: Layout, free: CpuSet, need: int, as_upstream: bool) -> None:
        self.layout = layout
        self.free = free
        self.need = need
        self.cpus: CpuSet = 0
        self.taken: list[Taken] = []
        self.as_upstream = as_upstream

    def result(self) -> Assignment:
        """What has been selected."""
        return Assignment(self.cpus, tuple(self.taken))

    def take(self, level: Level, group: int, cpus: CpuSet) -> None:
        """Take one group."""
        self.cpus |= cpus
        self.free &= ~cpus
        self.need -= cpus.bit_count()
        self.taken.append(Taken(level, group, cpus))

    def pack(self, spread: bool, prefer_cache: bool) -> None:
        """All levels, from the outermost to the single CPU, until nothing is needed any more."""
        stages = [self._nodes, self._sockets] if self.layout.nodes_first else [self._sockets, self._nodes]
        if prefer_cache:
            stages.append(self._caches)
        if not spread:
            stages.append(self._cores)
        stages.append(self._spread_cpus if spread else self._packed_cpus)
        for stage in stages:
            stage()
            if self.need < 1:
                return

    def _nodes(self) -> None:
        if self.need >= self.layout.smallest_node:
            self._whole(Level.NODE, self.layout.nodes(self.free))

    def _sockets(self) -> None:
        if self.need >= self.layout.smallest_socket:
            self._whole(Level.SOCKET, self.layout.sockets(self.free), self.layout.per_socket)

    def _whole(self, level: Level, groups: Iterable[Ordered], average: int = 0) -> None:
        """Take the wholly free groups that are not too large. `average`: what upstream takes for the size of each."""
        for count, group, mask in groups:
            size = mask.bit_count()
            whole = count == (average or size) if self.as_upstream else self.free & mask == mask
            if whole and size <= self.need:
                self.take(level, group, mask)

    def _caches(self) -> None:
        caches = [*self.layout.caches(self.free)]
        if self.need >= self.layout.per_cache:
            # Upstream does this anew before each cache below; only the first time can it take anything.
            self._whole(Level.CACHE, caches)
        for _, cache, _ in caches:
            if self.need < 1:
                return
            self._part_of_cache(cache)

    def _part_of_cache(self, cache: int) -> None:
        """Take the rest of the request from one cache, lowest cores first, if it comes out exactly."""
        need, free, per_core = self.need, self.free, self.layout.per_core
        left, found = -(-need // per_core), 0
        for _, core, here in self.layout.cores_of_cache[cache]:
            if free & here:
                found |= free & core
                left -= 1
                if not left:
                    break
        count = found.bit_count()
        if count > need and need % 2 and per_core > 1:
            found ^= 1 << found.bit_length() - 1
            count -= 1
        if count == need:
            self.take(Level.CACHE, cache, found)

    def _cores(self) -> None:
        layout, listed, as_upstream = self.layout, self.free, self.as_upstream
        cores_of = layout.cores_of if as_upstream else layout.cores_by_size
        for _, group, _ in layout.inner(listed):
            for core, mask in cores_of[group]:
                if self.need < layout.smallest_core:
                    return
                whole = (listed & mask).bit_count() == layout.per_core if as_upstream else self.free & mask == mask
                if whole and mask.bit_count() <= self.need:
                    self.take(Level.CORE, core, mask)

    def _packed_cpus(self) -> None:
        listed = self.free
        for _, group, _ in self.layout.inner(listed):
            cores = sorted(
                (count, core, mask)
                for core, mask in self.layout.cores_of[group]
                if (count := (listed & mask).bit_count())
            )
            for _, _, mask in cores:
                if self._single_cpus(listed, mask):
                    return

    def _spread_cpus(self) -> None:
        listed = self.free
        for _, _, mask in self.layout.sockets(listed):
            if self._single_cpus(listed, mask):
                return

    def _single_cpus(self, listed: CpuSet, mask: CpuSet) -> bool:
        """Take CPUs one by one, ascending; whether that was enough."""
        cpus = mask & (listed if self.as_upstream else self.free)
        while cpus and self.need > 0:
            lowest = cpus & -cpus
            self.take(Level.CPU, lowest.bit_length() - 1, lowest)
            cpus ^= lowest
        return self.need < 1
