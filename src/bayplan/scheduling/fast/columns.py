"""A cluster's nodes as columns of numbers, in search order, and nodes grouped by what a plugin reads of them.

Amounts are float64: exact for whole numbers below 2**53, and a quotient of two such numbers below `LARGEST` rounds down
to what integer division gives. A node beyond that, or one without CPU or memory, is `odd`: its columns are made up, and
it is scored by the plugins themselves.

Columns are brought up to date when they are read (`sync`), from the nodes that were touched in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayplan.model.resources import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from numpy.typing import NDArray

    from bayplan.scheduling.state import NodeState

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Points = NDArray[np.int32]
    Totals = NDArray[np.signedinteger[Any]]
    Flags = NDArray[np.bool_]
    Positions = NDArray[np.intp]

LARGEST = 2**45

# The rows of `Columns.numbers`; those of CPU and memory stand together.
LEFT = slice(0, 2)
"""A hundred times what is left of the capacity, counted as scoring counts."""
USED = slice(2, 4)
"""What is requested; of CPU `FULL` times the capacity more where there is no place for another pod."""
AMOUNTS = slice(0, 4)
CAPACITY = slice(4, 6)
CAPACITIES = slice(4, 8)
"""The same twice, as long as `AMOUNTS`."""
UNEVEN = 8
"""25 less half of how evenly CPU and memory are taken already, 0 to 100."""
_ROWS = 9
FULL = 2048


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
    """The numbers of all nodes, one row a number. Below the rows named above: what is left of further resources."""

    def __init__(self, nodes: list[NodeState]) -> None:
        self.nodes = nodes
        self.index = {node.name: at for at, node in enumerate(nodes)}
        size = len(nodes)
        self.numbers: Floats = np.zeros((_ROWS, size))
        self.numbers[CAPACITIES] = LARGEST
        self.odd: dict[int, NodeState] = {}
        self.crowded = False
        """Whether some node was seen to hold more than it has."""
        self._resources: dict[str, int] = {}
        self._touched: set[int] = set()
        self._facts: list[Facts | None] = [None] * size
        self._groups: dict[Hashable, Group] = {}
        for at, node in enumerate(nodes):
            capacity = [node.allocatable.get(name, 0) for name in (CPU, MEMORY)]
            if all(0 < amount < LARGEST for amount in capacity):
                self.numbers[CAPACITIES, at] = capacity * 2
            else:
                self.odd[at] = node
        self._touched.update(range(size))

    def row(self, resource: str) -> int:
        """The row with what is left of a further resource; there is one from now on."""
        known = self._resources.get(resource)
        if known is None:
            known = self._resources[resource] = len(self.numbers)
            column = [[_free(node, resource) for node in self.nodes]]
            self.numbers = np.concatenate((self.numbers, np.array(column, dtype=np.float64)))
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
        numbers = self.numbers
        for at in self._touched:
            if at not in self.odd:
                places, free_cpu, free_memory, cpu, memory, busy_cpu, busy_memory, used, held, even = self.facts(at)
                numbers[0, at], numbers[1, at] = (cpu - busy_cpu) * 100, (memory - busy_memory) * 100
                numbers[2, at], numbers[3, at] = used if places > 0 else used + FULL * cpu, held
                numbers[UNEVEN, at] = 25 - even / 2
                if free_cpu < 0 or free_memory < 0:
                    self.crowded = True
            for name, row in self._resources.items():
                numbers[row, at] = _free(self.nodes[at], name)
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
    return node.allocatable.get(resource, 0) - node.requested.get(resource, 0)
