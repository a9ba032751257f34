"""CronJobs: a Job made whenever a schedule says so.

Source of truth: batch/validation, batch/v1/defaults.go, registry/batch/cronjob/strategy.go. The inner Job gets its
defaults when it is made, not here.
"""

from __future__ import annotations

import re

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, keep_status
from bayplan.cluster.embedded.admission.pods.defaults import default_pod_template
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import size, subdomain_name, too_long
from bayplan.cluster.embedded.admission.workloads.cron_schedule import ScheduleError, location_fault, read_schedule
from bayplan.cluster.embedded.admission.workloads.job_policies import default_pod_failure_policy
from bayplan.cluster.embedded.admission.workloads.job_spec import job_spec_warnings, validate_job_template
from bayplan.cluster.embedded.admission.workloads.numbers import not_negative
from bayplan.cluster.embedded.admission.workloads.templates import generation_moved, name_warnings
from bayplan.cluster.kinds import CRON_JOB

_NAME_BYTES = 52
"""A Job's 63 less the 11 of the time that its name gets."""

_POLICIES = ("Allow", "Forbid", "Replace")
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


def _default(doc: Doc) -> None:
    spec = doc["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    default_pod_failure_policy(spec["jobTemplate"]["spec"])
    default_pod_template(spec["jobTemplate"]["spec"]["template"])


def _prepare(doc: Doc) -> None:
    doc["status"] = {}


def _validate(doc: Doc, errors: Errors) -> None:
    _validate_spec(doc["spec"], None, errors)
    name = doc["metadata"].get("name", "")
    if size(name) > _NAME_BYTES:
        errors.invalid("metadata.name", name, too_long(_NAME_BYTES))


def _validate_spec(spec: Doc, old: Doc | None, errors: Errors) -> None:
    if spec.get("schedule"):
        _validate_schedule(spec, "TZ" in old.get("schedule", "") if old else False, errors)
    else:
        errors.required("spec.schedule")
    not_negative(spec, "spec", errors, ("startingDeadlineSeconds",))
    zone = spec.get("timeZone")
    if zone is not None and (old is None or old.get("timeZone") != zone):
        _validate_time_zone(zone, errors)
    if (policy := spec["concurrencyPolicy"]) not in _POLICIES:
        errors.not_supported("spec.concurrencyPolicy", policy, _POLICIES)
    validate_job_template(spec["jobTemplate"], "spec.jobTemplate", errors)
    not_negative(spec, "spec", errors, ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"))


def _validate_schedule(spec: Doc, zone_was_inside: bool, errors: Errors) -> None:
    path, schedule = "spec.schedule", spec["schedule"]
    try:
        read_schedule(schedule)
    except ScheduleError as fault:
        errors.invalid(path, schedule, str(fault))
    if "TZ" in schedule:
        if not zone_was_inside:
            errors.invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        elif spec.get("timeZone") is not None:
            errors.invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def _validate_time_zone(zone: str, errors: Errors) -> None:
    path = "spec.timeZone"
    if not zone:
        errors.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    parts = zone.split("/")
    if any(part in (".", "..") or part.startswith("-") or not _ZONE_PART(part) for part in parts):
        errors.invalid(path, zone, f"unknown time zone {zone}")
        return
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.invalid(path, zone, text)
    if fault := location_fault(zone):
        errors.invalid(path, zone, fault)


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    _validate_spec(new["spec"], old["spec"], errors)


def _warn(new: Doc, old: Doc | None) -> list[str]:
    warnings = name_warnings(new) if old is None else []
    if old is None or generation_moved(new, old):
        warnings += job_spec_warnings(new["spec"]["jobTemplate"]["spec"], "spec.jobTemplate.spec")
    if old is not None and "TZ" in new["spec"]["schedule"]:
        page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
        text = f"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {page} for more details"
        warnings.append(text)
    return warnings


STRATEGY = Strategy(
    kind=CRON_JOB,
    name_rule=subdomain_name,
    generation=True,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    prepare_update=keep_status,
    validate_update=_validate_update,
    prepare_status=keep_spec,
    warn=_warn,
)
