"""All managers of a node together: a pod comes in, is given its own CPUs, memory and devices, or is refused.

They are asked in the kubelet's order: devices, CPUs, memory. A pod that is refused keeps what its earlier containers
got until it is removed: in the kubelet it is Failed by then, and cleared away later. Try on a `fork` to leave no trace.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Self

import msgspec

from bayplan.node.cpu.manager import CpuManager
from bayplan.node.cpu.state import CpuState
from bayplan.node.devices import DeviceIds, DeviceManager
from bayplan.node.machine import Machine
from bayplan.node.memory.manager import MemoryManager
from bayplan.node.memory.state import Block, MemoryState
from bayplan.node.needs import PodNeed, Role
from bayplan.node.policies import NodePolicies
from bayplan.node.provider import Provider
from bayplan.node.sets import CpuSet, NodeSet
from bayplan.node.topology.hint import Hint
from bayplan.node.topology.manager import Admission, TopologyManager


class Remembered(msgspec.Struct, frozen=True):
    """What survives a restart. Empty: a node that was never used."""

    cpu: CpuState = CpuState()
    memory: MemoryState = MemoryState()
    devices: DeviceIds = {}


class Holding(msgspec.Struct, frozen=True):
    """What one container has of its own."""

    cpus: CpuSet = 0
    """0: it runs on the shared ones."""
    memory: tuple[Block, ...] = ()
    devices: Mapping[str, tuple[str, ...]] = {}
    """Ids by resource."""
    affinity: Hint | None = None
    """What the topology manager decided; None where it did not, or not since the last restart."""
    nodes: NodeSet = 0
    """The NUMA nodes that its own CPUs and memory lie on."""


class NodeManagers:
    """The managers of one machine. Raises PolicyError for settings that the machine cannot have, StateError for a
    remembered state that does not fit them."""

    def __init__(self, machine: Machine, policies: NodePolicies, remembered: Remembered | None = None) -> None:
        known = remembered or Remembered()
        self.machine = machine
        self.policies = policies
        self.topology = TopologyManager(policies.topology, machine.nodes)
        self.devices = DeviceManager(machine, known.devices)
        self.cpu = CpuManager(machine.topology, policies, known.cpu)
        self.memory = MemoryManager(
            machine.nodes,
            policies.memory,
            policies.reserved_memory,
            known.memory,
            as_upstream=policies.as_upstream,
        )

    @property
    def providers(self) -> dict[str, Provider]:
        """The managers that give something, in the order in which they are asked."""
        return {"devices": self.devices, "cpu": self.cpu, "memory": self.memory}

    @property
    def state(self) -> Remembered:
        """What is to be remembered over a restart."""
        return Remembered(self.cpu.state, self.memory.state, self.devices.held)

    def admit(self, pod: PodNeed) -> Admission:
        """Give the pod's containers what they ask for, or say why not. Idempotent for a pod that was admitted."""
        return self.topology.admit(pod, self.providers)

    def start_containers(self, pod: PodNeed) -> None:
        """The pod's init containers are done: the memory of those that do not stay is free for others.

        The kubelet frees neither their CPUs nor their devices before the pod ends.
        """
        for container in pod.containers:
            if container.role is Role.INIT:
                self.memory.remove(pod.uid, container.name)

    def remove(self, uid: str) -> None:
        """Take back everything that the pod holds. Unknown pods are no error."""
        for container in self._containers(uid):
            for provider in self.providers.values():
                provider.remove(uid, container)
        self.topology.forget(uid)

    def fork(self) -> Self:
        """A copy to try things on."""
        twin = copy.copy(self)
        twin.topology, twin.devices = self.topology.fork(), self.devices.fork()
        twin.cpu, twin.memory = self.cpu.fork(), self.memory.fork()
        return twin

    def holdings(self, uid: str) -> dict[str, Holding]:
        """What the containers of a pod have of their own, by container."""
        return {container: self._holding(uid, container) for container in self._containers(uid)}

    @property
    def pods(self) -> tuple[str, ...]:
        """The pods that hold anything, or were given an affinity."""
        return tuple(dict.fromkeys(uid for known in self._known() for uid in known))

    def _known(self) -> tuple[Mapping[str, Mapping[str, object]], ...]:
        return self.memory.state.blocks, self.cpu.state.assignments, self.devices.state.held, self.topology.affinities

    def _containers(self, uid: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(container for known in self._known() for container in known.get(uid, {})))

    def _holding(self, uid: str, container: str) -> Holding:
        cpus = self.cpu.state.held(uid, container) or 0
        memory = self.memory.state.held(uid, container) or ()
        nodes = self.machine.topology.nodes_of(cpus)
        for block in memory:
            nodes |= block.nodes
        return Holding(
            cpus=cpus,
            memory=memory,
            devices=self.devices.held.get(uid, {}).get(container, {}),
            affinity=self.topology.affinities.get(uid, {}).get(container),
            nodes=nodes,
        )
