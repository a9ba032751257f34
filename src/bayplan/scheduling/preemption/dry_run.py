"""The dry run: who would have to leave one node for a pod to fit there.

All pods of lower priority are taken away; if that does not help, nothing will. Then they are given back, those that a
budget protects first, the more important before the less, and whoever leaves no room is a victim.

Source of truth: kube-scheduler 1.36 plugins/defaultpreemption (SelectVictimsOnNode) and util (MoreImportantPod).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from bayplan.model.clock import Instant, parse_rfc3339
from bayplan.scheduling.framework import Refusal
from bayplan.scheduling.pods import PodInfo

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.scheduling.filtering import Filters
    from bayplan.scheduling.preemption.budgets import Budgets
    from bayplan.scheduling.state import ClusterState, NodeState

NOBODY = Refusal("", ("No preemption victims found for incoming pod",), hopeless=True)
_NOW = Instant(sys.maxsize)
"""Upstream takes pods without a start time as started now; later than any other is all that matters of it."""


class Candidate(msgspec.Struct, frozen=True):
    """A node and those who would have to go, the most important first; so many of them are protected by a budget."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int


def started(pod: PodInfo) -> Instant:
    """When a pod was started."""
    at = pod.pod.status.start_time
    return _NOW if at is None else parse_rfc3339(at)


def importance(pod: PodInfo) -> tuple[int, Instant]:
    """To sort by, the most important first: higher priority, then the earlier start."""
    return -pod.priority, started(pod)


class _Trial:
    """A pod and a copy of a node, on which pods come and go."""

    def __init__(self, pod: PodInfo, node: NodeState, filters: Filters, state: ClusterState) -> None:
        self._pod, self._state = pod, state
        self._node, self._filters = node.copy(), filters.copy()

    def refusal(self) -> Refusal | None:
        return self._filters.check_among_nominated(self._node, self._pod, self._state)

    def take(self, pod: PodInfo) -> None:
        self._node.remove(pod.key)
        self._filters.remove(pod, self._node)

    def victims(self, pods: Iterable[PodInfo]) -> list[PodInfo]:
        """Give pods back, as far as there is room besides the one that comes; those who find none."""
        found = []
        for pod in pods:
            self._node.add(pod)
            self._filters.add(pod, self._node)
            if self.refusal() is not None:
                self.take(pod)
                found.append(pod)
        return found


def dry_run(
    pod: PodInfo, node: NodeState, filters: Filters, state: ClusterState, budgets: Budgets
) -> Candidate | Refusal:
    """Who would have to go, or why that would not help. Neither the node nor the filters are changed."""
    lower = [each for each in node.pods.values() if each.priority < pod.priority]
    if not lower:
        return NOBODY
    trial = _Trial(pod, node, filters, state)
    for each in lower:
        trial.take(each)
    refusal = trial.refusal()
    if refusal is not None:
        return refusal
    lower.sort(key=importance)
    violating, others = budgets.split(lower)
    protected = trial.victims(violating)
    victims = sorted((*protected, *trial.victims(others)), key=importance)  # of equals, the protected stand first
    if not victims:  # the filters contradict themselves; upstream calls it an error
        return Refusal("", (f'expected at least one victim pod on node "{node.name}"',))
    return Candidate(node.name, tuple(victims), len(protected))
