"""Crowded clusters in a few words, and attempts to make room on them."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.scheduling.arguments import DefaultPreemptionArgs
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.decision import Outcome, Preemption
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.preemption import preempt
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.state import ClusterState
from bayplan.testing import disruption_budget, node, pod
from bayplan.testing.nodes import NodeManifest
from bayplan.testing.pods import PodManifest
from bayplan.testing.policies import BudgetManifest

PROFILE = default_profile()
EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def started(name: str, priority: int = 0, day: int | None = 1, cpu: float = 1) -> PodManifest:
    """A pod that has been running since that day of January."""
    status: dict[str, Any] = {} if day is None else {"startTime": f"2026-01-{day:02d}T00:00:00Z"}
    return pod(name).requests(cpu=cpu).pod_having("priority", priority).phase("Running", **status)


def going(manifest: PodManifest, **condition: str) -> PodManifest:
    """A pod that is being deleted, after a scheduler evicted it unless the condition says otherwise."""
    deleted = manifest.having("metadata.deletionTimestamp", "2026-02-01T00:00:00Z")
    return deleted.having("status.conditions", [{**EVICTED, **condition}])


def cluster(*objects: NodeManifest | PodManifest | BudgetManifest) -> ClusterState:
    return ClusterState(each.view() for each in objects)


def small(name: str, cpu: int = 2) -> NodeManifest:
    return node(name).offers(cpu=cpu)


def attempt(state: ClusterState, manifest: PodManifest, offset: int = 0, **args: int) -> Preemption:
    """One attempt for a pod that does not fit."""
    profile = msgspec.structs.replace(PROFILE, preemption=DefaultPreemptionArgs(**args))
    incoming = PodInfo(manifest.view())
    decision = decide(state, profile, incoming)
    assert decision.outcome is Outcome.UNSCHEDULABLE
    return preempt(state, profile, incoming, decision, offset)


def keys(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple(("default", name) for name in names)


def budget(name: str, allowed: int, *disrupted: str, **labels: str) -> BudgetManifest:
    granted = dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")
    made = disruption_budget(name).having("status", {"disruptionsAllowed": allowed, "disruptedPods": granted})
    return made.covering(**labels) if labels else made
