"""Pods want to be near to some pods and away from others, within a topology; pods that are there have a word in it.

Required terms filter, preferred ones score. What counts is the number of matching pods (or the sum of weights) per
topology pair: a node label and its value.

A `namespaceSelector` of the incoming pod's terms is resolved to names, but upstream also leaves it in force and then
matches it against no labels at all. So do we: one that an unlabelled namespace satisfies speaks of every namespace.

Source of truth: kube-scheduler 1.36, InterPodAffinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from bayplan.model.policies import Namespace
from bayplan.model.selectors import NOTHING
from bayplan.scheduling.arguments import InterPodAffinityArgs
from bayplan.scheduling.framework import MAX_SCORE, NodeFilter, NodeScore, Plugin, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bayplan.scheduling.pods import AffinityTerm, PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

    Terms = tuple[AffinityTerm, ...]
    Pair = tuple[str, str]

NAME = "InterPodAffinity"
NOT_NEAR = Refusal(NAME, ("node(s) didn't match pod affinity rules",), hopeless=True)
TOO_NEAR = Refusal(NAME, ("node(s) didn't match pod anti-affinity rules",))
UNWELCOME = Refusal(NAME, ("node(s) didn't satisfy existing pods anti-affinity rules",))
_NO_LABELS: dict[str, str] = {}
_DEFAULTS = InterPodAffinityArgs()


class InterPodAffinity(Plugin):
    """Affinity and anti-affinity between pods."""

    name = NAME

    def __init__(self, args: InterPodAffinityArgs = _DEFAULTS) -> None:
        self.args = args

    def filter(self, pod: PodInfo, state: ClusterState) -> AffinityFilter | None:
        """Required terms of the pod, and required anti-affinity of those that are there."""
        wants = pod.wants
        found = AffinityFilter(
            pod,
            state.namespace_labels(pod.namespace),
            resolved(wants.affinity, state),
            resolved(wants.anti_affinity, state),
        )
        for other, node in state.with_anti_affinity.values():
            found.count_existing(other, node, 1)
        if wants.affinity or wants.anti_affinity:
            for node in state.nodes:
                for other in node.pods.values():
                    found.count_incoming(other, node, 1)
        elif not found.existing:
            return None
        return found

    def score(self, pod: PodInfo, state: ClusterState, nodes: Sequence[NodeState]) -> AffinityScore | None:
        """Preferred terms of the pod and of those that are there; their required affinity is a wish here, too."""
        near, away = pod.wants.preferred_affinity, pod.wants.preferred_anti_affinity
        choosy = bool(near or away)
        if self.args.ignore_preferred_terms_of_existing_pods and not choosy:
            return None
        found = AffinityScore()
        if choosy:
            near, away = resolved(near, state), resolved(away, state)
            for node in state.nodes:
                for other in node.pods.values():
                    found.count(near, 1, other, _NO_LABELS, node)
                    found.count(away, -1, other, _NO_LABELS, node)
        labels = state.namespace_labels(pod.namespace)
        for other, node in state.with_affinity.values():
            found.count(other.wants.affinity, 1, pod, labels, node, self.args.hard_pod_affinity_weight)
            found.count(other.wants.preferred_affinity, 1, pod, labels, node)
            found.count(other.wants.preferred_anti_affinity, -1, pod, labels, node)
        return found if found.weights else None


class AffinityFilter(NodeFilter):
    """The pods that matter to one pod, counted by topology pair. Pairs that nobody is in are not kept."""

    __slots__ = ("_affinity", "_anti_affinity", "_namespace_labels", "_near_itself", "_pod", "away", "existing", "near")

    def __init__(
        self, pod: PodInfo, namespace_labels: Mapping[str, str], affinity: Terms, anti_affinity: Terms
    ) -> None:
        self._pod = pod
        self._namespace_labels = namespace_labels
        self._affinity = affinity
        self._anti_affinity = anti_affinity
        self._near_itself = matches_all(affinity, pod)
        self.near: dict[Pair, int] = {}
        self.away: dict[Pair, int] = {}
        self.existing: dict[Pair, int] = {}

    def count_existing(self, other: PodInfo, node: NodeState, number: int) -> None:
        """Count what another pod has against this one."""
        for term in other.wants.anti_affinity:
            if term.matches(self._pod, self._namespace_labels):
                _count(self.existing, node, term.topology_key, number)

    def count_incoming(self, other: PodInfo, node: NodeState, number: int) -> None:
        """Count another pod if this one has something for it (by all terms) or against it (by one)."""
        if matches_all(self._affinity, other):
            for term in self._affinity:
                _count(self.near, node, term.topology_key, number)
        for term in self._anti_affinity:
            if term.matches(other, _NO_LABELS):
                _count(self.away, node, term.topology_key, number)

    def check(self, node: NodeState) -> Refusal | None:
        """Affinity, anti-affinity, then that of the others."""
        if self._affinity and not self._is_near(node.labels):
            return NOT_NEAR
        if self.away and _is_among(self.away, node):
            return TOO_NEAR
        if self.existing and _is_among(self.existing, node):
            return UNWELCOME
        return None

    def _is_near(self, labels: Mapping[str, str]) -> bool:
        """Whether those wanted are in every topology. The first pod of a kind that wants its like goes anywhere."""
        if any(term.topology_key not in labels for term in self._affinity):
            return False
        if not self.near:
            return self._near_itself
        return all(self.near.get((key, labels[key]), 0) > 0 for key in (term.topology_key for term in self._affinity))

    def copy(self) -> Self:
        """With counts of its own."""
        other = type(self)(self._pod, self._namespace_labels, self._affinity, self._anti_affinity)
        other.near, other.away, other.existing = self.near.copy(), self.away.copy(), self.existing.copy()
        return other

    def add(self, pod: PodInfo, node: NodeState) -> None:
        """Count a pod in."""
        self.count_existing(pod, node, 1)
        self.count_incoming(pod, node, 1)

    def remove(self, pod: PodInfo, node: NodeState) -> None:
        """Count a pod out."""
        self.count_existing(pod, node, -1)
        self.count_incoming(pod, node, -1)


class AffinityScore(NodeScore):
    """The sums of weights by topology key and value."""

    __slots__ = ("weights",)

    def __init__(self) -> None:
        self.weights: dict[str, dict[str, int]] = {}

    def count(
        self,
        terms: Terms,
        sign: int,
        pod: PodInfo,
        namespace_labels: Mapping[str, str],
        node: NodeState,
        weight: int | None = None,
    ) -> None:
        """Add the terms that match a pod to where the node is, with their own weight or the one given."""
        if weight == 0:
            return
        for term in terms:
            value = node.labels.get(term.topology_key)
            if value is not None and term.matches(pod, namespace_labels):
                sums = self.weights.setdefault(term.topology_key, {})
                sums[value] = sums.get(value, 0) + sign * (term.weight if weight is None else weight)

    def score(self, node: NodeState) -> int:
        """What comes together where the node is."""
        labels = node.labels
        return sum(sums.get(labels[key], 0) for key, sums in self.weights.items() if key in labels)

    def normalise(self, nodes: Sequence[NodeState], scores: list[int]) -> list[int]:
        """The lowest gets 0, the highest 100."""
        least = min(scores)
        span = max(scores) - least
        if not span:
            return [0] * len(scores)
        return [int(float(MAX_SCORE) * (float(score - least) / float(span))) for score in scores]


def resolved(terms: Terms, state: ClusterState) -> Terms:
    """The terms of an incoming pod, with the namespaces named that their selectors select."""
    return tuple(_with_namespaces(term, state) for term in terms)


def _with_namespaces(term: AffinityTerm, state: ClusterState) -> AffinityTerm:
    selector = term.namespace_selector
    if selector is NOTHING or not selector:
        return term
    named = {each.metadata.name for each in state.all(Namespace) if selector.matches(each.metadata.labels)}
    return msgspec.structs.replace(term, namespaces=term.namespaces | named)


def matches_all(terms: Iterable[AffinityTerm], pod: PodInfo) -> bool:
    """Whether a pod is one that an incoming pod's terms speak of, all of them."""
    return bool(terms) and all(term.matches(pod, _NO_LABELS) for term in terms)


def _is_among(counts: Mapping[Pair, int], node: NodeState) -> bool:
    return any(counts.get(pair, 0) > 0 for pair in node.labels.items())


def _count(counts: dict[Pair, int], node: NodeState, key: str, number: int) -> None:
    value = node.labels.get(key)
    if value is None:
        return
    total = counts.get((key, value), 0) + number
    if total:
        counts[key, value] = total
    else:
        del counts[key, value]
