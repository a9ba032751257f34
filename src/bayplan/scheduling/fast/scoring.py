"""NodeResourcesFit and NodeResourcesBalancedAllocation as arithmetic, over many nodes and over one.

Both forms give the totals of the readable plugins to the last digit: whole numbers stay whole in float64 (see
`columns`), and where upstream computes in floats the operations and their order are the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bayplan.model.resources import CPU, MEMORY, PODS
from bayplan.scheduling.arguments import CPU_AND_MEMORY
from bayplan.scheduling.framework import MAX_SCORE
from bayplan.scheduling.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.scheduling.plugins.node_resources_fit import NodeResourcesFit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bayplan.scheduling.fast.columns import Facts, Floats
    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.state import NodeState

REFUSED = -1
"""In place of a score where the pod does not fit."""


class Asked:
    """What a pod asks for: of each resource, for scoring, and whether it is scored for balance at all."""

    __slots__ = ("amounts", "balanced", "cpu", "memory", "nonzero", "odd", "others", "plain", "requested")

    def __init__(
        self,
        amounts: dict[str, int],
        nonzero: tuple[int, int],
        requested: tuple[int, int],
        odd: Callable[[NodeState], int],
        *,
        plain: bool,
    ) -> None:
        self.amounts = {PODS: 1, **amounts}
        self.cpu: float = amounts.get(CPU, -math.inf)
        self.memory: float = amounts.get(MEMORY, -math.inf)
        self.others = tuple((name, amount) for name, amount in amounts.items() if name not in (CPU, MEMORY))
        self.nonzero = nonzero
        self.requested = requested
        self.balanced = 1 if any(requested) else 0
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

    def many(
        self, capacity: Floats, nonzero: Floats, requested: Floats, balance: Floats,
        pod_nonzero: NDArray[Any], pod_requested: NDArray[Any], balanced: Floats | float,
    ) -> Floats:  # fmt: skip
        """Scores of nodes that fit, for shapes that broadcast: pods by nodes. Axis 0 is CPU and memory."""
        share = nonzero + pod_nonzero
        if self._most:
            np.minimum(share, capacity, out=share)
        else:
            np.subtract(capacity, share, out=share)
            np.maximum(share, 0.0, out=share)
        share *= 100.0
        share /= capacity
        np.floor(share, out=share)
        cpu, memory = self._weights
        total: Floats = share[0] * cpu
        total += share[1] * memory if memory != 1 else share[1]
        total /= cpu + memory
        np.floor(total, out=total)
        if self._fit != 1:
            total *= self._fit
        if self._balance:
            share = requested + pod_requested
            share /= capacity
            np.minimum(share, 1.0, out=share)
            gap = share[0] - share[1]
            np.abs(gap, out=gap)
            gap *= -0.5
            gap += 1.0
            gap *= 100.0
            np.floor(gap, out=gap)
            gap -= balance
            gap += 50.0
            gap *= 0.5
            np.floor(gap, out=gap)
            gap += 50.0
            gap *= balanced
            if self._balance != 1:
                gap *= self._balance
            total += gap
        return total

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
