"""The device manager: GPUs, network cards and the like, from the NUMA nodes that the topology manager chose.

Devices of a resource are numbered by their sorted ids, so that a set of them is an integer. Of equals the lowest ids
are given, where the kubelet takes any. What a finished init container held, its pod may use again.
Source of truth: kubelet 1.36, pkg/kubelet/cm/devicemanager, for plugins that state no preference of their own.
"""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Iterable, Mapping
from typing import Self

import msgspec

from bayplan.node.errors import AllocationError, StateError
from bayplan.node.machine import Device, Machine
from bayplan.node.needs import ContainerNeed, PodNeed, Role
from bayplan.node.sets import NodeSet, ids_of, lowest_bits, mask_of
from bayplan.node.topology.hint import Hint, Hints
from bayplan.node.topology.masks import joined, subsets

DeviceSet = int


class Inventory(msgspec.Struct, frozen=True):
    """The devices of one resource, by ascending ids."""

    ids: tuple[str, ...]
    healthy: DeviceSet
    by_node: Mapping[int, DeviceSet]
    """Only NUMA nodes that have any; ascending."""

    @property
    def placed(self) -> DeviceSet:
        """The devices that are known to hang on some NUMA node."""
        return _union(self.by_node.values())

    def near(self, nodes: NodeSet) -> DeviceSet:
        """The devices that hang on any of these NUMA nodes."""
        return _union(devices for node, devices in self.by_node.items() if nodes >> node & 1)

    def names(self, devices: DeviceSet) -> tuple[str, ...]:
        """The ids of a set."""
        return tuple(self.ids[each] for each in ids_of(devices))


DeviceIds = Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]
"""Held devices by pod, container and resource: the form to remember, since an inventory may grow."""


class DeviceState(msgspec.Struct, frozen=True):
    """Who holds what. Nothing in it is ever changed in place."""

    held: Mapping[str, Mapping[str, Mapping[str, DeviceSet]]] = msgspec.field(default_factory=dict)
    """By pod, container and resource."""
    reusable: Mapping[str, Mapping[str, DeviceSet]] = msgspec.field(default_factory=dict)
    """By pod and resource: what init containers of the pod being admitted leave behind."""

    def of(self, uid: str, container: str, resource: str) -> DeviceSet:
        """What a container holds."""
        return self.held.get(uid, {}).get(container, {}).get(resource, 0)

    def of_pod(self, uid: str, resource: str) -> DeviceSet:
        """What all containers of a pod hold."""
        return _union(held.get(resource, 0) for held in self.held.get(uid, {}).values())

    def taken(self, resource: str) -> DeviceSet:
        """What anyone holds."""
        return _union(self.of_pod(uid, resource) for uid in self.held)


