"""CronJobs: a Job whenever the schedule says so.

A look at a CronJob drops old Jobs, notes which have ended, and starts the one that is due. After a change of the
schedule alone nothing is started before the next time of the new one: that waits under a key of its own
(`name/rescheduled`). Source of truth: pkg/controller/cronjob/cronjob_controllerv2.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from email.utils import format_datetime

import msgspec

from bayplan.cluster.embedded.admission.workloads.cron_schedule import (
    Schedule,
    ScheduleError,
    location_fault,
    read_schedule,
)
from bayplan.cluster.embedded.controllers.conditions import status_body
from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Create,
    Delete,
    Emit,
    Outcome,
    SetStatus,
    View,
    Write,
    owner_of,
)
from bayplan.cluster.embedded.controllers.cron_job_times import Missed, NeverDueError, due, next_after, zone_of
from bayplan.cluster.embedded.controllers.ownership import controlled, controls, reference
from bayplan.cluster.embedded.controllers.stamping import is_ending
from bayplan.cluster.embedded.store import Change, Key
from bayplan.cluster.kinds import CRON_JOB, JOB, Kind
from bayplan.cluster.objects import Object, Section
from bayplan.model.clock import MILLISECOND, SECOND, Instant, parse_rfc3339, rfc3339
from bayplan.model.meta import ObjectMeta, ObjectReference
from bayplan.model.workloads import CronJob, CronJobStatus, Job

NAME = "cronjob-controller"
SCHEDULED_TIMESTAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_PADDING = 100 * MILLISECOND  # upstream looks that much after the time, for clocks that differ
_RESCHEDULED = "/rescheduled"
_UNSUPPORTED = (
    "CRON_TZ or TZ used in schedule {schedule} is not officially supported, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


def _changed(change: Change, _view: View) -> Iterable[Key]:
    namespace, name = change.new.key
    if change.old is not None and _times(change.old) != _times(change.new):
        return ((namespace, name + _RESCHEDULED),)
    return ((namespace, name),)


def _times(item: Object) -> tuple[str, str | None]:
    spec = item.view(CronJob).spec
    return spec.schedule, spec.time_zone


class CronJobController:
    """Starts Jobs by the clock."""

    name = NAME
    watches: Mapping[Kind, Concern] = {CRON_JOB: _changed, JOB: owner_of(CRON_JOB)}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        name = key[1].removesuffix(_RESCHEDULED)
        item = view.get(CRON_JOB, key[0], name)
        if item is None:
            return NOTHING
        if name != key[1] and (again := _not_yet(item, now)) is not None:
            return Outcome(again=again)
        return _Look(item, controlled(view, item, JOB), view, now).outcome()


def _not_yet(item: Object, now: Instant) -> Instant | None:
    """When a changed schedule is next due; None if that is now."""
    try:
        schedule = _schedule(item.view(CronJob))
        last = due(schedule, _earliest(item.view(CronJob)), now).last
    except (ScheduleError, NeverDueError):
        return None
    if last is not None and now - last < SECOND:
        return None
    return _next_look(schedule, item.view(CronJob), now)


def _schedule(wanted: CronJob) -> Schedule:
    spec = wanted.spec
    zone = spec.time_zone
    return read_schedule(spec.schedule if zone is None or "TZ" in spec.schedule else f"TZ={zone} {spec.schedule}")


def _earliest(wanted: CronJob) -> Instant:
    return parse_rfc3339(wanted.status.last_schedule_time or wanted.metadata.creation_timestamp or "")


def _next_look(schedule: Schedule, wanted: CronJob, now: Instant) -> Instant | None:
    try:
        found = due(schedule, _earliest(wanted), now)
    except NeverDueError:
        last = now
    else:
        last = found.last or (found.since if found.missed is Missed.NONE else now)
    at = next_after(schedule, last)
    return None if at is None else Instant(max(at + _PADDING, now + 1))


def ended(job: Object) -> str:
    """How a Job ended: Complete, Failed, or '' if it has not."""
    for condition in job.view(Job).status.conditions:
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            return condition.type
    return ""


class _Look:
    """One look at a CronJob: what is to be written, and the status that it leads to."""

    def __init__(self, item: Object, jobs: Sequence[Object], view: View, now: Instant) -> None:
        self._item = item
        self._jobs = jobs
        self._view = view
        self._now = now
        self._wanted = item.view(CronJob)
        self._status: CronJobStatus = self._wanted.status
        self._writes: list[Write] = []

    def outcome(self) -> Outcome:
        self._drop_oldest("Complete", self._wanted.spec.successful_jobs_history_limit)
        self._drop_oldest("Failed", self._wanted.spec.failed_jobs_history_limit)
        self._note_jobs()
        if self._item.meta.deletion_timestamp is None and not self._wanted.spec.suspend:
            again = self._start()
            return Outcome(self._writes, again)
        self._tell()
        return Outcome(self._writes)

    def _say(self, type_: str, reason: str, message: str) -> None:
        self._writes.append(Emit(self._item, type_, reason, message, NAME))

    def _told(self, status: CronJobStatus) -> list[Write]:
        return [SetStatus(self._item, status_body(status))] if status != self._wanted.status else []

    def _tell(self) -> None:
        self._writes += self._told(self._status)

    # --- what has been

    def _drop_oldest(self, end: str, most: int) -> None:
        jobs = sorted((job for job in self._jobs if ended(job) == end), key=_by_start)
        for job in jobs[: max(0, len(jobs) - most)]:
            if job.meta.deletion_timestamp is None:
                self._drop(job)

    def _drop(self, job: Object) -> None:
        then = Emit(self._item, "Normal", "SuccessfulDelete", "Deleted job {name}", NAME)
        self._writes.append(Delete(job, propagation="Background", then=then))
        self._forget(job.uid)

    def _forget(self, uid: str) -> None:
        active = tuple(one for one in self._status.active if one.uid != uid)
        self._status = msgspec.structs.replace(self._status, active=active)

    def _note_jobs(self) -> None:
        active = {one.uid for one in self._status.active}
        for job in self._jobs:
            end = ended(job)
            if not end and job.uid not in active:
                self._say(
                    "Warning", "UnexpectedJob", f"Saw a job that the controller did not create or forgot: {job.name}"
                )
            if end and job.uid in active:
                self._forget(job.uid)
                self._say("Normal", "SawCompletedJob", f"Saw completed job: {job.name}, condition: {end}")
            if end == "Complete":
                self._note_success(job.view(Job).status.completion_time)
        present = {job.uid for job in self._jobs}
        for one in self._status.active:
            if one.uid not in present and self._view.get(JOB, one.namespace, one.name) is None:
                self._say("Normal", "MissingJob", f"Active job went missing: {one.name}")
                self._forget(one.uid)

    def _note_success(self, at: str | None) -> None:
        if at is not None and (self._status.last_successful_time or "") < at:
            self._status = msgspec.structs.replace(self._status, last_successful_time=at)

    # --- what is to come

    def _start(self) -> Instant | None:
        """Start the Job that is due, if one is; when to look again."""
        schedule = self._readable()
        if schedule is None:
            self._tell()
            return None
        try:
            at = self._due(schedule)
        except NeverDueError as error:
            self._say("Warning", "InvalidSchedule", f"invalid schedule: {self._wanted.spec.schedule} : {error}")
            self._tell()
            return None
        if at is None or not self._may_start(at):
            self._tell()
            return _next_look(schedule, self._wanted, self._now)
        self._create(at)
        following = next_after(schedule, at)
        return None if following is None else Instant(following + _PADDING)

    def _readable(self) -> Schedule | None:
        spec = self._wanted.spec
        if spec.time_zone is not None and (fault := location_fault(spec.time_zone)):
            self._say("Warning", "UnknownTimeZone", f'invalid timeZone: "{spec.time_zone}": {fault}')
            return None
        if "TZ" in spec.schedule:
            self._say("Warning", "UnsupportedSchedule", _UNSUPPORTED.format(schedule=f'"{spec.schedule}"'))
        try:
            return _schedule(self._wanted)
        except ScheduleError as error:
            self._say("Warning", "UnparseableSchedule", f'unparseable schedule: "{spec.schedule}" : {error}')
            return None

    def _due(self, schedule: Schedule) -> Instant | None:
        since, deadline = _earliest(self._wanted), self._wanted.spec.starting_deadline_seconds
        if deadline is not None:
            since = Instant(max(since, self._now - deadline * SECOND))
        found = due(schedule, since, self._now)
        if found.last is not None and found.missed is Missed.MANY:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._say("Warning", "TooManyMissedTimes", text)
        return found.last

    def _may_start(self, at: Instant) -> bool:
        spec, active = self._wanted.spec, self._status.active
        if spec.starting_deadline_seconds is not None and at + spec.starting_deadline_seconds * SECOND < self._now:
            self._say(
                "Warning", "MissSchedule", f"Missed scheduled time to start a job: {format_datetime(_in_zone(at, ''))}"
            )
            return False
        if self._status.last_schedule_time == rfc3339(at) or any(one.name == self._job_name(at) for one in active):
            return False
        if spec.concurrency_policy == "Forbid" and active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._say("Normal", "JobAlreadyActive", text)
            return False
        return not is_ending(self._view, self._item.namespace)

    def _job_name(self, at: Instant) -> str:
        return f"{self._item.name}-{at // SECOND // 60}"

    def _create(self, at: Instant) -> None:
        if self._wanted.spec.concurrency_policy == "Replace":
            for one in self._status.active:
                job = self._view.get(JOB, one.namespace, one.name)
                if job is not None:
                    self._drop(job)
        there = self._view.get(JOB, self._item.namespace, self._job_name(at))
        if there is not None:  # made before and not noted, or another's: then it is the other's business
            self._writes += self._told(self._started(there, at) if controls(self._item, there) else self._status)
            return
        template = self._wanted.spec.job_template
        meta = ObjectMeta(
            name=self._job_name(at),
            namespace=self._item.namespace,
            labels=template.metadata.labels,
            annotations={**template.metadata.annotations, SCHEDULED_TIMESTAMP: self._local(at)},
            owner_references=(reference(self._item),),
        )
        self._writes.append(
            Create(
                JOB,
                meta,
                {"spec": Section(bytes(template.spec))},
                then=Emit(self._item, "Normal", "SuccessfulCreate", "Created job {name}", NAME),
                refused=Emit(self._item, "Warning", "FailedCreate", "Error creating job: {error}", NAME),
                follow=lambda job: self._told(self._started(job, at)),
                instead=lambda _error: self._told(self._status),
            )
        )

    def _started(self, job: Object, at: Instant) -> CronJobStatus:
        noted = ObjectReference(
            api_version=JOB.api_version,
            kind=JOB.name,
            namespace=job.namespace,
            name=job.name,
            uid=job.uid,
            resource_version=job.meta.resource_version,
        )
        return msgspec.structs.replace(
            self._status, active=(*self._status.active, noted), last_schedule_time=rfc3339(at)
        )

    def _local(self, at: Instant) -> str:
        local = _in_zone(at, self._wanted.spec.time_zone or "")
        return local.isoformat().removesuffix("+00:00") + ("" if local.utcoffset() else "Z")


def _by_start(job: Object) -> tuple[bool, str, str]:
    start = job.view(Job).status.start_time
    return (start is None, start or "", job.name)


def _in_zone(at: Instant, zone: str) -> datetime:
    return datetime.fromtimestamp(at // SECOND, zone_of(zone))
