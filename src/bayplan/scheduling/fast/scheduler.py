"""The same decisions as `cycle.decide`, from columns: a row of totals per pod shape, corrected where nodes changed.

A decision brings the shape's row up to date (see `kept`), adds what spreading and affinity say now, and takes the best:
of nodes with the same total the first in preorder of upstream's heap (see `ties`).

What the columns do not hold goes the readable way, with the same answer: pods with volumes or claims, names of nodes in
affinity, plugins of other kinds, and every refusal, since people want its reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.policies import Namespace
from bayplan.scheduling.cycle import decide, enough, next_start, refused
from bayplan.scheduling.fast.kept import Kept
from bayplan.scheduling.fast.refusals import refusals
from bayplan.scheduling.fast.scoring import ResourceScore
from bayplan.scheduling.fast.statics import READS
from bayplan.scheduling.filtering import prepare
from bayplan.scheduling.framework import Plugin
from bayplan.scheduling.gpus.devices import left
from bayplan.scheduling.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.scheduling.plugins.dynamic_resources import DynamicResources
from bayplan.scheduling.plugins.gpu_policies.policy import GpuPolicy
from bayplan.scheduling.plugins.gpu_share import GpuShare
from bayplan.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from bayplan.scheduling.plugins.node_resources_fit import NodeResourcesFit
from bayplan.scheduling.plugins.pod_topology_spread import PodTopologySpread
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.state import ClusterState

if TYPE_CHECKING:
    from bayplan.model.meta import KubernetesObject
    from bayplan.scheduling.decision import Decision
    from bayplan.scheduling.fast.columns import Flags, Positions
    from bayplan.scheduling.fast.shapes import Shape
    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.gpus.asking import Devices
    from bayplan.scheduling.pods import PodKey

_SCORERS = (
    *READS, NodeResourcesFit, NodeResourcesBalancedAllocation, PodTopologySpread, InterPodAffinity, DynamicResources,
)  # fmt: skip

_MOST_POINTS = 1 << 30
"""All plugins together; more would not fit into the columns."""


class _Desk:
    """One profile, and what is kept for it: columns and rows, or nothing while they would be out of date."""

    __slots__ = ("kept", "profile", "score")

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.score = ResourceScore(profile) if is_columnar(profile) else None
        self.kept: Kept | None = None


class FastScheduler:
    """Decides for one or several profiles, and keeps the one state that all their decisions are made on.

    Pods choose a profile by its name; who names none of them goes by the first.
    """

    def __init__(self, profile: Profile, *others: Profile, state: ClusterState | None = None) -> None:
        self.state = ClusterState() if state is None else state
        self.start = 0
        """Where the next search begins, whichever profile it is for."""
        self._first = _Desk(profile)
        self._desks = {desk.profile.scheduler_name: desk for desk in (self._first, *map(_Desk, others))}

    # --- what changes

    def put(self, item: KubernetesObject) -> None:
        """An object came or changed."""
        if isinstance(item, Node):
            self.put_node(item)
        elif isinstance(item, Pod):
            self._put_pod(PodInfo(item))
        else:
            old = self.state.find(type(item), item.metadata.namespace, item.metadata.name)
            self.state.put(item)
            if isinstance(item, Namespace) and (old is None or old.metadata.labels != item.metadata.labels):
                self._forget()

    def drop(self, item: KubernetesObject) -> None:
        """An object went."""
        if isinstance(item, Node):
            self.drop_node(item.metadata.name)
        elif isinstance(item, Pod):
            self.drop_pod((item.metadata.namespace, item.metadata.name))
        else:
            self.state.drop(item)
            if isinstance(item, Namespace):
                self._forget()

    def _forget(self) -> None:
        """Columns and rows rest on nodes as they were, and terms on what namespaces they selected."""
        for desk in self._desks.values():
            desk.kept = None

    def _note(self, pod: PodInfo, node: str, sign: int) -> None:
        for desk in self._desks.values():
            if desk.kept:
                desk.kept.note(pod, node, sign)

    def put_node(self, node: Node) -> None:
        """A node came or changed. If plugins may see a difference, all nodes are read anew."""
        known = self.state.node(node.metadata.name)
        if known is None or _face(known.node) != _face(node):
            self._forget()
        self.state.put_node(node)

    def drop_node(self, name: str) -> None:
        """A node went."""
        self.state.drop_node(name)
        self._forget()

    def _put_pod(self, info: PodInfo) -> None:
        pod = info.pod
        if pod.spec.node_name and not pod.is_terminal:
            self.put_pod(info, pod.spec.node_name)
        else:
            if pod.is_terminal:
                self.drop_pod(info.key)
            self.state.put(pod)

    def put_pod(self, pod: PodInfo, node: str) -> None:
        """A pod stands on a node."""
        if self.state.place_of(pod.key):
            self.drop_pod(pod.key)
        self.state.put_pod(pod, node)
        self._note(pod, node, 1)

    def drop_pod(self, key: PodKey) -> None:
        """A pod is gone."""
        pod, place = self.state.pod(key), self.state.place_of(key)
        self.state.drop_pod(key)
        if pod and place:
            self._note(pod, place, -1)

    # --- what is decided

    def decide(self, pod: PodInfo) -> Decision:
        """The whole decision with every reason; nothing is changed by it."""
        return decide(self.state, self._desk_of(pod).profile, pod, self.start)

    def choose(self, pod: PodInfo) -> str | Decision:
        """The node for a pod, or the decision that refuses it. The pod is not put there."""
        desk, start = self._desk_of(pod), self.start
        shape, node = self._from_columns(desk, pod)
        if node:
            return node
        if shape is not None and desk.kept:
            filters = prepare(desk.profile, pod, self.state)
            return refused(self.state, pod, start, refusals(filters, shape, desk.kept.columns), filters)
        decision = self._readably(desk, pod)
        return decision.node or decision

    def place(self, pod: PodInfo) -> str:
        """The same for those who do not ask why: the node, empty where there is none."""
        desk = self._desk_of(pod)
        shape, node = self._from_columns(desk, pod)
        return node if shape is not None else self._readably(desk, pod).node or ""

    def _from_columns(self, desk: _Desk, pod: PodInfo) -> tuple[Shape | None, str]:
        """The pod's shape and the node, empty where there is none; no shape if columns cannot tell."""
        start = self.start
        shape = self._shape_of(desk, pod)
        if shape is None:
            return None, ""
        if start:
            self.start %= len(self.state.nodes)  # there may have been more of them
        at = self._best(desk, shape, pod)
        if at is not None:
            return shape, self.state.nodes[at].name
        if self.state.waited_for or shape.is_strict:
            self.start = start
            return None, ""
        return shape, ""

    def _readably(self, desk: _Desk, pod: PodInfo) -> Decision:
        decision = decide(self.state, desk.profile, pod, self.start, score_single=False)
        self.start = next_start(decision)
        return decision

    def devices(self, pod: PodInfo, node: str) -> Devices:
        """Which of a node's GPUs a pod gets; none where its profile does not go by the device."""
        desk, there = self._desk_of(pod), self.state.node(node)
        if (
            there is None
            or not pod.gpus.ask.number
            or not any(isinstance(each, GpuShare) for each in desk.profile.filters)
        ):
            return ()
        policies = [plugin for plugin, _ in desk.profile.scorers if isinstance(plugin, GpuPolicy)]
        return (policies[0] if policies else GpuPolicy()).devices(pod, there, left(there))

    def _desk_of(self, pod: PodInfo) -> _Desk:
        return self._desks.get(pod.pod.spec.scheduler_name, self._first)

    def _best(self, desk: _Desk, shape: Shape, pod: PodInfo) -> int | None:
        kept = desk.kept
        assert kept is not None
        totals = kept.totals(shape)
        most = enough(len(totals), desk.profile)
        feasible = self._allowed(desk, shape, pod)
        if shape.row and feasible is None and not shape.wishes and not self.start and most >= len(totals):
            at = int(totals.argmax())
            return at if totals[at] >= 0 else None
        chosen = shape.chosen if feasible is None else np.flatnonzero(feasible)
        if self.start or len(chosen) > most:
            chosen, everybody = self._walk(chosen, most)
            if not everybody:
                feasible = _flags(chosen, len(totals)) if shape.statics.normalised else None
        if len(chosen) < 2:
            return int(chosen[0]) if len(chosen) else None
        points = shape.points(totals, kept.shift, chosen, feasible)
        if shape.spread:
            shape.spread.add_points(points, chosen, shape.version if chosen is shape.chosen else 0)
        if shape.affinity:
            shape.affinity.add_points(points, chosen)
        if shape.gpus:
            shape.gpus.add_points(points, chosen, pod)
        ties = (points == points.item(points.argmax())).nonzero()[0]
        return chosen.item(ties.item(kept.heap[ties].argmax()) if len(ties) > 1 else ties.item(0))

    def _allowed(self, desk: _Desk, shape: Shape, pod: PodInfo) -> Flags | None:
        """The feasible nodes, where not all that the totals call feasible are."""
        waited_for = self.state.waited_for
        assert desk.kept is not None
        gpus = desk.kept.gpus(shape)
        if not shape.is_strict and not waited_for and gpus is None:
            return None
        ok = shape.feasible.copy()
        if gpus is not None:
            gpus.keep(ok)
        for each in (shape.spread, shape.affinity):
            if each is not None:
                each.keep(ok)
        if waited_for:
            self._yield_to_nominated(desk, pod, ok)
        return ok

    def _yield_to_nominated(self, desk: _Desk, pod: PodInfo, ok: Flags) -> None:
        """Strike out the nodes that would not do once those have come who wait for them."""
        assert desk.kept is not None
        filters = prepare(desk.profile, pod, self.state)
        for name in self.state.waited_for:
            node = self.state.node(name)
            at = desk.kept.columns.index[name] if node else -1
            if node and ok[at] and filters.check_among_nominated(node, pod, self.state):
                ok[at] = False

    def _walk(self, found: Positions, most: int) -> tuple[Positions, bool]:
        """The feasible nodes in search order, as many as are wanted, and whether that is all of them.

        The next search begins where this one ended: at the first node too many.
        """
        first = int(found.searchsorted(self.start))
        if len(found) <= most:
            return (np.concatenate((found[first:], found[:first])) if first else found), True
        end = first + most
        self.start = found.item(end % len(found))
        if end <= len(found):
            return found[first:end], False
        return np.concatenate((found[first:], found[: end - len(found)])), False

    def _shape_of(self, desk: _Desk, pod: PodInfo) -> Shape | None:
        """What is kept for pods like this one; None for those that go the readable way."""
        spec, state = pod.pod.spec, self.state
        if desk.score is None or not state.nodes or spec.node_name or spec.scheduling_gates:
            return None
        if pod.pod.status.nominated_node_name or state.nomination_of(pod.key):
            return None
        if desk.kept is None or desk.kept.is_full:
            desk.kept = Kept(desk.profile, desk.score, state)
        return desk.kept.shape_of(pod)


def _flags(chosen: Positions, size: int) -> Flags:
    found = np.zeros(size, dtype=np.bool_)
    found[chosen] = True
    return found


def is_columnar(profile: Profile) -> bool:
    """Whether columns know what a profile scores by. Plugins that count pods must filter, too, to be known to them."""
    scorers = {type(plugin) for plugin, _ in profile.scorers if type(plugin).score is not Plugin.score}
    policies = {kind for kind in scorers if issubclass(kind, GpuPolicy)}
    scorers -= policies
    filtering = {NodeResourcesFit, *scorers.intersection((PodTopologySpread, InterPodAffinity))}
    if policies:
        filtering.add(GpuShare)
    return (
        filtering.issubset(map(type, profile.filters))
        and scorers.issubset(_SCORERS)
        and len(policies) <= 1
        and ResourceScore.covers(profile)
        and ResourceScore(profile).most < _MOST_POINTS
    )


def _face(node: Node) -> tuple[object, ...]:
    """What plugins see of a node."""
    status = node.status
    return (
        node.metadata.labels, node.spec.taints, node.spec.unschedulable, status.allocatable, status.images,
        status.declared_features,
    )  # fmt: skip
