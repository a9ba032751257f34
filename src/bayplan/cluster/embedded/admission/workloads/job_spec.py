"""The spec of a Job, alone or inside a CronJob.

Source of truth: batch/validation (validateJobSpec, ValidateJobTemplateSpec), pkg/api/job/warnings.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.spec import validate_pod_template
from bayplan.cluster.embedded.admission.pods.warnings import pod_template_warnings
from bayplan.cluster.embedded.admission.syntax import dns1123_subdomain, http_path, size
from bayplan.cluster.embedded.admission.workloads.job_policies import (
    validate_pod_failure_policy,
    validate_success_policy,
)
from bayplan.cluster.embedded.admission.workloads.numbers import as_struct, not_negative

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MODES = ("NonIndexed", "Indexed")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_MANAGER_BYTES = 63

# Limits that keep status.completedIndexes and status.failedIndexes short enough to store.
_MOST_PARALLEL = 100_000
_MOST_FAILED = 100_000
_MANY_COMPLETIONS = 100_000
_MOST_PARALLEL_OF_MANY = 10_000
_MOST_FAILED_OF_MANY = 10_000


def validate_job_spec(spec: Doc, path: str, errors: Errors) -> None:
    """Everything but the selector."""
    not_negative(spec, path, errors, _COUNTS)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if (manager := spec.get("managedBy")) is not None:
        _validate_manager(manager, f"{path}.managedBy", errors)
    mode = spec.get("completionMode")
    if mode is not None and mode not in _MODES:
        errors.not_supported(f"{path}.completionMode", mode, _MODES)
    if mode == "Indexed":
        _validate_indexed(spec, path, errors)
    elif mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                errors.invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
    _validate_policies(spec, path, errors)
    validate_pod_template(spec["template"], f"{path}.template", errors)
    _validate_restart_policy(spec, f"{path}.template.spec.restartPolicy", errors)


def _validate_manager(manager: str, path: str, errors: Errors) -> None:
    host, _, rest = manager.partition("/")
    if not manager:
        errors.required(path)
    elif not host or not rest:
        errors.invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        for fault in dns1123_subdomain(host):
            errors.invalid(path, host, fault)
        for fault in http_path(rest):
            errors.invalid(path, rest, fault)
    if size(manager) > _MANAGER_BYTES:
        errors.too_long(path, _MANAGER_BYTES)


def _validate_indexed(spec: Doc, path: str, errors: Errors) -> None:
    completions, failed = spec.get("completions"), spec.get("maxFailedIndexes") or 0
    parallelism = spec.get("parallelism") or 0
    at_most = "must be less than or equal to"
    if completions is None:
        errors.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism > _MOST_PARALLEL:
        text = f"{at_most} {_MOST_PARALLEL} when completion mode is Indexed"
        errors.invalid(f"{path}.parallelism", parallelism, text)
    if completions is not None and "maxFailedIndexes" in spec and failed > completions:
        errors.invalid(f"{path}.maxFailedIndexes", failed, f"{at_most} completions")
    if failed > _MOST_FAILED:
        errors.invalid(f"{path}.maxFailedIndexes", failed, f"{at_most} {_MOST_FAILED}")
    if (completions or 0) > _MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        _validate_many_completions(spec, path, errors)


def _validate_many_completions(spec: Doc, path: str, errors: Errors) -> None:
    if spec.get("maxFailedIndexes") is None:
        errors.required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {_MANY_COMPLETIONS}")
    for field, most in (("parallelism", _MOST_PARALLEL_OF_MANY), ("maxFailedIndexes", _MOST_FAILED_OF_MANY)):
        if (value := spec.get(field) or 0) > most:
            when = f"when completions are above {_MANY_COMPLETIONS} and used with backoff limit per index"
            errors.invalid(f"{path}.{field}", value, f"must be less than or equal to {most} {when}")


def _validate_policies(spec: Doc, path: str, errors: Errors) -> None:
    failure, success, replacement = (
        spec.get(field) for field in ("podFailurePolicy", "successPolicy", "podReplacementPolicy")
    )
    if failure is not None:
        validate_pod_failure_policy(spec, f"{path}.podFailurePolicy", errors)
    if success is not None:
        if spec.get("completionMode") == "Indexed":
            validate_success_policy(spec, f"{path}.successPolicy", errors)
        else:
            shown = as_struct(success, "rules")
            errors.invalid(f"{path}.successPolicy", shown, "requires indexed completion mode")
    allowed = _REPLACEMENTS if failure is None else ("Failed",)
    if replacement is not None and replacement not in allowed:
        errors.not_supported(f"{path}.podReplacementPolicy", replacement, allowed)


def _validate_restart_policy(spec: Doc, path: str, errors: Errors) -> None:
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("Always", ""):
        errors.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        errors.not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        errors.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def validate_job_template(template: Doc, path: str, errors: Errors) -> None:
    """The Job inside a CronJob; its selector will be generated."""
    spec = template["spec"]
    validate_job_spec(spec, f"{path}.spec", errors)
    if spec.get("selector") is not None:
        errors.invalid(f"{path}.spec.selector", spec["selector"], "`selector` will be auto-generated")
    if spec.get("manualSelector"):
        errors.not_supported(f"{path}.spec.manualSelector", True, ("nil", "false"))


def job_spec_warnings(spec: Doc, path: str) -> list[str]:
    """Of the size of an Indexed Job, and of its template."""
    warnings: list[str] = []
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    if spec.get("completionMode") == "Indexed" and completions > _MANY_COMPLETIONS and parallelism > 10_000:
        warnings.append(
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    return warnings + pod_template_warnings(spec["template"], f"{path}.template")
