"""What counts as a Job's failure or success: podFailurePolicy, successPolicy and the index lists they and status use.

Source of truth: batch/validation.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.cluster.embedded.admission.fields import Doc, Errors, quoted
from bayplan.cluster.embedded.admission.labels import validate_label_name
from bayplan.cluster.embedded.admission.metadata import NOT_NEGATIVE
from bayplan.cluster.embedded.admission.syntax import size
from bayplan.cluster.embedded.admission.workloads.numbers import atoi
from bayplan.model.errors import Cause

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")
_OPERATORS = ("In", "NotIn")
_MOST_RULES = 20
_MOST_PATTERNS = 20
_MOST_EXIT_CODES = 255
_INDEX_BYTES = 64 * 1024


def default_pod_failure_policy(spec: Doc) -> None:
    """A condition without status means that it is there."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"


def invalid(path: str, detail: str, errors: Errors) -> None:
    """A fault that upstream reports without the value."""
    errors.append(Cause(path, "FieldValueInvalid", f"Invalid value: {detail}"))


def _one_of(value: str, choices: Iterable[str], path: str, errors: Errors) -> None:
    if not value:
        errors.required(path, f"valid values: [{' '.join(map(quoted, choices))}]")
    elif value not in choices:
        errors.not_supported(path, value, choices)


def validate_pod_failure_policy(spec: Doc, path: str, errors: Errors) -> None:
    """Rules that look at a failed pod, the first that fits decides."""
    rules = spec["podFailurePolicy"].get("rules") or ()
    if len(rules) > _MOST_RULES:
        errors.too_many(f"{path}.rules", len(rules), _MOST_RULES)
    pod = spec["template"]["spec"]
    names = {c.get("name", "") for kind in ("containers", "initContainers") for c in pod.get(kind) or ()}
    for i, rule in enumerate(rules):
        _validate_failure_rule(rule, names, spec.get("backoffLimitPerIndex") is not None, f"{path}.rules[{i}]", errors)


def _validate_failure_rule(rule: Doc, names: set[str], per_index: bool, path: str, errors: Errors) -> None:
    action, codes, conditions = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions")
    if action == "FailIndex" and not per_index:
        errors.invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    _one_of(action, _ACTIONS, f"{path}.action", errors)
    if codes is not None:
        _validate_exit_codes(codes, names, f"{path}.onExitCodes", errors)
    if conditions:
        _validate_conditions(conditions, f"{path}.onPodConditions", errors)
    if codes is not None and conditions:
        invalid(path, "specifying both OnExitCodes and OnPodConditions is not supported", errors)
    if codes is None and not conditions:
        invalid(path, "specifying one of OnExitCodes and OnPodConditions is required", errors)


def _validate_conditions(conditions: list[Doc], path: str, errors: Errors) -> None:
    if len(conditions) > _MOST_PATTERNS:
        errors.too_many(path, len(conditions), _MOST_PATTERNS)
    for i, pattern in enumerate(conditions):
        validate_label_name(pattern.get("type", ""), f"{path}[{i}].type", errors)
        _one_of(pattern.get("status", ""), _STATUSES, f"{path}[{i}].status", errors)


def _validate_exit_codes(codes: Doc, names: set[str], path: str, errors: Errors) -> None:
    operator, values, container = codes.get("operator", ""), codes.get("values"), codes.get("containerName")
    _one_of(operator, _OPERATORS, f"{path}.operator", errors)
    if container is not None and container not in names:
        text = "must be one of the container or initContainer names in the pod template"
        errors.invalid(f"{path}.containerName", container, text)
    if not values:
        errors.invalid(f"{path}.values", values, "at least one value is required")
        return
    if len(values) > _MOST_EXIT_CODES:
        errors.too_many(f"{path}.values", len(values), _MOST_EXIT_CODES)
    for i, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.invalid(f"{path}.values[{i}]", value, "must not be 0 for the In operator")
        if value in values[:i]:
            errors.duplicate(f"{path}.values[{i}]", value)
    if values != sorted(values):
        errors.invalid(f"{path}.values", values, "must be ordered")


def validate_success_policy(spec: Doc, path: str, errors: Errors) -> None:
    """Rules by which an Indexed Job succeeds before all of its indexes have."""
    rules = spec["successPolicy"].get("rules") or ()
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        errors.required(f"{path}.rules", text)
    if len(rules) > _MOST_RULES:
        errors.too_many(f"{path}.rules", len(rules), _MOST_RULES)
    for i, rule in enumerate(rules):
        _validate_success_rule(rule, spec.get("completions") or 0, f"{path}.rules[{i}]", errors)


def _validate_success_rule(rule: Doc, completions: int, path: str, errors: Errors) -> None:
    count, indexes, total = rule.get("succeededCount"), rule.get("succeededIndexes"), 0
    if count is None and indexes is None:
        errors.required(path, "at least one of succeededCount or succeededIndexes must be specified")
    if indexes is not None:
        if size(indexes) > _INDEX_BYTES:
            errors.too_long(f"{path}.succeededIndexes", _INDEX_BYTES)
        try:
            total = count_indexes(indexes, completions)
        except IndexListError as fault:
            errors.invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {fault}")
    if count is None:
        return
    here, text = f"{path}.succeededCount", "must be less than or equal to"
    if count < 0:
        errors.invalid(here, count, NOT_NEGATIVE)
    if count > completions:
        errors.invalid(here, count, f"{text} {completions} (the number of specified completions)")
    if indexes is not None and count > total:
        errors.invalid(here, count, f"{text} {total} (the number of indexes in the specified succeededIndexes field)")


class IndexListError(ValueError):
    """A list of indexes that cannot be read; the text is for the user."""


def count_indexes(text: str, completions: int) -> int:
    """How many indexes are in `0,2-5`. Raises IndexListError for a list that is malformed, unordered or too high."""
    total, last = 0, None
    for interval in text.split(",") if text else ():
        first, final = parse_interval(interval, completions)
        if last is not None and last >= first:
            raise IndexListError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + final - first + 1, final
    return total


def parse_interval(interval: str, completions: int) -> tuple[int, int]:
    """First and last index of `3` or `2-5`. Raises IndexListError."""
    ends = interval.split("-")
    if len(ends) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IndexListError(f"the fragment {quoted(interval)} {rule}")
    numbers: list[int] = []
    for end in ends:
        number = atoi(end)
        if number is None:
            raise IndexListError(f"cannot convert string to integer for index: {quoted(end)}")
        if number >= completions:
            raise IndexListError(f"too large index: {quoted(end)}")
        numbers.append(number)
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        raise IndexListError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]
