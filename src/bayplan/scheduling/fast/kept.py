"""What is kept between decisions about one set of nodes: their columns, the shapes of pods, and a row of totals each.

Every node to which a pod came, or which it left, is written into a journal. A shape that is asked for corrects its row
for the entries it has not seen: a few of them one by one; more of them for all shapes in use at once, which costs
little more than for one. When the nodes themselves change, all of this is thrown away and made anew as it is asked for.
"""

from __future__ import annotations

from functools import lru_cache
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
from bayplan.scheduling.ties import preorder_key

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from bayplan.model.meta import KubernetesObject
    from bayplan.model.pods import PodSpec
    from bayplan.scheduling.fast.columns import Ints
    from bayplan.scheduling.fast.scoring import ResourceScore
    from bayplan.scheduling.fast.table import Totals
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
        self.shift = self._table.shift
        """How far up in a total its points are."""
        self._most = max(_FEWEST_SHAPES, min(_MOST_SHAPES, _MOST_CELLS // len(state.nodes)))
        self._tallies: Tallies | None = None
        self._statics: dict[bytes, Statics | None] = {}
        self._shapes: dict[Hashable, Shape | None] = {}
        self._journal: list[int] = []
        self._by_row: dict[int, Shape] = {}
        self._special: dict[int, Shape] = {}
        """Those whose rows hold what `Table` alone cannot know."""
        self._in_use: dict[int, Shape] = {}
        self._seen_by_all = 0
        self._rounds = 0
        self.heap = heap_places(len(state.nodes))
        """How early a place among the feasible nodes comes up in upstream's heap: the earlier, the larger."""
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
            shape = self._new_shape(pod)
            while len(self._shapes) >= self._most:
                self._discard(next(iter(self._shapes)))
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

    def _statics_of(self, pod: PodInfo) -> Statics | None:
        """What the node objects alone say; None if a plugin names nodes, or turns all of them down."""
        key = _encoder.encode(_static_part(pod.wants.spec))
        if key not in self._statics:
            filters = [plugin.filter(pod, self._state) for plugin in self._profile.filters if type(plugin) in READS]
            served = not any(isinstance(each, Refusal) or (each and each.only is not None) for each in filters)
            self._statics[key] = Statics(pod, self._state, self._profile, self.columns) if served else None
        return self._statics[key]

    def _is_served(self, pod: PodInfo) -> bool:
        """Whether all other filters either are columnar or have nothing to say."""
        return all(
            isinstance(plugin, COLUMNAR) or type(plugin) in READS or plugin.filter(pod, self._state) is None
            for plugin in self._profile.filters
        )

    def _new_shape(self, pod: PodInfo) -> Shape | None:
        statics = self._statics_of(pod)
        if statics is None or not self._is_served(pod):
            return None
        asked = asked_of(pod, self._state, self._profile)
        return Shape(pod, asked, statics, self._spread(pod), self._affinity(pod))

    def _keep(self, shape: Shape) -> None:
        """A shape that is asked for again gets a row."""
        shape.row = self._table.add(shape.asked, shape.statics.base, shape.statics.ok)
        shape.seen = len(self._journal)
        self._by_row[shape.row] = shape
        if not shape.asked.plain:
            self._special[shape.row] = shape

    def _discard(self, key: Hashable) -> None:
        shape = self._shapes.pop(key)
        if shape is not None and shape.row >= 0:
            self._table.remove(shape.row)
            del self._by_row[shape.row]
            self._in_use.pop(shape.row, None)
            self._special.pop(shape.row, None)

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
        """The totals of a shape, up to date. They change with the next correction."""
        if shape.row < 0:
            if not shape.round:
                shape.round = 1
                once = self._table.once(shape.asked, shape.statics.base, shape.statics.ok)
                shape.settle(once, self.shift)
                return once
            self._keep(shape)
        self._catch_up(shape)
        row: Totals = self._table.totals[shape.row]
        shape.settle(row, self.shift, self.heap)
        return row

    def _catch_up(self, shape: Shape) -> None:
        journal = self._journal
        seen = self._seen_by_all if shape.in_use and self._seen_by_all > shape.seen else shape.seen
        shape.seen = len(journal)
        shape.round = self._rounds
        behind = len(journal) - seen
        if not behind:
            return
        if behind <= _ONE_BY_ONE or not shape.asked.plain:
            self._correct(shape, set(journal[seen:]))
        elif behind <= _TOGETHER and shape.in_use:
            self._correct_all()
        else:
            self._correct_row(shape, journal[seen:])
        if not shape.in_use and shape.asked.plain:
            shape.in_use = True
            self._in_use[shape.row] = shape

    def _correct(self, shape: Shape, changed: Iterable[int]) -> None:
        correct, row, asked = self._table.correct, shape.row, shape.asked
        for at in changed:
            if correct(row, asked, at):
                shape.unsettle()

    def _correct_row(self, shape: Shape, changed: list[int]) -> None:
        places = set(changed) - self.columns.odd.keys()
        if self._table.correct_row(shape.row, shape.asked, np.fromiter(places, np.intp)):
            shape.unsettle()
        self._correct(shape, self.columns.odd.keys() & set(changed))

    def _correct_all(self) -> None:
        """All rows at once; those in use are then up to date. Others must not be led astray by it either."""
        journal, odd = self._journal, self.columns.odd
        changed = set(journal[self._seen_by_all :])
        for row in self._table.correct_all(np.fromiter(changed - odd.keys(), np.intp)).tolist():
            if row in self._by_row:
                self._by_row[row].unsettle()
        for at in odd.keys() & changed:
            for shape in self._by_row.values():
                self._correct(shape, (at,))
        for shape in self._special.values():
            self._correct(shape, changed)
        self._seen_by_all = len(journal)
        self._rounds += 1
        if self._rounds % _FORGOTTEN == 0:
            for row, shape in list(self._in_use.items()):
                if self._rounds - shape.round > _FORGOTTEN:
                    shape.in_use, shape.seen = False, self._seen_by_all
                    del self._in_use[row]


@lru_cache(maxsize=8)
def heap_places(size: int) -> Ints:
    """For each position the number of those, itself included, that do not come before it in preorder."""
    keys = np.array([preorder_key(position) for position in range(size)], dtype=np.int64)
    places: Ints = np.empty(size, dtype=np.int64)
    places[np.argsort(keys)] = np.arange(size, 0, -1)
    return places


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
