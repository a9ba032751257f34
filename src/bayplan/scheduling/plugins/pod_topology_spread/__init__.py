"""Pods of a kind are spread over the values of a node label: no further apart than asked, or as evenly as can be.

Hard constraints (DoNotSchedule) filter, soft ones (ScheduleAnyway) score. A pod that names no constraint gets those of
the profile, if a Service or its controller tells who its like are.

Source of truth: kube-scheduler 1.36, PodTopologySpread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.arguments import PodTopologySpreadArgs
from bayplan.scheduling.framework import Plugin
from bayplan.scheduling.plugins.pod_topology_spread.constraints import (
    NAME,
    SYSTEM_CONSTRAINTS,
    constraints_of,
    default_selector,
)
from bayplan.scheduling.plugins.pod_topology_spread.filtering import SpreadFilter
from bayplan.scheduling.plugins.pod_topology_spread.scoring import SpreadScore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.model.selectors import Selector
    from bayplan.scheduling.plugins.pod_topology_spread.constraints import Constraint
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

__all__ = ["PodTopologySpread"]

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
_DEFAULTS = PodTopologySpreadArgs()


class PodTopologySpread(Plugin):
    """Keeps the numbers of like pods in the domains of a topology close to each other."""

    name = NAME

    def __init__(self, args: PodTopologySpreadArgs = _DEFAULTS) -> None:
        self.args = args
        self._system = args.defaulting_type == "System"
        self._defaults = SYSTEM_CONSTRAINTS if self._system else args.default_constraints

    def constraints(self, pod: PodInfo, state: ClusterState, action: str) -> tuple[Constraint, ...]:
        """The constraints of one kind that a pod has, its own or the profile's."""
        return constraints_of(pod, state, self._defaults, action)

    def goes_by(self, pod: PodInfo, state: ClusterState) -> Selector | None:
        """The selector that the profile's constraints would have for a pod; None if it has its own constraints."""
        own = pod.pod.spec.topology_spread_constraints
        return None if own or not self._defaults else default_selector(pod, state)

    def needs_all(self, pod: PodInfo) -> bool:
        """Whether nodes must have all labels to be scored. Under the system's own, a zone may be missing."""
        return bool(pod.pod.spec.topology_spread_constraints) or not self._system

    def filter(self, pod: PodInfo, state: ClusterState) -> SpreadFilter | None:
        """Hard constraints."""
        constraints = self.constraints(pod, state, HARD)
        return SpreadFilter.of(pod, constraints, state.nodes) if constraints else None

    def score(self, pod: PodInfo, state: ClusterState, nodes: Sequence[NodeState]) -> SpreadScore | None:
        """Soft constraints."""
        constraints = self.constraints(pod, state, SOFT)
        if not constraints:
            return None
        return SpreadScore(pod, constraints, state.nodes, nodes, need_all=self.needs_all(pod))
