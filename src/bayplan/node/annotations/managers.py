"""The CPU, memory, topology and device managers of a virtual node: who is given what, and who is refused.

They are made anew for every pod that comes, from what the pods on the node say that they hold (`holdings`), so there is
nothing to keep. Where a pod that must hold something does not say what, nothing more is given out on its node: no CPU
is ever handed out twice. `admit` is the kubelet's word; `expected` is for those who want to know it beforehand.

Source of truth: kubelet 1.36, pkg/kubelet/cm; the policies themselves are in `bayplan.node`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from bayplan.model.pods import Pod
from bayplan.model.qos import QosClass
from bayplan.model.quantity import Format, Quantity
from bayplan.model.resources import CPU
from bayplan.node.admission import NodeManagers, Remembered
from bayplan.node.annotations.equipment import Equipment
from bayplan.node.annotations.holdings import (
    HOLDINGS,
    Block,
    Held,
    Holdings,
    HoldingsError,
    Refused,
    holdings_of,
    nodes_text,
)
from bayplan.node.cpu.manager import STATIC
from bayplan.node.cpu.state import CpuState
from bayplan.node.errors import AllocationError, StateError
from bayplan.node.memory.state import Block as MemoryBlock
from bayplan.node.memory.state import MemoryState, reserve
from bayplan.node.needs import PodNeed, needs_of
from bayplan.node.reasons import hinted
from bayplan.node.sets import BadListError, CpuSet, format_list, parse_list
from bayplan.node.topology.manager import Admission, Choice, Refusal

T = TypeVar("T")


class Rebuilt(msgspec.Struct, frozen=True):
    """The managers as the pods say, and the pods of which nobody knows what they hold."""

    managers: NodeManagers
    unknown: Mapping[str, str] = {}
    """Why, by the pod's uid."""


class Given(msgspec.Struct, frozen=True):
    """What the managers said of a new pod. Without a record it holds nothing of its own."""

    holdings: Holdings | None = None
    refusal: Refusal | None = None
    unknown: Mapping[str, str] = {}


def admit(equipment: Equipment, pod: Pod, others: Iterable[Pod]) -> Given:
    """Give a pod what it asks for beside the others that its node has taken, or say why not."""
    need = needs_of(pod)
    if not asks(need, equipment):
        return Given()
    try:
        found = rebuilt(equipment, others)
    except StateError as error:
        return Given(refusal=_unknowable(error.message))
    if found.unknown:
        return Given(refusal=_unknowable(next(iter(found.unknown.values()))), unknown=found.unknown)
    trial = found.managers.fork()
    admission = trial.admit(need)
    if admission.refusal is not None:
        return Given(Holdings(need.uid, refused=_refused(need, admission, found.managers)), admission.refusal)
    return Given(Holdings(need.uid, dict(_held(need, admission, trial))))


def _unknowable(why: str) -> Refusal:
    error = AllocationError(why)
    return Refusal(error.reason, error.admission_message)


def asks(need: PodNeed, equipment: Equipment) -> bool:
    """Whether a pod asks for something that is to be its own. The managers have no say about others."""
    policies, devices = equipment.policies, equipment.managers.devices.inventories
    whole = need.qos is QosClass.GUARANTEED and not need.pod_level
    return any(
        (whole and policies.cpu == STATIC and each.cpus)
        or (whole and policies.memory == "Static" and each.memory)
        or any(name in devices for name in each.devices)
        for each in need.containers
    )


# --- beforehand


def is_taken(pod: Pod) -> bool:
    """Whether the node has taken a pod that was bound to it."""
    return pod.status.start_time is not None


def seen_of(pod: Pod) -> tuple[str | None, bool, bool]:
    """All that managers read of a pod on their node beside its spec: what it says it holds, and how far it has come."""
    return pod.metadata.annotations.get(HOLDINGS), is_taken(pod), bool(_finished(pod))


