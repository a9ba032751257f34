"""Labels and the selectors that pick objects by them.

Source of truth: apimachinery pkg/apis/meta/v1/validation. A bad label is reported on the whole map.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.syntax import label_value, qualified_name
from bayplan.model.meta import LabelSelector
from bayplan.model.selectors import Selector, SelectorError, from_label_selector


def validate_label_name(name: str, path: str, errors: Errors) -> None:
    """One label key, or another field that has the form of one."""
    for fault in qualified_name(name):
        errors.invalid(path, name, fault)


def validate_labels(labels: Mapping[str, str], path: str, errors: Errors) -> None:
    """Keys and values of a label map; also of matchLabels and nodeSelector."""
    for key, value in labels.items():
        for fault in qualified_name(key):
            errors.invalid(path, key, fault)
        for fault in label_value(value):
            errors.invalid(path, value, fault)


def validate_label_selector(selector: Doc | None, path: str, errors: Errors, *, invalid_values: bool = False) -> None:
    """A label selector; `invalid_values` lets impossible values pass, for objects that were stored with them."""
    if not selector:
        return
    validate_labels(selector.get("matchLabels", {}), f"{path}.matchLabels", errors)
    for i, requirement in enumerate(selector.get("matchExpressions", ())):
        here = f"{path}.matchExpressions[{i}]"
        _validate_requirement(requirement, here, errors)
        if not invalid_values:
            for j, value in enumerate(requirement.get("values", ())):
                for fault in label_value(value):
                    errors.invalid(f"{here}.values[{j}]", value, fault)


def _validate_requirement(requirement: Doc, path: str, errors: Errors) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values")
    if operator in ("In", "NotIn"):
        if not values:
            errors.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        errors.invalid(f"{path}.operator", operator, "not a valid selector operator")
    validate_label_name(requirement.get("key", ""), f"{path}.key", errors)


def has_invalid_values(selector: Doc | None) -> bool:
    """Whether a stored selector holds values that are no label values."""
    expressions: list[dict[str, Any]] = (selector or {}).get("matchExpressions", [])
    return any(label_value(value) for expression in expressions for value in expression.get("values", ()))


def read_selector(selector: Doc | None) -> Selector | None:
    """A selector ready to match, or None if it cannot be read: then `validate_label_selector` says why."""
    try:
        return from_label_selector(msgspec.convert(selector, LabelSelector | None))
    except SelectorError:
        return None


def is_empty(selector: Doc) -> bool:
    """Whether a selector picks everything."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")
