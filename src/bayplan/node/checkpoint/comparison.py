"""The kubelet's state beside ours: what each says of a container, where they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from bayplan.model.quantity import Format, Quantity
from bayplan.node.checkpoint.kubelet_cpu import KubeletCpus
from bayplan.node.checkpoint.kubelet_memory import KubeletMemory
from bayplan.node.checkpoint.own import Checkpoint
from bayplan.node.memory.state import Block, NodeMemory
from bayplan.node.sets import format_list

T = TypeVar("T")

_NOTHING = "nothing"


class Difference(msgspec.Struct, frozen=True, order=True):
    """One thing that the two say differently."""

    what: str
    kubelet: str
    ours: str

    def __str__(self) -> str:
        return f"{self.what}: the kubelet has {self.kubelet}, we have {self.ours}"


def cpu_differences(kubelet: KubeletCpus, ours: Checkpoint) -> list[Difference]:
    """Policy, shared CPUs, and CPUs by container."""
    theirs, mine = kubelet.state, ours.state.cpu
    found = [
        *_differing("policy of the CPU manager", kubelet.policy, ours.cpu_policy),
        *_differing("shared CPUs", format_list(theirs.default), format_list(mine.default)),
    ]
    for place, held, known in _containers(theirs.assignments, mine.assignments):
        found += _differing(f"CPUs of {place}", format_list(held or 0), format_list(known or 0))
    return found


def memory_differences(kubelet: KubeletMemory, ours: Checkpoint) -> list[Difference]:
    """Policy, blocks by container, and what is reserved and free on each NUMA node."""
    theirs, mine = kubelet.state, ours.state.memory
    found = [*_differing("policy of the memory manager", kubelet.policy, ours.memory_policy)]
    for place, held, known in _containers(theirs.blocks, mine.blocks):
        found += _differing(f"memory of {place}", _blocks(held or ()), _blocks(known or ()))
    for id_ in sorted({*theirs.nodes, *mine.nodes}):
        found += _node_differences(id_, theirs.nodes.get(id_), mine.nodes.get(id_))
    return found


def _node_differences(id_: int, theirs: NodeMemory | None, mine: NodeMemory | None) -> Iterator[Difference]:
    place = f"NUMA node {id_}"
    if theirs is None or mine is None:
        yield Difference(place, "it" if theirs else _NOTHING, "it" if mine else _NOTHING)
        return
    yield from _differing(f"group of {place}", format_list(theirs.cells), format_list(mine.cells))
    for resource in sorted({*theirs.tables, *mine.tables}):
        pair = theirs.table(resource), mine.table(resource)
        for name in pair[0]._fields:
            amounts = [str(Quantity.whole(getattr(table, name), Format.BINARY_SI)) for table in pair]
            yield from _differing(f"{resource} {name.replace('_', ' ')} on {place}", *amounts)


def _containers(
    theirs: Mapping[str, Mapping[str, T]], mine: Mapping[str, Mapping[str, T]]
) -> Iterator[tuple[str, T | None, T | None]]:
    for uid in sorted({*theirs, *mine}):
        held, known = theirs.get(uid, {}), mine.get(uid, {})
        for name in sorted({*held, *known}):
            yield f"pod {uid}, container {name}", held.get(name), known.get(name)


def _differing(what: str, theirs: str, mine: str) -> Iterator[Difference]:
    if theirs != mine:
        yield Difference(what, theirs or _NOTHING, mine or _NOTHING)


def _blocks(blocks: Sequence[Block]) -> str:
    return ", ".join(
        f"{Quantity.whole(size, Format.BINARY_SI)} of {resource} on {format_list(nodes)}"
        for resource, nodes, size in sorted(blocks)
    )
