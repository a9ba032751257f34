"""The status of a Job: what its controller, ours or another's, may write.

Source of truth: batch/validation (validateJobStatus, ValidateJobStatusUpdate) and registry/batch/job/strategy.go. Most
rules bind only what a write changes, so that a bad status stored long ago does not block every later write; each row of
the tables below names the aspects whose change brings its rule into force.
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.metadata import IMMUTABLE
from bayplan.cluster.embedded.admission.workloads.job_policies import (
    IndexListError,
    count_indexes,
    invalid,
    parse_interval,
)
from bayplan.cluster.embedded.admission.workloads.numbers import not_negative

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_ASPECTS = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
_FIELDS = (
    "completedIndexes",
    "failedIndexes",
    "active",
    "startTime",
    "completionTime",
    "uncountedTerminatedPods",
    "ready",
    "terminating",
)


def is_true(job: Doc, condition: str, status: str = "True") -> bool:
    """Whether the Job has a condition with this status."""
    conditions = job["status"].get("conditions") or ()
    return any(c.get("type") == condition and c.get("status") == status for c in conditions)


def _is_finished(job: Doc) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def validate_job_status(new: Doc, old: Doc, errors: Errors) -> None:
    """A write of status over another."""
    status = new["status"]
    not_negative(status, "status", errors, _COUNTS)
    _validate_uncounted(status.get("uncountedTerminatedPods") or {}, errors)
    changed = _changes(new, old)
    for aspects, rule in _RULES:
        if not changed.isdisjoint(aspects):
            rule(new, errors)
    if "startTime" in changed:
        _validate_start_time(new, old, errors)
    _validate_conditions(new, errors)
    _validate_progress(new, old, errors)


def _changes(new: Doc, old: Doc) -> set[str]:
    changed = {aspect for aspect in _ASPECTS if is_true(new, aspect) != is_true(old, aspect)}
    changed |= {field for field in _FIELDS if new["status"].get(field) != old["status"].get(field)}
    if _is_finished(new) != _is_finished(old):
        changed.add("finished")
    return changed


def _validate_uncounted(pods: Doc, errors: Errors) -> None:
    seen: set[str] = set()
    for outcome in ("succeeded", "failed"):
        for i, uid in enumerate(pods.get(outcome) or ()):
            path = f"status.uncountedTerminatedPods.{outcome}[{i}]"
            if not uid:
                errors.invalid(path, uid, "must not be empty")
            elif uid in seen:
                errors.duplicate(path, uid)
            seen.add(uid)


def _exclude(one: str, other: str, text: str) -> Callable[[Doc, Errors], None]:
    def rule(job: Doc, errors: Errors) -> None:
        if is_true(job, one) and is_true(job, other):
            invalid("status.conditions", text, errors)

    return rule


def _need(one: str, other: str, text: str) -> Callable[[Doc, Errors], None]:
    def rule(job: Doc, errors: Errors) -> None:
        if is_true(job, one) and not is_true(job, other):
            invalid("status.conditions", text, errors)

    return rule


def _completion_time(job: Doc, errors: Errors) -> None:
    time = job["status"].get("completionTime")
    if time is not None and not is_true(job, "Complete"):
        text = "cannot set completionTime when there is no Complete=True condition"
        errors.invalid("status.completionTime", time, text)
    if time is None and is_true(job, "Complete"):
        errors.required("status.completionTime", "completionTime is required for Complete jobs")


def _times_in_order(job: Doc, errors: Errors) -> None:
    start, end = job["status"].get("startTime"), job["status"].get("completionTime")
    if start is not None and end is not None and end < start:
        errors.invalid("status.completionTime", end, "must be equal to or after `startTime`")


def _finished_without(field: str) -> Callable[[Doc, Errors], None]:
    def rule(job: Doc, errors: Errors) -> None:
        if (count := job["status"].get(field) or 0) > 0 and _is_finished(job):
            errors.invalid(f"status.{field}", count, f"{field}>0 is invalid for finished job")

    return rule


def _finished_was_started(job: Doc, errors: Errors) -> None:
    had_nothing_to_do = job["spec"].get("suspend") and job["spec"].get("completions") == 0
    if job["status"].get("startTime") is None and _is_finished(job) and not had_nothing_to_do:
        errors.required("status.startTime", "startTime is required for finished job")


def _finished_is_counted(job: Doc, errors: Errors) -> None:
    pods = job["status"].get("uncountedTerminatedPods") or {}
    if _is_finished(job) and (pods.get("failed") or pods.get("succeeded")):
        errors.invalid("status.uncountedTerminatedPods", pods, "must be empty for finished job")


def _index_list(job: Doc, field: str, errors: Errors) -> None:
    text, completions = job["status"].get(field), job["spec"].get("completions")
    if text is None or completions is None:
        return
    try:
        count_indexes(text, completions)
    except IndexListError as fault:
        errors.invalid(f"status.{field}", text, f"error parsing {field}: {fault}")


def _completed_indexes(job: Doc, errors: Errors) -> None:
    _index_list(job, "completedIndexes", errors)
    indexes = job["status"].get("completedIndexes")
    if indexes and job["spec"].get("completionMode") != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.invalid("status.completedIndexes", indexes, text)


def _failed_indexes(job: Doc, errors: Errors) -> None:
    indexes = job["status"].get("failedIndexes")
    if job["spec"].get("backoffLimitPerIndex") is not None:
        _index_list(job, "failedIndexes", errors)
    elif indexes is not None:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.invalid("status.failedIndexes", indexes, text)


def _indexes_apart(job: Doc, errors: Errors) -> None:
    completed, failed = (_intervals(job, field) for field in ("completedIndexes", "failedIndexes"))
    overlaps = (max(c[0], f[0]) for c in completed for f in failed if c[0] <= f[1] and f[0] <= c[1])
    if (first := min(overlaps, default=None)) is not None:
        text = f"failedIndexes and completedIndexes overlap at index: {first}"
        errors.invalid("status.failedIndexes", job["status"]["failedIndexes"], text)


def _intervals(job: Doc, field: str) -> list[tuple[int, int]]:
    """The readable intervals of an index list; the others are reported by its own rule."""
    text, completions, found = job["status"].get(field), job["spec"].get("completions"), list[tuple[int, int]]()
    if text and completions is not None:
        for interval in text.split(","):
            try:
                found.append(parse_interval(interval, completions))
            except IndexListError:
                continue
    return found


def _ready_is_active(job: Doc, errors: Errors) -> None:
    ready = job["status"].get("ready")
    if ready is not None and ready > job["status"].get("active", 0):
        errors.invalid("status.ready", ready, "cannot set more ready pods than active")


_RULES: tuple[tuple[frozenset[str], Callable[[Doc, Errors], None]], ...] = tuple(
    (frozenset(aspects.split()), rule)
    for aspects, rule in (
        ("Complete Failed", _exclude("Complete", "Failed", "cannot set Complete=True and Failed=true conditions")),
        (
            "Complete FailureTarget",
            _exclude("Complete", "FailureTarget", "cannot set Complete=True and FailureTarget=true conditions"),
        ),
        ("Complete completionTime", _completion_time),
        ("startTime completionTime", _times_in_order),
        (
            "Failed failedIndexes",
            _need(
                "Failed", "FailureTarget", "cannot set Failed=True condition without the FailureTarget=true condition"
            ),
        ),
        (
            "Complete SuccessCriteriaMet",
            _need(
                "Complete",
                "SuccessCriteriaMet",
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            ),
        ),
        ("finished active", _finished_without("active")),
        ("finished startTime", _finished_was_started),
        ("finished uncountedTerminatedPods", _finished_is_counted),
        ("completedIndexes", _completed_indexes),
        ("failedIndexes", _failed_indexes),
        ("completedIndexes failedIndexes", _indexes_apart),
        ("finished terminating", _finished_without("terminating")),
        ("ready active", _ready_is_active),
    )
)


def _validate_conditions(job: Doc, errors: Errors) -> None:
    """Rules on conditions that bind every write."""
    for other in ("Failed", "FailureTarget"):
        text = f"cannot set SuccessCriteriaMet=True and {other}=true conditions"
        _exclude("SuccessCriteriaMet", other, text)(job, errors)
    if job["spec"].get("successPolicy") is not None:
        text = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        _need("Complete", "SuccessCriteriaMet", text)(job, errors)


def _validate_start_time(new: Doc, old: Doc, errors: Errors) -> None:
    resuming = is_true(old, "Suspended") and is_true(new, "Suspended", "False")
    if old["status"].get("startTime") is not None and not new["spec"].get("suspend") and not resuming:
        text = "field is immutable for unsuspended job once set"
        errors.invalid("status.startTime", new["status"].get("startTime"), text)


def _validate_progress(new: Doc, old: Doc, errors: Errors) -> None:
    """What has happened stays so: conditions, counters and times."""
    for condition in ("Failed", "Complete", "FailureTarget"):
        if is_true(old, condition) and not is_true(new, condition):
            invalid("status.conditions", f"cannot disable the terminal {condition}=True condition", errors)
    spec, status, was = new["spec"], new["status"], old["status"]
    scales = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for field in ("failed",) if scales else ("failed", "succeeded"):
        if (count := status.get(field, 0)) < was.get(field, 0):
            errors.invalid(f"status.{field}", count, f"cannot decrease the {field} counter")
    time = status.get("completionTime")
    if time is not None and was.get("completionTime") not in (None, time):
        errors.invalid("status.completionTime", time, IMMUTABLE)
    if is_true(old, "SuccessCriteriaMet") and not is_true(new, "SuccessCriteriaMet"):
        invalid("status.conditions", "cannot disable the SuccessCriteriaMet=True condition", errors)
    if is_true(old, "Complete") and not is_true(old, "SuccessCriteriaMet") and is_true(new, "SuccessCriteriaMet"):
        text = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        invalid("status.conditions", text, errors)