def expected(equipment: Equipment, pods: Iterable[Pod]) -> NodeManagers | Refusal:
    """The managers as the next pod will find them, or what they will say to anyone who asks for something.

    Pods that are bound and not taken yet are admitted first, in the given order; one that is refused holds nothing.
    """
    pods = [*pods]
    try:
        found = rebuilt(equipment, (each for each in pods if is_taken(each)))
        if found.unknown:
            return _unknowable(next(iter(found.unknown.values())))
        managers = found.managers
        for number, pod in enumerate(pods):
            if not is_taken(pod) and pod.metadata.deletion_timestamp is None:
                need = msgspec.structs.replace(needs_of(pod), uid=f"waiting-{number}")  # it may have no uid yet
                managers = _with(managers, equipment, need)
    except StateError as error:
        return _unknowable(error.message)
    return managers


def _with(managers: NodeManagers, equipment: Equipment, need: PodNeed) -> NodeManagers:
    """The managers once a pod has come: made anew, as they are for each that comes."""
    trial = managers.fork()
    if not asks(need, equipment) or not trial.admit(need).admitted:
        return managers
    return NodeManagers(equipment.machine, equipment.policies, trial.state)


# --- from what is written down


def rebuilt(equipment: Equipment, pods: Iterable[Pod]) -> Rebuilt:
    """The managers of a machine on which these pods run. Raises StateError for what a kubelet cannot start with."""
    books = _Books(equipment)
    unknown = {}
    for pod in pods:
        try:
            books.enter(pod)
        except HoldingsError as error:
            unknown[pod.metadata.uid] = error.message
    return Rebuilt(books.managers(), unknown)


class _Books:
    """What all pods hold, checked pod by pod: what is entered fits the machine and is nobody else's."""

    def __init__(self, equipment: Equipment) -> None:
        self._equipment = equipment
        self._fresh = equipment.managers
        self._nodes = dict(self._fresh.memory.state.nodes)
        self._cpus: dict[str, dict[str, CpuSet]] = {}
        self._blocks: dict[str, dict[str, tuple[MemoryBlock, ...]]] = {}
        self._devices: dict[str, dict[str, Mapping[str, tuple[str, ...]]]] = {}
        self._taken: set[tuple[str, str]] = set()
        """Devices; of CPUs, `_exclusive` has them all."""
        self._exclusive: CpuSet = 0

    def enter(self, pod: Pod) -> None:
        """Count what a pod holds. Raises HoldingsError; nothing of the pod is counted then."""
        found = holdings_of(pod)
        if found is None:
            if asks(needs_of(pod), self._equipment):
                raise HoldingsError(pod, "is missing")
            return
        try:
            cpus = {name: self._own_cpus(held) for name, held in found.containers.items() if held.cpus}
            blocks = {name: self._own_blocks(held) for name, held in found.containers.items() if held.memory}
            devices = {name: self._own_devices(held) for name, held in found.containers.items() if held.devices}
        except (BadListError, ValueError) as wrong:
            raise HoldingsError(pod, f"is not right: {getattr(wrong, 'message', wrong)}") from wrong
        for each in cpus.values():
            self._exclusive |= each
        self._taken.update(each for held in devices.values() for each in _pairs(held))
        uid, done = pod.metadata.uid, _finished(pod)
        self._cpus[uid], self._devices[uid] = cpus, devices
        self._blocks[uid] = {name: held for name, held in blocks.items() if name not in done}
        for held in self._blocks[uid].values():
            for block in held:
                reserve(self._nodes, block)

    def _own_cpus(self, held: Held) -> CpuSet:
        cpus = parse_list(held.cpus)
        if wrong := cpus & ~self._fresh.cpu.assignable:
            raise ValueError(f"CPUs {format_list(wrong)} cannot be given to a pod")
        if twice := cpus & self._exclusive:
            raise ValueError(f"another pod holds CPUs {format_list(twice)}")
        return cpus

    def _own_blocks(self, held: Held) -> tuple[MemoryBlock, ...]:
        blocks = tuple(MemoryBlock(each.resource, parse_list(each.nodes), each.size) for each in held.memory)
        for block in blocks:
            nodes = [node for id_, node in self._nodes.items() if block.nodes >> id_ & 1]
            have = sum(node.table(block.resource).allocatable for node in nodes)
            if not nodes or len(nodes) != block.nodes.bit_count() or not 0 <= block.size <= have:
                raise ValueError(f"NUMA nodes {format_list(block.nodes)} do not have {block.size} of {block.resource}")
        return blocks

    def _own_devices(self, held: Held) -> Mapping[str, tuple[str, ...]]:
        for resource, each in _pairs(held.devices):
            inventory = self._fresh.devices.inventories.get(resource)
            if inventory is None or each not in inventory.ids:
                raise ValueError(f"there is no {resource} {each}")
            if (resource, each) in self._taken:
                raise ValueError(f"another pod holds {resource} {each}")
        return held.devices

    def managers(self) -> NodeManagers:
        """The managers with all this handed out."""
        remembered = Remembered(
            CpuState(self._fresh.cpu.state.default & ~self._exclusive, _filled(self._cpus)),
            MemoryState(nodes=self._nodes, blocks=_filled(self._blocks)),
            _filled(self._devices),
        )
        return NodeManagers(self._equipment.machine, self._equipment.policies, remembered)


