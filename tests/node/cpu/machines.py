"""Machines and pods for the tests of the CPU manager."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from bayplan.node.machine import Cpu, Topology
from bayplan.node.needs import ContainerNeed, PodNeed, Role
from bayplan.node.sets import CpuSet, mask_of


def machine(
    *, sockets: int = 1, nodes: int = 1, cores: int = 4, threads: int = 2, cores_per_cache: int = 1024
) -> Topology:
    """A regular machine with `cores` in all; the siblings of CPU i are i + cores, i + 2 * cores ..."""
    return Topology(
        tuple(
            Cpu(
                id=cpu,
                core=cpu % cores,
                socket=cpu % cores * sockets // cores,
                node=cpu % cores * nodes // cores,
                cache=cpu % cores // cores_per_cache,
            )
            for cpu in range(cores * threads)
        )
    )


def without(topology: Topology, offline: CpuSet) -> Topology:
    """The machine with these CPUs switched off."""
    left = [cpu for cpu in topology.cpus if not offline >> cpu.id & 1]
    lowest = {cpu.core: cpu.id for cpu in reversed(left)}
    return Topology(tuple(cpu._replace(core=lowest[cpu.core]) for cpu in left))


HYBRID = without(machine(cores=4), mask_of([5, 6, 7]))
"""Core 0 has the CPUs 0 and 4, the other cores one each: 5 CPUs in 4 cores, so upstream counts one CPU a core."""


def guaranteed(*cpus: int, uid: str = "pod", init: tuple[int, ...] = (), sidecars: tuple[int, ...] = ()) -> PodNeed:
    """A Guaranteed pod: app containers c0, c1 ... with so many CPUs, after init i0 ... and sidecars s0 ..."""
    roles = ((Role.INIT, "i", init), (Role.SIDECAR, "s", sidecars), (Role.APP, "c", cpus))
    return PodNeed(
        uid,
        tuple(
            ContainerNeed(f"{letter}{number}", role, cpus=count)
            for role, letter, counts in roles
            for number, count in enumerate(counts)
        ),
    )


@st.composite
def regular_machines(draw: st.DrawFn, caches_across_nodes: bool = False) -> Topology:
    """Machines whose groups of a kind are all of the same size, and L3 groups each in one node, or one for all."""
    sockets, nodes = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2), (2, 4), (2, 8), (4, 4), (4, 2)]))
    cores = draw(st.integers(1, 4))
    sizes = [size for size in (1, 2, 3, 4) if caches_across_nodes or cores % size == 0]
    return machine(
        sockets=sockets,
        nodes=nodes,
        cores=max(sockets, nodes) * cores,
        threads=draw(st.sampled_from([1, 2, 2, 4])),
        cores_per_cache=draw(st.sampled_from([1024, *sizes])),
    )


@st.composite
def machines(draw: st.DrawFn) -> Topology:
    """Machines of all kinds: L3 groups may lie in two nodes, CPUs be switched off, some cores have a single thread."""
    topology = draw(regular_machines(caches_across_nodes=True))
    offline = draw(sets_of(topology.all)) if draw(st.booleans()) else 0
    return topology if offline == topology.all else without(topology, offline)


def sets_of(cpus: CpuSet) -> st.SearchStrategy[CpuSet]:
    """Subsets."""
    return st.integers(0, (1 << cpus.bit_length()) - 1).map(lambda mask: mask & cpus)


def shuffles(topology: Topology) -> st.SearchStrategy[Topology]:
    """The same machine, its CPUs told in another order."""
    return st.integers(0, 99).map(lambda seed: Topology(tuple(Random(seed).sample(topology.cpus, len(topology.cpus)))))
