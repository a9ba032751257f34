"""What is kept between decisions about one set of nodes: their columns, the shapes of pods, and a row of totals each.

Every node to which a pod came, or which it left, is written into a journal. A shape that is asked for corrects its row
for the entries it has not seen, a few of them one by one, more of them at once. When the nodes themselves change, all
of this is thrown away and made anew as it is asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from bayplan.scheduling.fast.affinity import Affinity
from bayplan.scheduling.fast.columns import Columns
from bayplan.scheduling.fast.gpu_rows import GpuRow
from bayplan.scheduling.fast.rows import Row, Width
from bayplan.scheduling.fast.shapes import Shape, asked_of
from bayplan.scheduling.fast.spread import Spread
from bayplan.scheduling.fast.statics import READS, Statics
from bayplan.scheduling.fast.tallies import Tallies
from bayplan.scheduling.framework import Plugin, Refusal
from bayplan.scheduling.gpus.columns import GpuColumns
from bayplan.scheduling.plugins.gpu_policies.policy import GpuPolicy
from bayplan.scheduling.plugins.gpu_share import GpuShare
from bayplan.scheduling.plugins.image_locality import image_names
from bayplan.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from bayplan.scheduling.plugins.node_ports import NodePorts
from bayplan.scheduling.plugins.node_resources_fit import NodeResourcesFit
from bayplan.scheduling.plugins.pod_topology_spread import HARD, SOFT, PodTopologySpread
from bayplan.scheduling.ties import preorder_key

if TYPE_CHECKING:
    from collections.abc import Hashable

    from bayplan.model.pods import PodSpec
    from bayplan.scheduling.fast.columns import Ints, Positions, Totals
    from bayplan.scheduling.fast.scoring import ResourceScore
    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState

COLUMNAR = (NodeResourcesFit, NodePorts, PodTopologySpread, InterPodAffinity, GpuShare)
_ONE_BY_ONE = 12
"""Journal entries up to which a row is corrected node by node."""
_LONGEST_JOURNAL = 1 << 16
_MOST_SHAPES = 1024
_FEWEST_SHAPES = 64
_MOST_CELLS = 1 << 23
"""Totals kept at most, as long as there is room for the fewest shapes."""
_LEFT_BEHIND = 4
"""Times as many tallies, and answers about node objects, may be left behind by shapes that are gone."""
_encoder = msgspec.msgpack.Encoder()
PluginT = TypeVar("PluginT", bound=Plugin)


class Kept:
    """Columns, shapes and rows."""

    def __init__(self, profile: Profile, score: ResourceScore, state: ClusterState) -> None:
        self._profile = profile
        self._state = state
        self._weights = {type(plugin): weight for plugin, weight in profile.scorers}
        self.columns = Columns(state.nodes)
        self._score = score
        self._width = Width.of(len(state.nodes), score.most)
        self.shift = self._width.shift
        """How far up in a total its points are."""
        self._most = max(_FEWEST_SHAPES, min(_MOST_SHAPES, _MOST_CELLS // len(state.nodes)))
        self._tallies: Tallies | None = None
        self._statics: dict[bytes, Statics | None] = {}
        self._shapes: OrderedDict[Hashable, Shape | None] = OrderedDict()  # the longest unused first
        self._outgrown = False
        self._journal: Positions = np.zeros(_LONGEST_JOURNAL, dtype=np.intp)
        self._entries = 0
        self.heap = (heap_places if profile.ties == "heap" else order_places)(len(state.nodes))
        """How early a place among the feasible nodes comes up where totals are equal: the earlier, the larger."""
        self._gpus = GpuColumns(state.nodes) if _first(profile, GpuShare) else None
        self._policy: GpuPolicy | None
        self._policy, self._policy_weight = next(
            ((plugin, weight) for plugin, weight in profile.scorers if isinstance(plugin, GpuPolicy)), (None, 0)
        )
        self._spread_plugin = _first(profile, PodTopologySpread)
        self._affinity_plugin = _first(profile, InterPodAffinity)
        defaults = self._spread_plugin.args.default_constraints if self._spread_plugin else ()
        self._is_spread_strictly = any(each.when_unsatisfiable == HARD for each in defaults)
        """By the profile. A pod may not be one of its own like then: it may have strayed from its controller."""

    @property
    def is_full(self) -> bool:
        """Whether it is time to start afresh."""
        return self._outgrown or self._entries + 1 >= _LONGEST_JOURNAL

    def note(self, pod: PodInfo, node: str, number: int) -> None:
        """A pod came to (1) or left (-1) a node."""
        at = self.columns.index.get(node)
        if at is not None and not self.is_full:
            self.columns.touch(at)
            self._journal[self._entries] = at
            self._entries += 1
            if self._tallies:
                self._tallies.count(pod, at, number)
            if self._gpus:
                self._gpus.touch(at)

    # --- shapes

    def shape_of(self, pod: PodInfo) -> Shape | None:
        """What is kept for pods like this one; None for those that columns cannot serve."""
        if self._tallies is None and self._state.with_affinity:
            self._tallies = Tallies(self.columns)
        key = self._key(pod)
        if key in self._shapes:
            self._shapes.move_to_end(key)
            return self._shapes[key]
        shape = self._shapes[key] = self._new_shape(pod)
        if len(self._shapes) > self._most:
            self._shapes.popitem(last=False)
        return shape

    def _key(self, pod: PodInfo) -> Hashable:
        """All that decisions about a pod depend on.

        Of its labels that is who its like are for spreading, and which terms of others speak of it. Only if it brings
        constraints of its own may all of them count.
        """
        wants = pod.wants
        requests = None if pod.requests is wants.requests else (tuple(sorted(pod.requests.items())), pod.nonzero)
        like = self._spread_plugin.goes_by(pod, self._state) if self._spread_plugin else None
        told = self._tallies.speaking_of(pod, self._state) if self._tallies and self._affinity_plugin else ()
        choosy = wants.has_affinity or wants.spec.topology_spread_constraints or self._is_spread_strictly
        gpus = pod.gpus.ask if self._gpus else None
        return (wants, requests, like, told, frozenset(pod.labels.items()) if choosy else None, gpus)

    def _statics_of(self, pod: PodInfo) -> Statics | None:
        """What the node objects alone say; None if a plugin names nodes, or turns all of them down."""
        key = _encoder.encode(_static_part(pod.wants.spec, self._state))
        if key not in self._statics:
            filters = [plugin.filter(pod, self._state) for plugin in self._profile.filters if type(plugin) in READS]
            served = not any(isinstance(each, Refusal) or (each and each.only is not None) for each in filters)
            self._statics[key] = Statics(pod, self._state, self._profile, self.columns) if served else None
        return self._statics[key]

    def _is_served(self, pod: PodInfo) -> bool:
        """Whether all other filters either are columnar or have nothing to say, and none turns all nodes down."""
        if self._gpus and pod.gpus.ask.unread is not None:
            return False
        return all(
            isinstance(plugin, COLUMNAR) or type(plugin) in READS or plugin.filter(pod, self._state) is None
            for plugin in self._profile.filters
        )

    def _new_shape(self, pod: PodInfo) -> Shape | None:
        statics = self._statics_of(pod)
        if statics is None or not self._is_served(pod):
            return None
        asks = asked_of(pod, self._state, self._profile)
        gpus = None
        if self._gpus and (self._policy or pod.gpus.ask.number):  # else it has no word
            gpus = GpuRow(self._policy, self._policy_weight, pod, self._gpus)
            gpus.seen = self._entries
        shape = Shape(pod, asks, statics, self._spread(pod), self._affinity(pod), gpus)
        most = _LEFT_BEHIND * self._most
        self._outgrown = len(self._statics) > most or (self._tallies is not None and self._tallies.growth > most)
        return shape

    def _spread(self, pod: PodInfo) -> Spread | None:
        plugin, state = self._spread_plugin, self._state
        if plugin is None or not any(plugin.constraints(pod, state, action) for action in (HARD, SOFT)):
            return None
        self._tallies = self._tallies or Tallies(self.columns)
        return Spread(plugin, self._weights.get(PodTopologySpread, 0), pod, state, self.columns, self._tallies)

    def _affinity(self, pod: PodInfo) -> Affinity | None:
        plugin = self._affinity_plugin
        told = self._tallies is not None and self._tallies.speaking_of(pod, self._state)
        if plugin is None or not (pod.wants.has_affinity or told):
            return None
        self._tallies = self._tallies or Tallies(self.columns)
        return Affinity(
            plugin, self._weights.get(InterPodAffinity, 0), pod, self._state, self.columns, self._tallies
        )  # fmt: skip

    # --- rows

    def totals(self, shape: Shape) -> Totals:
        """The totals of a shape, up to date. They change when they are next asked for."""
        row = shape.row
        if row is not None:
            self._catch_up(shape, row)
        else:
            statics = shape.statics
            row = Row(self.columns, self._score, self._width, shape.asked, statics.base, statics.ok)
            if not shape.asked_for:
                shape.asked_for = True
                shape.settle(row, self.shift)
                return row.totals
            shape.row, shape.seen = row, self._entries
        shape.settle(row, self.shift, self.heap)
        return row.totals

    def gpus(self, shape: Shape) -> GpuRow | None:
        """What is known of devices, up to date."""
        row = shape.gpus
        if row is not None and row.seen < self._entries:
            row.correct(np.array([*{*self._journal[row.seen : self._entries].tolist()}], dtype=np.intp))
            row.seen = self._entries
        return row

    def _catch_up(self, shape: Shape, row: Row) -> None:
        changed = self._journal[shape.seen : self._entries]
        shape.seen = self._entries
        if not len(changed):
            return
        if len(changed) <= _ONE_BY_ONE or not shape.asked.plain:
            flipped = row.correct(set(changed.tolist()))
        else:
            flipped = row.correct_many(changed)
            if odd := self.columns.odd.keys() & set(changed.tolist()) if self.columns.odd else None:
                flipped |= row.correct(odd)
        if flipped:
            shape.unsettle()


@lru_cache(maxsize=8)
def heap_places(size: int) -> Ints:
    """For each position the number of those, itself included, that do not come before it in preorder."""
    keys = np.array([preorder_key(position) for position in range(size)], dtype=np.int64)
    places: Ints = np.empty(size, dtype=np.int64)
    places[np.argsort(keys)] = np.arange(size, 0, -1)
    return places


@lru_cache(maxsize=8)
def order_places(size: int) -> Ints:
    """The same where the first of equals is taken."""
    places: Ints = np.arange(size, 0, -1, dtype=np.int64)
    return places


def _static_part(spec: PodSpec, state: ClusterState) -> tuple[object, ...]:
    """All of a spec that plugins read which look at the node object alone. Images that no node has are all the same."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    images = [name if name in state.images else "" for name in image_names(spec)]
    rules = [each.restart_policy_rules for each in (*spec.init_containers, *spec.containers)]
    network = (spec.host_network, spec.host_users)
    return (spec.tolerations, spec.node_selector, affinity, images, rules, network)


def _first(profile: Profile, kind: type[PluginT]) -> PluginT | None:
    return next((plugin for plugin in profile.filters if isinstance(plugin, kind)), None)
