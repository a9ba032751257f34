"""Who made a pod go, for whom and by which rule, as far as the API tells.

Two sources. A pod's own condition says the rule (`from_conditions`). The core Events of whoever did it say more: the
scheduler's `Preempted` names the pod that got the place (`from_event`). Their times differ, so one eviction may be
told twice: under the condition's reason, and under the Event's. `RULES` says which rule an Event's reason belongs to.
"""

from __future__ import annotations

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.facts import PodFacts
from bayplan.ledger.differ.reading import sound
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.differ.told import event_times, read_event
from bayplan.ledger.rows import Disruption
from bayplan.model.meta import Condition

CONDITIONS = frozenset(("DisruptionTarget", "TerminationTarget"))
"""Kubernetes' own, and Kueue's."""

_BY = {
    "PreemptionByScheduler": "",  # the message begins with the scheduler's name
    "DeletionByTaintManager": "taint-eviction-controller",
    "DeletionByDeviceTaintManager": "device-taint-eviction-controller",
    "EvictionByEvictionAPI": "",  # whoever called the API; it does not say
    "DeletionByPodGC": "pod-garbage-collector-controller",
    "TerminationByKubelet": "kubelet",
    "StoppedByKueue": "kueue",
}

RULES = {
    "Preempted": "PreemptionByScheduler",
    "Preempting": "TerminationByKubelet",
    "Evicted": "TerminationByKubelet",
    "TaintManagerEviction": "DeletionByTaintManager",
    "DeviceTaintManagerEviction": "DeletionByDeviceTaintManager",
    "NodeShutdown": "TerminationByKubelet",
}
"""The condition's reason that goes with an Event's."""
_TAKEN_BACK = "Cancelling deletion"


def from_conditions(was: PodFacts | None, facts: PodFacts, seen: Seen) -> list[Disruption]:
    """The disruptions that a version tells of first."""
    told = [each for each in facts.conditions if each.type in CONDITIONS and each.status == "True"]
    if not told or (was is not None and not was.whole):
        return []
    known = {(each.type, each.reason) for each in was.conditions if each.status == "True"} if was else set()
    return [_told_by(each, facts, seen) for each in told if (each.type, each.reason) not in known]


def _told_by(condition: Condition, facts: PodFacts, seen: Seen) -> Disruption:
    rule = condition.reason or condition.type
    by = _BY.get(rule, "")
    if rule == "PreemptionByScheduler":
        by = condition.message.partition(":")[0]
    return Disruption(
        cluster=seen.cluster,
        pod_uid=facts.uid,
        rule=rule,
        at=sound(condition.last_transition_time, seen.at) or seen.at,
        by=by,
        message=condition.message,
    )


def from_event(obj: Object, seen: Seen) -> Disruption | None:
    """The disruption that a core Event tells of, if it tells of one; whether the pod is a GPU pod, the caller knows."""
    event = read_event(obj)
    subject = event.involved_object
    if event.reason not in RULES or subject.kind != "Pod" or not subject.uid or event.message.startswith(_TAKEN_BACK):
        return None
    other = event.related
    for_whom = f"{other.namespace}/{other.name}" if other and other.kind == "Pod" and other.name else ""
    return Disruption(
        cluster=seen.cluster,
        pod_uid=subject.uid,
        rule=event.reason,
        at=event_times(event, seen)[0],
        by=event.reporting_component or event.source.component,
        for_pod=for_whom,
        message=event.message,
    )
