"""The workbench: one pod, one state, and filters that are asked anew for each set of changes to the pod.

Nodes are grouped by what they need. Within a group only amounts differ, so its nodes are asked from the cheapest on
until one passes, with filters that are prepared once for all of them.
"""

from __future__ import annotations

from copy import copy
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from bayplan.scheduling.filtering import prepare
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.whatif.changes import Change, Cost, cost
from bayplan.scheduling.whatif.cluster_changes import RecoverNode, UncordonNode
from bayplan.scheduling.whatif.needs import FIT, INSUFFICIENT, Demands
from bayplan.scheduling.whatif.pod_changes import DropHostPort, LowerRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bayplan.scheduling.filtering import Filters
    from bayplan.scheduling.framework import Profile, Refusal
    from bayplan.scheduling.state import ClusterState, NodeState
    from bayplan.scheduling.whatif.needs import Changes, Needs

    Signature = frozenset[tuple[str, str]]
    Accept = Callable[[Changes], bool]

_CHEAP, _WIDE = 20, 4
"""What preparing filters costs: as many nodes asked, or as many for each node where all pods must be looked at."""


class Budget:
    """How many more nodes may be asked: a search in a large cluster ends before it tires people."""

    def __init__(self, nodes: int) -> None:
        self._left = max(100_000, 16 * nodes)

    def spend(self, nodes: int) -> None:
        """Take so many."""
        self._left -= nodes

    @property
    def exhausted(self) -> bool:
        """Whether the search had to stop before its end."""
        return self._left <= 0


class Site(NamedTuple):
    """A node that might take the pod. `view` is it with those who wait for it, as the filters count them."""

    node: NodeState
    view: NodeState
    needs: Needs
    free: bool
    """Whether nothing is held against the pod."""


class Candidate(NamedTuple):
    """A node and the changes that it needs."""

    cost: Cost
    order: int
    site: Site
    changes: Changes


