"""LimitRanges: least, most and usual amounts for the containers, pods and claims of a namespace.

A container's maximum is its default limit, that its default request; failing both, the minimum is.
Source of truth: core/validation ValidateLimitRange, core/v1/defaults.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.pods.resources import (
    container_resource_name_faults,
    overcommits,
    resource_name_faults,
    round_resource_list,
)
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import qualified_name, subdomain_name
from bayplan.cluster.kinds import LIMIT_RANGE
from bayplan.model.quantity import Quantity, parse

_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_MAX_MILLI_VALUE = (2**63 - 1) // 1000

_ORDER = (
    # field, what must not exceed it, field of the report, value shown, words
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)
"""Pairs of which the first must not be above the second, where it is reported and with which value."""


def _default(doc: Doc) -> None:
    doc["spec"]["limits"] = doc["spec"].get("limits") or None
    for limit in doc["spec"]["limits"] or ():
        if limit.get("type") == "Container":
            default = limit.get("max", {}) | limit.get("default", {})
            request = limit.get("min", {}) | default | limit.get("defaultRequest", {})
            for field, amounts in (("default", default), ("defaultRequest", request)):
                if amounts:
                    limit[field] = amounts
        for field in _FIELDS:
            round_resource_list(limit.get(field, {}))


def _validate(doc: Doc, errors: Errors) -> None:
    seen: set[str] = set()
    for i, limit in enumerate(doc["spec"].get("limits") or ()):
        path, kind = f"spec.limits[{i}]", limit.get("type", "")
        faults = qualified_name(kind)
        if not faults and "/" not in kind and kind not in _TYPES:
            faults = ["must be a standard limit type or fully qualified"]
        for fault in faults:
            errors.invalid(f"{path}.type", kind, fault)
        if kind in seen:
            errors.duplicate(f"{path}.type", kind)
        seen.add(kind)
        _validate_limit(limit, kind, path, errors)


def _validate_limit(limit: Doc, kind: str, path: str, errors: Errors) -> None:
    fields: tuple[str, ...] = _FIELDS
    if kind == "Pod":
        for field in ("default", "defaultRequest"):
            if limit.get(field):
                errors.forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
        fields = ("max", "min", "maxLimitRequestRatio")
    if kind == "PersistentVolumeClaim" and not any("storage" in limit.get(field, {}) for field in ("min", "max")):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        errors.required(f"{path}.limits", detail)
    name_faults = container_resource_name_faults if kind in ("Pod", "Container") else resource_name_faults
    amounts: dict[str, dict[str, Quantity]] = {}
    for field in fields:
        for resource, amount in limit.get(field, {}).items():
            for fault in name_faults(resource):
                errors.invalid(f"{path}.{field}[{resource}]", resource, fault)
            amounts.setdefault(resource, {})[field] = parse(amount)
    for resource, given in amounts.items():
        texts = {field: limit[field][resource] for field in given}
        _validate_order(resource, given, texts, path, errors)
        if "maxLimitRequestRatio" in given:
            _validate_ratio(given, texts, f"{path}.maxLimitRequestRatio[{resource}]", errors)


def _validate_order(
    resource: str, given: dict[str, Quantity], texts: dict[str, str], path: str, errors: Errors
) -> None:
    for low, high, field, shown, words in _ORDER:
        if low in given and high in given and given[low] > given[high]:
            errors.invalid(f"{path}.{field}[{resource}]", texts[shown], words.format(texts[low], texts[high]))
    default, request = given.get("default"), given.get("defaultRequest")
    if default is not None and request is not None and default != request and not overcommits(resource):
        words = f"default value {texts['default']} must equal to defaultRequest value {texts['defaultRequest']}"
        errors.invalid(f"{path}.defaultRequest[{resource}]", texts["defaultRequest"], f"{words} in {resource}")


def _validate_ratio(given: dict[str, Quantity], texts: dict[str, str], path: str, errors: Errors) -> None:
    ratio, text = given["maxLimitRequestRatio"], texts["maxLimitRequestRatio"]
    if ratio < Quantity.whole(1):
        errors.invalid(path, text, f"ratio {text} is less than 1")
    least, most = given.get("min"), given.get("max")
    if least is None or most is None or not least:
        return  # a minimum of zero allows any ratio
    value, possible = float(ratio.value()), most.value() / least.value()
    if all(amount.value() < _MAX_MILLI_VALUE for amount in (ratio, least, most)):
        value, possible = ratio.milli() / 1000, most.milli() / least.milli()
    if value > possible:
        errors.invalid(path, text, f"ratio {text} is greater than max/min = {possible:f}")


def _validate_update(new: Doc, _old: Doc, errors: Errors) -> None:
    _validate(new, errors)


def _prepare(doc: Doc) -> None:
    """A LimitRange without a name is named like a UID; its own will do."""
    meta = doc["metadata"]
    if not meta.get("name"):
        meta["name"] = meta["uid"]


STRATEGY = Strategy(
    kind=LIMIT_RANGE,
    name_rule=subdomain_name,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    validate_update=_validate_update,
    create_on_update=True,
)
