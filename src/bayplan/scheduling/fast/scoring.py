"""NodeResourcesFit and NodeResourcesBalancedAllocation as arithmetic, over many nodes and over one.

Both forms give the totals of the readable plugins to the last digit: whole numbers stay whole in float64 (see
`columns`), and where upstream computes in floats the operations and their order are the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from bayplan.model.resources import CPU, MEMORY
from bayplan.scheduling.arguments import CPU_AND_MEMORY
from bayplan.scheduling.fast.columns import AMOUNTS, CAPACITIES, CAPACITY, FULL, LEFT, UNEVEN, USED
from bayplan.scheduling.framework import MAX_SCORE
from bayplan.scheduling.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.scheduling.plugins.node_resources_fit import NodeResourcesFit

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayplan.scheduling.fast.columns import Columns, Facts, Flags, Floats, Points
    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.state import NodeState

REFUSED = -1
"""In place of a score where the pod does not fit."""
_ANY = -(2.0**60)
"""Asked for where nothing is: any node has that, but not one without a place."""


class Asked:
    """What a pod asks for: of each resource, for scoring, and whether it is scored for balance at all."""

    __slots__ = (
        "balanced", "change", "cpu", "memory", "most_cpu", "most_memory", "nonzero", "odd", "others", "plain",
        "requested",
    )  # fmt: skip

    def __init__(
        self,
        amounts: dict[str, int],
        nonzero: tuple[int, int],
        requested: tuple[int, int],
        odd: Callable[[NodeState], int],
        *,
        plain: bool,
    ) -> None:
        self.cpu = float(amounts.get(CPU, _ANY))
        self.memory = float(amounts.get(MEMORY, _ANY))
        self.others = tuple((name, amount) for name, amount in amounts.items() if name not in (CPU, MEMORY))
        self.nonzero = nonzero
        """As scoring counts."""
        self.requested = requested
        self.change: Floats = np.array(
            [[-100.0 * amount] for amount in nonzero] + [[float(amount)] for amount in requested]
        )
        """What the pod would do to a node's `AMOUNTS`."""
        self.most_cpu = 1.0 if CPU in amounts else FULL / 2
        """The share in use beyond which it does not fit: who asks for nothing needs no more than a place."""
        self.most_memory = 1.0 if MEMORY in amounts else math.inf
        self.balanced = any(requested)
        self.odd = odd
        """What the plugins themselves say of a node that is not like others, or of any if the pod is not `plain`."""
        self.plain = plain


class ResourceScore:
    """A profile's resource plugins."""

    def __init__(self, profile: Profile) -> None:
        self.most = MAX_SCORE * sum(abs(weight) for _, weight in profile.scorers)
        """What a node can come to, all plugins together."""
        self._fit = self._balance = 0
        self._most = False
        self._weights = (1, 1)
        for plugin, weight in profile.scorers:
            if isinstance(plugin, NodeResourcesFit):
                strategy = plugin.args.scoring_strategy
                self._fit, self._most = weight, strategy.type == "MostAllocated"
                self._weights = (strategy.resources[0].weight, strategy.resources[1].weight)
            elif isinstance(plugin, NodeResourcesBalancedAllocation):
                self._balance = weight

    @staticmethod
    def covers(profile: Profile) -> bool:
        """Whether a profile scores CPU and memory only, by one of the two simple strategies."""
        for plugin, _ in profile.scorers:
            if isinstance(plugin, NodeResourcesFit):
                strategy = plugin.args.scoring_strategy
                if strategy.type == "RequestedToCapacityRatio" or not _both(strategy.resources):
                    return False
            elif isinstance(plugin, NodeResourcesBalancedAllocation) and plugin.args.resources != CPU_AND_MEMORY:
                return False
        return True

    def many(self, columns: Columns, numbers: Floats, asked: Asked) -> tuple[Points, Flags]:
        """The scores of the nodes whose numbers these are, and on which of them the pod does not fit.

        The scores lack the `evenness` that all nodes get.
        """
        share = numbers[AMOUNTS] + asked.change
        np.maximum(share, 0.0, out=share)
        left, used = share[LEFT], share[USED]
        if self._most:
            np.subtract(numbers[CAPACITY] * 100.0, left, out=left)
        share /= numbers[CAPACITIES]
        shares = left.astype(np.int32)
        cpu, memory = self._weights
        if cpu == memory == 1:
            total = shares[0] + shares[1]
            total >>= 1
        else:
            total = (shares[0] * cpu + shares[1] * memory) // (cpu + memory)
        if self._fit != 1:
            total *= self._fit
        lacking = used[0] > asked.most_cpu
        lacking |= used[1] > asked.most_memory
        for name, amount in asked.others:
            lacking |= numbers[columns.row(name)] < amount
        if self._balance and asked.balanced:
            total += self._balances(used, numbers[UNEVEN], crowded=columns.crowded)
        return total, lacking

    def _balances(self, share: Floats, uneven: Floats, *, crowded: bool) -> Points:
        """floor((50 + 100 * z - before) / 2), z being how even it would be, 1 - gap / 2, as floor(25 * 2z + uneven).

        Halving and doubling are exact, and so is adding halves that leave the sum between 0 and 50.
        """
        if crowded:
            np.minimum(share, 1.0, out=share)
        even: Floats = share[0] - share[1]
        np.abs(even, out=even)
        np.subtract(2.0, even, out=even)
        even *= 25.0
        even += uneven
        points = even.astype(np.int32)
        if self._balance != 1:
            points *= self._balance
        return points

    def evenness(self, asked: Asked) -> int:
        """What `many` leaves out."""
        return MAX_SCORE // 2 * self._balance if asked.balanced else 0

    def one(self, asked: Asked, facts: Facts, node: NodeState) -> int:
        """The score of one node with CPU and memory, or REFUSED if the pod does not fit."""
        places, free_cpu, free_memory, cpu, memory, busy_cpu, busy_memory, used, held, before = facts
        if places < 1 or asked.cpu > free_cpu or asked.memory > free_memory:
            return REFUSED
        for name, amount in asked.others:
            if amount > node.allocatable.get(name, 0) - node.requested.get(name, 0):
                return REFUSED
        busy_cpu += asked.nonzero[0]
        busy_memory += asked.nonzero[1]
        if self._most:
            left_cpu, left_memory = min(busy_cpu, cpu), min(busy_memory, memory)
        else:
            left_cpu = cpu - busy_cpu if busy_cpu < cpu else 0
            left_memory = memory - busy_memory if busy_memory < memory else 0
        of_cpu, of_memory = self._weights
        points = left_cpu * 100 // cpu * of_cpu + left_memory * 100 // memory * of_memory
        total = points // (of_cpu + of_memory) * self._fit
        if asked.balanced and self._balance:
            cpu_share, memory_share = (used + asked.requested[0]) / cpu, (held + asked.requested[1]) / memory
            gap = (1.0 if cpu_share > 1.0 else cpu_share) - (1.0 if memory_share > 1.0 else memory_share)
            total += (50 + (50 + int((1.0 - abs(gap / 2)) * 100.0) - before) // 2) * self._balance
        return total


def _both(resources: tuple[object, ...]) -> bool:
    return [getattr(each, "name", "") for each in resources] == [CPU, MEMORY]
