"""Nodes as columns for those who place GPU pods: what each device has left, and the CPU beside it.

A row stands for a node and has as many places as the node with the most devices; a place without a device has nothing
left, which no pod that asks for GPUs mistakes for room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.model.resources import CPU
from bayplan.scheduling.gpus.asking import RESOURCE
from bayplan.scheduling.gpus.devices import left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bayplan.scheduling.gpus.asking import Ask
    from bayplan.scheduling.state import NodeState

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]
    Positions = NDArray[np.intp]

MODEL = "nvidia.com/gpu.product"
_TAGS = 62
"""Whole GPUs of a pod beyond which sizes are not told apart."""


class GpuColumns:
    """Kept up to date by `touch` and `sync`."""

    def __init__(self, nodes: Sequence[NodeState]) -> None:
        self.nodes = nodes
        numbers = [node.allocatable.get(RESOURCE, 0) for node in nodes]
        self.count: Ints = np.array(numbers, dtype=np.int64)
        """Devices of each node."""
        self.left: Ints = np.zeros((len(nodes), max(numbers, default=0) or 1), dtype=np.int64)
        self.cpu: Ints = np.zeros(len(nodes), dtype=np.int64)
        """Thousandths of a CPU that are left."""
        self.tags: Ints = np.zeros(len(nodes), dtype=np.int64)
        """A bit for each size of GPU pods that are there: the first for shares, then by the number of devices."""
        models: dict[str, int] = {}
        self.model: Positions = np.array(
            [models.setdefault(node.labels.get(MODEL, ""), len(models)) for node in nodes], dtype=np.intp
        )
        self.models = tuple(models)
        """What the numbers in `model` stand for."""
        self._touched = set(range(len(nodes)))
        self._sorts: dict[tuple[object, ...], int] = {}
        self._sort: Positions = np.zeros(len(nodes), dtype=np.intp)

    def touch(self, at: int) -> None:
        """A pod came to, or left, a node."""
        self._touched.add(at)

    def sync(self) -> None:
        """Read the nodes anew that were touched."""
        for at in self._touched:
            node = self.nodes[at]
            devices = left(node)
            self.left[at, : len(devices)] = devices
            self.cpu[at] = cpu = node.allocatable.get(CPU, 0) - node.requested.get(CPU, 0)
            self.tags[at] = tags = _tags(node)
            sort = (*devices, cpu, tags, self.model.item(at))
            self._sort[at] = self._sorts.setdefault(sort, len(self._sorts))
        self._touched.clear()

    def alike(self, at: Positions) -> tuple[Positions, Positions]:
        """Of these nodes one of each sort, and for each which sort it is: a policy tells no more than this apart."""
        _, heads, members = np.unique(self._sort[at], return_index=True, return_inverse=True)
        return at[heads], members


def tag(ask: Ask) -> int:
    """The bit of a pod's size."""
    return 1 if ask.is_share else 1 << min(ask.number, _TAGS)


def _tags(node: NodeState) -> int:
    found = 0
    for pod in node.pods.values():
        ask = pod.gpus.ask
        if ask.number:
            found |= tag(ask)
    return found
