"""A node as a run sees it: what it has, what is taken of it, whether it can be used."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.resources import CPU, MEMORY, amounts
from bayplan.scheduling.gpus.asking import DEVICES, WHOLE, hold_of
from bayplan.simulate.gpus import gpus_offered, is_cut

PodKey = tuple[str, str]


class Ask(NamedTuple):
    """What a pod takes of a node."""

    cpu: int
    memory: int
    gpus: float
    """Whole ones and shares, as far as a device plugin knows them."""
    number: int
    milli: int
    """Of so many devices so many thousandths each."""


class Seat:
    """One node."""

    __slots__ = (
        "_allocatable",
        "capacity",
        "cordoned",
        "cpu",
        "devices",
        "is_cut",
        "labels",
        "memory",
        "pods",
        "ready",
        "silent",
    )

    def __init__(self, node: Node) -> None:
        self.cpu = self.memory = 0
        self.devices: list[int] = []
        self.pods: dict[PodKey, tuple[int, ...]] = {}
        """Each with the devices that it has."""
        self.ready = self.silent = self.cordoned = False
        self._give(node)

    def resize(self, node: Node) -> bool:
        """What the node has to give; whether that may be another than before. Most changes are of other things."""
        if node.status.allocatable == self._allocatable and node.metadata.labels == self.labels:
            return False
        self._give(node)
        return True

    def _give(self, node: Node) -> None:
        self._allocatable = node.status.allocatable
        offered = amounts(self._allocatable)
        self.capacity = (offered.get(CPU, 0), offered.get(MEMORY, 0), gpus_offered(node))
        self.is_cut = is_cut(node)
        self.labels = node.metadata.labels
        whole = offered.get("nvidia.com/gpu", 0)  # those shared in time, too: GpuShare numbers its devices so
        self.devices += [WHOLE] * (whole - len(self.devices))

    def take(self, key: PodKey, ask: Ask, pod: Pod) -> None:
        """A pod comes."""
        self.cpu += ask.cpu
        self.memory += ask.memory
        devices: tuple[int, ...] = ()
        if ask.number:
            known = hold_of({}, pod.metadata.annotations).devices if DEVICES in pod.metadata.annotations else ()
            devices = known or self._free(ask)
            for each in devices:
                if each < len(self.devices):
                    self.devices[each] -= ask.milli
        self.pods[key] = devices

    def _free(self, ask: Ask) -> tuple[int, ...]:
        """Devices that it may have, where nobody says which it has: Kubernetes counts them only."""
        free = [place for place, left in enumerate(self.devices) if left >= ask.milli]
        return tuple(free[: ask.number])

    def leave(self, key: PodKey, ask: Ask) -> None:
        """A pod goes."""
        self.cpu -= ask.cpu
        self.memory -= ask.memory
        for each in self.pods.pop(key):
            if each < len(self.devices):
                self.devices[each] += ask.milli
