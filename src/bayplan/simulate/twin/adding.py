"""The smallest set of nodes to add so that so many of a pod fit.

Fewest nodes; of equally many the smallest together, by cores, then memory, then all else. What one empty node of a
shape takes is counted on a copy. Where pods are independent of each other across nodes, the set follows from these
numbers exactly (as change is given in the fewest coins); else nodes are added one by one, each time the one that makes
room for most, and the set is an upper bound. Either way the whole is counted again on a copy that has the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.framework import Profile
from bayplan.scheduling.state import ClusterState
from bayplan.scheduling.whatif.cluster_changes import AddNode
from bayplan.simulate.twin.capacity import HOSTNAME, Fit, how_many, independent, place

Size = tuple[int, ...]
Cost = tuple[int, Size]


class Addition(msgspec.Struct, frozen=True):
    """Which nodes to add for so many pods."""

    wanted: int
    now: int
    """So many fit as it is."""
    nodes: Mapping[str, int]
    """How many like which node."""
    shapes: Mapping[str, AddNode]
    takes: Mapping[str, int]
    """How many of the pod one empty node of each shape takes."""
    exact: bool
    """Whether no smaller set would do; else it is an upper bound."""
    then: Fit
    """What fits once they are there."""

    @property
    def enough(self) -> bool:
        """Whether all that are wanted fit then."""
        return self.then.number >= self.wanted

    def made(self) -> list[Node]:
        """The nodes themselves."""
        return [numbered(self.shapes[name], number) for name, count in self.nodes.items() for number in range(count)]


def smallest_addition(
    state: ClusterState, profile: Profile, pod: Pod, wanted: int, shapes: Sequence[AddNode]
) -> Addition:
    """The nodes to add. The state stays as it is."""
    desk = FastScheduler(profile, state=state.copy())
    now = len(place(desk, pod, wanted)[0])
    takes = (
        {shape.like: _gain(desk.state, profile, pod, shape, now, wanted) for shape in shapes} if now < wanted else {}
    )
    by_name = {shape.like: shape for shape in shapes}
    exact = independent(pod)
    if now >= wanted or not any(takes.values()):
        chosen: dict[str, int] = {}
    elif exact:
        chosen = _fewest(wanted - now, [(takes[each.like], each) for each in shapes if takes[each.like]])
    else:
        chosen = _grown(desk, profile, pod, now, wanted, shapes)
    found = Addition(wanted, now, chosen, by_name, takes, exact, Fit(now, {}, "", exact, True))
    more = state.copy()
    for node in found.made():
        more.put_node(node)
    return replace(found, then=how_many(more, profile, pod, wanted))


def _gain(state: ClusterState, profile: Profile, pod: Pod, shape: AddNode, number: int, wanted: int) -> int:
    """How many more fit with one more node."""
    desk = FastScheduler(profile, state=state.copy())
    desk.put_node(numbered(shape, number))
    return len(place(desk, pod, wanted - number, number)[0])


def _fewest(wanted: int, shapes: Sequence[tuple[int, AddNode]]) -> dict[str, int]:
    """The cheapest multiset of shapes that take so many together."""
    best: list[tuple[Cost, int]] = [((0, (0, 0, 0)), -1)]
    for pods in range(1, wanted + 1):
        options = []
        for index, (takes, shape) in enumerate(shapes):
            nodes, size = best[max(0, pods - takes)][0]
            together = tuple(a + b for a, b in zip(size, shape.size, strict=True))
            options.append(((nodes + 1, together), index))
        best.append(min(options))
    chosen: dict[str, int] = {}
    while wanted > 0:
        takes, shape = shapes[best[wanted][1]]
        chosen[shape.like] = chosen.get(shape.like, 0) + 1
        wanted -= takes
    return chosen


def _grown(
    desk: FastScheduler, profile: Profile, pod: Pod, now: int, wanted: int, shapes: Sequence[AddNode]
) -> dict[str, int]:
    """Node by node, each the one that makes room for most; the first of equals is the smallest."""
    chosen: dict[str, int] = {}
    while now < wanted:
        gains = [_gain(desk.state, profile, pod, shape, now, wanted) for shape in shapes]
        if not max(gains):
            break
        shape = shapes[gains.index(max(gains))]
        desk.put_node(numbered(shape, chosen.get(shape.like, 0)))
        chosen[shape.like] = chosen.get(shape.like, 0) + 1
        now += len(place(desk, pod, wanted - now, now)[0])
    return chosen


def numbered(shape: AddNode, number: int) -> Node:
    """The node of that number of a shape."""
    name = f"{shape.node.metadata.name}-{number + 1}"
    labels = {key: name if key == HOSTNAME else value for key, value in shape.node.metadata.labels.items()}
    return replace(shape.node, metadata=replace(shape.node.metadata, name=name, labels=labels))
