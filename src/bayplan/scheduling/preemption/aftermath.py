"""What is to be written once a node is chosen: evictions, and nominations given, kept and withdrawn.

Nothing is written here. Upstream withdraws nominations first, then marks and deletes each victim.

Source of truth: kube-scheduler 1.36 framework/preemption/executor.go (prepareCandidateAsync, PreemptPod).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.model.meta import Condition
from bayplan.scheduling.pods import PodInfo, PodKey

if TYPE_CHECKING:
    from bayplan.scheduling.decision import Preemption
    from bayplan.scheduling.state import ClusterState

DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"


class Eviction(msgspec.Struct, frozen=True):
    """A pod to delete, the condition that it gets before, and the event (of type Normal) about it afterwards."""

    pod: PodKey
    condition: Condition
    """Without times: who writes it knows them."""
    message: str
    reason: str = "Preempted"
    action: str = "Preempting"


class Aftermath(msgspec.Struct, frozen=True):
    """What follows from an attempt. `nomination` is the pod's new nominatedNodeName; None leaves it as it is."""

    nomination: str | None = None
    withdrawn: tuple[PodKey, ...] = ()
    evictions: tuple[Eviction, ...] = ()


def aftermath(state: ClusterState, pod: PodInfo, preemption: Preemption) -> Aftermath:
    """What follows from an attempt, whether it found a node or not."""
    if not preemption.eligible:
        return Aftermath()
    chosen = state.node(preemption.node)
    if chosen is None:
        return Aftermath("")
    victims = [chosen.pods[key] for key in preemption.victims.pods]
    evictions = tuple(_eviction(each, pod, chosen.name) for each in victims if not each.terminating)
    withdrawn = clear_lower_nominations(state, pod, chosen.name) if evictions else ()  # upstream has nothing to do then
    return Aftermath(chosen.name, tuple(each.key for each in withdrawn), evictions)


def clear_lower_nominations(state: ClusterState, pod: PodInfo, node: str) -> tuple[PodInfo, ...]:
    """The pods that lose their nomination to a node: those of lower priority might no longer fit there."""
    return tuple(each for each in state.nominated_on(node) if each.priority < pod.priority)


def _eviction(victim: PodInfo, pod: PodInfo, node: str) -> Eviction:
    condition = Condition(
        type=DISRUPTION_TARGET,
        status="True",
        observed_generation=victim.pod.metadata.generation,
        reason=BY_SCHEDULER,
        message=f"{pod.pod.spec.scheduler_name}: preempting to accommodate a higher priority pod",
    )
    return Eviction(victim.key, condition, f"Preempted by pod {pod.pod.metadata.uid} on node {node}")