class Bench:
    """What can be asked about one pod in one state."""

    def __init__(self, state: ClusterState, profile: Profile, pod: PodInfo, budget: Budget) -> None:
        self.state = state
        self.profile = profile
        self.pod = pod
        self.budget = budget
        self.demands = Demands(pod)
        self._prepared: dict[frozenset[Change], tuple[Filters, PodInfo]] = {}
        self._relevant: dict[tuple[object, ...], bool] = {}
        self.whole = self.filters(())[0].whole
        self.sites = [self.site(*self.filters(()), node) for node in state.nodes] if self.whole is None else []

    def beside(self, node: NodeState) -> Bench:
        """The same for one node that is not there, and empty: no rule about pods counts it differently then."""
        other = copy(self)
        other.sites = [self.site(*self.filters(()), node)]
        return other

    # --- asking

    def filters(self, changes: Iterable[Change]) -> tuple[Filters, PodInfo]:
        """The filters for the pod with these changes to it, but for what it asks less of: see `takes`."""
        made = [each for each in changes if each.nodes is None and not isinstance(each, LowerRequest)]
        key = frozenset(made)
        if key not in self._prepared:
            pod = self.pod.pod
            for each in made:
                pod = each.to_pod(pod)
            info = PodInfo(pod)
            wide = bool(self.demands.looser)
            self.budget.spend(len(self.state.nodes) * _WIDE if wide else _CHEAP)
            self._prepared[key] = prepare(self.profile, info, self.state), info
        return self._prepared[key]

    def passes(self, changes: Changes, node: NodeState) -> bool:
        """Whether the node takes the pod then."""
        self.budget.spend(1)
        return self.takes(*self.filters(changes), node, changes)

    def takes(self, filters: Filters, pod: PodInfo, node: NodeState, changes: Changes) -> bool:
        """Whether filters let the pod onto a node, apart from a shortage of what it will ask less of."""
        if filters.whole is not None or (filters.only is not None and node.name not in filters.only):
            return False
        less = {INSUFFICIENT + each.resource for each in changes if isinstance(each, LowerRequest)}
        refusals = self._held_against(filters, pod, opened(node, changes))[1].values()
        return all(each.plugin == FIT and less.issuperset(each.reasons) for each in refusals)

    def is_relevant(self, other: PodInfo) -> bool:
        """Whether the rules between pods may speak of another pod: told by labels alone, so rather too often."""
        key = (id(other.wants), *other.labels.items())
        if key not in self._relevant:
            self._relevant[key] = self.demands.concern(other) or any(
                term.selector.matches(self.pod.labels) for term in other.wants.anti_affinity
            )
        return self._relevant[key]

    def site(self, filters: Filters, pod: PodInfo, node: NodeState) -> Site:
        """What a node needs for the pod as it is."""
        self.budget.spend(2)
        view, refusals = self._held_against(filters, pod, node)
        return Site(node, view, self.demands.needs(view, refusals.values()), not refusals)

    def _held_against(self, filters: Filters, pod: PodInfo, node: NodeState) -> tuple[NodeState, dict[str, Refusal]]:
        """The node with those who wait for it, and by plugin what it holds against the pod, with or without them."""
        plain = {each.plugin: each for each in filters.refusals(node)}
        crowded = filters.with_nominated(node, pod, self.state)
        if crowded is None:
            return node, plain
        return crowded[1], plain | {each.plugin: each for each in crowded[0].refusals(crowded[1])}

    # --- searching

    def find(self, size: int, accept: Accept) -> Iterator[Changes]:
        """Sets of that many changes that work and are accepted: the cheapest of each signature, by kinds."""
        for _, group, more in sorted(self.groups(size), key=lambda each: each[0]):
            for candidate in group:
                changes = (*candidate.changes, *more)
                if self.budget.exhausted:
                    return
                if self.passes(changes, candidate.site.node) and accept(changes):
                    yield changes
                    break

    def groups(self, size: int) -> list[tuple[Cost, list[Candidate], Changes]]:
        """What nodes need, completed to that many changes: the cheapest cost, the nodes by cost, what is added."""
        by_signature: dict[Signature, list[Candidate]] = {}
        for order, site in enumerate(self.sites):
            for changes in self.answers(site):
                if len(changes) <= size:
                    found = Candidate(cost(changes), order, site, changes)
                    by_signature.setdefault(signature(changes), []).append(found)
        made = []
        for group in by_signature.values():
            group.sort(key=lambda each: each[:2])
            first = group[0].changes
            free = [each for each in self.demands.looser if each not in first]
            made += [(cost((*first, *more)), group, more) for more in combinations(free, size - len(first))]
        return made

    def completed(self, needed: Iterable[Changes], size: int) -> Iterator[Changes]:
        """What is needed, with rules given up besides, so that there are so many changes."""
        for changes in needed:
            if len(changes) <= size:
                free = [each for each in self.demands.looser if each not in changes]
                yield from ((*changes, *more) for more in combinations(free, size - len(changes)))

    def answers(self, site: Site) -> Iterator[Changes]:
        """What would answer all that the node alone holds against the pod."""
        needs = site.needs
        lower = self.demands.lowerings(site.node, needs.short)
        if needs.stubborn or lower is None:
            return
        ports = tuple(map(DropHostPort, needs.ports))
        for rigid in needs.rigid:
            yield (*rigid, *ports, *lower)


def opened(node: NodeState, changes: Changes) -> NodeState:
    """The node with the changes that concern itself."""
    for each in changes:
        if isinstance(each, UncordonNode | RecoverNode) and each.node == node.name:
            node = node.copy()
            node.node = each.to_node(node.node)
    return node


def signature(changes: Changes) -> Signature:
    """What tells a set of changes from others, whatever node it is for and however much it takes."""
    return frozenset((each.kind, each.what) for each in changes)
