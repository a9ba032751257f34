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
    from collections.abc import Callable, Hashable, Iterable

    from bayplan.model.affinity import NodeAffinity as Affinity
    from bayplan.scheduling.fast.columns import Columns, Flags, Group, Ints, Totals
    from bayplan.scheduling.framework import NodeFilter, Plugin, Profile
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

    Reading = tuple[Hashable, Callable[[NodeState], Hashable]]


class Normalised:
    """Raw scores that are brought to 0..100 by the largest among the feasible nodes; reversed, the largest gets 0."""

    __slots__ = ("_reverse", "_weight", "raw")

    def __init__(self, raw: Ints, weight: int, *, reverse: bool) -> None:
        self.raw = raw
        self._weight = weight
        self._reverse = reverse

    def most(self, feasible: Flags) -> int:
        """The largest of them."""
        return int(self.raw.max(initial=0, where=feasible))

    def points(self, most: int) -> Totals:
        """What they come to. Those of nodes that are not feasible mean nothing."""
        if most == 0:
            return np.full(self.raw.shape, MAX_SCORE * self._weight if self._reverse else 0, dtype=np.int32)
        shares = self.raw * MAX_SCORE // most
        return ((MAX_SCORE - shares if self._reverse else shares) * self._weight).astype(np.int32)


class Statics:
    """The answers of all such plugins: `ok` nodes pass their filters, `refusals` says why others do not."""

    __slots__ = ("_codes", "_reasons", "fixed", "normalised", "ok")

    def __init__(self, pod: PodInfo, state: ClusterState, profile: Profile, columns: Columns) -> None:
        size = len(columns.nodes)
        self._codes: Totals = np.zeros(size, dtype=np.int32)
        self._reasons: list[Refusal | None] = [None]
        self.fixed: Totals = np.zeros(size, dtype=np.int32)
        self.normalised: list[Normalised] = []
        for plugin in profile.filters:
            reads = READS.get(type(plugin))
            found = plugin.filter(pod, state) if reads else None
            if reads and found is not None:
                assert not isinstance(found, Refusal)  # such pods are not placed this way
                self._filter(found, columns.group(*reads(plugin, pod)))
        self.ok: Flags = self._codes == 0
        for plugin, weight in profile.scorers:
            reads = READS.get(type(plugin))
            if reads:
                self._score(plugin, weight, pod, state, columns.group(*reads(plugin, pod)))

    def _filter(self, found: NodeFilter, group: Group) -> None:
        codes = np.array([self._code(found.check(node)) for node in group.heads], dtype=np.int32)
        if codes.any():
            self._codes = np.where(self._codes == 0, codes[group.codes], self._codes)

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
            self.fixed += (raw[group.codes] * weight).astype(np.int32)
            return
        reverse = isinstance(plugin, TaintToleration)
        spread = Normalised(raw[group.codes], weight, reverse=reverse)
        if raw.any():
            self.normalised.append(spread)
        else:
            self.fixed += spread.points(0)

    def refusals(self, feasible: Flags) -> Iterable[tuple[Refusal, int]]:
        """Why nodes are refused here, and how many for each reason; none of them is feasible."""
        counts = np.bincount(self._codes[~feasible], minlength=len(self._reasons))
        return [(reason, int(count)) for reason, count in zip(self._reasons, counts, strict=True) if reason and count]


def _label_keys(affinity: Affinity | None) -> set[str]:
    if affinity is None:
        return set()
    required = affinity.required.node_selector_terms if affinity.required else ()
    terms = (*required, *(each.preference for each in affinity.preferred))
    return {one.key for term in terms for one in term.match_expressions} | {"" for term in terms if term.match_fields}


def _affinity_reading(plugin: Plugin, pod: PodInfo) -> Reading:
    """The labels that selectors speak of; the empty key stands for the node's name."""
    assert isinstance(plugin, NodeAffinity)
    spec = pod.wants.spec
    own = spec.affinity.node_affinity if spec.affinity else None
    found = {*spec.node_selector, *_label_keys(own), *_label_keys(plugin.args.added_affinity)}
    keys = tuple(sorted(found))
    return ("labels", keys), lambda node: tuple(node.labels.get(key) if key else node.name for key in keys)


def _image_reading(_plugin: Plugin, pod: PodInfo) -> Reading:
    images = image_names(pod.wants.spec)
    return ("images", images), lambda node: tuple(name in node.images for name in images)


READS: dict[type[Plugin], Callable[[Plugin, PodInfo], Reading]] = {
    NodeUnschedulable: lambda _plugin, _pod: ("unschedulable", lambda node: node.node.spec.unschedulable),
    NodeName: lambda _plugin, _pod: ("name", lambda node: node.name),
    TaintToleration: lambda _plugin, _pod: (
        "taints",
        lambda node: tuple((each.key, each.value, each.effect) for each in node.node.spec.taints),
    ),
    NodeAffinity: _affinity_reading,
    NodeDeclaredFeatures: lambda _plugin, _pod: ("features", lambda node: node.node.status.declared_features),
    ImageLocality: _image_reading,
}
"""The plugins that look at the node object alone, and what they read of it for a pod."""
