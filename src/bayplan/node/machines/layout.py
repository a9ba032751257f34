"""A regular machine from a few numbers, counted as Linux counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bayplan.model.faults import Faults
from bayplan.node.machine import Cpu
from bayplan.node.machines.document import Layout
from bayplan.node.sets import HIGHEST_ID


class _Place(NamedTuple):
    socket: int
    core: int  # in its socket
    thread: int


def layout_faults(layout: Layout, faults: Faults) -> None:
    """What cannot be laid out."""
    for each, name in ((layout.nodes_per_socket, "nodesPerSocket"), (layout.caches_per_socket, "cachesPerSocket")):
        if layout.cores_per_socket % each:
            message = f"{layout.cores_per_socket} cores cannot be dealt evenly to {each}; list them under cpus"
            faults.add(f"layout.{name}", message)
    many = layout.sockets * layout.cores_per_socket * layout.threads_per_core
    if many > HIGHEST_ID + 1:
        faults.add("layout", f"expected at most {HIGHEST_ID + 1} CPUs, not {many}")


def laid_out(layout: Layout, node_ids: list[int]) -> Iterator[Cpu]:
    """The CPUs by id; `node_ids` are those of the nodes with CPUs, socket by socket. The core is the lowest CPU."""
    first_thread: dict[tuple[int, int], int] = {}
    for cpu, place in enumerate(_in_order(layout)):
        core = first_thread.setdefault((place.socket, place.core), cpu)
        node = place.core * layout.nodes_per_socket // layout.cores_per_socket
        cache = place.core * layout.caches_per_socket // layout.cores_per_socket
        yield Cpu(
            id=cpu,
            core=core,
            socket=place.socket,
            node=node_ids[place.socket * layout.nodes_per_socket + node],
            cache=place.socket * layout.caches_per_socket + cache,
        )


def _in_order(layout: Layout) -> Iterator[_Place]:
    sockets, cores, threads = range(layout.sockets), range(layout.cores_per_socket), range(layout.threads_per_core)
    match layout.numbering:
        case "threads-last":
            return (_Place(socket, core, thread) for thread in threads for socket in sockets for core in cores)
        case "threads-adjacent":
            return (_Place(socket, core, thread) for socket in sockets for core in cores for thread in threads)
        case "sockets-alternating":
            return (_Place(socket, core, thread) for thread in threads for core in cores for socket in sockets)
