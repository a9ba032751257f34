"""Taints keep a pod off nodes whose taints it does not tolerate. Hard effects filter, PreferNoSchedule scores.

Source of truth: kube-scheduler 1.36 TaintToleration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.model.taints import HARD_EFFECTS, SOFT_EFFECTS, count_untolerated, first_untolerated
from bayplan.scheduling.framework import NodeFilter, NodeScore, Plugin, Refusal, scaled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.model.taints import Toleration
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState


class TaintToleration(Plugin):
    """Honours taints."""

    name = "TaintToleration"

    def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter:
        """Always: any node may be tainted."""
        return _Tolerated(pod.wants.spec.tolerations)

    def score(self, pod: PodInfo, state: ClusterState, nodes: Sequence[NodeState]) -> NodeScore:
        """Always: the fewer taints put up with, the better."""
        return _Repelled(pod.wants.spec.tolerations)


class _Tolerated(NodeFilter):
    refusal = Refusal(TaintToleration.name, ("node(s) had untolerated taint(s)",), hopeless=True)

    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._tolerations = tolerations

    def check(self, node: NodeState) -> Refusal | None:
        taint = first_untolerated(node.node.spec.taints, self._tolerations, HARD_EFFECTS)
        return None if taint is None else self.refusal


class _Repelled(NodeScore):
    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._tolerations = tolerations

    def score(self, node: NodeState) -> int:
        return count_untolerated(node.node.spec.taints, self._tolerations, SOFT_EFFECTS)

    def normalise(self, nodes: Sequence[NodeState], scores: list[int]) -> list[int]:
        return scaled(scores, reverse=True)
