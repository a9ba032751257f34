"""Jobs: pods that run to an end.

Source of truth: batch/validation, batch/v1/defaults.go, registry/batch/job/strategy.go. A Job's selector and the labels
it picks by are made from the Job's uid, unless it says manualSelector.
"""

from __future__ import annotations

from typing import Any

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, keep_status
from bayplan.cluster.embedded.admission.labels import has_invalid_values, read_selector, validate_label_selector
from bayplan.cluster.embedded.admission.metadata import IMMUTABLE
from bayplan.cluster.embedded.admission.pods.defaults import default_pod_template
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import dns1123_label, label_value, subdomain_name
from bayplan.cluster.embedded.admission.workloads.job_policies import default_pod_failure_policy
from bayplan.cluster.embedded.admission.workloads.job_spec import job_spec_warnings, validate_job_spec
from bayplan.cluster.embedded.admission.workloads.job_status import is_true, validate_job_status
from bayplan.cluster.embedded.admission.workloads.templates import (
    generation_moved,
    name_warnings,
    validate_immutable,
    validate_match,
)
from bayplan.cluster.kinds import JOB

_UID, _NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
_OLD_UID, _OLD_NAME = "controller-uid", "job-name"
_SCHEDULING = frozenset(("affinity", "nodeSelector", "tolerations", "schedulingGates", "containers", "initContainers"))


def _default(doc: Doc) -> None:
    spec = doc["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if "backoffLimitPerIndex" not in spec else 2**31 - 1)
    labels = spec["template"]["metadata"].get("labels")
    if labels and not doc["metadata"].get("labels"):
        # One map for both, as upstream: the labels that `prepare` generates reach the Job's own too.
        doc["metadata"]["labels"] = labels
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    default_pod_failure_policy(spec)
    default_pod_template(spec["template"])


def _prepare(doc: Doc) -> None:
    spec = doc["spec"]
    if not spec["manualSelector"]:
        labels = spec["template"]["metadata"].setdefault("labels", {})
        for key, value in _generated(doc).items():
            labels.setdefault(key, value)
        if not doc["metadata"].get("labels") and not label_value(labels[_OLD_NAME]):
            # Upstream defaults once more when it reads back what it stored, hence only labels that pass validation.
            doc["metadata"]["labels"] = labels
        if spec.get("selector") is None:
            spec["selector"] = {}
        spec["selector"].setdefault("matchLabels", {}).setdefault(_UID, doc["metadata"]["uid"])
    _part_labels(doc)
    doc["status"] = {}


def _prepare_update(new: Doc, old: Doc) -> None:
    _part_labels(new)
    keep_status(new, old)


def _part_labels(doc: Doc) -> None:
    """End the sharing that `_default` began."""
    if labels := doc["metadata"].get("labels"):
        doc["metadata"]["labels"] = dict(labels)


def _generated(doc: Doc, *, prefixed: bool = True) -> dict[str, str]:
    """The labels of a Job's pods; those without prefix came first and stay."""
    uid, name = doc["metadata"].get("uid", ""), doc["metadata"].get("name", "")
    old = {_OLD_UID: uid, _OLD_NAME: name}
    return old | {_UID: uid, _NAME: name} if prefixed else old


def _validate(doc: Doc, errors: Errors) -> None:
    _validate_job(doc, errors, prefixed=True, invalid_values=False)


def _validate_job(doc: Doc, errors: Errors, *, prefixed: bool, invalid_values: bool) -> None:
    spec = doc["spec"]
    _validate_generated(doc, prefixed, errors)
    validate_job_spec(spec, "spec", errors)
    selector = spec.get("selector")
    if selector is None:
        errors.required("spec.selector")
    validate_label_selector(selector, "spec.selector", errors, invalid_values=invalid_values)
    if (readable := read_selector(selector)) is not None:
        validate_match(readable, spec["template"], errors)
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        name = doc["metadata"].get("name", "")
        hostname = f"{name}-{spec['completions'] - 1}"
        if dns1123_label(hostname):
            errors.invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {hostname}")


def _validate_generated(doc: Doc, prefixed: bool, errors: Errors) -> None:
    """The labels are the generated ones: a client may have sent others under the same keys."""
    spec = doc["spec"]
    selector = spec.get("selector")
    if spec["manualSelector"] or selector is None:
        return
    if not doc["metadata"].get("uid"):
        errors.required("metadata.uid")
    expected, labels = _generated(doc, prefixed=prefixed), spec["template"]["metadata"].get("labels", {})
    for key, value in expected.items():
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            errors.required(path, f"must be '{value}'")
        elif labels[key] != value:
            errors.invalid(path, labels, f"must be '{value}'")
    readable = read_selector(selector)
    if readable is not None and not readable.matches(expected):
        errors.invalid("spec.selector", selector, "`selector` not auto-generated")


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    spec, was = new["spec"], old["spec"]
    had = was["template"]["metadata"].get("labels", {})
    _validate_job(
        new, errors, prefixed=_UID in had and _NAME in had, invalid_values=has_invalid_values(was.get("selector"))
    )
    _validate_completions(spec, was, errors)
    validate_immutable(spec, was, "selector", errors)
    _validate_template_update(new, old, errors)
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        validate_immutable(spec, was, field, errors)


def _validate_completions(spec: Doc, was: Doc, errors: Errors) -> None:
    completions = spec.get("completions")
    if spec.get("completionMode") != "Indexed":
        validate_immutable(spec, was, "completions", errors)
    elif completions not in (None, was.get("completions")) and completions != spec.get("parallelism"):
        errors.invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")


def _validate_template_update(new: Doc, old: Doc, errors: Errors) -> None:
    """The template is fixed; while a Job is suspended and has no pods, its resources and placement are not."""
    template, was = new["spec"]["template"], old["spec"]["template"]
    if not _is_idle(old):
        if template != was:
            errors.invalid("spec.template", template, IMMUTABLE)
    elif _fixed(template["spec"]) != _fixed(was["spec"]):
        errors.invalid("spec.template.spec", template["spec"], IMMUTABLE)


def _is_idle(job: Doc) -> bool:
    status = job["status"]
    halted = status.get("startTime") is None or is_true(job, "Suspended")
    return bool(job["spec"].get("suspend")) and halted and not status.get("active")


def _fixed(pod: Doc) -> Doc:
    affinity: Doc = pod.get("affinity") or {}
    parts: dict[str, Any] = {field: value for field, value in pod.items() if field not in _SCHEDULING}
    parts["affinity"] = {field: value for field, value in affinity.items() if field != "nodeAffinity"}
    for kind in ("containers", "initContainers"):
        parts[kind] = [{f: v for f, v in c.items() if f != "resources"} for c in pod.get(kind) or ()]
    return parts


def _warn(new: Doc, old: Doc | None) -> list[str]:
    if old is not None and not generation_moved(new, old):
        return []
    return (name_warnings(new) if old is None else []) + job_spec_warnings(new["spec"], "spec")


STRATEGY = Strategy(
    kind=JOB,
    name_rule=subdomain_name,
    generation=True,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    prepare_update=_prepare_update,
    validate_update=_validate_update,
    prepare_status=keep_spec,
    validate_status=validate_job_status,
    warn=_warn,
)
