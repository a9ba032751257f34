"""What pods with the same selectors, tolerations and images get from the plugins that look at the node object alone.

Such a plugin gives nodes that look alike to it the same answer. So nodes are grouped by what it reads of them, and the
readable plugin is asked about one node of each group: there is no second implementation to keep in step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.scheduling.framework import MAX_SCORE, Refusal
from bayplan.scheduling.plugins.image_locality import ImageLocality, image_names
from bayplan.scheduling.plugins.node_affinity import NodeAffinity
from bayplan.scheduling.plugins.node_declared_features import NodeDeclaredFeatures
from bayplan.scheduling.plugins.node_name import NodeName
from bayplan.scheduling.plugins.node_unschedulable import NodeUnschedulable
from bayplan.scheduling.plugins.taint_toleration import TaintToleration

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from bayplan.model.affinity import NodeAffinity as Affinity
    from bayplan.scheduling.fast.columns import Columns, Flags, Group, Ints, Positions
    from bayplan.scheduling.framework import NodeFilter, Plugin, Profile
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

    Reading = tuple[Hashable, Callable[[NodeState], Hashable]]

ALL = slice(None)


class Normalised:
    """Raw scores that are brought to 0..100 by the largest among the feasible nodes; reversed, the largest gets 0."""

    __slots__ = ("_raw", "_reverse", "_top", "_weight")

    def __init__(self, raw: Ints, weight: int, *, reverse: bool) -> None:
        self._raw = raw
        self._weight = weight
        self._reverse = reverse
        self._top = int(raw.argmax())

    def most(self, feasible: Flags) -> int:
        """The largest of them; mostly that of a node with the largest of all."""
        if feasible[self._top]:
            return int(self._raw[self._top])
        return int((self._raw * feasible).max())

    def points(self, most: int, chosen: Positions | slice = ALL) -> Ints:
        """What they come to. Those of nodes that are not feasible mean nothing, but do not go beyond a share of 100."""
        raw = self._raw[chosen]
        if most == 0:
            return np.full(raw.shape, MAX_SCORE * self._weight if self._reverse else 0, dtype=np.int64)
        shares = np.minimum(raw * MAX_SCORE // most, MAX_SCORE)
        if self._reverse:
            np.subtract(MAX_SCORE, shares, out=shares)
        shares *= self._weight
        return shares


class Statics:
    """The answers of all such plugins. Nodes of the same code are refused by the same one; 0 is by none."""

    __slots__ = ("_reasons", "base", "codes", "normalised", "ok")

    def __init__(self, pod: PodInfo, state: ClusterState, profile: Profile, columns: Columns) -> None:
        size = len(columns.nodes)
        self.codes: Ints = np.zeros(size, dtype=np.int64)
        self._reasons: list[Refusal | None] = [None]
        self.base: Ints = np.zeros(size, dtype=np.int64)
        """Points that do not depend on other nodes."""
        self.normalised: list[Normalised] = []
        for plugin in profile.filters:
            reads = READS.get(type(plugin))
            found = plugin.filter(pod, state) if reads else None
            if reads and found is not None:
                assert not isinstance(found, Refusal)  # such pods are not placed this way
                self._filter(found, columns.group(*reads(plugin, pod, state)))
        self.ok: Flags = self.codes == 0
        for plugin, weight in profile.scorers:
            reads = READS.get(type(plugin))
            if reads:
                self._score(plugin, weight, pod, state, columns.group(*reads(plugin, pod, state)))

    def _filter(self, found: NodeFilter, group: Group) -> None:
        codes = np.array([self._code(found.check(node)) for node in group.heads], dtype=np.int64)
        if codes.any():
            self.codes = np.where(self.codes == 0, codes[group.codes], self.codes)

    def _code(self, refusal: Refusal | None) -> int:
        if refusal not in self._reasons:
            self._reasons.append(refusal)
        return self._reasons.index(refusal)

    def _score(self, plugin: Plugin, weight: int, pod: PodInfo, state: ClusterState, group: Group) -> None:
        scorer = plugin.score(pod, state, ())
        if scorer is None:
            return
        raw = np.array([scorer.score(node) for node in group.heads], dtype=np.int64)
        if isinstance(plugin, ImageLocality):
            self.base += raw[group.codes] * weight
            return
        reverse = isinstance(plugin, TaintToleration)
        spread = Normalised(raw[group.codes], weight, reverse=reverse)
        if raw.any():
            self.normalised.append(spread)
        else:
            self.base += spread.points(0)


def _label_keys(affinity: Affinity | None) -> set[str]:
    if affinity is None:
        return set()
    required = affinity.required.node_selector_terms if affinity.required else ()
    terms = (*required, *(each.preference for each in affinity.preferred))
    return {one.key for term in terms for one in term.match_expressions} | {"" for term in terms if term.match_fields}


def _affinity_reading(plugin: Plugin, pod: PodInfo, _state: ClusterState) -> Reading:
    """The labels that selectors speak of; the empty key stands for the node's name."""
    assert isinstance(plugin, NodeAffinity)
    spec = pod.wants.spec
    own = spec.affinity.node_affinity if spec.affinity else None
    found = {*spec.node_selector, *_label_keys(own), *_label_keys(plugin.args.added_affinity)}
    keys = tuple(sorted(found))
    return ("labels", keys), lambda node: tuple(node.labels.get(key) if key else node.name for key in keys)


def _image_reading(_plugin: Plugin, pod: PodInfo, state: ClusterState) -> Reading:
    """Whether the images are there; mostly no node has reported any of them."""
    images = tuple(name for name in image_names(pod.wants.spec) if name in state.images)
    return ("images", images), lambda node: tuple(name in node.images for name in images)


READS: dict[type[Plugin], Callable[[Plugin, PodInfo, ClusterState], Reading]] = {
    NodeUnschedulable: lambda *_: ("unschedulable", lambda node: node.node.spec.unschedulable),
    NodeName: lambda *_: ("name", lambda node: node.name),
    TaintToleration: lambda *_: (
        "taints",
        lambda node: tuple((each.key, each.value, each.effect) for each in node.node.spec.taints),
    ),
    NodeAffinity: _affinity_reading,
    NodeDeclaredFeatures: lambda *_: ("features", lambda node: node.node.status.declared_features),
    ImageLocality: _image_reading,
}
"""The plugins that look at the node object alone, and what they read of it for a pod."""
