"""Soft constraints: the fewer of the pod's like are around a node, the better.

Counts weigh ln(domains + 2), so that a topology of few domains is not drowned by one of many.

Source of truth: kube-scheduler 1.36 podtopologyspread/scoring.go. The order of float operations is upstream's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bayplan.scheduling.framework import MAX_SCORE, NodeScore
from bayplan.scheduling.plugins.pod_topology_spread.constraints import (
    HOSTNAME,
    Constraint,
    Eligibility,
    have_all_keys,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import NodeState


class SpreadScore(NodeScore):
    """A pod's soft constraints over the feasible nodes. Hosts are counted when they are scored."""

    __slots__ = ("_constraints", "_counts", "_ignored", "_namespace", "_weights")

    def __init__(
        self,
        pod: PodInfo,
        constraints: tuple[Constraint, ...],
        every: Iterable[NodeState],
        feasible: Sequence[NodeState],
        *,
        need_all: bool,
    ) -> None:
        self._constraints = constraints
        self._namespace = pod.namespace
        self._ignored = (
            {node.name for node in feasible if not have_all_keys(node.labels, constraints)} if need_all else frozenset()
        )
        scored = [node for node in feasible if node.name not in self._ignored]
        self._counts = tuple(_domains(each.topology_key, scored) for each in constraints)
        self._weights = tuple(
            math.log((len(scored) if each.topology_key == HOSTNAME else len(counts)) + 2)
            for each, counts in zip(constraints, self._counts, strict=True)
        )
        self._count(Eligibility(pod), every, need_all=need_all)

    def _count(self, eligibility: Eligibility, every: Iterable[NodeState], *, need_all: bool) -> None:
        """Pods anywhere count for a domain that has a feasible node."""
        for node in every:
            if not node.pods or (need_all and not have_all_keys(node.labels, self._constraints)):
                continue
            for constraint, counts in zip(self._constraints, self._counts, strict=True):
                domain = node.labels.get(constraint.topology_key, "")
                if domain in counts and eligibility.admits(node, constraint):
                    counts[domain] += constraint.count(node, self._namespace)

    def score(self, node: NodeState) -> int:
        """How many are around; less is better until it is normalised."""
        if node.name in self._ignored:
            return 0
        score = 0.0
        for constraint, counts, weight in zip(self._constraints, self._counts, self._weights, strict=True):
            domain = node.labels.get(constraint.topology_key)
            if domain is None:
                continue
            here = constraint.topology_key == HOSTNAME
            count = constraint.count(node, self._namespace) if here else counts[domain]
            score += float(count) * weight + float(constraint.max_skew - 1)
        return rounded(score)

    def normalise(self, nodes: Sequence[NodeState], scores: list[int]) -> list[int]:
        """The least gets 100; nodes outside the topologies get 0."""
        counted = [score for node, score in zip(nodes, scores, strict=True) if node.name not in self._ignored]
        least, most = min(counted, default=0), max(counted, default=0)
        return [
            0 if node.name in self._ignored else MAX_SCORE * (most + least - score) // most if most else MAX_SCORE
            for node, score in zip(nodes, scores, strict=True)
        ]


def _domains(topology_key: str, nodes: Iterable[NodeState]) -> dict[str, int]:
    """The domains of the scored nodes, none counted yet. A node without the label is in a domain of no name."""
    if topology_key == HOSTNAME:
        return {}
    return {node.labels.get(topology_key, ""): 0 for node in nodes}


def rounded(score: float) -> int:
    """The nearest whole number, halves going up (Go's math.Round for what is not negative)."""
    whole = math.floor(score)
    return whole + (score - whole >= 0.5)
