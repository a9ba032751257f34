"""Jobs: pods that run to their end, so many at a time, so often.

One look: count what ended, decide whether the Job is at its end, keep the right number of pods running, tell the
status. The parts stand in the modules `job_*`; here is their order. Source of truth: pkg/controller/job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Emit,
    Outcome,
    SetStatus,
    View,
    Write,
    itself,
    owner_of,
)
from bayplan.cluster.embedded.controllers.job_counting import Count, count, finished
from bayplan.cluster.embedded.controllers.job_pods import COMPONENT
from bayplan.cluster.embedded.controllers.job_verdict import (
    COMPLETE,
    REACHED,
    Verdict,
    deadline,
    is_over,
    job_condition,
    started,
    verdict,
)
from bayplan.cluster.embedded.controllers.job_view import Seen, see
from bayplan.cluster.embedded.controllers.job_work import Work, at_rest, ended, managed
from bayplan.cluster.embedded.controllers.ownership import controlled
from bayplan.cluster.embedded.controllers.readiness import is_ready
from bayplan.cluster.embedded.controllers.stamping import is_ending
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import JOB, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, parse_rfc3339, rfc3339
from bayplan.model.meta import Condition, condition
from bayplan.model.pods import Pod
from bayplan.model.workloads import Job, JobSpec, JobStatus, UncountedTerminatedPods

_OURS = "kubernetes.io/job-controller"
SUSPENDED = "Suspended"


_owner = owner_of(JOB)


def _pod(change: Change, view: View) -> Iterable[Key]:
    """A pod concerns its Job when it changes what the Job counts, which most changes in a pod's life do not."""
    if change.type is ChangeType.MODIFIED and change.old is not None and _weight(change.new) == _weight(change.old):
        return ()
    return _owner(change, view)


def _weight(item: Object) -> tuple[object, ...]:
    pod, meta = item.view(Pod), item.meta
    restarts = [one.restart_count for one in (*pod.status.container_statuses, *pod.status.init_container_statuses)]
    return pod.status.phase, is_ready(pod), meta.deletion_timestamp, restarts, meta.owner_references


class JobController:
    """Runs Jobs to their end."""

    name = COMPONENT
    watches: Mapping[Kind, Concern] = {JOB: itself, POD: _pod}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(JOB, *key)
        if item is None:
            return NOTHING
        job = item.view(Job)
        if job.spec.managed_by not in (None, _OURS) or is_over(job.status):
            return NOTHING
        return sync(item, controlled(view, item, POD), now, may_create=not is_ending(view, item.namespace))


def sync(item: Object, pods: Iterable[Object], now: Instant, *, may_create: bool = True) -> Outcome:
    """One look at a Job that has not ended."""
    seen = see(item, pods, now)
    begun = _begun(seen)
    end = verdict(seen, started(begun))
    work = _work(seen, end, may_create=may_create)
    said: list[Write] = []
    if end is None and not work.creates:
        if _is_reached(seen, work):
            end = REACHED
        elif item.meta.deletion_timestamp is None:
            begun, said = _suspension(seen, begun)
    status = msgspec.structs.replace(
        begun,
        active=work.active,
        ready=work.ready,
        terminating=work.leaving,
        uncounted_terminated_pods=begun.uncounted_terminated_pods or UncountedTerminatedPods(),
    )
    result = count(seen, status, end)
    writes = [*work.deletes, *said, *_told(seen, result, end, work), *work.creates]
    return Outcome(writes, _again(work.again, None if end is not None else deadline(seen, started(begun))))


def _begun(seen: Seen) -> JobStatus:
    if seen.status.start_time is None and not seen.spec.suspend:
        return msgspec.structs.replace(seen.status, start_time=rfc3339(seen.now))
    return seen.status


def _work(seen: Seen, end: Verdict | None, *, may_create: bool) -> Work:
    if end is not None:
        return ended(seen)
    if seen.item.meta.deletion_timestamp is not None or not may_create:
        return at_rest(seen)
    return managed(seen)


def _is_reached(seen: Seen, work: Work) -> bool:
    wanted = 1 if seen.spec.completions is None else seen.spec.completions
    return seen.succeeded >= wanted and not work.active


def _suspension(seen: Seen, status: JobStatus) -> tuple[JobStatus, list[Write]]:
    """The status of a Job that was just suspended or resumed, and the Event that says so."""
    present = condition(status.conditions, SUSPENDED)
    if seen.spec.suspend == (present is not None and present.status == "True"):
        return status, []
    word, value = ("Suspended", "True") if seen.spec.suspend else ("Resumed", "False")
    new = job_condition(SUSPENDED, value, f"Job{word}", f"Job {word.lower()}", seen.now)
    changed = msgspec.structs.replace(
        status,
        conditions=_replaced(status.conditions, new),
        start_time=None if seen.spec.suspend else rfc3339(seen.now),
    )
    return changed, [Emit(seen.item, "Normal", word, f"Job {word.lower()}", COMPONENT)]


def _replaced(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """The conditions with a new one in the place of its predecessor."""
    if condition(conditions, new.type) is None:
        return (*conditions, new)
    return tuple(new if one.type == new.type else one for one in conditions)


def _told(seen: Seen, result: Count, end: Verdict | None, work: Work) -> list[Write]:
    """The writes that bring the status up to date: names, releases, counts, and the end."""
    writes: list[Write] = []
    if result.named != seen.status and not (work.creates and _can_wait(seen, result)):
        writes.append(_status(seen, result.named))
    writes += result.releases
    last = finished(seen, result, end) if end is not None else None
    if (last or result.counted) != result.named:
        writes.append(_status(seen, last or result.counted))
    if last is not None and end is not None:
        writes += _farewell(seen, last, end)
    return writes


def _can_wait(seen: Seen, result: Count) -> bool:
    """Whether the pods that are about to be made can be in the next status.

    Upstream writes the status after it has made pods; they bring another look here, which does so. A Job still without
    a start time after a second has been refused its first pods, so its status is told without them.
    """
    if result.releases or result.named.conditions != seen.status.conditions:
        return False
    created = seen.item.meta.creation_timestamp
    waits = seen.status.start_time is None and created is not None and parse_rfc3339(created) + SECOND < seen.now
    return not waits


def _farewell(seen: Seen, status: JobStatus, end: Verdict) -> list[Write]:
    if end.final != COMPLETE:
        return [Emit(seen.item, "Warning", end.reason, end.message, COMPONENT)]
    told: list[Write] = []
    if _has_too_many(seen.spec, status):
        text = "Too many succeeded pods running after completion count reached"
        told.append(Emit(seen.item, "Warning", "TooManySucceededPods", text, COMPONENT))
    return [*told, Emit(seen.item, "Normal", "Completed", "Job completed", COMPONENT)]


def _has_too_many(spec: JobSpec, status: JobStatus) -> bool:
    return spec.completions is not None and status.succeeded > spec.completions


def _status(seen: Seen, status: JobStatus) -> SetStatus:
    return SetStatus(seen.item, msgspec.to_builtins(status))


def _again(*instants: Instant | None) -> Instant | None:
    return min((each for each in instants if each is not None), default=None)
