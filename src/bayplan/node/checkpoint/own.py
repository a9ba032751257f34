"""Our checkpoint: what the managers of a node remember, with a version and a SHA-256 of the very bytes of the content.

Sets are written as the kernel writes them, so that a person can read the file.
"""

from __future__ import annotations

import hashlib

import msgspec

from bayplan.node.admission import Remembered
from bayplan.node.checkpoint.errors import CheckpointError, CorruptCheckpointError
from bayplan.node.cpu.state import CpuState
from bayplan.node.devices import DeviceIds
from bayplan.node.errors import StateError
from bayplan.node.memory.state import Block, MemoryState, NodeMemory, Table
from bayplan.node.policies import NodePolicies
from bayplan.node.sets import BadListError, format_list, parse_list

KIND = "bayplan node state"
VERSION = 1


class _Envelope(msgspec.Struct, frozen=True):
    kind: str
    version: int
    checksum: str
    state: msgspec.Raw


class _Cpus(msgspec.Struct, frozen=True):
    shared: str
    assignments: dict[str, dict[str, str]]


class _Table(msgspec.Struct, frozen=True):
    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    free: int


class _Node(msgspec.Struct, frozen=True):
    assignments: int
    cells: str
    tables: dict[str, _Table]


class _Block(msgspec.Struct, frozen=True):
    resource: str
    nodes: str
    size: int


class _State(msgspec.Struct, frozen=True):
    cpu_policy: str
    memory_policy: str
    cpus: _Cpus
    memory: dict[int, _Node]
    blocks: dict[str, dict[str, list[_Block]]]
    devices: DeviceIds


class Checkpoint(msgspec.Struct, frozen=True):
    """A state, and the policies that it came about under."""

    cpu_policy: str = "none"
    memory_policy: str = "None"
    state: Remembered = Remembered()


def to_go_on_with(checkpoint: Checkpoint, policies: NodePolicies, source: str) -> Remembered:
    """The state, if it came about under these policies. Raises StateError, as the kubelet does."""
    pairs = (("cpu", policies.cpu, checkpoint.cpu_policy), ("memory", policies.memory, checkpoint.memory_policy))
    for manager, configured, remembered in pairs:
        if configured != remembered:
            raise StateError(
                f'{source}: [{manager}manager] configured policy "{configured}" differs from '
                f'state checkpoint policy "{remembered}"',
                hint="drain the node and move the file away, or keep the policy",
            )
    return checkpoint.state


def encode(checkpoint: Checkpoint) -> bytes:
    """The checkpoint as a file holds it."""
    content = msgspec.json.encode(_written(checkpoint))
    envelope = _Envelope(KIND, VERSION, _checksum(content), msgspec.Raw(content))
    return msgspec.json.encode(envelope) + b"\n"


def decode(blob: bytes, source: str) -> Checkpoint:
    """A checkpoint from a file. Raises CheckpointError, CorruptCheckpointError."""
    try:
        envelope = msgspec.json.decode(blob, type=_Envelope)
        if envelope.kind != KIND or envelope.version != VERSION:
            raise CheckpointError(
                source, f"expected {KIND}, version {VERSION}, not {envelope.kind}, version {envelope.version}"
            )
        content = bytes(envelope.state)
        if _checksum(content) != envelope.checksum:
            raise CorruptCheckpointError(source, envelope.checksum, _checksum(content))
        return _read(msgspec.json.decode(content, type=_State))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as broken:
        raise CheckpointError(source, f"not a checkpoint: {broken}") from broken
    except BadListError as wrong:
        raise CheckpointError(source, wrong.message) from wrong


def _checksum(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _written(checkpoint: Checkpoint) -> _State:
    cpu, memory = checkpoint.state.cpu, checkpoint.state.memory
    return _State(
        cpu_policy=checkpoint.cpu_policy,
        memory_policy=checkpoint.memory_policy,
        cpus=_Cpus(
            format_list(cpu.default),
            {uid: {name: format_list(cpus) for name, cpus in held.items()} for uid, held in cpu.assignments.items()},
        ),
        memory={
            id_: _Node(
                node.assignments,
                format_list(node.cells),
                {name: _Table(*table) for name, table in node.tables.items()},
            )
            for id_, node in memory.nodes.items()
        },
        blocks={
            uid: {
                name: [_Block(each.resource, format_list(each.nodes), each.size) for each in blocks]
                for name, blocks in held.items()
            }
            for uid, held in memory.blocks.items()
        },
        devices=checkpoint.state.devices,
    )


def _read(written: _State) -> Checkpoint:
    return Checkpoint(
        written.cpu_policy,
        written.memory_policy,
        Remembered(
            CpuState(
                parse_list(written.cpus.shared),
                {
                    uid: {name: parse_list(cpus) for name, cpus in held.items()}
                    for uid, held in written.cpus.assignments.items()
                },
            ),
            _memory(written),
            written.devices,
        ),
    )


def _memory(written: _State) -> MemoryState:
    return MemoryState(
        nodes={
            id_: NodeMemory(
                node.assignments,
                parse_list(node.cells),
                {name: Table(*msgspec.structs.astuple(table)) for name, table in node.tables.items()},
            )
            for id_, node in written.memory.items()
        },
        blocks={
            uid: {
                name: tuple(Block(each.resource, parse_list(each.nodes), each.size) for each in blocks)
                for name, blocks in held.items()
            }
            for uid, held in written.blocks.items()
        },
    )
