"""What is kept between decisions about one set of nodes: their columns, the shapes of pods, and a row of totals each.

Every node to which a pod came, or which it left, is written into a journal. A shape that is asked for corrects its row
for the entries it has not seen: a few of them one by one; more of them for all shapes in use at once, which costs
little more than for one. When the nodes themselves change, all of this is thrown away and made anew as it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from bayplan.model.policies import Service
from bayplan.model.workloads import ReplicaSet, ReplicationController, StatefulSet
from bayplan.scheduling.fast.affinity import Affinity
from bayplan.scheduling.fast.columns import Columns
from bayplan.scheduling.fast.shapes import Shape, asked_of
from bayplan.scheduling.fast.spread import Spread
from bayplan.scheduling.fast.statics import READS, Statics
from bayplan.scheduling.fast.table import Table
from bayplan.scheduling.fast.tallies import Tallies
from bayplan.scheduling.framework import Plugin, Refusal
from bayplan.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from bayplan.scheduling.plugins.node_ports import NodePorts
from bayplan.scheduling.plugins.node_resources_fit import NodeResourcesFit
from bayplan.scheduling.plugins.pod_topology_spread import HARD, SOFT, PodTopologySpread

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from bayplan.model.meta import KubernetesObject
    from bayplan.model.pods import PodSpec
    from bayplan.scheduling.fast.columns import Positions, Totals
    from bayplan.scheduling.fast.scoring import ResourceScore
    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState

OWNERS = (ReplicaSet, ReplicationController, StatefulSet)
COLUMNAR = (NodeResourcesFit, NodePorts, PodTopologySpread, InterPodAffinity)
_ONE_BY_ONE = 8
"""Journal entries up to which a row is corrected node by node."""
_TOGETHER = 64
"""Entries up to which all shapes in use are corrected at once; a shape that is further behind is seen to alone."""
_FORGOTTEN = 256
"""A shape not asked for during so many such corrections is not in use any more."""
_LONGEST_JOURNAL = 1 << 16
_MOST_SHAPES = 1024
_FEWEST_SHAPES = 64
_MOST_CELLS = 1 << 23
"""Totals kept at most, as long as there is room for the fewest shapes."""
_encoder = msgspec.msgpack.Encoder()
PluginT = TypeVar("PluginT", bound=Plugin)


class Kept:
    """Columns, shapes and rows."""

    def __init__(self, profile: Profile, score: ResourceScore, state: ClusterState) -> None:
        self._profile = profile
        self._state = state
        self._weights = {type(plugin): weight for plugin, weight in profile.scorers}
        self.columns = Columns(state.nodes)
        self._table = Table(self.columns, score)
        self._most = max(_FEWEST_SHAPES, min(_MOST_SHAPES, _MOST_CELLS // len(state.nodes)))
        self._tallies: Tallies | None = None
        self._statics: dict[bytes, Statics] = {}
        self._shapes: dict[Hashable, Shape | None] = {}
        self._journal: list[int] = []
        self._in_use: dict[int, Shape] = {}
        self._rows: Positions = np.zeros(0, dtype=np.intp)
        self._seen_by_all = 0
        self._rounds = 0
        self._labels_matter = any(True for kind in (Service, *OWNERS) for _ in state.all(kind))

    @property
    def is_full(self) -> bool:
        """Whether it is time to start afresh."""
        return len(self._journal) > _LONGEST_JOURNAL

    def note(self, pod: PodInfo, node: str, number: int) -> None:
        """A pod came to (1) or left (-1) a node."""
        at = self.columns.index.get(node)
        if at is not None:
            self.columns.touch(at)
            self._journal.append(at)
            if self._tallies:
                self._tallies.count(pod, at, number)

    def forget(self, item: KubernetesObject) -> None:
        """Shapes of pods that a Service or controller may speak of are made anew."""
        if not self._labels_matter:
            self._let_labels_matter()
        namespace, name = item.metadata.namespace, item.metadata.name
        for key, shape in list(self._shapes.items()):
            owner = shape.pod.pod.metadata.controller if shape else None
            if shape is None or shape.pod.namespace != namespace:
                continue
            if isinstance(item, Service) or (owner is not None and owner.name == name):
                self._discard(key)

    # --- shapes

    def shape_of(self, pod: PodInfo) -> Shape | None:
        """What is kept for pods like this one; None for those that columns cannot serve."""
        if self._tallies is None and self._state.with_affinity:
            self._begin_tallies()
        key = self._key(pod)
        if key not in self._shapes:
            shape = self._new_shape(pod) if self._is_served(pod) else None
            self._shapes[self._key(pod)] = shape
            return shape
        return self._shapes[key]

    def _key(self, pod: PodInfo) -> Hashable:
        """All that decisions about a pod depend on. Labels do as soon as anybody selects by them."""
        wants = pod.wants
        requests = None if pod.requests is wants.requests else tuple(sorted(pod.requests.items()))
        if not self._labels_matter:
            return (wants, requests)
        owner = pod.pod.metadata.controller
        return (wants, requests, frozenset(pod.labels.items()), owner and (owner.kind, owner.name))

    def _is_served(self, pod: PodInfo) -> bool:
        for plugin in self._profile.filters:
            if isinstance(plugin, COLUMNAR):
                continue
            found = plugin.filter(pod, self._state)
            if isinstance(found, Refusal) or (found and (found.only is not None or type(plugin) not in READS)):
                return False
        return True

    def _new_shape(self, pod: PodInfo) -> Shape:
        spread, affinity = self._spread(pod), self._affinity(pod)
        key = _encoder.encode(_static_part(pod.wants.spec))
        statics = self._statics.get(key)
        if statics is None:
            statics = self._statics[key] = Statics(pod, self._state, self._profile, self.columns)
        shape = Shape(pod, asked_of(pod, self._state, self._profile), statics, spread, affinity)
        while len(self._shapes) >= self._most:
            self._discard(next(iter(self._shapes)))
        shape.row = self._table.add(shape.asked, shape.base)
        shape.seen = len(self._journal)
        return shape

    def _discard(self, key: Hashable) -> None:
        shape = self._shapes.pop(key)
        if shape is not None:
            self._table.remove(shape.row)
            if self._in_use.pop(shape.row, None):
                self._rows = np.fromiter(self._in_use, np.intp)

    def _spread(self, pod: PodInfo) -> Spread | None:
        plugin = _first(self._profile, PodTopologySpread)
        if plugin is None or not any(plugin.constraints(pod, self._state, action) for action in (HARD, SOFT)):
            return None
        weight = self._weights.get(PodTopologySpread, 0)
        return Spread(plugin, weight, pod, self._state, self.columns, self._begin_tallies())

    def _affinity(self, pod: PodInfo) -> Affinity | None:
        plugin = _first(self._profile, InterPodAffinity)
        if plugin is None or (self._tallies is None and not pod.wants.has_affinity):
            return None
        weight = self._weights.get(InterPodAffinity, 0)
        return Affinity(plugin, weight, pod, self._state, self.columns, self._begin_tallies())

    def _begin_tallies(self) -> Tallies:
        if self._tallies is None:
            self._tallies = Tallies(self.columns)
            self._let_labels_matter()
        return self._tallies

    def _let_labels_matter(self) -> None:
        """Shapes that were told apart without labels are made anew."""
        self._labels_matter = True
        for key in list(self._shapes):
            self._discard(key)

    # --- rows

    def totals(self, shape: Shape) -> Totals:
        """The row of a shape, up to date. It changes with the next correction."""
        table, journal = self._table, self._journal
        seen = self._seen_by_all if shape.in_use and self._seen_by_all > shape.seen else shape.seen
        shape.seen = len(journal)
        shape.round = self._rounds
        behind = len(journal) - seen
        if behind:
            if behind <= _ONE_BY_ONE or not shape.asked.plain:
                self._correct(shape, set(journal[seen:]))
            elif behind <= _TOGETHER and shape.in_use:
                self._correct_all(seen)
            else:
                self._correct_rows(np.array([shape.row]), {shape.row: shape}, journal[seen:])
            if not shape.in_use and shape.asked.plain:
                self._use(shape)
        if shape.statics.normalised:
            shape.renormalise(table)
        row: Totals = table.totals[shape.row]
        return row

    def _correct(self, shape: Shape, changed: Iterable[int]) -> None:
        correct, row, asked = self._table.correct, shape.row, shape.asked
        for at in changed:
            if correct(row, asked, at):
                shape.forget_feasible()

    def _correct_all(self, seen: int) -> None:
        self._correct_rows(self._rows, self._in_use, self._journal[min(seen, self._seen_by_all) :])
        self._seen_by_all = len(self._journal)
        self._rounds += 1
        if self._rounds % _FORGOTTEN == 0:
            for row, shape in list(self._in_use.items()):
                if self._rounds - shape.round > _FORGOTTEN:
                    shape.in_use, shape.seen = False, self._seen_by_all
                    del self._in_use[row]
            self._rows = np.fromiter(self._in_use, np.intp)

    def _correct_rows(self, rows: Positions, shapes: dict[int, Shape], changed: list[int]) -> None:
        odd = self.columns.odd
        places = {at for at in changed if at not in odd} if odd else set(changed)
        flipped = self._table.update(rows, np.fromiter(places, np.intp))
        for row in rows[flipped]:
            shapes[int(row)].forget_feasible()
        for at in odd.keys() & set(changed):
            for row in rows:
                self._correct(shapes[int(row)], (at,))

    def _use(self, shape: Shape) -> None:
        """A shape that is asked for again is in use from now on."""
        shape.in_use = True
        self._in_use[shape.row] = shape
        self._rows = np.append(self._rows, shape.row)


def _static_part(spec: PodSpec) -> tuple[object, ...]:
    """All of a spec that plugins read which look at the node object alone."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    images = [each.image for each in (*spec.init_containers, *spec.containers)]
    rules = [each.restart_policy_rules for each in (*spec.init_containers, *spec.containers)]
    volumes = [each.image for each in spec.volumes]
    network = (spec.host_network, spec.host_users)
    return (spec.tolerations, spec.node_selector, affinity, images, rules, volumes, network)


def _first(profile: Profile, kind: type[PluginT]) -> PluginT | None:
    return next((plugin for plugin in profile.filters if isinstance(plugin, kind)), None)
