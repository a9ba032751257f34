"""What is written about pods: bound, refused, evicted. Event first, then status, as kube-scheduler does it.

A pod that is refused again for the same reasons is not told again.

Source of truth: kube-scheduler 1.36 schedule_one.go (handleSchedulingFailure, updatePod) and
framework/preemption/executor.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayplan.cluster.embedded.controllers.contract import Bind, Delete, Emit, SetStatus, Write
from bayplan.cluster.embedded.subresources import with_condition
from bayplan.model.clock import Instant, rfc3339
from bayplan.model.pods import Pod

if TYPE_CHECKING:
    from bayplan.cluster.objects import Object
    from bayplan.scheduling.preemption import Eviction

Status = dict[str, Any]
_LONGEST_NOTE = 1024
"""What an Event may say."""


def placed(item: Object, node: str, annotations: dict[str, str]) -> list[Write]:
    """A pod goes to a node."""
    said = _said(item, "Normal", "Scheduled", f"Successfully assigned {item.namespace}/{item.name} to {node}")
    return [Bind(item, node, said, annotations)]


def skipped(item: Object) -> list[Write]:
    """A pod is being deleted before it ever had a place."""
    return [_said(item, "Warning", "FailedScheduling", f"skip schedule deleting pod: {item.namespace}/{item.name}")]


def refused(item: Object, message: str, nomination: str | None, now: Instant) -> list[Write]:
    """A pod found no place. `nomination` is where it waits for one, None if that stays as it is."""
    status: Status = item.sections["status"].plain()
    condition = {
        "type": "PodScheduled",
        "observedGeneration": item.meta.generation,
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(now),
        "reason": "Unschedulable",
        "message": message,
    }
    changed = with_condition(status, condition)
    if nomination:
        changed["nominatedNodeName"] = nomination
    elif nomination is not None:
        changed.pop("nominatedNodeName", None)
    if changed == status:
        return []
    note = message if len(message) <= _LONGEST_NOTE else f"{message[: _LONGEST_NOTE - 4]} ..."
    return [_said(item, "Warning", "FailedScheduling", note), SetStatus(item, changed)]


def withdrawn(item: Object) -> list[Write]:
    """A pod waits no longer for the node that it was promised."""
    status: Status = item.sections["status"].plain()
    status.pop("nominatedNodeName", None)
    return [SetStatus(item, status)]


def evicted(item: Object, eviction: Eviction, preemptor: Object, scheduler: str, now: Instant) -> list[Write]:
    """A pod has to go for a more important one, which the Event names as upstream's does: the message has its uid."""
    told = eviction.condition
    condition = {
        "type": told.type,
        "observedGeneration": told.observed_generation,
        "status": told.status,
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(now),
        "reason": told.reason,
        "message": told.message,
    }
    said = Emit(item, "Normal", eviction.reason, eviction.message, scheduler, related=preemptor)
    return [SetStatus(item, with_condition(item.sections["status"].plain(), condition)), Delete(item, then=said)]


def _said(item: Object, type_: str, reason: str, message: str) -> Emit:
    return Emit(item, type_, reason, message, item.view(Pod).spec.scheduler_name)
