"""What the memory manager knows, as a value: every NUMA node's tables, and the blocks that containers hold.

A block is memory of one kind on a group of NUMA nodes. All blocks of a group lie on exactly its nodes: a node that
serves a group of several (its `cells`) serves no other. What a finished init container held, its pod may use again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from bayplan.model.quantity import parse
from bayplan.model.resources import HUGEPAGES_PREFIX, MEMORY
from bayplan.node.errors import PolicyError
from bayplan.node.machine import NumaNode
from bayplan.node.sets import NodeSet, ids_of

Reservations = Mapping[int, Mapping[str, int]]
"""Bytes kept for the system, by NUMA node and resource."""


class Table(NamedTuple):
    """One kind of memory on one NUMA node, in bytes. `allocatable` is always `reserved` + `free`."""

    total: int = 0
    system_reserved: int = 0
    allocatable: int = 0
    reserved: int = 0
    free: int = 0


class NodeMemory(NamedTuple):
    """One NUMA node: how many blocks lie on it, the group it serves, and its tables by resource."""

    assignments: int
    cells: NodeSet
    tables: Mapping[str, Table]

    def table(self, resource: str) -> Table:
        """The table of a resource; an empty one where the node has none of it."""
        return self.tables.get(resource, _NOTHING)


_NOTHING = Table()


class Block(NamedTuple):
    """Memory that a container holds on a group of NUMA nodes."""

    resource: str
    nodes: NodeSet
    size: int


Nodes = dict[int, NodeMemory]
Reusable = Mapping[NodeSet, Mapping[str, int]]
"""Bytes that a pod may use again, by group and resource."""


class MemoryState(msgspec.Struct, frozen=True):
    """The whole of it. Nothing in it is ever changed in place."""

    nodes: Mapping[int, NodeMemory] = msgspec.field(default_factory=dict)
    blocks: Mapping[str, Mapping[str, tuple[Block, ...]]] = msgspec.field(default_factory=dict)
    """By pod and container."""
    reusable: Mapping[str, Reusable] = msgspec.field(default_factory=dict)
    """By pod: upstream's count of what can be used again (memory/reuse.py). Kept only to compare answers with it."""

    def held(self, uid: str, container: str) -> tuple[Block, ...] | None:
        """The container's blocks; None where it was never given any."""
        return self.blocks.get(uid, {}).get(container)


def fresh_nodes(nodes: Sequence[NumaNode], reserved: Reservations) -> Nodes:
    """The machine with nothing assigned. Raises PolicyError for reservations that it cannot have."""
    known = {node.id for node in nodes}
    for node in reserved:
        if node not in known:
            raise PolicyError(
                f"the reserved memory configuration references a NUMA node {node} that does not exist on this machine"
            )
    if not any(kept.get(MEMORY) for kept in reserved.values()):
        raise PolicyError(
            "[memorymanager] you should specify the system reserved memory",
            hint="the Static policy needs memory reserved on at least one NUMA node",
        )
    return {node.id: NodeMemory(0, 1 << node.id, _tables(node, reserved.get(node.id, {}))) for node in nodes}


def _tables(node: NumaNode, reserved: Mapping[str, int]) -> dict[str, Table]:
    pages = {hugepages(kib): kib * 1024 * count for kib, count in node.hugepages.items()}
    tables = {name: _table(node.id, name, total, total, reserved) for name, total in pages.items()}
    return {**tables, MEMORY: _table(node.id, MEMORY, node.memory, node.memory - sum(pages.values()), reserved)}


def _table(node: int, resource: str, total: int, usable: int, reserved: Mapping[str, int]) -> Table:
    kept = reserved.get(resource, 0)
    if kept > usable:
        raise PolicyError(
            f"NUMA node {node}: {kept} bytes of {resource} are reserved for the system, but there are only {usable}"
        )
    return Table(total, kept, usable - kept, 0, usable - kept)


def hugepages(kib: int) -> str:
    """The resource of huge pages of this size."""
    return f"{HUGEPAGES_PREFIX}{parse(f'{kib}Ki')}"


def reserve(nodes: Nodes, block: Block) -> None:
    """Count the block on each of its nodes, and take its size from their free memory, lower ids first."""
    wanted = block.size
    for each in ids_of(block.nodes):
        node = nodes[each]
        taken = min(wanted, node.table(block.resource).free)
        wanted -= taken
        nodes[each] = NodeMemory(node.assignments + 1, block.nodes, _moved(node, block.resource, taken))


def release(nodes: Nodes, block: Block) -> None:
    """Undo `reserve`, as far as the nodes have anything reserved."""
    wanted = block.size
    for each in ids_of(block.nodes):
        node = nodes[each]
        given = min(wanted, node.table(block.resource).reserved)
        wanted -= given
        cells = node.cells if node.assignments > 1 else 1 << each
        nodes[each] = NodeMemory(node.assignments - 1, cells, _moved(node, block.resource, -given))


def _moved(node: NodeMemory, resource: str, size: int) -> Mapping[str, Table]:
    """The node's tables with some free memory reserved."""
    if not size:
        return node.tables
    table = node.tables[resource]
    return {**node.tables, resource: table._replace(reserved=table.reserved + size, free=table.free - size)}
