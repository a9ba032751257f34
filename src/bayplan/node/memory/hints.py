"""Which groups of NUMA nodes could hold what is asked, and which of them is best.

A group will do if all its memory would suffice, if none of its nodes serves another group, and if enough is free or
may be used again. The smallest groups whose memory would suffice, free or not, are preferred.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bayplan.node.memory.state import Block, MemoryState, Reusable
from bayplan.node.sets import NodeSet, ids_of, mask_of
from bayplan.node.topology.hint import Hint, Hints
from bayplan.node.topology.masks import joined, subsets


def group_hints(state: MemoryState, asked: Mapping[str, int], again: Reusable) -> list[Hint]:
    """The groups that will do for what is asked, which is the same for each kind of memory."""
    ids = sorted(state.nodes)
    masks = subsets(mask_of(ids))
    enough, fitting = set(masks), set(masks)
    for resource, size in asked.items():
        tables = [state.nodes[each].table(resource) for each in ids]
        extra = {group: amounts.get(resource, 0) for group, amounts in again.items()}
        total = joined([table.allocatable for table in tables])
        free = joined([table.free for table in tables])
        enough &= {mask for mask, all_of_it in zip(masks, total, strict=True) if all_of_it >= size}
        fitting &= {mask for mask, left in zip(masks, free, strict=True) if left + extra.get(mask, 0) >= size}
    least = min((mask.bit_count() for mask in enough), default=0)
    fitting &= enough & _open(state, masks)
    return [Hint(mask, mask.bit_count() == least) for mask in masks if mask in fitting]


def _open(state: MemoryState, masks: Iterable[NodeSet]) -> set[NodeSet]:
    """The groups that the nodes could serve: one node, if it is in no group of several; several, if none is used."""
    used = mask_of(each for each, node in state.nodes.items() if node.assignments)
    grouped = mask_of(each for each, node in state.nodes.items() if node.cells.bit_count() > 1)
    unused = {mask for mask in masks if not mask & (grouped if mask.bit_count() == 1 else used)}
    served = {node.cells for node in state.nodes.values() if node.cells.bit_count() > 1}
    return unused | {group for group in served if not violates(state, group)}


def violates(state: MemoryState, group: NodeSet) -> bool:
    """Whether a group of several takes a node that is used alone or in another group."""
    nodes = [state.nodes[each] for each in ids_of(group)]
    return len(nodes) > 1 and any(node.assignments and node.cells != group for node in nodes)


def serves_group(state: MemoryState, node: NodeSet) -> bool:
    """Whether the one node of the set is in a group of several."""
    return state.nodes[node.bit_length() - 1].cells.bit_count() > 1


def best(hints: Iterable[Hint]) -> Hint | None:
    """A preferred one first, then the one of fewest nodes, then of the lowest ids."""

    def rank(hint: Hint) -> tuple[bool, int, int]:
        nodes = hint.nodes or 0
        return not hint.preferred, nodes.bit_count(), nodes

    return min(hints, key=rank, default=None)


def suffices(state: MemoryState, group: NodeSet, asked: Mapping[str, int]) -> bool:
    """Whether the group has enough free of everything, without what could be used again."""
    nodes = [state.nodes[each] for each in ids_of(group)]
    return all(sum(node.table(resource).free for node in nodes) >= size for resource, size in asked.items())


def own_hints(held: Sequence[Block], asked: Mapping[str, int]) -> Hints:
    """The groups that a container has already; no opinion where it holds something other than what is asked."""
    if {block.resource: block.size for block in held} != asked:
        return None
    return {block.resource: [Hint(block.nodes, True)] for block in held}
