"""What a Deployment's ReplicaSets amount to: counts, availability, and whether the rollout gets on.

Progress is a comparison of the status before with the status now; a rollout that shows none for
progressDeadlineSeconds has failed, until it moves again. Source of truth: pkg/controller/deployment/progress.go,
calculateStatus and checkPausedConditions in sync.go.
"""

from __future__ import annotations

import msgspec

from bayplan.cluster.embedded.controllers.conditions import (
    Conditions,
    deployment_condition,
    with_condition,
    without,
)
from bayplan.cluster.embedded.controllers.deployment_parts import Parts, max_unavailable, total
from bayplan.cluster.embedded.controllers.replica_set import REPLICA_FAILURE
from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.meta import Condition, condition
from bayplan.model.workloads import Deployment, DeploymentStatus, ReplicaSet

PROGRESSING = "Progressing"
AVAILABLE = "Available"
_TIMED_OUT = "ProgressDeadlineExceeded"
_DONE = "NewReplicaSetAvailable"
_PAUSED = "DeploymentPaused"
_NO_DEADLINE = 2**31 - 1


def has_deadline(wanted: Deployment) -> bool:
    """Whether lack of progress is to be noticed."""
    return wanted.spec.progress_deadline_seconds != _NO_DEADLINE


def pausing(wanted: Deployment, now: Instant) -> Conditions:
    """The conditions once a pause or its end is noted, so that the deadline does not run meanwhile."""
    conditions = wanted.status.conditions
    progress = condition(conditions, PROGRESSING)
    reason = progress.reason if progress else ""
    if not has_deadline(wanted) or reason == _TIMED_OUT or wanted.spec.paused == (reason == _PAUSED):
        return conditions
    reason, text = (_PAUSED, "paused") if wanted.spec.paused else ("DeploymentResumed", "resumed")
    return with_condition(
        conditions, deployment_condition(PROGRESSING, "Unknown", reason, f"Deployment is {text}", now)
    )


def noted(conditions: Conditions, wanted: Deployment, reason: str, message: str, now: Instant) -> Conditions:
    """The conditions with a step of the rollout noted."""
    if not has_deadline(wanted):
        return conditions
    return with_condition(conditions, deployment_condition(PROGRESSING, "True", reason, message, now))


def counted(wanted: Deployment, parts: Parts, conditions: Conditions, now: Instant) -> DeploymentStatus:
    """The counts, and whether enough is available."""
    available = sum(one.status.available_replicas for one in parts.all)
    if available >= wanted.spec.replicas - max_unavailable(wanted):
        words = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        words = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return DeploymentStatus(
        observed_generation=wanted.metadata.generation,
        replicas=sum(one.status.replicas for one in parts.all),
        updated_replicas=parts.new.status.replicas if parts.new else 0,
        ready_replicas=sum(one.status.ready_replicas for one in parts.all),
        available_replicas=available,
        unavailable_replicas=max(total(parts.all) - available, 0),
        terminating_replicas=_terminating(parts.all),
        conditions=with_condition(conditions, deployment_condition(AVAILABLE, *words, now)),
        collision_count=wanted.status.collision_count,
    )


def _terminating(parts: tuple[ReplicaSet, ...]) -> int | None:
    told = [one.status.terminating_replicas for one in parts if one.status.observed_generation]
    return None if None in told else sum(filter(None, told))


def is_complete(wanted: Deployment, status: DeploymentStatus) -> bool:
    """Whether all that was asked for is there, new and available, and nothing else."""
    counts = {status.updated_replicas, status.replicas, status.available_replicas}
    return counts == {wanted.spec.replicas} and status.observed_generation >= wanted.metadata.generation


def rolled(wanted: Deployment, parts: Parts, conditions: Conditions, now: Instant) -> DeploymentStatus:
    """The status in the course of a rollout. `conditions` are those stored, with what this look has noted."""
    status = counted(wanted, parts, conditions, now)
    found = status.conditions
    if not has_deadline(wanted):
        found = without(found, PROGRESSING)
    else:
        present = condition(conditions, PROGRESSING)
        is_over = status.replicas == status.updated_replicas and present is not None and present.reason == _DONE
        if not is_over:
            found = _with_progress(wanted, parts, status, present, now)
    failure = _failure(parts)
    found = without(found, REPLICA_FAILURE) if failure is None else with_condition(found, failure)
    return msgspec.structs.replace(status, conditions=found)


def _with_progress(
    wanted: Deployment, parts: Parts, status: DeploymentStatus, present: Condition | None, now: Instant
) -> Conditions:
    found = status.conditions
    who = f'ReplicaSet "{parts.new.metadata.name}"' if parts.new else f'Deployment "{wanted.metadata.name}"'

    def told(value: str, reason: str, words: str) -> Condition:
        return deployment_condition(PROGRESSING, value, reason, f"{who} {words}", now)

    if is_complete(wanted, status):
        return with_condition(found, told("True", _DONE, "has successfully progressed."))
    if _has_moved(wanted.status, status):
        moved = told("True", "ReplicaSetUpdated", "is progressing.")
        if present is not None and present.status == "True":  # the time of the update is new even if all else stays
            moved = msgspec.structs.replace(moved, last_transition_time=present.last_transition_time)
        return (*without(found, PROGRESSING), moved)
    if _is_late(wanted, present, now):
        return with_condition(found, told("False", _TIMED_OUT, "has timed out progressing."))
    return found


def _has_moved(before: DeploymentStatus, now: DeploymentStatus) -> bool:
    return (
        now.updated_replicas > before.updated_replicas
        or now.replicas - now.updated_replicas < before.replicas - before.updated_replicas
        or now.ready_replicas > before.ready_replicas
        or now.available_replicas > before.available_replicas
    )


def _is_late(wanted: Deployment, progress: Condition | None, now: Instant) -> bool:
    if progress is None or progress.reason == _DONE:
        return False
    return progress.reason == _TIMED_OUT or _deadline(wanted, progress) < now


def _deadline(wanted: Deployment, progress: Condition) -> Instant:
    since = parse_rfc3339(progress.last_update_time or "1970-01-01T00:00:00Z")
    return Instant(since + wanted.spec.progress_deadline_seconds * SECOND)


def next_check(wanted: Deployment, status: DeploymentStatus) -> Instant | None:
    """When a rollout in this state has to have moved; a second late, as upstream, since times are whole seconds."""
    progress = condition(status.conditions, PROGRESSING)
    if progress is None or not has_deadline(wanted) or is_complete(wanted, status):
        return None
    if progress.reason in (_TIMED_OUT, _DONE):
        return None
    return Instant(_deadline(wanted, progress) + SECOND)


def _failure(parts: Parts) -> Condition | None:
    """A failure of the new ReplicaSet, or else of an old one."""
    for one in (*((parts.new,) if parts.new else ()), *parts.old):
        found = condition(one.status.conditions, REPLICA_FAILURE)
        if found is not None:
            return msgspec.structs.replace(found, last_update_time=found.last_transition_time)
    return None
