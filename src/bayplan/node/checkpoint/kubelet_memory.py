"""The kubelet's memory_manager_state: formats V1 to V3. V2 added memory of whole pods, V3 (1.37) wraps it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from bayplan.node.checkpoint.go_dump import Field, mapping, number, pointer, sequence, struct, text
from bayplan.node.checkpoint.kubelet import Form, Wrapped, decoded, fitting, unwrapped
from bayplan.node.memory.state import Block, MemoryState, NodeMemory, Table
from bayplan.node.sets import HIGHEST_ID, mask_of

FILE = "memory_manager_state"
"""Under the kubelet's root, /var/lib/kubelet."""

_NAME = "MemoryManagerCheckpoint"


class KubeletMemory(msgspec.Struct, frozen=True):
    """What the kubelet remembers of memory."""

    version: int
    policy: str
    state: MemoryState
    pods: dict[str, tuple[Block, ...]] = msgspec.field(default_factory=dict)
    """Memory of whole pods."""


_Size = Annotated[int, msgspec.Meta(ge=0)]
_NodeId = Annotated[int, msgspec.Meta(ge=0, le=HIGHEST_ID)]


class _Table(msgspec.Struct, frozen=True, rename="camel"):
    total: _Size = 0
    system_reserved: _Size = 0
    allocatable: _Size = 0
    reserved: _Size = 0
    free: _Size = 0


class _Node(msgspec.Struct, frozen=True, rename="camel"):
    number_of_assignments: int = 0
    memory_map: dict[str, _Table | None] | None = None
    cells: list[_NodeId] | None = None


class _Block(msgspec.Struct, frozen=True):
    nodes: list[_NodeId] | None = msgspec.field(default=None, name="numaAffinity")
    type: str = ""
    size: _Size = 0


class _PodEntry(msgspec.Struct, frozen=True):
    blocks: list[_Block] | None = msgspec.field(default=None, name="memoryBlocks")


class _Content(msgspec.Struct, frozen=True, rename="camel"):
    policy_name: str
    machine_state: dict[_NodeId, _Node | None] | None
    entries: dict[str, dict[str, list[_Block] | None]] | None = None
    pod_entries: dict[str, _PodEntry] | None = None


_BLOCK = struct(
    Field("NUMAAffinity", "numaAffinity", "[]int", sequence(number)),
    Field("Type", "type", "v1.ResourceName", text),
    Field("Size", "size", "uint64", number),
)
_TABLE = struct(
    Field("TotalMemSize", "total", "uint64", number),
    Field("SystemReserved", "systemReserved", "uint64", number),
    Field("Allocatable", "allocatable", "uint64", number),
    Field("Reserved", "reserved", "uint64", number),
    Field("Free", "free", "uint64", number),
)
_NODE = struct(
    Field("NumberOfAssignments", "numberOfAssignments", "int", number),
    Field("MemoryMap", "memoryMap", "map[v1.ResourceName]*state.MemoryTable", mapping(pointer(_TABLE))),
    Field("Cells", "cells", "[]int", sequence(number)),
)
_POD_ENTRY = struct(Field("MemoryBlocks", "memoryBlocks", "[]state.Block", sequence(_BLOCK)))

_FIELDS = (
    Field("PolicyName", "policyName", "string", text),
    Field("MachineState", "machineState", "state.NUMANodeMap", mapping(pointer(_NODE), order=int), {}),
    Field("Entries", "entries", "state.ContainerMemoryAssignments", mapping(mapping(sequence(_BLOCK))), {}),
)
_V1 = Form(1, (_NAME, f"{_NAME}V1"), _FIELDS, may_lack=True)
_V2 = Form(
    2, (_NAME,), (*_FIELDS, Field("PodEntries", "podEntries", "state.PodMemoryAssignments", mapping(_POD_ENTRY), {}))
)


def read_memory_state(blob: bytes, source: str = FILE) -> KubeletMemory:
    """Read and verify a file. Raises CheckpointError, CorruptCheckpointError."""
    wrapped, document = decoded(blob, Wrapped, source)
    data = unwrapped(wrapped, source)
    content, _ = decoded(blob if data is None else data, _Content, source)
    forms = (_V2,) if content.pod_entries is not None else (_V1, _V2)
    version = 3 if data is not None else fitting(document, forms, wrapped.checksum, source).version
    return KubeletMemory(
        version=version,
        policy=content.policy_name,
        state=MemoryState(
            nodes={id_: _node(node or _Node()) for id_, node in sorted((content.machine_state or {}).items())},
            blocks={
                uid: {name: _blocks(blocks or ()) for name, blocks in containers.items()}
                for uid, containers in (content.entries or {}).items()
            },
        ),
        pods={uid: _blocks(entry.blocks or ()) for uid, entry in (content.pod_entries or {}).items()},
    )


def _node(node: _Node) -> NodeMemory:
    tables = {
        name: Table(*msgspec.structs.astuple(table or _Table())) for name, table in (node.memory_map or {}).items()
    }
    return NodeMemory(node.number_of_assignments, mask_of(node.cells or ()), tables)


def _blocks(given: Iterable[_Block]) -> tuple[Block, ...]:
    return tuple(Block(each.type, mask_of(each.nodes or ()), each.size) for each in given)
