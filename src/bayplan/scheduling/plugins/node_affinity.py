"""Node selectors and node affinity: the nodes that a pod must, and would rather, run on.

If every required term names nodes by `metadata.name In`, only these are asked at all. A profile may add an affinity of
its own, which every pod has then.

Source of truth: kube-scheduler 1.36 NodeAffinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.model.node_selectors import node_matcher, node_terms, preferred_terms
from bayplan.model.selectors import SelectorError
from bayplan.scheduling.arguments import NodeAffinityArgs
from bayplan.scheduling.framework import NodeFilter, NodeScore, Plugin, Refusal, scaled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.model.affinity import NodeAffinity as Affinity
    from bayplan.model.affinity import NodeSelectorTerm
    from bayplan.model.node_selectors import NodeMatcher, NodeTerm
    from bayplan.model.pods import PodSpec
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

_DEFAULTS = NodeAffinityArgs()


class NodeAffinity(Plugin):
    """Honours node selectors and node affinity."""

    name = "NodeAffinity"

    def __init__(self, args: NodeAffinityArgs = _DEFAULTS) -> None:
        self.args = args
        added = args.added_affinity
        required = added.required if added else None
        self._added = node_terms(required.node_selector_terms) if required else None
        self._added_wishes = preferred_terms(added.preferred) if added else ()

    def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter | Refusal | None:
        """None for a pod, in a profile, without demands. Names that contradict each other turn all nodes down."""
        spec = pod.wants.spec
        affinity = _affinity(spec)
        required = affinity.required if affinity else None
        if required is None and self._added is None and not spec.node_selector:
            return None
        only = named_nodes(required.node_selector_terms) if required else None
        if only is not None and not only:
            return Refusal(self.name, ("pod affinity terms conflict",), hopeless=True)
        return _Matching(node_matcher(spec), self._added, only)

    def score(self, pod: PodInfo, state: ClusterState, nodes: Sequence[NodeState]) -> NodeScore | None:
        """None for a pod, in a profile, without wishes."""
        affinity = _affinity(pod.wants.spec)
        wishes = preferred_terms(affinity.preferred) if affinity else ()
        if not self._added_wishes and not (affinity and affinity.preferred):
            return None
        return _Wishes((*self._added_wishes, *wishes))


def _affinity(spec: PodSpec) -> Affinity | None:
    return spec.affinity.node_affinity if spec.affinity else None


def named_nodes(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """The nodes that the terms name, if each of them names some; within a term all names must agree."""
    found: frozenset[str] = frozenset()
    for term in terms:
        lists = [
            frozenset(field.values)
            for field in term.match_fields
            if field.key == "metadata.name" and field.operator == "In"
        ]
        if not lists:
            return None
        found |= frozenset.intersection(*lists)
    return found if terms else None


class _Matching(NodeFilter):
    refusal = Refusal(NodeAffinity.name, ("node(s) didn't match Pod's node affinity/selector",), hopeless=True)
    enforced = Refusal(NodeAffinity.name, ("node(s) didn't match scheduler-enforced node affinity",), hopeless=True)

    def __init__(self, matcher: NodeMatcher, added: Sequence[NodeTerm] | None, only: frozenset[str] | None) -> None:
        self._matcher = matcher
        self._added = added
        self.only = only

    def check(self, node: NodeState) -> Refusal | None:
        if self._added is not None and not any(
            not term.problems and term.matches(node.labels, node.name) for term in self._added
        ):
            return self.enforced
        try:
            return None if self._matcher.matches(node.labels, node.name) else self.refusal
        except SelectorError:  # upstream takes a term that makes no sense for one that does not match
            return self.refusal


class _Wishes(NodeScore):
    def __init__(self, wishes: Sequence[tuple[int, NodeTerm]]) -> None:
        self._wishes = wishes

    def score(self, node: NodeState) -> int:
        return sum(weight for weight, term in self._wishes if term.matches(node.labels, node.name))

    def normalise(self, nodes: Sequence[NodeState], scores: list[int]) -> list[int]:
        return scaled(scores)
