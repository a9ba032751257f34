"""NodeResourcesFit and NodeResourcesBalancedAllocation as arithmetic, over many nodes and over one.

Both forms give the totals of the readable plugins to the last digit: whole numbers stay whole in float64 (see
`columns`), and where upstream computes in floats the operations and their order are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.model.resources import CPU, MEMORY, PODS
from bayplan.scheduling.arguments import CPU_AND_MEMORY
from bayplan.scheduling.fast.columns import balance
from bayplan.scheduling.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.scheduling.plugins.node_resources_fit import NodeResourcesFit

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayplan.scheduling.fast.columns import Floats
    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.state import NodeState

REFUSED = -500_000_000
"""Stands for "not feasible" in a column of totals: two of them still fit in 32 bits."""


class Asked:
    """What a pod asks for: of each resource, for scoring, and whether it is scored for balance at all."""

    __slots__ = ("amounts", "balanced", "nonzero", "odd", "plain", "requested")

    def __init__(
        self,
        amounts: tuple[tuple[str, int], ...],
        nonzero: tuple[int, int],
        requested: tuple[int, int],
        odd: Callable[[NodeState], int],
        *,
        plain: bool,
    ) -> None:
        self.amounts = amounts
        self.odd = odd
        """What the plugins themselves say of a node that is not like others, or of any if the pod is not `plain`."""
        self.plain = plain
        self.nonzero = nonzero
        self.requested = requested
        self.balanced = 1 if any(requested) else 0


class ResourceScore:
    """A profile's resource plugins."""

    def __init__(self, profile: Profile) -> None:
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
        pod_nonzero: Floats, pod_requested: Floats, balanced: Floats,
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

    def one(self, asked: Asked, node: NodeState) -> int:
        """The score of one node with CPU and memory, or REFUSED if the pod does not fit."""
        capacity, requested = node.allocatable, node.requested
        if len(node.pods) >= capacity.get(PODS, 0):
            return REFUSED
        for name, amount in asked.amounts:
            if amount > capacity.get(name, 0) - requested.get(name, 0):
                return REFUSED
        cpu_capacity, memory_capacity = capacity[CPU], capacity[MEMORY]
        cpu, memory = node.nonzero_cpu + asked.nonzero[0], node.nonzero_memory + asked.nonzero[1]
        if self._most:
            cpu, memory = min(cpu, cpu_capacity), min(memory, memory_capacity)
        else:
            cpu, memory = cpu_capacity - cpu, memory_capacity - memory
            cpu, memory = (0 if cpu < 0 else cpu), (0 if memory < 0 else memory)
        weights = self._weights
        total = (
            (cpu * 100 // cpu_capacity * weights[0] + memory * 100 // memory_capacity * weights[1])
            // (weights[0] + weights[1])
            * self._fit
        )
        if self._balance and asked.balanced:
            cpu, memory = requested.get(CPU, 0), requested.get(MEMORY, 0)
            before = balance(cpu, memory, cpu_capacity, memory_capacity)
            after = balance(cpu + asked.requested[0], memory + asked.requested[1], cpu_capacity, memory_capacity)
            total += (50 + (50 + after - before) // 2) * self._balance
        return total


def _both(resources: tuple[object, ...]) -> bool:
    return [getattr(each, "name", "") for each in resources] == [CPU, MEMORY]
