"""The memory manager: memory and huge pages of Guaranteed pods, on as few NUMA nodes as will do.

The state is a value; each call replaces it by another. Policy None keeps out of everything.
Source of truth: kubelet 1.36, pkg/kubelet/cm/memorymanager.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Self

import msgspec

from bayplan.model.qos import QosClass
from bayplan.node.errors import AllocationError, PolicyError
from bayplan.node.machine import NumaNode
from bayplan.node.memory.hints import best, group_hints, own_hints, serves_group, suffices, violates
from bayplan.node.memory.restart import checked
from bayplan.node.memory.reuse import left_by_inits, less_reused, upstream_count
from bayplan.node.memory.state import Block, MemoryState, Reservations, Reusable, fresh_nodes, release, reserve
from bayplan.node.needs import ContainerNeed, PodNeed, Role
from bayplan.node.sets import NodeSet
from bayplan.node.topology.hint import Hint, Hints

_DEFAULT_ERRORS = (
    "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available",
    "[memorymanager] failed to find the default preferred hint",
)
_EXTENDED_ERRORS = (
    "[memorymanager] failed to find NUMA nodes to extend the current topology hint",
    "[memorymanager] failed to find the extended preferred hint",
)
"""Where no group is left, and where the best one is not preferred though the affinity is."""


class MemoryManager:
    """A Provider. Raises PolicyError for a policy or reservations that cannot be, StateError for a state that is not
    of this machine."""

    def __init__(
        self,
        nodes: Sequence[NumaNode],
        policy: str,
        reserved: Reservations,
        remembered: MemoryState | None = None,
        *,
        as_upstream: bool = False,
    ) -> None:
        if policy == "BestEffort":
            raise PolicyError('policy "BestEffort" is not available for platform "linux"', hint="use None or Static")
        if policy not in ("None", "Static"):
            raise PolicyError(f'unknown policy: "{policy}"', hint="known: None, Static")
        self.policy = policy
        self._as_upstream = as_upstream
        self.state = MemoryState()
        if policy == "Static":
            self.state = checked(remembered or MemoryState(), fresh_nodes(nodes, reserved))

    def hints(self, pod: PodNeed, container: ContainerNeed) -> Hints:
        """See Provider."""
        if not self._manages(pod):
            return None
        held = self.state.held(pod.uid, container.name)
        if held is not None:
            return own_hints(held, container.memory)
        return _for_each(container.memory, group_hints(self.state, container.memory, self._again(pod, container)))

    def pod_hints(self, pod: PodNeed) -> Hints:
        """See Provider. The first container that holds anything decides, against what the whole pod asks for."""
        asked = _asked_by_pod(pod)
        if not self._manages(pod) or not asked:
            return None
        holding = (self.state.held(pod.uid, each.name) for each in pod.containers)
        held = next((blocks for blocks in holding if blocks is not None), None)
        if held is not None:
            return own_hints(held, asked)
        return _for_each(asked, group_hints(self.state, asked, self._again(pod, pod.containers[0])))

    def allocate(self, pod: PodNeed, container: ContainerNeed, affinity: Hint) -> None:
        """See Provider."""
        if not self._manages(pod):
            return
        before, held = self.state, self.state.held(pod.uid, container.name)
        blocks = held if held is not None else self._take(pod, container, affinity)
        if self._as_upstream:
            counted = upstream_count(before, pod, container, blocks)
            self.state = msgspec.structs.replace(self.state, reusable=counted)

    def remove(self, uid: str, container: str) -> None:
        """See Provider."""
        nodes = dict(self.state.nodes)
        for block in self.state.held(uid, container) or ():
            release(nodes, block)
        left = {name: blocks for name, blocks in self.state.blocks.get(uid, {}).items() if name != container}
        others = {pod: held for pod, held in self.state.blocks.items() if pod != uid}
        blocks = {**others, uid: left} if left else others
        self.state = msgspec.structs.replace(self.state, nodes=nodes, blocks=blocks)

    def fork(self) -> Self:
        """See Provider."""
        return copy.copy(self)

    def _manages(self, pod: PodNeed) -> bool:
        return self.policy == "Static" and pod.qos is QosClass.GUARANTEED and not pod.pod_level

    def _again(self, pod: PodNeed, container: ContainerNeed) -> Reusable:
        """What the container can use of its pod's init containers."""
        return self.state.reusable.get(pod.uid, {}) if self._as_upstream else left_by_inits(self.state, pod, container)

    def _take(self, pod: PodNeed, container: ContainerNeed, affinity: Hint) -> tuple[Block, ...]:
        """Give the container its blocks. Raises AllocationError."""
        again = self._again(pod, container)
        group = self._group(container.memory, again, affinity)
        blocks = tuple(Block(resource, group, size) for resource, size in sorted(container.memory.items()))
        nodes = dict(self.state.nodes)
        for block in blocks:
            charge = block.size - again.get(group, {}).get(block.resource, 0)
            reserve(nodes, block._replace(size=max(0, charge)))
        held = {**less_reused(self.state, pod, container, blocks), container.name: blocks}
        of_pod = {each.name: held.pop(each.name) for each in pod.containers if each.name in held}
        of_all = {**self.state.blocks, pod.uid: {**of_pod, **held}}
        self.state = msgspec.structs.replace(self.state, nodes=nodes, blocks=of_all)
        return blocks

    def _group(self, asked: Mapping[str, int], again: Reusable, affinity: Hint) -> NodeSet:
        """The NUMA nodes to take the memory from: those of the affinity, or more where they are too few."""
        group, preferred = affinity
        if group is None:
            group, preferred = self._better(asked, again, Hint(0, preferred), _DEFAULT_ERRORS)
        if not suffices(self.state, group, asked) or self._splits(group):
            group, preferred = self._better(asked, again, Hint(group, preferred), _EXTENDED_ERRORS)
        if violates(self.state, group):
            raise AllocationError("[memorymanager] preferred hint violates NUMA node allocation")
        return group

    def _splits(self, group: NodeSet) -> bool:
        """Whether it is one node of a group of several. Upstream lets that pass, and loses count of the group."""
        return group.bit_count() == 1 and not self._as_upstream and serves_group(self.state, group)

    def _better(
        self, asked: Mapping[str, int], again: Reusable, affinity: Hint, errors: tuple[str, str]
    ) -> tuple[NodeSet, bool]:
        """The best group that contains the affinity's nodes; it must be preferred where that was promised."""
        none_left, none_preferred = errors
        within = affinity.nodes or 0
        hints = group_hints(self.state, asked, again)
        found = best(hint for hint in hints if hint.nodes is not None and not within & ~hint.nodes)
        if found is None or found.nodes is None:
            raise AllocationError(none_left)
        if affinity.preferred and not found.preferred:
            raise AllocationError(none_preferred)
        return found.nodes, found.preferred


def _for_each(asked: Mapping[str, int], hints: Sequence[Hint]) -> Hints:
    """The same hints for each kind of memory. Without any: no opinion, as upstream; allocating fails then."""
    return dict.fromkeys(asked, hints) if hints else {}


def _asked_by_pod(pod: PodNeed) -> dict[str, int]:
    """The most that the pod needs at once of what its app containers ask for."""
    names = sorted({name for each in pod.containers if each.role is Role.APP for name in each.memory})
    return {name: pod.peak(each.memory.get(name, 0) for each in pod.containers) for name in names}
