"""The columns of jobs and of the schedules that make them."""

from __future__ import annotations

from bayplan.cluster.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    Columns,
    Doc,
    at,
    condition_status,
    count,
    deleted,
    field,
    since,
    template_columns,
)
from bayplan.model.ages import human_duration
from bayplan.model.clock import Instant, parse_rfc3339

_ENDED = ("Complete", "Failed")
_UNDER_WAY = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _status(job: Doc, _now: Instant) -> str:
    words = (*_ENDED, "Terminating", *_UNDER_WAY)  # the first that holds
    holds = (deleted(job) if word == "Terminating" else condition_status(job, word) == "True" for word in words)
    return next((word for word, true in zip(words, holds, strict=True) if true), "Running")


def _completions(job: Doc, _now: Instant) -> str:
    succeeded = at(job, "status.succeeded") or 0
    if (completions := at(job, "spec.completions")) is not None:
        return f"{succeeded}/{completions}"
    parallelism = at(job, "spec.parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(job: Doc, now: Instant) -> str:
    if not (start := at(job, "status.startTime")):
        return ""
    end = at(job, "status.completionTime")
    return human_duration((parse_rfc3339(end) if end else now) - parse_rfc3339(start))


def _suspend(cron_job: Doc, _now: Instant) -> str:
    suspend = at(cron_job, "spec.suspend")
    return UNSET if suspend is None else str(suspend)


def _timezone(cron_job: Doc, _now: Instant) -> str:
    zone = at(cron_job, "spec.timeZone")
    return NONE if zone is None else zone


JOB: Columns = (
    NAME,
    Column("Status", _status),
    Column("Completions", _completions),
    Column("Duration", _duration),
    AGE,
    *template_columns("spec.template.spec", "spec.selector"),
)

CRON_JOB: Columns = (
    NAME,
    Column("Schedule", field("spec.schedule")),
    Column("Timezone", _timezone),
    Column("Suspend", _suspend, "boolean"),  # a text declared a boolean, as upstream's
    Column("Active", count("status.active"), "integer"),
    Column("Last Schedule", since("status.lastScheduleTime", NONE)),
    AGE,
    *template_columns("spec.jobTemplate.spec.template.spec", "spec.jobTemplate.spec.selector"),
)
