"""What a pod's finished init containers leave to its later containers, group by group.

The blocks themselves say it: a container that uses an init container's memory again takes it off that one's block, so
what is left in the blocks of earlier init containers is what can still be used. Upstream keeps a count beside the
blocks, which goes astray when a pod comes again after some of its containers were removed: bytes are then charged
twice, or not at all. The count is kept here to compare answers with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from bayplan.node.memory.state import Block, MemoryState, Reusable
from bayplan.node.needs import ContainerNeed, PodNeed, Role


def left_by_inits(state: MemoryState, pod: PodNeed, container: ContainerNeed) -> Reusable:
    """What is left in the blocks of the init containers before this one."""
    found: dict[int, dict[str, int]] = {}
    for name in _inits_before(pod, container):
        for resource, group, size in state.held(pod.uid, name) or ():
            amounts = found.setdefault(group, {})
            amounts[resource] = amounts.get(resource, 0) + size
    return found


def less_reused(
    state: MemoryState, pod: PodNeed, container: ContainerNeed, blocks: Sequence[Block]
) -> dict[str, tuple[Block, ...]]:
    """The pod's blocks, less what the new ones take over from earlier init containers: their sum is the real use."""
    found = dict(state.blocks.get(pod.uid, {}))
    inits = [name for name in _inits_before(pod, container) if name in found]
    for block in blocks:
        left = block.size
        for name in inits:
            kept = []
            for own in found[name]:
                taken = min(left, own.size) if own[:2] == block[:2] else 0
                left -= taken
                kept.append(own._replace(size=own.size - taken))
            found[name] = tuple(kept)
    return found


def _inits_before(pod: PodNeed, container: ContainerNeed) -> Iterator[str]:
    for each in itertools.takewhile(lambda each: each.name != container.name, pod.containers):
        if each.role is Role.INIT:
            yield each.name


def upstream_count(
    state: MemoryState, pod: PodNeed, container: ContainerNeed, blocks: Sequence[Block]
) -> dict[str, Reusable]:
    """Upstream's count once this container has its blocks. Other pods are past their admission."""
    of_pod = {group: dict(amounts) for group, amounts in state.reusable.get(pod.uid, {}).items()}
    for resource, group, size in blocks:
        left = of_pod.get(group, {}).get(resource, 0)
        if container.role is Role.INIT:
            of_pod.setdefault(group, {}).update({resource: size} if size > left else {})
        elif left:
            of_pod[group][resource] = max(0, left - size)
    return {pod.uid: of_pod} if of_pod else {}
