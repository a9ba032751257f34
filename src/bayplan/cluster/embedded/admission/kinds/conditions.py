"""Conditions of the standard form (metav1.Condition), which some kinds check when status is written.

Source of truth: apimachinery pkg/apis/meta/v1/validation, ValidateConditions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.labels import validate_label_name
from bayplan.cluster.embedded.admission.syntax import regex_text, size

_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT = regex_text(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)
_is_reason = re.compile(_REASON).fullmatch
_REASON_BYTES = 1024
_MESSAGE_BYTES = 32 * 1024


def validate_conditions(conditions: Sequence[Doc], path: str, errors: Errors) -> None:
    """A list of conditions, one of each type."""
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        kind = condition.get("type", "")
        if kind in seen:
            errors.duplicate(f"{path}[{i}].type", kind)
        seen.add(kind)
        _validate_condition(condition, f"{path}[{i}]", errors)


def _validate_condition(condition: Doc, path: str, errors: Errors) -> None:
    validate_label_name(condition.get("type", ""), f"{path}.type", errors)
    if (status := condition.get("status", "")) not in _STATUSES:
        errors.not_supported(f"{path}.status", status, _STATUSES)
    if (generation := condition.get("observedGeneration", 0)) < 0:
        errors.invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero")
    if not condition.get("lastTransitionTime"):
        errors.required(f"{path}.lastTransitionTime")
    reason = condition.get("reason", "")
    if not reason:
        errors.required(f"{path}.reason")
    elif not _is_reason(reason):
        errors.invalid(f"{path}.reason", reason, _REASON_TEXT)
    if size(reason) > _REASON_BYTES:
        errors.too_long(f"{path}.reason", _REASON_BYTES)
    if size(condition.get("message", "")) > _MESSAGE_BYTES:
        errors.too_long(f"{path}.message", _MESSAGE_BYTES)
