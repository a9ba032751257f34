"""Whether a remembered state is one that this machine and these reservations could have come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bayplan.node.errors import StateError
from bayplan.node.memory.state import Block, MemoryState, NodeMemory, Nodes, reserve
from bayplan.node.sets import NodeSet, format_list, ids_of


def checked(remembered: MemoryState, fresh: Nodes) -> MemoryState:
    """The state to go on with: its blocks, replayed on a fresh machine, must come to its tables. Raises StateError."""
    if not remembered.nodes:
        if remembered.blocks:
            raise StateError("[memorymanager] machine state can not be empty when it has memory assignments")
        return MemoryState(nodes=fresh)
    replayed = dict(fresh)
    groups: dict[int, set[NodeSet]] = {}
    for uid, container, block in _blocks(remembered):
        _check_place(uid, container, block, fresh)
        reserve(replayed, block)
        for each in ids_of(block.nodes):
            groups.setdefault(each, set()).add(block.nodes)
    told = _difference(remembered.nodes, replayed, groups)
    if told:
        raise StateError("[memorymanager] the expected machine state is different from the real one", hint=told)
    return MemoryState(nodes=remembered.nodes, blocks=remembered.blocks)


def _blocks(state: MemoryState) -> Iterator[tuple[str, str, Block]]:
    for uid, containers in state.blocks.items():
        for container, blocks in containers.items():
            for block in blocks:
                yield uid, container, block


def _check_place(uid: str, container: str, block: Block, fresh: Nodes) -> None:
    """The nodes must be there, and what lies on them must come from one of them: not every node has every page size."""
    who = f"[memorymanager] (pod: {uid}, container: {container})"
    if any(each not in fresh for each in ids_of(block.nodes)):
        raise StateError(f"{who} the memory assignment uses the NUMA that does not exist")
    if block.size and all(block.resource not in fresh[each].tables for each in ids_of(block.nodes)):
        raise StateError(f"{who} the memory assignment uses memory resource that does not exist")


def _difference(real: Mapping[int, NodeMemory], replayed: Nodes, groups: Mapping[int, set[NodeSet]]) -> str:
    if real.keys() != replayed.keys():
        return f"remembered are NUMA nodes {sorted(real)}, the machine has {sorted(replayed)}"
    for each, node in real.items():
        told = _node_difference(node, replayed[each], groups.get(each, {1 << each}))
        if told:
            return f"NUMA node {each}: {told}"
    for node in real.values():
        told = _sums_difference(node, real, replayed)
        if told:
            return f"NUMA nodes {format_list(node.cells)}: {told}"
    return ""


def _node_difference(real: NodeMemory, replayed: NodeMemory, groups: set[NodeSet]) -> str:
    """What can be compared node by node. Of several groups that a node serves against the rule, any may be the last:
    the order of assignments is not remembered."""
    if real.assignments != replayed.assignments:
        return f"{real.assignments} assignments are remembered, containers have {replayed.assignments}"
    if real.cells not in groups:
        allowed = " or ".join(format_list(group) for group in sorted(groups))
        return f"group {format_list(real.cells)} is remembered, containers are on {allowed}"
    if real.tables.keys() != replayed.tables.keys():
        return f"remembered are {sorted(real.tables)}, the machine has {sorted(replayed.tables)}"
    for name, table in real.tables.items():
        if table[:3] != replayed.tables[name][:3]:
            return f"{name} (total, system reserved, allocatable) was {table[:3]}, is {replayed.tables[name][:3]}"
    return ""


def _sums_difference(node: NodeMemory, real: Mapping[int, NodeMemory], replayed: Nodes) -> str:
    """What can be compared only over the whole group: which of its nodes was charged depends on the order."""
    for name in node.tables:
        free, now = (sum(nodes[each].table(name).free for each in ids_of(node.cells)) for nodes in (real, replayed))
        if free != now:
            return f"{free} bytes of {name} are remembered as free, containers leave {now}"
    return ""
