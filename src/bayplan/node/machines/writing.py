"""A machine as a file: always the form with every core listed, which any machine has. Reading it gives the machine."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from bayplan.model.quantity import Format, Quantity
from bayplan.node.machine import Machine, NumaNode
from bayplan.node.machines.document import CpuEntry, DeviceEntry, Document, NodeEntry
from bayplan.node.sets import format_list, mask_of

_ROWS = ("cpus", "nodes", "devices")


def as_document(machine: Machine) -> dict[str, Any]:
    """The file as plain values."""
    together: dict[tuple[int, int, int, int], list[int]] = {}
    for cpu in machine.topology.cpus:
        together.setdefault((cpu.core, cpu.socket, cpu.node, cpu.cache), []).append(cpu.id)
    document = Document(
        name=machine.name,
        description=machine.description,
        cpus=tuple(
            CpuEntry(format_list(mask_of(ids)), socket, node, cache, core if core != ids[0] else None)
            for (core, socket, node, cache), ids in together.items()
        ),
        nodes=tuple(_node(node) for node in machine.nodes),
        asymmetric=_is_asymmetric(machine),
        offline=format_list(machine.offline),
        devices=tuple(
            DeviceEntry(each.resource, each.id, format_list(each.nodes), each.healthy) for each in machine.devices
        ),
    )
    plain: dict[str, Any] = msgspec.to_builtins(document)
    return plain


def file_text(machine: Machine) -> str:
    """The file as YAML, a line for each core, node and device."""
    document = as_document(machine)
    head = {key: value for key, value in document.items() if key not in _ROWS}
    lines = [msgspec.yaml.encode(head, order=None).decode()]
    for key in _ROWS:
        if document.get(key):
            lines += [f"{key}:\n", *(f"- {_flow(row)}\n" for row in document[key])]
    return "".join(lines)


def _node(node: NumaNode) -> NodeEntry:
    return NodeEntry(
        id=node.id,
        memory=_binary(node.memory),
        hugepages={_binary(size * 1024): count for size, count in node.hugepages.items()},
        distances=tuple(far for _, far in sorted(node.distances.items())),
    )


def _binary(amount: int) -> str:
    return str(Quantity.whole(amount, Format.BINARY_SI))


def _is_asymmetric(machine: Machine) -> bool:
    far = {node.id: node.distances for node in machine.nodes}
    return any(distance != far[other].get(one) for one, row in far.items() for other, distance in row.items())


def _flow(value: Any) -> str:
    """A value on one line: YAML's flow style is JSON with bare keys."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
