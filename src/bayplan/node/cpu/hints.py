"""Which NUMA nodes would do for a request of CPUs.

A hint is preferred where it names no more nodes than the request would need on an empty machine. What a container holds
already is hinted again, so that a restart decides as before.
"""

from __future__ import annotations

import operator
from itertools import accumulate
from typing import TYPE_CHECKING

from bayplan.model.resources import CPU
from bayplan.node.sets import mask_of
from bayplan.node.topology.hint import Hint
from bayplan.node.topology.masks import joined, subsets

if TYPE_CHECKING:
    from bayplan.node.cpu.policy import StaticPolicy
    from bayplan.node.cpu.state import CpuState
    from bayplan.node.machine import Topology
    from bayplan.node.needs import ContainerNeed, PodNeed
    from bayplan.node.sets import CpuSet, NodeSet
    from bayplan.node.topology.hint import Hints

NOTHING_WILL_DO: Hints = {CPU: ()}


def container_hints(
    policy: StaticPolicy, state: CpuState, reusable: CpuSet, pod: PodNeed, container: ContainerNeed
) -> Hints:
    """For one container; None: no opinion."""
    if not container.cpus or pod.pod_level:
        return None
    held = state.held(pod.uid, container.name)
    if held is None:
        return _hints(policy, policy.assignable(state), reusable, container.cpus)
    return _hints(policy, held, 0, container.cpus) if held.bit_count() == container.cpus else NOTHING_WILL_DO


def pod_hints(policy: StaticPolicy, state: CpuState, reusable: CpuSet, pod: PodNeed) -> Hints:
    """For the whole pod; None: no opinion."""
    count = pod.peak(each.cpus for each in pod.containers)
    if not count or pod.pod_level:
        return None
    union = 0
    for container in pod.containers:
        held = state.held(pod.uid, container.name)
        if held is not None and held.bit_count() != container.cpus:
            return NOTHING_WILL_DO
        union |= held or 0
    if union.bit_count() == count:
        return _hints(policy, union, 0, count)
    return _hints(policy, policy.assignable(state), reusable | union, count)


def _hints(policy: StaticPolicy, available: CpuSet, reusable: CpuSet, count: int) -> Hints:
    # What a removed pod may reuse is free as well; upstream counts it twice.
    unused = available if policy.as_upstream else available & ~reusable
    return {CPU: generate(policy.topology, unused, reusable, count, by_socket=policy.options.by_socket)}


def generate(
    topology: Topology, available: CpuSet, reusable: CpuSet, count: int, *, by_socket: bool = False
) -> list[Hint]:
    """The sets of NUMA nodes that hold all of the reusable CPUs, and with the available ones enough."""
    every = mask_of(topology.nodes)
    needed = topology.nodes_of(reusable)
    enough = count - reusable.bit_count()
    free = joined([(members & available).bit_count() for members in topology.nodes.values()])
    fewest = _fewest(topology, count)
    within_sockets = _within_sockets(topology, fewest) if by_socket else frozenset()
    return [
        Hint(mask, mask.bit_count() == fewest or mask in within_sockets)
        for mask, found in zip(subsets(every), free, strict=True)
        if found >= enough and mask & needed == needed
    ]


def _fewest(topology: Topology, count: int) -> int:
    """How many NUMA nodes the request would need on an empty machine: all, where they do not suffice."""
    sizes = sorted((members.bit_count() for members in topology.nodes.values()), reverse=True)
    return next((number for number, total in enumerate(accumulate(sizes), start=1) if total >= count), len(sizes))


def _within_sockets(topology: Topology, fewest: int) -> frozenset[NodeSet]:
    """The sets of NUMA nodes that touch as many sockets as that many nodes take up."""
    per_socket = len(topology.nodes) // len(topology.sockets)
    if not per_socket:
        return frozenset()
    sockets = -(-fewest // per_socket)
    touched = joined(
        [
            mask_of(socket for socket, cpus in topology.sockets.items() if cpus & members)
            for members in topology.nodes.values()
        ],
        operator.or_,
    )
    every = subsets(mask_of(topology.nodes))
    return frozenset(mask for mask, found in zip(every, touched, strict=True) if found.bit_count() == sockets)
