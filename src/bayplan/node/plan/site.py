"""A machine that pods come to one by one: its managers, and what is asked for of its allocatable amounts so far.

A pod is taken if its requests fit (the kubelet looks at that first) and if the managers admit it. A refused pod leaves
nothing behind: in the kubelet it is Failed, and cleared away.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Self

import msgspec

from bayplan.model.pods import Pod
from bayplan.model.resources import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY, Amounts, pod_requests
from bayplan.node.admission import NodeManagers, Remembered
from bayplan.node.configuration import NodeConfiguration
from bayplan.node.machine import Machine
from bayplan.node.needs import PodNeed, needs_of
from bayplan.node.reservations import divide
from bayplan.node.topology.manager import Admission, Choice, Refusal

_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)
_MILLIS = 1000


class Candidate(msgspec.Struct, frozen=True):
    """A pod that wants to come."""

    pod: Pod
    need: PodNeed
    requests: Amounts

    @property
    def name(self) -> str:
        """`namespace/name`."""
        return f"{self.pod.metadata.namespace or 'default'}/{self.pod.metadata.name}"


def candidate(pod: Pod) -> Candidate:
    """A pod, with what it asks for."""
    return Candidate(pod, needs_of(pod), pod_requests(pod))


class Shortage(msgspec.Struct, frozen=True):
    """Too little is left of a resource: thousandths of a core for cpu, else bytes or pieces."""

    resource: str
    asked: int
    used: int
    capacity: int

    @property
    def refusal(self) -> Refusal:
        """In the kubelet's words."""
        numbers = f"requested: {self.asked}, used: {self.used}, capacity: {self.capacity}"
        message = f"Node didn't have enough resource: {self.resource}, {numbers}"
        return Refusal(f"OutOf{self.resource}", message)


class Outcome(msgspec.Struct, frozen=True):
    """What became of a pod."""

    candidate: Candidate
    choices: tuple[Choice, ...] = ()
    refusal: Refusal | None = None
    left: NodeManagers | None = None
    """For a refused pod, the managers as they stood when they refused: its earlier containers have theirs."""
    shortage: Shortage | None = None
    """Where it never came to the managers."""

    @property
    def admitted(self) -> bool:
        """Whether it may run."""
        return self.refusal is None


class Site:
    """The machine with those that are on it."""

    def __init__(self, managers: NodeManagers, allocatable: Amounts) -> None:
        self.managers = managers
        self.allocatable = allocatable
        self.tenants: Mapping[str, Amounts] = {uid: _held(managers, uid) for uid in managers.pods}
        """What each pod asks for; of one that was there before, what is known of it: its own CPUs."""

    def admit(self, wanted: Candidate) -> Outcome:
        """Let a pod in, or say why not; then nothing has changed."""
        short = self._short(wanted)
        if short is not None:
            return Outcome(wanted, refusal=short.refusal, left=self.managers, shortage=short)
        trial = self.managers.fork()
        admission: Admission = trial.admit(wanted.need)
        if admission.refusal is not None:
            return Outcome(wanted, admission.choices, admission.refusal, trial)
        self.managers = trial
        self.tenants = {**self.tenants, wanted.need.uid: wanted.requests}
        return Outcome(wanted, admission.choices)

    def evict(self, uid: str) -> None:
        """Let a pod go."""
        self.managers.remove(uid)
        self.tenants = {other: asked for other, asked in self.tenants.items() if other != uid}

    def fork(self) -> Self:
        """A copy to try things on."""
        twin = copy.copy(self)
        twin.managers = self.managers.fork()
        return twin

    def used(self, resource: str, but: str = "") -> int:
        """How much of a resource is asked for by all pods but one."""
        return sum(asked.get(resource, 0) for uid, asked in self.tenants.items() if uid != but)

    def _short(self, wanted: Candidate) -> Shortage | None:
        """The kubelet's own check of amounts; resources that the machine has nothing of are passed over, as there."""
        asked = wanted.requests
        first = [name for name in _FIRST if name in asked]
        for name in first + sorted({*asked} - {*first}):
            if name not in self.allocatable:
                continue
            short = Shortage(name, asked[name], self.used(name, wanted.need.uid), self.allocatable[name])
            if short.asked > max(0, short.capacity - short.used):
                return short
        return None


def _held(managers: NodeManagers, uid: str) -> Amounts:
    cpus = 0
    for each in managers.holdings(uid).values():
        cpus |= each.cpus
    return {CPU: cpus.bit_count() * _MILLIS}


def site_of(machine: Machine, configuration: NodeConfiguration, remembered: Remembered | None = None) -> Site:
    """A machine under these settings. Raises ReservationError, PolicyError, StateError."""
    allocatable = dict(divide(configuration, machine).allocatable)
    pages = sum(amount for name, amount in allocatable.items() if name.startswith(HUGEPAGES_PREFIX))
    allocatable[MEMORY] = max(0, allocatable[MEMORY] - pages)
    for device in machine.devices:
        allocatable[device.resource] = allocatable.get(device.resource, 0) + device.healthy
    return Site(NodeManagers(machine, configuration.policies, remembered), allocatable)
