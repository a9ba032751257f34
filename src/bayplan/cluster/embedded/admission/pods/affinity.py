"""Node affinity and pod affinity: the selectors that draw a pod to nodes and to other pods, or keep it away.

Source of truth: kubernetes 1.36 pkg/apis/core/validation; `merge_label_keys` is pkg/registry/core/pod/strategy.go.
Preferred terms may hold impossible label values (they only warn), required ones may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.labels import validate_label_name, validate_label_selector
from bayplan.cluster.embedded.admission.syntax import dns1123_label, dns1123_subdomain, label_value

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_BAD_OPERATOR = "not a valid selector operator"


def validate_affinity(affinity: Doc, path: str, errors: Errors) -> None:
    """All three sorts of affinity."""
    if (node := affinity.get("nodeAffinity")) is not None:
        _validate_node_affinity(node, f"{path}.nodeAffinity", errors)
    for sort in ("podAffinity", "podAntiAffinity"):
        if (pod := affinity.get(sort)) is not None:
            _validate_pod_affinity(pod, f"{path}.{sort}", errors)


def _validate_node_affinity(affinity: Doc, path: str, errors: Errors) -> None:
    if (required := affinity.get(REQUIRED)) is not None:
        validate_node_selector(required, f"{path}.{REQUIRED}", errors)
    for i, term in enumerate(affinity.get(PREFERRED, ())):
        here = f"{path}.{PREFERRED}[{i}]"
        _validate_weight(term, here, errors)
        _validate_node_selector_term(term.get("preference", {}), f"{here}.preference", errors, any_value=True)


def validate_node_selector(selector: Doc, path: str, errors: Errors) -> None:
    """A node selector: at least one term."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        errors.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        return
    for i, term in enumerate(terms):
        _validate_node_selector_term(term, f"{path}.nodeSelectorTerms[{i}]", errors, any_value=False)


def _validate_node_selector_term(term: Doc, path: str, errors: Errors, *, any_value: bool) -> None:
    for i, requirement in enumerate(term.get("matchExpressions", ())):
        here = f"{path}.matchExpressions[{i}]"
        _validate_expression(requirement, here, errors)
        if not any_value:
            for j, value in enumerate(requirement.get("values", ())):
                for fault in label_value(value):
                    errors.invalid(f"{here}.values[{j}]", value, fault)
    for i, requirement in enumerate(term.get("matchFields", ())):
        _validate_field_expression(requirement, f"{path}.matchFields[{i}]", errors)


def _validate_expression(requirement: Doc, path: str, errors: Errors) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    if operator in ("In", "NotIn"):
        if not values:
            errors.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        errors.invalid(f"{path}.operator", operator, _BAD_OPERATOR)
    validate_label_name(requirement.get("key", ""), f"{path}.key", errors)


def _validate_field_expression(requirement: Doc, path: str, errors: Errors) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    if operator not in ("In", "NotIn"):
        errors.invalid(f"{path}.operator", operator, _BAD_OPERATOR)
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.required(f"{path}.values", text)
    key = requirement.get("key", "")
    if key != "metadata.name":
        errors.invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for i, value in enumerate(values):
        for fault in dns1123_subdomain(value):
            errors.invalid(f"{path}.values[{i}]", value, fault)


def _validate_weight(term: Doc, path: str, errors: Errors) -> None:
    weight = term.get("weight", 0)
    if not 1 <= weight <= 100:
        errors.invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _validate_pod_affinity(affinity: Doc, path: str, errors: Errors) -> None:
    for i, term in enumerate(affinity.get(REQUIRED, ())):
        _validate_pod_term(term, f"{path}.{REQUIRED}[{i}]", errors)
    for i, weighted in enumerate(affinity.get(PREFERRED, ())):
        here = f"{path}.{PREFERRED}[{i}]"
        _validate_weight(weighted, here, errors)
        _validate_pod_term(weighted.get("podAffinityTerm", {}), f"{here}.podAffinityTerm", errors)


def _validate_pod_term(term: Doc, path: str, errors: Errors) -> None:
    selector = term.get("labelSelector")
    validate_label_selector(selector, f"{path}.labelSelector", errors)
    validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector", errors)
    for name in term.get("namespaces", ()):
        for fault in dns1123_label(name):
            errors.invalid(f"{path}.namespace", name, fault)
    validate_label_keys(term, path, errors)
    key = term.get("topologyKey", "")
    if not key:
        errors.required(f"{path}.topologyKey", "can not be empty")
    validate_label_name(key, f"{path}.topologyKey", errors)


def validate_label_keys(term: Doc, path: str, errors: Errors) -> None:
    """matchLabelKeys and mismatchLabelKeys of an affinity term or spread constraint, merged into its selector."""
    match, mismatch = term.get("matchLabelKeys", ()), term.get("mismatchLabelKeys", ())
    if not match and not mismatch:
        return
    selector = term.get("labelSelector")
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            errors.forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set")
            continue
        for i, key in enumerate(keys):
            validate_label_name(key, f"{path}.{field}[{i}]", errors)
    if selector is not None:
        _refuse_keys_selected_twice(match, selector, path, errors)
    for i, key in enumerate(match):
        if key in mismatch:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.invalid(f"{path}.matchLabelKeys[{i}]", key, text)


def _refuse_keys_selected_twice(keys: Sequence[str], selector: Doc, path: str, errors: Errors) -> None:
    # The selector holds one expression a key by now (merge_label_keys); a second one is the user's own.
    places = {key: i for i, key in enumerate(keys)}
    seen = set(selector.get("matchLabels", ()))
    for expression in selector.get("matchExpressions", ()):
        key = expression.get("key", "")
        if key in places and key in seen:
            errors.invalid(f"{path}[{places[key]}]", key, "exists in both matchLabelKeys and labelSelector")
        seen.add(key)


def merge_label_keys(spec: Doc, labels: Doc) -> None:
    """Write a new pod's matchLabelKeys and mismatchLabelKeys into the selectors beside them."""
    for term in _terms_with_keys(spec):
        selector = term.get("labelSelector")
        if selector is None:
            continue
        added = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in term.get(field, ())
            if key in labels
        ]
        if added:
            selector["matchExpressions"] = [*selector.get("matchExpressions", ()), *added]


def _terms_with_keys(spec: Doc) -> Iterator[Doc]:
    affinity = spec.get("affinity") or {}
    for sort in ("podAffinity", "podAntiAffinity"):
        yield from pod_terms(affinity.get(sort) or {})
    yield from spec.get("topologySpreadConstraints", ())


def pod_terms(affinity: Doc) -> Iterator[Doc]:
    """The terms of a pod affinity, preferred ones without their weights."""
    yield from affinity.get(REQUIRED, ())
    for weighted in affinity.get(PREFERRED, ()):
        yield weighted.get("podAffinityTerm", {})
