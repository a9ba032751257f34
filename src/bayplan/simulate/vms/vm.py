"""VMs and the nodes they run on, with the names and the order of fields that simulator code has had before.

A consumption is a share of a node: of `NodeShape`, 32 cores and 128Gi unless said otherwise. So a VM of 0.1 and 0.25
asks the scheduler for 3200m and 32Gi: cores times share, rounded up to whole millicores, and bytes times share, rounded
up to whole Mi. A request is what a VM consumes, neither more nor less; no overcommitment is hidden in between.

Both are changed in place: `pod_name` and `scheduled_node` are what placing fills in.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.simulate.fault_kinds import Fault
from bayplan.simulate.vms.constraints import constraint_faults

Doc = dict[str, Any]
MEBI = 1 << 20
GIBI = 1 << 30
_ID = re.compile(r"[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?")
"""A label's value, and with `virt-launcher-` before it and a suffix after it still a pod's name."""

_NAMES = {
    "nodeSelector": "node_selector",
    "topologySpreadConstraints": "topology_spread",
    "priorityClassName": "priority_class_name",
}
"""Of constraints that a pod's spec calls otherwise."""


class VMError(PermanentError):
    """A VM that cannot be: its id, its size or its constraints."""

    code = "BP-X030"
    faults: tuple[Fault, ...] = ()
    """Of its labels and constraints, by path."""


class NodeShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a node has, all of it for VMs."""

    cores: float = 32
    memory: int = 128 * GIBI
    """Bytes."""
    pods: int = 110

    def __post_init__(self) -> None:
        if not (0 < self.cores < math.inf and self.memory > 0 and self.pods > 0):
            raise VMError(f"a node of {self.cores} cores, {self.memory} bytes and {self.pods} pods holds nothing")


USUAL = NodeShape()


@dataclasses.dataclass
class VM:
    """A virtual machine. Constraints are those of a pod's spec, word for word."""

    id: str
    cpu_consumption: float
    memory_consumption: float
    pod_name: str = ""
    """The pod that runs it."""
    scheduled_node: str = ""
    """Where the scheduler has put that pod; empty while it waits."""
    _: dataclasses.KW_ONLY
    dirty_rate_mbps: float = 800
    """Megabits of memory that it changes a second: they have to be sent again while it is migrated."""
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    node_selector: dict[str, str] = dataclasses.field(default_factory=dict)
    affinity: Doc = dataclasses.field(default_factory=dict)
    """nodeAffinity, podAffinity and podAntiAffinity, as in a pod."""
    tolerations: list[Doc] = dataclasses.field(default_factory=list)
    topology_spread: list[Doc] = dataclasses.field(default_factory=list)
    """topologySpreadConstraints, as in a pod."""
    priority_class_name: str = ""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Whether it can be: told when it is made, and again before its pod is. Raises VMError."""
        if not _ID.fullmatch(self.id):
            hint = "lower case letters, digits and dashes, at most 53 of them"
            raise VMError(f'"{self.id}" is no id of a VM', hint=hint)
        for what in ("cpu_consumption", "memory_consumption", "dirty_rate_mbps"):
            value = getattr(self, what)
            if not (isinstance(value, int | float) and 0 <= value < math.inf):
                raise VMError(f"{self.id}: {what}: expected a number from 0 on, got {value!r}")
        if faults := self._faults():
            wrong = "; ".join(f"{each.path}: {each.message}" for each in faults)
            error = VMError(f"{self.id}: {wrong}", hint="constraints are written as in a pod's spec")
            error.faults = faults
            raise error

    def constraints(self) -> Doc:
        """Those that it has, as a pod's spec has them."""
        found = {
            "nodeSelector": self.node_selector,
            "affinity": self.affinity,
            "tolerations": self.tolerations,
            "topologySpreadConstraints": self.topology_spread,
            "priorityClassName": self.priority_class_name,
        }
        return {name: value for name, value in found.items() if value}

    def _faults(self) -> tuple[Fault, ...]:
        found = constraint_faults(self.labels, self.constraints())
        return tuple(each._replace(path=_own(each.path)) for each in found)


@dataclasses.dataclass
class Node:
    """A node and the VMs on it: at first those that somebody wishes there, then those that the scheduler put there."""

    name: str
    vms: list[VM] = dataclasses.field(default_factory=list)
    capacity: NodeShape = USUAL
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    taints: list[Doc] = dataclasses.field(default_factory=list)

    def load(self, shape: NodeShape = USUAL) -> tuple[float, float]:
        """CPU and memory that its VMs want, as shares of its own capacity; above 1 where they want more."""
        cores, memory = shape.cores / self.capacity.cores, shape.memory / self.capacity.memory
        return (
            math.fsum(vm.cpu_consumption for vm in self.vms) * cores,
            math.fsum(vm.memory_consumption for vm in self.vms) * memory,
        )


def check_vms(vms: Iterable[VM]) -> None:
    """Whether these VMs can be, all of them. Raises VMError."""
    seen: set[str] = set()
    for vm in vms:
        vm.check()
        if vm.id in seen:
            raise VMError(f'there are two VMs "{vm.id}"')
        seen.add(vm.id)


def _own(path: str) -> str:
    for theirs, ours in _NAMES.items():
        if path.startswith(theirs):
            return ours + path.removeprefix(theirs)
    return path


def requests(vm: VM, shape: NodeShape = USUAL) -> dict[str, str]:
    """What a VM's pod asks the scheduler for."""
    return {
        "cpu": f"{_up(vm.cpu_consumption * shape.cores * 1000)}m",
        "memory": f"{_up(vm.memory_consumption * shape.memory / MEBI)}Mi",
    }


def _up(amount: float) -> int:
    """Rounded up, but not for the last bit of a product: 0.1 * 32 * 1000 is 3200.0000000000005."""
    return math.ceil(round(amount, 6))