class DeviceManager:
    """A Provider. Resources that the machine has no device of are not its business.

    Raises StateError for remembered devices that the machine does not have.
    """

    def __init__(self, machine: Machine, remembered: DeviceIds | None = None) -> None:
        known = mask_of(node.id for node in machine.nodes)
        names = sorted({device.resource for device in machine.devices})
        self.inventories = {
            name: _inventory([device for device in machine.devices if device.resource == name], known) for name in names
        }
        self.state = DeviceState(
            {
                uid: {
                    container: {name: self._numbers(uid, container, name, ids) for name, ids in held.items()}
                    for container, held in containers.items()
                }
                for uid, containers in (remembered or {}).items()
            }
        )

    @property
    def held(self) -> DeviceIds:
        """Who holds what, to be remembered over a restart."""
        return {
            uid: {
                container: {name: self.inventories[name].names(devices) for name, devices in held.items()}
                for container, held in containers.items()
            }
            for uid, containers in self.state.held.items()
        }

    def hints(self, pod: PodNeed, container: ContainerNeed) -> Hints:
        """See Provider."""
        found = {}
        for resource, count in self._asked(container.devices):
            held = self.state.of(pod.uid, container.name, resource)
            again = self.state.reusable.get(pod.uid, {}).get(resource, 0)
            found[resource] = self._hints(resource, count, held, again)
        return found

    def pod_hints(self, pod: PodNeed) -> Hints:
        """See Provider."""
        names = sorted({name for each in pod.containers for name in each.devices})
        peaks = {name: pod.peak(each.devices.get(name, 0) for each in pod.containers) for name in names}
        return {
            name: self._hints(name, count, self.state.of_pod(pod.uid, name), 0) for name, count in self._asked(peaks)
        }

    def allocate(self, pod: PodNeed, container: ContainerNeed, affinity: Hint) -> None:
        """See Provider."""
        for resource, count in self._asked(container.devices):
            held = self.state.of(pod.uid, container.name, resource)
            again = self.state.reusable.get(pod.uid, {}).get(resource, 0)
            self._check(pod, container, resource, held)
            chosen = held or self._chosen(resource, count, again, affinity.nodes)
            again = again | chosen if container.role is Role.INIT else again & ~chosen
            of_pod = self.state.held.get(pod.uid, {})
            now = {**of_pod.get(container.name, {}), resource: chosen}
            self.state = DeviceState(
                held={**self.state.held, pod.uid: {**of_pod, container.name: now}},
                reusable={pod.uid: {**self.state.reusable.get(pod.uid, {}), resource: again}},
            )

    def remove(self, uid: str, container: str) -> None:
        """See Provider."""
        left = {name: held for name, held in self.state.held.get(uid, {}).items() if name != container}
        others = {pod: held for pod, held in self.state.held.items() if pod != uid}
        reusable = {pod: again for pod, again in self.state.reusable.items() if pod != uid}
        self.state = DeviceState(held={**others, uid: left} if left else others, reusable=reusable)

    def fork(self) -> Self:
        """See Provider."""
        return copy.copy(self)

    def _numbers(self, uid: str, container: str, resource: str, ids: Iterable[str]) -> DeviceSet:
        known = self.inventories[resource].ids if resource in self.inventories else ()
        missing = sorted(set(ids) - set(known))
        if missing:
            raise StateError(
                f"pod {uid}, container {container} holds devices of {resource} "
                f"that the machine does not have: {', '.join(missing)}",
                hint="name them in the inventory, as unhealthy if they are gone, until the pod has ended",
            )
        return mask_of(map(known.index, ids))

    def _asked(self, devices: Mapping[str, int]) -> list[tuple[str, int]]:
        return [(name, count) for name, count in sorted(devices.items()) if name in self.inventories]

    def _free(self, resource: str) -> DeviceSet:
        return self.inventories[resource].healthy & ~self.state.taken(resource)

    def _hints(self, resource: str, count: int, held: DeviceSet, again: DeviceSet) -> list[Hint] | None:
        """NUMA nodes with enough devices. None: the resource has no devices with a place."""
        inventory = self.inventories[resource]
        if not inventory.by_node:
            return None
        if held:
            return _node_hints(inventory, count, held, 0) if held.bit_count() == count else []
        free = self._free(resource)
        return _node_hints(inventory, count, free, again) if (free | again).bit_count() >= count else []

    def _check(self, pod: PodNeed, container: ContainerNeed, resource: str, held: DeviceSet) -> None:
        """Whether devices may be given at all. Raises AllocationError."""
        count, healthy = container.devices[resource], self.inventories[resource].healthy
        if held and held.bit_count() != count:
            raise AllocationError(
                f'pod "{pod.uid}" container "{container.name}" changed request for resource "{resource}" '
                f"from {held.bit_count()} to {count}"
            )
        if not healthy:
            raise AllocationError(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        if held & ~healthy:
            raise AllocationError(
                f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices {resource}"
            )

    def _chosen(self, resource: str, count: int, again: DeviceSet, nodes: NodeSet | None) -> DeviceSet:
        """The devices to give: those used before by the pod, then near ones, then far ones, then those of no place."""
        inventory, free = self.inventories[resource], self._free(resource)
        chosen = lowest_bits(again, count)
        missing = count - chosen.bit_count()
        if free.bit_count() < missing:
            raise AllocationError(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {missing}, Available: {free.bit_count()}"
            )
        ranks = (free,) if nodes is None else (inventory.near(nodes), inventory.placed, free)
        for rank in ranks:
            chosen |= lowest_bits(free & rank & ~chosen, count - chosen.bit_count())
        return chosen


def _inventory(devices: Iterable[Device], known: NodeSet) -> Inventory:
    """Devices of one resource; NUMA nodes that the machine does not have are ignored, as upstream does."""
    ordered = sorted(devices, key=lambda device: device.id)
    places = _union(device.nodes for device in ordered) & known
    return Inventory(
        ids=tuple(device.id for device in ordered),
        healthy=mask_of(number for number, device in enumerate(ordered) if device.healthy),
        by_node={
            node: mask_of(number for number, device in enumerate(ordered) if device.nodes >> node & 1)
            for node in ids_of(places)
        },
    )


def _node_hints(inventory: Inventory, count: int, free: DeviceSet, again: DeviceSet) -> list[Hint]:
    """The sets of NUMA nodes that have all the devices to use again and enough free ones beside them.

    Preferred are those of as few nodes as would do if every device were free.
    """
    nodes = mask_of(inventory.by_node)
    again &= inventory.placed
    near = dict(zip(subsets(nodes), joined([*inventory.by_node.values()], operator.or_), strict=True))
    enough = [mask.bit_count() for mask, devices in near.items() if devices.bit_count() >= count]
    least = min(enough, default=nodes.bit_count())
    return [
        Hint(mask, mask.bit_count() == least)
        for mask, devices in near.items()
        if not again & ~devices and (devices & (free | again)).bit_count() >= count
    ]


def _union(sets: Iterable[int]) -> int:
    return functools.reduce(operator.or_, sets, 0)
