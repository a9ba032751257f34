"""What the managers of a node see of a pod: its containers in order, and what each asks for exclusively.

Exclusive CPUs and reserved memory are for Guaranteed pods alone; devices are for all. What is not asked for is 0 or
missing.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from bayplan.model.qos import QosClass, qos_class
from bayplan.model.quantity import parse
from bayplan.model.resources import CPU, HUGEPAGES_PREFIX, MEMORY

if TYPE_CHECKING:
    from bayplan.model.pods import Container, Pod


class Role(enum.Enum):
    """When a container runs."""

    INIT = "init"
    """Before the others, then never again: what it held can be reused by the pod."""
    SIDECAR = "sidecar"
    """An init container that stays."""
    APP = "app"


class ContainerNeed(msgspec.Struct, frozen=True):
    """What one container asks for."""

    name: str
    role: Role = Role.APP
    cpus: int = 0
    """Whole CPUs of its own; 0 where it takes from the shared pool."""
    memory: dict[str, int] = msgspec.field(default_factory=dict)
    """`memory` and `hugepages-*`, in bytes."""
    devices: dict[str, int] = msgspec.field(default_factory=dict)


class PodNeed(msgspec.Struct, frozen=True):
    """What a pod asks for; containers in the order in which they are admitted: init containers first."""

    uid: str
    containers: tuple[ContainerNeed, ...]
    qos: QosClass = QosClass.GUARANTEED
    pod_level: bool = False
    """Whether the pod as a whole has resources; the managers then leave it alone."""

    def container(self, name: str) -> ContainerNeed:
        """The container of that name."""
        return next(each for each in self.containers if each.name == name)

    def peak(self, asked: Iterable[int]) -> int:
        """The most that the pod needs at once of what its containers, in order, ask for: all that stay, or an init
        container beside the sidecars before it."""
        staying = largest = 0
        for each, amount in zip(self.containers, asked, strict=True):
            if each.role is Role.INIT:
                largest = max(largest, staying + amount)
            else:
                staying += amount
        return max(largest, staying)


def needs_of(pod: Pod) -> PodNeed:
    """What the pod asks of the managers."""
    qos = qos_class(pod)
    guaranteed = qos is QosClass.GUARANTEED
    inits = [(each, Role.SIDECAR if each.is_sidecar else Role.INIT) for each in pod.spec.init_containers]
    apps = [(each, Role.APP) for each in pod.spec.containers]
    return PodNeed(
        uid=pod.metadata.uid,
        containers=tuple(_need(container, role, guaranteed) for container, role in inits + apps),
        qos=qos,
        pod_level=pod.spec.resources is not None,
    )


def _need(container: Container, role: Role, guaranteed: bool) -> ContainerNeed:
    asked = {**container.resources.limits, **container.resources.requests}
    amounts = {name: parse(text) for name, text in asked.items()}
    milli = amounts[CPU].milli() if CPU in amounts else 0  # CPUs are counted no finer, and rounded up
    return ContainerNeed(
        name=container.name,
        role=role,
        cpus=milli // 1000 if guaranteed and milli % 1000 == 0 else 0,
        memory={name: amount.value() for name, amount in amounts.items() if guaranteed and _is_memory(name)},
        devices={name: amount.value() for name, amount in amounts.items() if "/" in name and amount},
    )


def _is_memory(name: str) -> bool:
    return name == MEMORY or name.startswith(HUGEPAGES_PREFIX)
