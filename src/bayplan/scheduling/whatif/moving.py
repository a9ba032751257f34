"""Another pod goes elsewhere: who might, where to, and whether that helps.

A pod that leaves a node frees its room there. A pod that goes anywhere may also change what the pod's rules about other
pods say of other nodes; such moves are tried only where those rules are what is in the way. DaemonSets' pods, static
pods and pods that are on their way out do not move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from bayplan.scheduling.filtering import prepare
from bayplan.scheduling.plugins.node_ports import ports_clash
from bayplan.scheduling.pods import PodInfo, PodKey
from bayplan.scheduling.whatif.changes import Cost, cost
from bayplan.scheduling.whatif.cluster_changes import MovePod
from bayplan.scheduling.whatif.pod_changes import DropHostPort

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bayplan.scheduling.filtering import Filters
    from bayplan.scheduling.state import ClusterState, NodeState
    from bayplan.scheduling.whatif.bench import Accept, Bench, Site
    from bayplan.scheduling.whatif.needs import Changes

_MIRROR = "kubernetes.io/config.mirror"
_PLACE = "pods"
_MILLION = 1_000_000
_COPYING = 8
"""What a check costs, in nodes asked, that is made on a copy of the filters."""


class Leaving(NamedTuple):
    """A pod that leaves a node, and what else must change then. Sorted by what it costs."""

    cost: Cost
    order: tuple[int, int]
    site: Site
    pod: PodInfo
    changes: Changes


def is_movable(pod: PodInfo) -> bool:
    """Whether it can be somewhere else."""
    meta = pod.pod.metadata
    owner = meta.controller
    daemon = owner is not None and owner.kind == "DaemonSet"
    return not (daemon or pod.terminating or _MIRROR in meta.annotations)


def move(pod: PodInfo, origin: NodeState, to: str) -> MovePod:
    """The change."""
    there = origin.allocatable
    share = max((amount * _MILLION // (there.get(name) or 1) for name, amount in pod.requests.items()), default=0)
    return MovePod(*pod.key, pod.priority, share, origin.name, to)


class Rooms:
    """Where pods could go. It works on a copy of the state, from which the pod in question is taken and put back."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._state: ClusterState | None = None
        self._by_size: dict[tuple[tuple[str, int], ...], list[str]] = {}
        self._known: dict[tuple[PodKey, bool], list[str]] = {}

    def enough(self, pod: PodInfo) -> list[str]:
        """The nodes that have what the pod asks for; its own may be among them."""
        size = tuple(pod.requests.items())
        if size not in self._by_size:
            self._bench.budget.spend(len(self._bench.state.nodes) // 8)
            self._by_size[size] = [
                node.name
                for node in self._bench.state.nodes
                if node.free_places > 0
                and all(amount <= node.allocatable.get(name, 0) - node.requested.get(name, 0) for name, amount in size)
            ]
        return self._by_size[size]

    def of(self, pod: PodInfo, origin: str, *, every: bool) -> list[str]:
        """The nodes that would take it: all of them, or the first."""
        key = (pod.key, every)
        if key not in self._known:
            self._known[key] = self._find(pod, origin, every)
        return self._known[key]

    def _find(self, pod: PodInfo, origin: str, every: bool) -> list[str]:
        if self._state is None:
            self._state = self._bench.state.copy()
        state, bench = self._state, self._bench
        unbound = PodInfo(replace(pod.pod, spec=replace(pod.pod.spec, node_name="")))
        found: list[str] = []
        state.drop_pod(pod.key)
        filters = prepare(bench.profile, unbound, state)
        for name in self.enough(pod) if filters.whole is None else ():
            node = state.node(name)
            assert node is not None  # it is one of the state's
            named = name != origin and (filters.only is None or name in filters.only)
            bench.budget.spend(1)
            if named and filters.check_among_nominated(node, unbound, state) is None:
                found.append(name)
                if not every:
                    break
        state.put_pod(pod, origin)
        return found


def find(bench: Bench, size: int, accept: Accept) -> None:
    """Have the cheapest sets of that many changes accepted of which one is a move: of each way in which it helps."""
    rooms = Rooms(bench)
    for way in (_near, _far, _arriving):
        way(bench, rooms, size, accept)


# --- a pod leaves the very node that the pod is to go to


def _near(bench: Bench, rooms: Rooms, size: int, accept: Accept) -> None:
    for leaving in sorted(_leaving(bench, size), key=lambda each: each[:2]):
        if bench.budget.exhausted:
            return
        node, pod = leaving.site.node, leaving.pod
        if any(name != node.name for name in rooms.enough(pod)):
            to = _refuge(bench, rooms, node, pod, leaving.changes)
            if to and accept((*leaving.changes, move(pod, node, to))):
                return


def _leaving(bench: Bench, size: int) -> Iterator[Leaving]:
    looser = {*bench.demands.looser}
    for order, site in enumerate(bench.sites):
        needs = site.needs
        rigid = sorted((each for each in needs.rigid if len(each) < size), key=len)
        if not rigid:
            continue
        rules_alone = not (needs.short or needs.ports or needs.stubborn)
        for number, pod in enumerate(site.node.pods.values()):
            still = {
                name: left
                for name, deficit in needs.short.items()
                if (left := deficit - (1 if name == _PLACE else pod.requests.get(name, 0))) > 0
            }
            if len(still) + len(rigid[0]) >= size or not is_movable(pod):
                continue
            if rules_alone and not bench.is_relevant(pod):
                continue
            rest = _rest(bench, site, pod, still)
            if rest is None:
                continue
            for changes in bench.completed(((*each, *rest) for each in rigid), size - 1):
                if needs.rules and looser.isdisjoint(changes) and not bench.is_relevant(pod):
                    continue
                whole = cost((*changes, move(pod, site.node, "")))
                yield Leaving(whole, (order, number), site, pod, changes)


def _rest(bench: Bench, site: Site, pod: PodInfo, still: dict[str, int]) -> Changes | None:
    """What remains to be answered once a pod has left; None if that cannot be."""
    lower = bench.demands.lowerings(site.node, still) if still else ()
    if lower is None:
        return None
    if not site.needs.ports:
        return lower
    held = site.view.ports.copy()
    held.subtract(pod.wants.host_ports)
    taken = [port for port, count in held.items() if count > 0]
    return (*lower, *(DropHostPort(port) for port in site.needs.ports if ports_clash((port,), taken)))


def _refuge(bench: Bench, rooms: Rooms, node: NodeState, leaving: PodInfo, changes: Changes) -> str:
    """Where a pod can go so that the node takes the pod; empty if there is no such place."""
    every = bench.is_relevant(leaving)
    if not every and not _passes(bench, changes, node, leaving, node, None):
        return ""
    for name in rooms.of(leaving, node.name, every=every):
        if not every or _passes(bench, changes, node, leaving, node, bench.state.node(name)):
            return name
    return ""


def _passes(
    bench: Bench, changes: Changes, node: NodeState, moved: PodInfo, origin: NodeState, to: NodeState | None
) -> bool:
    """Whether a node takes the pod once another has moved."""
    filters, info = bench.filters(changes)
    filters, after = _suppose(bench, filters, moved, origin, to)
    return bench.takes(filters, info, after.get(node.name, node), changes)


def _suppose(
    bench: Bench, filters: Filters, moved: PodInfo, origin: NodeState, to: NodeState | None
) -> tuple[Filters, dict[str, NodeState]]:
    """The filters and the two nodes as they would be."""
    bench.budget.spend(_COPYING)
    filters = filters.copy()
    after = {origin.name: origin.copy()}
    after[origin.name].remove(moved.key)
    filters.remove(moved, after[origin.name])
    if to is not None:
        after[to.name] = to.copy()
        after[to.name].add(moved)
        filters.add(moved, after[to.name])
    return filters, after


# --- a pod moves between other nodes, and with it what the rules about pods say


def _far(bench: Bench, rooms: Rooms, size: int, accept: Accept) -> None:
    movers = _movers(bench)
    tries = [
        ((each.kinds, change.amount), group, more, pod, node)
        for each, group, more in (bench.groups(size - 1) if movers else ())
        for change, pod, node in movers
    ]
    for _, group, more, pod, node in sorted(tries, key=lambda each: each[0]):
        for candidate in group:
            changes = (*candidate.changes, *more)
            site = candidate.site.node
            for name in rooms.of(pod, node.name, every=True) if site is not node else ():
                if bench.budget.exhausted:
                    return
                made = (*changes, move(pod, node, name))
                there = bench.state.node(name)
                if there is not site and _passes(bench, changes, site, pod, node, there) and accept(made):
                    return


def _movers(bench: Bench) -> list[tuple[MovePod, PodInfo, NodeState]]:
    """The pods that rules between pods may speak of, if there are such rules."""
    if not bench.demands.looser and not bench.state.with_anti_affinity:
        return []
    return [
        (move(pod, node, ""), pod, node)
        for node in bench.state.nodes
        for pod in node.pods.values()
        if is_movable(pod) and bench.is_relevant(pod)
    ]


# --- a pod that is wanted near comes to the node; it takes room there


def _arriving(bench: Bench, rooms: Rooms, size: int, accept: Accept) -> None:
    tries = sorted(_arrivals(bench, rooms, size), key=lambda each: each[:2]) if bench.pod.wants.affinity else ()
    for _, _, changes, pod, node, there in tries:
        made = (*changes, move(pod, node, there.name))
        if _passes(bench, changes, there, pod, node, there) and accept(made):
            return


def _arrivals(
    bench: Bench, rooms: Rooms, size: int
) -> Iterator[tuple[Cost, int, Changes, PodInfo, NodeState, NodeState]]:
    filters, info = bench.filters(())
    number = 0
    for _, pod, node in _movers(bench):
        for name in rooms.of(pod, node.name, every=True):
            there = bench.state.node(name)
            if bench.budget.exhausted or there is None:
                return
            supposed, after = _suppose(bench, filters, pod, node, there)
            needed = bench.answers(bench.site(supposed, info, after[name]))
            for changes in bench.completed(needed, size - 1):
                number += 1
                yield cost((*changes, move(pod, node, name))), number, changes, pod, node, there
