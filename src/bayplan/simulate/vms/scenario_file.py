"""Scenarios of VMs as people and programs write them: nodes with the VMs that are wished there, in YAML or JSON.

    nodes:
      - name: node-1
        cores: 32
        memory: 128Gi
        labels: {zone: a}
        vms:
          - {id: vm-1, cpu_consumption: 0.1, memory_consumption: 0.25}

A VM takes the fields of `VM`; what is unknown, no number or no constraint is refused with line and path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bayplan.model.quantity import QuantityError, parse
from bayplan.service.yaml_lines import FileError, Located, read_yaml
from bayplan.simulate.fault_kinds import fault_of
from bayplan.simulate.vms.vm import USUAL, VM, Doc, Node, NodeShape, VMError


class VMFileError(FileError):
    """A scenario of VMs cannot be used."""

    code = "BP-X033"


class _VM(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    cpu_consumption: float
    memory_consumption: float
    pod_name: str = ""
    scheduled_node: str = ""
    dirty_rate_mbps: float = 800
    labels: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    affinity: dict[str, Any] = {}
    tolerations: list[dict[str, Any]] = []
    topology_spread: list[dict[str, Any]] = []
    priority_class_name: str = ""


class _Node(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    vms: list[_VM] = []
    cores: float = USUAL.cores
    memory: str | int = USUAL.memory
    pods: int = USUAL.pods
    labels: dict[str, str] = {}
    taints: list[dict[str, str]] = []


class _Scenario(msgspec.Struct, forbid_unknown_fields=True):
    nodes: list[_Node]


def read_vms(path: Path) -> list[Node]:
    """The nodes of a file. Raises VMFileError, OSError."""
    return parse_vms(str(path), path.read_bytes())


def parse_vms(name: str, text: str | bytes) -> list[Node]:
    """The nodes of a text; `name` is what errors call it. Raises VMFileError."""
    try:
        document = read_yaml(name, text)
    except FileError as fault:
        raise VMFileError(fault.message, hint=fault.hint) from fault
    try:
        found = msgspec.convert(document.value, _Scenario)
    except msgspec.ValidationError as error:
        path, message, _ = fault_of(error)
        raise VMFileError(document.fault(path, message), hint="docs/vms.md lists the keys") from error
    names = [node.name for node in found.nodes]
    ids = [vm.id for node in found.nodes for vm in node.vms]
    for what, seen in (("node", names), ("VM", ids)):
        if twice := next((each for each in seen if seen.count(each) > 1), ""):
            raise VMFileError(document.fault("nodes", f'there are two {what}s "{twice}"'))
    return [_node(document, each, f"nodes[{index}]") for index, each in enumerate(found.nodes)]


def _node(document: Located, given: _Node, path: str) -> Node:
    try:
        memory = given.memory if isinstance(given.memory, int) else parse(given.memory).value()
        shape = NodeShape(given.cores, memory, given.pods)
    except (QuantityError, VMError) as fault:
        raise VMFileError(document.fault(path, fault.message)) from fault
    vms = []
    for index, each in enumerate(given.vms):
        here = f"{path}.vms[{index}]"
        try:
            vms.append(VM(**msgspec.structs.asdict(each)))
        except VMError as fault:
            wrong = [document.fault(f"{here}.{one.path}", one.message) for one in fault.faults]
            raise VMFileError("\n".join(wrong) or document.fault(here, fault.message), hint=fault.hint) from fault
    return Node(given.name, vms, shape, given.labels, [dict(each) for each in given.taints])


def written(nodes: Iterable[Node], waiting: Sequence[VM] = ()) -> Doc:
    """Nodes as a document of the same form, and the VMs that are on none of them."""
    return {"nodes": [node_doc(node) for node in nodes], "pending": [vm_doc(vm) for vm in waiting]}


def node_doc(node: Node) -> Doc:
    """A node as a document."""
    shape = node.capacity
    return {
        "name": node.name,
        "cores": shape.cores,
        "memory": shape.memory,
        "pods": shape.pods,
        "labels": node.labels,
        "taints": node.taints,
        "vms": [vm_doc(vm) for vm in node.vms],
    }


def vm_doc(vm: VM) -> Doc:
    """A VM as a document."""
    found: Doc = msgspec.to_builtins(vm)
    return found