def _pairs(devices: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    return ((resource, each) for resource, ids in devices.items() for each in ids)


def _filled(by_pod: Mapping[str, dict[str, T]]) -> dict[str, dict[str, T]]:
    """Without the pods that hold nothing of the kind."""
    return {uid: held for uid, held in by_pod.items() if held}


def _finished(pod: Pod) -> frozenset[str]:
    """Init containers whose memory is free again: once an app container has started, all but the sidecars."""
    if not any(each.container_id for each in pod.status.container_statuses):
        return frozenset()
    return frozenset(each.name for each in pod.spec.init_containers if not each.is_sidecar)


# --- what is to be written down


def _held(need: PodNeed, admission: Admission, managers: NodeManagers) -> Iterator[tuple[str, Held]]:
    for name, holding in managers.holdings(need.uid).items():
        if not (holding.cpus or holding.memory or holding.devices):
            continue
        choice = _choice(admission, name)
        yield (
            name,
            Held(
                cpus=format_list(holding.cpus),
                memory=tuple(Block(each.resource, format_list(each.nodes), each.size) for each in holding.memory),
                devices=dict(holding.devices),
                affinity=nodes_text(holding.affinity),
                preferred=holding.affinity is not None and holding.affinity.preferred,
                why=choice.why.value if choice else "",
                hints=hinted(choice.hints) if choice else {},
            ),
        )


def _choice(admission: Admission, container: str) -> Choice | None:
    return next((each for each in admission.choices if each.container in ("", container)), None)


def _refused(need: PodNeed, admission: Admission, before: NodeManagers) -> Refused:
    assert admission.refusal is not None
    choice = admission.choices[-1] if admission.choices else None
    asked = {name for each in need.containers for name in (*each.memory, *each.devices)}
    return Refused(
        container=admission.refusal.container or (choice.container if choice else ""),
        free={name: free for name, free in _free(before) if name == CPU or name in asked},
        policy=f"{before.policies.topology.policy} by {before.policies.topology.scope}" if choice else "",
        affinity=nodes_text(choice.best) if choice else None,
        why=choice.why.value if choice else "",
        hints=hinted(choice.hints) if choice else {},
    )


def _free(managers: NodeManagers) -> Iterator[tuple[str, dict[str, str]]]:
    """What could be given, by resource and NUMA node."""
    if managers.cpu.policy is not None:
        nodes = managers.machine.topology.nodes
        yield CPU, {str(node): format_list(cpus & managers.cpu.assignable) for node, cpus in nodes.items()}
    tables = {id_: node.tables for id_, node in managers.memory.state.nodes.items()}
    for resource in dict.fromkeys(name for each in tables.values() for name in each):
        yield (
            resource,
            {
                str(id_): str(Quantity.whole(each[resource].free, Format.BINARY_SI))
                for id_, each in tables.items()
                if resource in each
            },
        )
    for resource, inventory in managers.devices.inventories.items():
        free = inventory.healthy & ~managers.devices.state.taken(resource)
        yield resource, {str(node): str((free & near).bit_count()) for node, near in inventory.by_node.items()}
