"""A cluster's nodes as columns of numbers, in search order, and nodes grouped by what a plugin reads of them.

Amounts are float64: exact for whole numbers below 2**53, and a quotient of two such numbers below `LARGEST` rounds down
to what integer division gives. A node beyond that, or one without CPU or memory, is `odd`: its columns are made up, and
it is scored by the plugins themselves.

Columns are brought up to date when they are read (`sync`), from the nodes that were touched in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayplan.model.resources import CPU, MEMORY, PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from numpy.typing import NDArray

    from bayplan.scheduling.state import NodeState

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Totals = NDArray[np.int32]
    Flags = NDArray[np.bool_]
    Positions = NDArray[np.intp]

LARGEST = 2**45
SCORED = (CPU, MEMORY)


class Facts(NamedTuple):
    """The numbers of one node with CPU and memory, for scoring it alone."""

    places: int
    free_cpu: int
    free_memory: int
    cpu: int
    memory: int
    nonzero_cpu: int
    nonzero_memory: int
    requested_cpu: int
    requested_memory: int
    balance: int


class Group:
    """Nodes told apart by one thing: `codes` says which of the groups, `heads` has a node of each."""

    __slots__ = ("codes", "heads", "of_node", "values")

    def __init__(self, values: Iterable[Hashable], nodes: list[NodeState]) -> None:
        known: dict[Hashable, int] = {}
        self.of_node = [known.setdefault(value, len(known)) for value in values]
        """The same as `codes`, for reading one at a time."""
        self.codes: Positions = np.array(self.of_node, dtype=np.intp)
        self.values = list(known)
        first: dict[int, NodeState] = {}
        for code, node in zip(self.of_node, nodes, strict=True):
            first.setdefault(code, node)
        self.heads = [first[code] for code in range(len(known))]


class Columns:
    """The numbers of all nodes."""

    def __init__(self, nodes: list[NodeState]) -> None:
        self.nodes = nodes
        self.index = {node.name: at for at, node in enumerate(nodes)}
        size = len(nodes)
        self.capacity: Floats = np.ones((2, size))
        self.nonzero: Floats = np.zeros((2, size))
        self.requested: Floats = np.zeros((2, size))
        self.balance: Floats = np.zeros(size)
        """How evenly CPU and memory are taken already, 0 to 100."""
        self.resources: dict[str, int] = {}
        self.free: Floats = np.zeros((0, size))
        """What is left of each resource, a row each; `resources` tells which."""
        self.odd: dict[int, NodeState] = {}
        self._touched: set[int] = set()
        self._facts: list[Facts | None] = [None] * size
        self._groups: dict[Hashable, Group] = {}
        for at, node in enumerate(nodes):
            capacity = [node.allocatable.get(name, 0) for name in SCORED]
            if all(0 < amount < LARGEST for amount in capacity):
                self.capacity[:, at] = capacity
            else:
                self.odd[at] = node
        for name in (PODS, *SCORED):
            self.row(name)
        self._touched.update(range(size))

    def row(self, resource: str) -> int:
        """The row of `free` for a resource; there is one from now on."""
        known = self.resources.get(resource)
        if known is None:
            known = self.resources[resource] = len(self.resources)
            column = [[_free(node, resource) for node in self.nodes]]
            self.free = np.concatenate((self.free, np.array(column, dtype=np.float64)))
        return known

    def touch(self, at: int) -> None:
        """A pod came to, or left, a node."""
        self._touched.add(at)
        self._facts[at] = None

    def facts(self, at: int) -> Facts:
        """The numbers of one node, which is not odd."""
        found = self._facts[at]
        if found is None:
            node = self.nodes[at]
            there, taken = node.allocatable, node.requested
            cpu, memory, used, held = there[CPU], there[MEMORY], taken.get(CPU, 0), taken.get(MEMORY, 0)
            found = self._facts[at] = Facts(
                node.free_places, cpu - used, memory - held, cpu, memory, node.nonzero_cpu, node.nonzero_memory, used,
                held, balance(used, held, cpu, memory),
            )  # fmt: skip
        return found

    def sync(self) -> None:
        """Read the touched nodes anew."""
        for at in self._touched:
            node = self.nodes[at]
            if at not in self.odd:
                facts = self.facts(at)
                self.nonzero[0, at], self.nonzero[1, at] = facts.nonzero_cpu, facts.nonzero_memory
                self.requested[0, at], self.requested[1, at] = facts.requested_cpu, facts.requested_memory
                self.balance[at] = facts.balance
            for name, row in self.resources.items():
                self.free[row, at] = _free(node, name)
        self._touched.clear()

    def group(self, key: Hashable, read: Callable[[NodeState], Hashable]) -> Group:
        """The nodes grouped by what `read` says of them; `key` stands for that reading."""
        known = self._groups.get(key)
        if known is None:
            known = self._groups[key] = Group(map(read, self.nodes), self.nodes)
        return known

    def topology(self, key: str) -> Group:
        """The nodes grouped by their value of a label; those without it are in the group None."""
        return self.group(("label", key), lambda node: node.labels.get(key))


def balance(cpu: float, memory: float, cpu_capacity: float, memory_capacity: float) -> int:
    """How evenly the two are taken: 100 is the same share of both, 50 all of one and none of the other."""
    gap = min(1.0, cpu / cpu_capacity) - min(1.0, memory / memory_capacity)
    return int((1.0 - abs(gap / 2)) * 100.0)


def _free(node: NodeState, resource: str) -> int:
    if resource == PODS:
        return node.free_places
    return node.allocatable.get(resource, 0) - node.requested.get(resource, 0)
