"""Nodes: taints, address ranges and what they have to give; the one kind whose status may come with the create.

Source of truth: core/v1/defaults.go and conversion.go (podCIDR and podCIDRs are one thing), core/validation,
registry/core/node/strategy.go. Faults of taints are reported under metadata, as upstream does. The configSource of old
is dropped; the taint of a node that is not ready is an admission plugin's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv6Address

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.addresses import cidr_warnings
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec
from bayplan.cluster.embedded.admission.labels import validate_label_name
from bayplan.cluster.embedded.admission.pods.resources import round_resource_list, validate_quantity_value
from bayplan.cluster.embedded.admission.pods.scheduling import validate_taint_effect
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import cidr, label_value, parse_cidr, size, subdomain_name
from bayplan.cluster.kinds import NODE
from bayplan.model.errors import Cause

_FEATURE = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*").fullmatch
_FEATURE_FORM = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)


def _default(doc: Doc) -> None:
    spec, status = doc["spec"], doc["status"]
    first, ranges = spec.get("podCIDR", ""), spec.get("podCIDRs", [])
    if first and first != (ranges[0] if ranges else ""):
        ranges = spec["podCIDRs"] = [first]  # the older field wins
    if ranges and ranges[0]:
        spec["podCIDR"] = ranges[0]
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])
    for field in ("capacity", "allocatable"):
        round_resource_list(status.get(field, {}))


def _prepare(doc: Doc) -> None:
    doc["spec"].pop("configSource", None)
    doc["status"].pop("config", None)


def _prepare_update(new: Doc, old: Doc) -> None:
    new["status"] = old["status"]
    new["spec"].pop("configSource", None)


def _prepare_status(new: Doc, old: Doc) -> None:
    keep_spec(new, old)
    new["status"].pop("config", None)


def _validate(doc: Doc, errors: Errors) -> None:
    _validate_taints(doc["spec"].get("taints", ()), errors)
    _validate_status_values(doc["status"], errors)
    swap = (doc["status"].get("nodeInfo", {}).get("swap") or {}).get("capacity", 1)
    if swap <= 0:
        errors.invalid("metadata.nodeSwapStatus.capacity", swap, "must be greater than zero")
    _validate_ranges(doc["spec"].get("podCIDRs", []), errors)


def _validate_taints(taints: Sequence[Doc], errors: Errors) -> None:
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        path, key = f"metadata.taints[{i}]", taint.get("key", "")
        value, effect = taint.get("value", ""), taint.get("effect", "")
        validate_label_name(key, f"{path}.key", errors)
        if faults := label_value(value):
            errors.invalid(f"{path}.value", value, ";".join(faults))
        if effect:
            validate_taint_effect(effect, f"{path}.effect", errors)
        else:
            errors.required(f"{path}.effect")
        if (key, effect) in seen:
            text = "Duplicate value: {...}: taints must be unique by key and effect pair"
            errors.append(Cause(path, "FieldValueDuplicate", text))
        seen.add((key, effect))


def _validate_status_values(status: Doc, errors: Errors) -> None:
    for field in ("capacity", "allocatable"):
        for resource, amount in status.get(field, {}).items():
            validate_quantity_value(resource, amount, f"status.{field}.{resource}", errors)
    features = status.get("declaredFeatures", ())
    for i, feature in enumerate(features):
        _validate_feature(feature, features[i - 1] if i else "", f"status.declaredFeatures[{i}]", errors)


def _validate_feature(feature: str, before: str, path: str, errors: Errors) -> None:
    if size(feature) > 253:
        errors.invalid(path, feature, f'invalid feature name "{feature}": must be no more than 253 characters')
    elif not _FEATURE(feature):
        errors.invalid(path, feature, f'invalid feature name "{feature}": {_FEATURE_FORM}')
    if feature == before:
        errors.duplicate(path, feature)
    elif feature < before:
        errors.invalid(path, feature, "list must be sorted alphabetically")


def _validate_ranges(ranges: Sequence[str], errors: Errors) -> None:
    path = "spec.podCIDRs"
    for i, value in enumerate(ranges):
        for fault in cidr(value):
            errors.invalid(f"{path}[{i}]", value, fault)
    if len(ranges) < 2:
        return
    parsed = [parse_cidr(value) for value in ranges]
    if None in parsed:
        bad = ranges[parsed.index(None)]
        detail = f"failed to check with dual stack with error:invalid CIDR[{parsed.index(None)}]"
        errors.internal(path, f"invalid PodCIDRs. {detail}: <nil> (invalid CIDR address: {bad})")
    families = {isinstance(block[0], IPv6Address) for block in parsed if block}
    if len(families) < 2 or len(ranges) > 2 or None in parsed:
        errors.invalid(path, ranges, "may specify no more than one CIDR for each IP family")


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    _validate(new, errors)
    _validate_change(new, old, errors)


def _validate_status(new: Doc, old: Doc, errors: Errors) -> None:
    _validate_change(new, old, errors)
    _validate_taints(new["spec"].get("taints", ()), errors)
    _validate_status_values(new["status"], errors)


def _validate_change(new: Doc, old: Doc, errors: Errors) -> None:
    seen: set[tuple[str, str]] = set()
    for i, address in enumerate(new["status"].get("addresses", ())):
        pair = address.get("type", ""), address.get("address", "")
        if pair in seen:
            errors.duplicate(f"status.addresses[{i}]", {"Address": pair[1], "Type": pair[0]})
        seen.add(pair)
    spec, was = new["spec"], old["spec"]
    if was.get("podCIDRs") and was["podCIDRs"] != spec.get("podCIDRs"):
        errors.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if was.get("providerID") and was["providerID"] != spec.get("providerID"):
        errors.forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')
    if was.get("externalID") != spec.get("externalID"):
        errors.forbidden("spec.externalID", "may not be updated")


def _warn(new: Doc, _old: Doc | None) -> list[str]:
    spec, warnings = new["spec"], []
    if spec.get("externalID"):
        warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    for i, value in enumerate(spec.get("podCIDRs", ())):
        warnings += cidr_warnings(f"spec.podCIDRs[{i}]", value)
    return warnings


STRATEGY = Strategy(
    kind=NODE,
    name_rule=subdomain_name,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    prepare_update=_prepare_update,
    validate_update=_validate_update,
    prepare_status=_prepare_status,
    validate_status=_validate_status,
    warn=_warn,
)
